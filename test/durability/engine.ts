/**
 * The whole engine over whatever it is given: a tablet server, a master and a client library, put together as `boot`
 * does it for a database in one process. A tablet server that ends itself is followed by a new incarnation, to which
 * the master gives its tablets.
 */
import { Client } from '../../src/client/index.ts';
import {
  ByteBudget,
  type Env,
  type FileSystem,
  InlineWorkers,
  LocalTransport,
  type Logger,
  Metrics,
  type SeededRandom,
  sleep,
  silentLogger,
} from '../../src/env/index.ts';
import { Master } from '../../src/master/index.ts';
import { LIMITS } from '../../src/model/index.ts';
import { nativeCodecs, openLocalLockService, systemClock } from '../../src/platform/index.ts';
import type { Service } from '../../src/service/index.ts';
import { TabletServer } from '../../src/tabletserver/index.ts';

const MIB = 1024 * 1024;
/** Small enough that memtables are flushed and logs trimmed while a test writes. */
const MEMTABLE_BYTES = MIB;
const RESTART_MS = 20;

export class Engine {
  readonly env: Env;
  readonly service: Service;
  /** Everything that was logged. */
  readonly messages: readonly string[];
  readonly #client: Client;
  readonly #master: Master;
  readonly #servers: Servers;

  private constructor(
    env: Env,
    messages: readonly string[],
    parts: { client: Client; master: Master; servers: Servers },
  ) {
    this.env = env;
    this.messages = messages;
    this.service = parts.client;
    this.#client = parts.client;
    this.#master = parts.master;
    this.#servers = parts.servers;
  }

  static async start(fileSystem: FileSystem, random: SeededRandom, memtableBytes = MEMTABLE_BYTES): Promise<Engine> {
    const messages: string[] = [];
    const note = (text: string, fields?: object): void => void messages.push(`${text} ${JSON.stringify(fields ?? {})}`);
    const logger: Logger = { ...silentLogger, info: note, warn: note, error: note };
    const env: Env = {
      fileSystem,
      lockService: await openLocalLockService(fileSystem),
      transport: new LocalTransport(systemClock),
      clock: systemClock,
      random,
      workers: new InlineWorkers({}),
      codecs: nativeCodecs(),
      logger,
      metrics: new Metrics(),
      requestBudget: new ByteBudget(64 * MIB),
    };
    const servers = new Servers(env, memtableBytes);
    await servers.start();
    const master = await Master.start({ env, address: 'master' });
    await master.assigned;
    const client = await Client.open({ env, limits: LIMITS.default });
    return new Engine(env, messages, { client, master, servers });
  }

  async close(): Promise<void> {
    this.#servers.endNoMore();
    this.#client.close();
    await this.#master.close();
    await this.#servers.close();
  }
}

type TabletServerSettings = Parameters<typeof TabletServer.start>[0]['settings'];

/** The one tablet server, incarnation after incarnation. */
class Servers {
  readonly #env: Env;
  readonly #settings: TabletServerSettings;
  #server: TabletServer | undefined;
  #closing = false;
  #starting: Promise<void> = Promise.resolve();

  constructor(env: Env, memtableBytes: number) {
    this.#env = env;
    this.#settings = {
      limits: LIMITS.default,
      blockSizeBytes: 4096,
      blockCacheBytes: MIB,
      memtableBytes,
      logLimitBytes: memtableBytes,
      indexBytes: 4096,
      inMemoryBytes: MIB,
      scanCacheBytes: 0,
      tabletBytes: 1 << 30,
      metadataTabletBytes: 1 << 30,
      compactionsAtOnce: 1,
      majorCompactionMs: 86_400_000,
    };
  }

  async start(): Promise<void> {
    this.#server = await TabletServer.start({
      env: this.#env,
      address: 'tablet-server',
      settings: this.#settings,
      onEnd: () => this.#replace(),
    });
  }

  /** From now on an end is the end. */
  endNoMore(): void {
    this.#closing = true;
  }

  async close(): Promise<void> {
    await this.#starting;
    await this.#server?.close();
  }

  #replace(): void {
    this.#server = undefined;
    this.#starting = (async () => {
      while (!this.#closing && this.#server === undefined) {
        await this.start().catch(() => sleep(this.#env.clock, RESTART_MS));
      }
    })();
  }
}
