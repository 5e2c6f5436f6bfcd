/**
 * The main thread's pool of tablet servers' threads: starts them, connects each with all others, directs them, and
 * cleans up after those that end.
 *
 * Invariants: a thread's sessions in the lock service end only when the thread has ended, so that its tablets are
 * served elsewhere only when it cannot write any more; one port connects two live threads.
 */
import { MessageChannel, type Worker } from 'node:worker_threads';
import { toBigtableError, unavailable } from '../../base/index.ts';
import { type Env, type MetricsReport, requestContext, sleep, sumOfReports } from '../../env/index.ts';
import {
  LockServiceHandler,
  PortPeer,
  type PortTransport,
  sharedLeases,
  stackOf,
  startThread,
} from '../../platform/index.ts';
import { type HostedServer, MASTER_ADDRESS, serverAddress } from '../open/database.ts';
import type { DatabaseSettings } from '../settings/settings.ts';
import { connectionCounts, endAcceptTurns } from './accept-turns.ts';
import { logCounts, takeLine } from './thread-log.ts';
import {
  threadAddress,
  type ThreadMethod,
  type ThreadNotice,
  type ThreadRoute,
  type ThreadStart,
} from './thread-protocol.ts';

/** The longest wait for a report of a thread. */
const MAX_REPORT_MS = 1000;

export interface ThreadPoolOptions {
  readonly env: Env & { readonly transport: PortTransport };
  readonly settings: DatabaseSettings;
  /** Absolute. */
  readonly directory: string;
  readonly count: number;
  /** A module that calls `runServerThread`. */
  readonly module: URL;
}

export class ThreadPool {
  readonly #options: ThreadPoolOptions;
  readonly #threads: (ServerThread | undefined)[];
  /** The options of `listen`, once it was called; new threads listen with them too. */
  #listening: { readonly options: unknown } | undefined;
  #starts = 0;
  readonly #connections: Int32Array;
  /** The last reports of threads that have ended. */
  readonly #ended: MetricsReport[] = [];

  constructor(options: ThreadPoolOptions) {
    this.#options = options;
    this.#threads = new Array(options.count).fill(undefined);
    this.#connections = connectionCounts(options.count);
  }

  /** Starts a new thread with a new incarnation of the server of that index. */
  async start(index: number, onEnd: () => void): Promise<HostedServer> {
    const { env, settings, directory, count: tabletServers, module } = this.#options;
    const lockService = `lock-service-${index}-${this.#starts++}`;
    const leases = sharedLeases();
    const counts = logCounts();
    const locks = new LockServiceHandler(env.lockService, leases);
    const stopServing = await env.transport.serve(lockService, locks);
    const toMain = new MessageChannel();
    const routes: ThreadRoute[] = [{ addresses: [MASTER_ADDRESS, lockService], port: toMain.port1 }];
    for (const [other, thread] of this.#threads.entries()) {
      if (!thread) continue;
      const { port1, port2 } = new MessageChannel();
      routes.push({ addresses: [serverAddress(other)], port: port1 });
      thread.connect({ addresses: [serverAddress(index)], port: port2 });
    }
    const data: ThreadStart = {
      index,
      tabletServers,
      directory,
      settings,
      lockService,
      leases,
      logCounts: counts,
      connections: this.#connections,
      routes,
    };
    const worker = startThread(module, {
      workerData: data,
      transferList: routes.map(({ port }) => port),
      name: `tablet server ${index}`,
    });
    const thread = new ServerThread(worker, index, env, { port: toMain.port2, counts }, async () => {
      if (this.#threads[index] === thread) this.#threads[index] = undefined;
      endAcceptTurns(this.#connections, index);
      if (thread.report !== undefined) this.#keepEnded({ ...thread.report, gauges: {} });
      await stopServing();
      await locks.close();
    });
    this.#threads[index] = thread;
    try {
      await thread.call('start');
      if (this.#listening) await thread.call('listen', this.#listening.options);
    } catch (error) {
      await thread.terminate();
      throw error;
    }
    thread.onEnd = onEnd;
    if (thread.ended) throw unavailable(`the thread of tablet server ${index} ended during its start`);
    return thread;
  }

  /** Adds the reports up, so that threads that end again and again do not fill memory. */
  #keepEnded(report: MetricsReport): void {
    const before = this.#ended.pop();
    this.#ended.push(before === undefined ? report : sumOfReports([before, report]));
  }

  /** Lets every thread listen, those that start later too. Fails where one fails. */
  async listen(options: unknown): Promise<void> {
    this.#listening = { options };
    await Promise.all(this.#all().map((thread) => thread.call('listen', options)));
  }

  /** Resolves when the calls under way have ended. */
  async stopListening(): Promise<void> {
    this.#listening = undefined;
    // a thread that ends does not listen any more
    await Promise.all(this.#all().map((thread) => thread.call('stopListening').catch(() => {})));
  }

  /** The counters of each live thread, by index. */
  async counters(): Promise<ReadonlyMap<number, Readonly<Record<string, number>>>> {
    const counters = new Map<number, Readonly<Record<string, number>>>();
    for (const thread of this.#all())
      counters.set(thread.index, (await thread.call('counters')) as Record<string, number>);
    return counters;
  }

  /** Each thread's present report, or its last one. Ended threads count only with figures that never decrease. */
  async reports(): Promise<readonly MetricsReport[]> {
    await Promise.all(this.#all().map((thread) => thread.renewReport()));
    const living = this.#all().map(({ report }) => report);
    return [...this.#ended, ...living].filter((report) => report !== undefined);
  }

  #all(): ServerThread[] {
    return this.#threads.filter((thread) => thread !== undefined);
  }
}

/** The port and the memory that the main thread and one thread share. */
interface ThreadShares {
  readonly port: MessageChannel['port1'];
  /** Counts of its log lines. */
  readonly counts: Int32Array;
}

class ServerThread implements HostedServer {
  readonly index: number;
  readonly #worker: Worker;
  readonly #peer: PortPeer;
  readonly #env: ThreadPoolOptions['env'];
  readonly #gone: Promise<void>;
  ended = false;
  /** The last report received. */
  report: MetricsReport | undefined;
  #closing = false;
  /** Called when the thread ends on its own. */
  onEnd: (() => void) | undefined;

  constructor(
    worker: Worker,
    index: number,
    env: ThreadPoolOptions['env'],
    { port, counts }: ThreadShares,
    onGone: () => Promise<void>,
  ) {
    this.index = index;
    this.#worker = worker;
    this.#env = env;
    const { transport, clock, requestBudget: budget, metrics, logger } = env;
    this.#peer = new PortPeer({ port, clock, budget, metrics, handlerOf: transport.handlerOf });
    const stops = [serverAddress(index), threadAddress(index)].map((address) => transport.route(address, this.#peer));
    worker.on('message', (notice: ThreadNotice) => {
      if (notice.kind === 'ended') void worker.terminate();
      else takeLine(notice, counts, index, env);
    });
    worker.on('error', (error) => {
      metrics.add('process.uncaughtExceptions');
      logger.error('the thread of a tablet server has failed', {
        thread: index,
        error: toBigtableError(error).message,
        stack: stackOf(error),
      });
    });
    this.#gone = new Promise((resolve) => {
      // follows 'error' too, when no code or write of the thread is under way any more
      worker.on('exit', () => {
        this.ended = true;
        for (const stop of stops) stop();
        this.#peer.close();
        onGone()
          .catch((error: unknown) =>
            logger.warn('the sessions of a thread that ended were not closed', {
              thread: index,
              error: toBigtableError(error).message,
            }),
          )
          .finally(() => {
            resolve();
            if (!this.#closing) this.onEnd?.();
          });
      });
    });
  }

  /** Connects the thread with another one. */
  connect(route: ThreadRoute): void {
    this.#worker.postMessage(route, [route.port]);
  }

  call(method: ThreadMethod, message?: unknown): Promise<unknown> {
    return this.#peer.call(
      threadAddress(this.index),
      method,
      message,
      requestContext({ budget: this.#env.requestBudget, principal: 'operator' }),
    );
  }

  /** Requests a new report, and waits for it MAX_REPORT_MS at most: a thread may be busy. */
  async renewReport(): Promise<void> {
    const received = this.call('report').then(
      (report) => void (this.report = report as MetricsReport),
      () => {},
    );
    await Promise.race([received, sleep(this.#env.clock, MAX_REPORT_MS)]);
  }

  async releaseTablets(kind: 'users' | 'metadata' | 'root'): Promise<void> {
    await this.call('releaseTablets', kind).catch((error: unknown) => {
      this.#env.logger.warn('tablets were not flushed and will be replayed', {
        thread: this.index,
        error: toBigtableError(error).message,
      });
    });
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.call('close').catch((error: unknown) => {
      this.#env.logger.warn('a tablet server did not shut down cleanly', {
        thread: this.index,
        error: toBigtableError(error).message,
      });
    });
    await this.terminate();
  }

  async terminate(): Promise<void> {
    this.#closing = true;
    await this.#worker.terminate();
    await this.#gone;
  }
}
