/**
 * For tests: the parts of a server with two threads, in one thread. Each has its transport, tablet server, client and
 * API; a port connects them. The first has the master too.
 */
import { MessageChannel } from 'node:worker_threads';
import { Client } from '../../src/client/index.ts';
import {
  ByteBudget,
  type CallContext,
  type Env,
  InlineWorkers,
  LocalTransport,
  MemoryFileSystem,
  MemoryLockService,
  Metrics,
  type PullStream,
  type RequestContext,
  SeededRandom,
  silentLogger,
} from '../../src/env/index.ts';
import { rawCallHandler, registerCloudApi, RequestDecoder } from '../../src/grpc/index.ts';
import { Master } from '../../src/master/index.ts';
import { LIMITS } from '../../src/model/index.ts';
import { nativeCodecs, PortPeer, PortTransport, systemClock } from '../../src/platform/index.ts';
import type { RawCallHandler, RawRead, RawWrite, ReadPart } from '../../src/service/index.ts';
import { TabletServer } from '../../src/tabletserver/index.ts';
import type { RpcCall, RpcMethod } from '../../src/wire/index.ts';
import { COMPACTION_TASK, type CompactionJob, compactFiles } from '../../src/tablet/index.ts';
import { SETTINGS } from '../cluster.ts';

const MASTER_ADDRESS = 'master';

export function serverAddress(index: number): string {
  return `server-${index}`;
}

/** Called for each call that came as bytes. Each may answer in place of the door. */
export interface Intercepts {
  write?: (write: RawWrite, context: RequestContext) => Promise<Uint8Array> | undefined;
  read?: (read: RawRead, context: RequestContext, go: () => PullStream<ReadPart>) => PullStream<ReadPart> | undefined;
}

/** The messages of a call's answer. */
export interface Answer {
  readonly messages: readonly Buffer[];
}

export class TestThread {
  readonly env: Env & { readonly transport: PortTransport };
  readonly peersBudget: ByteBudget;
  /** Calls that came as bytes. */
  readonly passed: { readonly call: RawWrite | RawRead; readonly context: RequestContext }[] = [];
  intercepts: Intercepts = {};
  server!: TabletServer;
  readonly client: Client;
  readonly #index: number;
  readonly #methods = new Map<string, RpcMethod>();
  readonly #decoder: RequestDecoder;

  private constructor(index: number, env: TestThread['env'], peersBudget: ByteBudget, client: Client) {
    this.#index = index;
    this.env = env;
    this.#decoder = new RequestDecoder(env.clock);
    this.peersBudget = peersBudget;
    this.client = client;
    const methods = { register: (path: string, method: RpcMethod) => void this.#methods.set(path, method) };
    registerCloudApi(methods, client, env, client.callPasser(serverAddress(index)), this.#decoder);
  }

  static async open(index: number, env: TestThread['env'], peersBudget: ByteBudget): Promise<TestThread> {
    return new TestThread(index, env, peersBudget, await Client.open({ env, limits: LIMITS.default }));
  }

  /** A new incarnation of its tablet server. */
  async startServer(): Promise<void> {
    const address = serverAddress(this.#index);
    const handler = rawCallHandler(this.client.rowsOf(address), this.env, this.#decoder);
    this.server = await TabletServer.start({
      env: this.env,
      address,
      settings: SETTINGS,
      rawCalls: this.#noted(handler),
    });
  }

  get paths(): string[] {
    return [...this.#methods.keys()];
  }

  /** A call of a client that this thread has taken. */
  async call(method: string, request: Buffer, context: CallContext): Promise<Answer> {
    const path = `/google.bigtable.v2.Bigtable/${method}`;
    const handler = this.#methods.get(path)!;
    const call: RpcCall = {
      path,
      context,
      startMs: this.env.clock.monotonicMs(),
      header: () => undefined,
      addTrailer: () => {},
    };
    if (handler.kind === 'unary') return { messages: [Buffer.concat([await handler.handle(call, request)].flat())] };
    const messages: Buffer[] = [];
    const send = (message: Buffer | readonly Buffer[]): undefined =>
      void messages.push(Buffer.concat([message].flat()));
    if (handler.kind === 'stream') await handler.handle(call, request, { send, sendCopy: send });
    return { messages };
  }

  #noted(handler: RawCallHandler): RawCallHandler {
    return {
      write: (context, write) => {
        this.passed.push({ call: write, context });
        return this.intercepts.write?.(write, context) ?? handler.write(context, write);
      },
      read: (context, read) => {
        this.passed.push({ call: read, context });
        const go = (): PullStream<ReadPart> => handler.read(context, read);
        return this.intercepts.read?.(read, context, go) ?? go();
      },
    };
  }
}

export interface TwoThreads {
  readonly threads: readonly [TestThread, TestThread];
  /** Ends the connection of the two, as the end of one of them does. */
  cut(): void;
  close(): Promise<void>;
}

export async function twoThreads({ requestBytes = 1 << 24 } = {}): Promise<TwoThreads> {
  // the system's timers do not keep a test's process alive
  const alive = setInterval(() => {}, 1000);
  const [fileSystem, lockService] = [new MemoryFileSystem(), new MemoryLockService()];
  const { port1, port2 } = new MessageChannel();
  const peers: PortPeer[] = [];
  const open = async (index: number, port: MessageChannel['port1'], elsewhere: readonly string[]) => {
    const transport = new PortTransport(new LocalTransport(systemClock));
    const codecs = nativeCodecs();
    const metrics = new Metrics();
    const env = {
      fileSystem,
      lockService,
      transport,
      clock: systemClock,
      random: new SeededRandom(index + 1),
      workers: new InlineWorkers({
        [COMPACTION_TASK]: (job: CompactionJob) => compactFiles({ fileSystem, codecs, clock: systemClock }, job),
      }),
      codecs,
      logger: silentLogger,
      metrics,
      requestBudget: new ByteBudget(requestBytes),
    };
    const budget = new ByteBudget(requestBytes);
    const peer = new PortPeer({ port, clock: systemClock, budget, metrics, handlerOf: transport.handlerOf });
    peers.push(peer);
    for (const address of elsewhere) transport.route(address, peer);
    return TestThread.open(index, env, budget);
  };
  const threads = [
    await open(0, port1, [serverAddress(1)]),
    await open(1, port2, [serverAddress(0), MASTER_ADDRESS]),
  ] as const;
  for (const thread of threads) await thread.startServer();
  const master = await Master.start({ env: threads[0].env, address: MASTER_ADDRESS });
  await master.assigned;
  return {
    threads,
    cut: () => peers[1]!.close(),
    close: async () => {
      for (const { client } of threads) client.close();
      await master.close();
      for (const kind of ['users', 'metadata', 'root'] as const)
        for (const { server } of threads) await server.releaseTablets(kind);
      for (const { server } of threads) await server.close();
      for (const peer of peers) peer.close();
      clearInterval(alive);
    },
  };
}
