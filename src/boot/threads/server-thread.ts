/**
 * The program of a tablet server's thread: the same parts as in one thread, over adapters that lead to the main thread, which owns the directory,
 * its lock service and the master. Beside the tablet server stand a client library and the door that is opened on it, so that each thread
 * answers whatever comes to it, and passes on what belongs to another.
 *
 * Invariant: the thread ends with its tablet server, and an exception that nobody catches ends both: the main thread starts a new one. A rejection that
 * nobody takes is told and counted, as in the main thread of `edubba serve`.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../base/index.ts';
import { Client } from '../../client/index.ts';
import { ByteBudget, type CallHandler, type Env, LocalTransport, type Logger, Metrics } from '../../env/index.ts';
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
import type { Service } from '../../service/index.ts';
import { TabletServer } from '../../tabletserver/index.ts';
import { serverAddress } from '../open/database.ts';
import { openFilesLimit } from '../open/descriptors.ts';
import { directoryWorkers } from '../open/open-database.ts';
import { tabletServerSettings } from '../settings/settings.ts';
import { threadLogger } from './thread-log.ts';
import {
  threadAddress,
  type ThreadMethod,
  type ThreadNotice,
  type ThreadRoute,
  type ThreadStart,
} from './thread-start.ts';

export interface Door {
  close(): Promise<void>;
}

/** Opens a door on the database; `options` is what `openDoors` was given in the main thread. */
export type OpenDoor = (service: Service, env: Env, options: unknown) => Promise<Door>;

/** Runs until the main thread ends the thread. */
export async function runServerThread(openDoor: OpenDoor): Promise<void> {
  const start = workerData as ThreadStart;
  const parent = parentPort;
  assert(parent, 'this program runs in a thread');
  const tell = (notice: ThreadNotice): void => parent.postMessage(notice);
  const { env, connect, close } = threadEnv(start, threadLogger(start.logCounts, tell));
  watchStrayErrors(env);
  const thread = new ServerThread({ start, env, openDoor, close, ended: (reason) => tell({ kind: 'ended', reason }) });
  await env.transport.serve(threadAddress(start.place), thread);
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
  const budget = new ByteBudget(Math.floor(settings.requestBytes / tabletServers));
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
  const env: Env = {
    fileSystem,
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
      budget,
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
  };
  return { env, connect, close };
}

interface ServerThreadParts {
  readonly start: ThreadStart;
  readonly env: Env;
  readonly openDoor: OpenDoor;
  readonly close: () => Promise<void>;
  readonly ended: (reason: string) => void;
}

/** Answers what the main thread asks of it. */
class ServerThread implements CallHandler {
  readonly #parts: ServerThreadParts;
  #server: TabletServer | undefined;
  #client: Client | undefined;
  #door: Door | undefined;

  constructor(parts: ServerThreadParts) {
    this.#parts = parts;
  }

  async call(method: string, message: unknown): Promise<unknown> {
    switch (method as ThreadMethod) {
      case 'start':
        return this.#start();
      case 'openDoor':
        this.#door = await this.#parts.openDoor(this.#client as Client, this.#parts.env, message);
        return undefined;
      case 'closeDoor':
        return this.#door?.close();
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

  async #start(): Promise<void> {
    const { env, ended } = this.#parts;
    const { place, settings, tabletServers } = this.#parts.start;
    this.#client = await Client.open({ env, limits: LIMITS[settings.limits] });
    this.#server = await TabletServer.start({
      env,
      address: serverAddress(place),
      settings: tabletServerSettings(settings, tabletServers),
      onEnd: ({ message }) => ended(message),
    });
  }

  async #close(): Promise<void> {
    await this.#door?.close();
    this.#client?.close();
    await this.#server?.close();
    await this.#parts.close();
  }
}
