/**
 * The program of a tablet server's thread: the same parts as in one thread, over adapters that lead to the main thread,
 * which owns the directory, its lock service and the master. Next to the tablet server it has a client library and a
 * listener over that, so that each thread answers every request that it receives, and passes on those for rows of
 * another.
 *
 * Invariant: the thread ends with its tablet server, and an uncaught exception ends both: the main thread starts a new
 * one. An unhandled rejection is logged and counted, as in the main thread of `edubba serve`.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../base/index.ts';
import { Client } from '../../client/index.ts';
import { ByteBudget, type CallHandler, type Env, LocalTransport, type Logger, Metrics } from '../../env/index.ts';
import { rawCallHandler, RequestDecoder } from '../../grpc/index.ts';
import { LIMITS } from '../../model/index.ts';
import {
  LockServiceClient,
  nativeCodecs,
  PortPeer,
  PortTransport,
  shareFiles,
  systemClock,
  systemRandom,
  watchStrayErrors,
} from '../../platform/index.ts';
import { MemoryLayerCache } from '../../resources/index.ts';
import type { RawCallPasser, Service } from '../../service/index.ts';
import { TabletServer } from '../../tabletserver/index.ts';
import { serverAddress } from '../open/database.ts';
import { openFilesLimit } from '../open/descriptors.ts';
import { directoryWorkers } from '../open/open-database.ts';
import { tabletServerSettings } from '../settings/settings.ts';
import { backupStoreOf } from '../store/backup-store.ts';
import type { AcceptTurnsOptions } from './accept-turns.ts';
import { threadLogger } from './thread-log.ts';
import {
  threadAddress,
  type ThreadMethod,
  type ThreadNotice,
  type ThreadRoute,
  type ThreadStart,
} from './thread-protocol.ts';

export interface Listener {
  close(): Promise<void>;
}

/** The parts of a thread by which its listener answers. */
export interface ListenParts {
  readonly service: Service;
  /** Passes calls for rows of other threads on as bytes. */
  readonly passer: RawCallPasser;
  /** Decodes the requests that come from clients and those that were passed on. */
  readonly decoder: RequestDecoder;
  readonly env: Env;
  /** The numbers of connections of all threads, and this thread's place among them. */
  readonly connections: Pick<AcceptTurnsOptions, 'counts' | 'index'>;
}

/** Listens for requests to the database; `options` are those that the main thread passed to `listen`. */
export type Listen = (parts: ListenParts, options: unknown) => Promise<Listener>;

/** Runs until the main thread ends the thread. */
export async function runServerThread(listen: Listen): Promise<void> {
  const start = workerData as ThreadStart;
  const parent = parentPort;
  assert(parent, 'this program runs in a thread');
  const notify = (notice: ThreadNotice): void => parent.postMessage(notice);
  const { env, connect, close } = threadEnv(start, threadLogger(start.logCounts, notify));
  watchStrayErrors(env);
  const onEnd = (reason: string): void => notify({ kind: 'ended', reason });
  const program = new ThreadProgram({ start, env, listen, close, onEnd });
  await env.transport.serve(threadAddress(start.index), program);
  parent.on('message', connect);
  for (const route of start.routes) connect(route);
}

interface ThreadEnv {
  readonly env: Env;
  readonly connect: (route: ThreadRoute) => void;
  readonly close: () => Promise<void>;
}

function threadEnv(
  { directory, settings, tabletServers, lockService: address, leases }: ThreadStart,
  logger: Logger,
): ThreadEnv {
  const transport = new PortTransport(new LocalTransport(systemClock));
  const metrics = new Metrics();
  const ownBytes = Math.floor(settings.requestBytes / tabletServers);
  const budget = new ByteBudget(ownBytes);
  // the threads that pass calls on hold the same bytes in budgets of their own, so these cannot become more
  const peersBudget = new ByteBudget(Math.max(ownBytes, settings.requestBytes - ownBytes));
  metrics.gauges({ 'requests.peersUsedBytes': () => peersBudget.usedBytes });
  const codecs = nativeCodecs();
  const maxOpenFiles = openFilesLimit(tabletServers, settings.compactionsAtOnce);
  const fileSystem = shareFiles(directory, { checksum: codecs.checksum, clock: systemClock, logger, maxOpenFiles });
  const workers = directoryWorkers(directory, {
    maxOpenFiles,
    compactionsAtOnce: settings.compactionsAtOnce,
    clock: systemClock,
    logger,
  });
  const lockService = new LockServiceClient({ transport, address, leases, budget });
  const backupStore = backupStoreOf(settings.backupStore, { ownDirectory: directory });
  const env: Env = {
    fileSystem,
    backupStore: backupStore?.open,
    lockService,
    transport,
    clock: systemClock,
    random: systemRandom,
    workers,
    codecs,
    logger,
    metrics,
    requestBudget: budget,
  };
  const connect = ({ addresses, port }: ThreadRoute): void => {
    const stops: (() => void)[] = [];
    const peer = new PortPeer({
      port,
      clock: systemClock,
      budget: peersBudget,
      metrics,
      handlerOf: transport.handlerOf,
      onClosed: () => {
        for (const stop of stops) stop();
      },
    });
    for (const each of addresses) stops.push(transport.route(each, peer));
  };
  const close = async (): Promise<void> => {
    await workers.close();
    await fileSystem.close();
    await backupStore?.close();
  };
  return { env, connect, close };
}

interface ThreadProgramParts {
  readonly start: ThreadStart;
  readonly env: Env;
  readonly listen: Listen;
  readonly close: () => Promise<void>;
  readonly onEnd: (reason: string) => void;
}

/** Answers the calls of the main thread. */
class ThreadProgram implements CallHandler {
  readonly #parts: ThreadProgramParts;
  readonly #decoder: RequestDecoder;
  #server: TabletServer | undefined;
  #memoryLayers: MemoryLayerCache | undefined;
  #client: Client | undefined;
  #listener: Listener | undefined;

  constructor(parts: ThreadProgramParts) {
    this.#parts = parts;
    this.#decoder = new RequestDecoder(parts.env.clock);
  }

  async call(method: string, message: unknown): Promise<unknown> {
    switch (method as ThreadMethod) {
      case 'start':
        return this.#start();
      case 'listen':
        return this.#listen(message);
      case 'stopListening':
        return this.#listener?.close();
      case 'releaseTablets':
        return this.#server?.releaseTablets(message as 'users' | 'metadata' | 'root');
      case 'counters':
        return this.#parts.env.metrics.snapshot();
      case 'report':
        return this.#parts.env.metrics.report();
      case 'close':
        return this.#close();
    }
  }

  stream(method: string): never {
    assert(false, `a thread has no stream ${method}`);
  }

  async #listen(options: unknown): Promise<void> {
    const { env, listen, start } = this.#parts;
    const service = this.#client!;
    const passer = service.callPasser(serverAddress(start.index));
    const connections = { counts: start.connections, index: start.index };
    this.#listener = await listen({ service, passer, decoder: this.#decoder, env, connections }, options);
  }

  async #start(): Promise<void> {
    const { env, onEnd } = this.#parts;
    const { index, settings, tabletServers } = this.#parts.start;
    const address = serverAddress(index);
    const memoryLayers = new MemoryLayerCache(env);
    this.#memoryLayers = memoryLayers;
    await memoryLayers.start();
    const client = await Client.open({ env, limits: LIMITS[settings.limits], memoryLayers });
    this.#client = client;
    this.#server = await TabletServer.start({
      env,
      address,
      memoryLayers,
      settings: tabletServerSettings(settings, tabletServers),
      rawCalls: rawCallHandler(client.rowsOf(address), env, this.#decoder),
      onDoorFiles: (paths) => client.doorFilesChanged(paths),
      onEnd: ({ message }) => onEnd(message),
    });
  }

  async #close(): Promise<void> {
    await this.#listener?.close();
    this.#client?.close();
    this.#memoryLayers?.stop();
    await this.#server?.close();
    await this.#parts.close();
  }
}
