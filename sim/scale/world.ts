/**
 * A large cluster: one real master, and stand-ins for tablet servers, whose METADATA lies in several tablets. The
 * network, the lock service and time are those of sim/world, without faults; what every step costs is in costs.ts.
 */
import { assert } from '../../src/base/index.ts';
import {
  ByteBudget,
  type Env,
  InlineWorkers,
  type LockService,
  MemoryFileSystem,
  Metrics,
  silentLogger,
} from '../../src/env/index.ts';
import { Master } from '../../src/master/index.ts';
import {
  encodeRootFile,
  encodeSchema,
  isMetadataTablet,
  keyOfRow,
  METADATA_TABLE_ID,
  type MetadataKey,
  metadataKey,
  type MetadataRow,
  ROOT_RANGE,
  schemaPath,
  USER_RANGE,
} from '../../src/metadata/index.ts';
import type { RowRange } from '../../src/model/index.ts';
import { nativeCodecs } from '../../src/platform/index.ts';
import { logPathOf, SERVERS_DIRECTORY } from '../../src/protocol/index.ts';
import { SimLockService } from '../world/locks.ts';
import { SimNetwork } from '../world/network.ts';
import { SimProcess } from '../world/process.ts';
import { Scheduler } from '../world/scheduler.ts';
import { ChargedTransport } from './charged-transport.ts';
import { LOCK_SERVICE_MS } from './costs.ts';
import { Cpu } from './cpu.ts';
import { DeadLogs } from './dead-logs.ts';
import { MetadataStore } from './metadata-store.ts';
import { StandIn } from './stand-in.ts';

const TABLE_ID = '00000010';
const MIB = 1 << 20;
const EXACT_CLOCK = { offsetMs: 0, drift: 0 };

export interface ScaleSize {
  readonly servers: number;
  readonly tablets: number;
  readonly metadataTablets: number;
}

export class ScaleWorld {
  readonly scheduler: Scheduler;
  readonly network: SimNetwork;
  readonly locks: SimLockService;
  readonly size: ScaleSize;
  readonly servers: StandIn[] = [];
  /** By tablet, the live server that has it. */
  readonly owners = new Map<MetadataKey, StandIn>();
  readonly masterMetrics = new Metrics();
  masterCpu!: Cpu;
  masterTransport!: ChargedTransport;
  /** By server, the master's calls of the lock service about it. */
  readonly lockCalls = new Map<string, number>();
  /** All calls of the lock service by the master. */
  masterLockCalls = 0;
  /** Called whenever a tablet is served. */
  onServed: ((key: MetadataKey) => void) | undefined;
  onLog: ((line: string) => void) | undefined;
  readonly #files = new MemoryFileSystem();
  readonly store: MetadataStore;
  readonly #rootRow: MetadataRow;
  readonly #logs = new DeadLogs();
  #starts = 0;

  /** Every tablet is with a server of an earlier cluster, which was shut down: its log is empty. */
  constructor(seed: number, size: ScaleSize) {
    this.size = size;
    this.scheduler = new Scheduler(seed);
    this.network = new SimNetwork(this.scheduler);
    this.locks = new SimLockService(this.scheduler);
    Object.assign(this.locks.health, { minDelayMs: LOCK_SERVICE_MS / 2, maxDelayMs: LOCK_SERVICE_MS / 2 });
    const former = Array.from({ length: size.servers }, (_, i) => `former-${i}`);
    const rows = rowsOfAll(size, former);
    this.#rootRow = rows[0]!;
    this.store = new MetadataStore(rows.slice(1));
  }

  /** The tablets of all tables, METADATA's too. */
  get tablets(): number {
    return this.size.tablets + this.size.metadataTablets + 1;
  }

  async prepare(): Promise<void> {
    const { service } = this.locks;
    const name = 'projects/p/instances/i/tables/t';
    const families = { f: { name: 'f' } };
    const schema = { name, id: TABLE_ID, granularity: 'millis', families, deletionProtection: false } as const;
    await service.write(schemaPath(name), encodeSchema(schema));
    await service.write('root', encodeRootFile(this.#rootRow));
  }

  async startMaster(): Promise<Master> {
    const process = new SimProcess(this.scheduler, 'master', EXACT_CLOCK);
    this.masterCpu = new Cpu(this.scheduler, process);
    const transport = this.network.transportOf(process);
    this.masterTransport = new ChargedTransport(transport, this.masterCpu, () => this.scheduler.nowMs);
    const env = this.#env(process);
    const lockService = this.#counted(env.lockService);
    return Master.start({
      env: {
        ...env,
        fileSystem: this.#logs.filesOf(env.fileSystem, (ms) => this.masterCpu.wait(ms)),
        transport: this.masterTransport,
        lockService,
        metrics: this.masterMetrics,
      },
      address: 'master',
    });
  }

  async startServer(): Promise<StandIn> {
    const name = `server-${this.#starts++}`;
    const process = new SimProcess(this.scheduler, name, EXACT_CLOCK);
    const server = new StandIn(
      {
        env: this.#env(process),
        process,
        cpu: new Cpu(this.scheduler, process),
        store: this.store,
        logs: this.#logs,
        onServed: (one, key) => this.#served(one, key),
      },
      name,
    );
    this.servers.push(server);
    await server.start();
    return server;
  }

  /**
   * The server dies with a full log. Its session ends `seen`: at once, as where the service sees that its connection
   * has gone, or when it has not been kept alive for long enough.
   */
  kill(server: StandIn, seen: 'at once' | 'after its lease'): void {
    this.#logs.died(logPathOf(server.name));
    server.process.kill();
    if (seen === 'at once') void this.locks.closed(server.sessionId);
    this.servers.splice(this.servers.indexOf(server), 1);
    for (const key of server.tablets.keys()) if (this.owners.get(key) === server) this.owners.delete(key);
  }

  /** Resolves when the server's lock is gone, which is when a master can detect its death. */
  detected(server: StandIn): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.locks.service.watch(SERVERS_DIRECTORY + server.name, (event) => {
        if (event.kind !== 'lock-lost') return;
        stop();
        resolve();
      });
    });
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.scheduler.after(ms, undefined, 'sleep', resolve));
  }

  /** The numbers of users' tablets of the servers. */
  numbers(): number[] {
    return this.servers.map(({ tablets }) => [...tablets.keys()].filter((key) => !isMetadataTablet(key)).length);
  }

  #served(server: StandIn, key: MetadataKey): void {
    if (server.process.isDead) return;
    const other = this.owners.get(key);
    assert(
      other === undefined || other === server || other.process.isDead || !other.tablets.has(key),
      'two servers never serve one tablet',
    );
    this.owners.set(key, server);
    this.onServed?.(key);
  }

  #env(process: SimProcess): Env {
    const note =
      (level: string) =>
      (message: string, fields?: object): void =>
        this.onLog?.(`${process.name} ${level}: ${message} ${JSON.stringify(fields ?? {})}`);
    return {
      fileSystem: this.#files,
      lockService: this.locks.clientOf(process),
      transport: this.network.transportOf(process),
      clock: process.clock,
      random: this.scheduler.fork(process.name),
      workers: new InlineWorkers({}),
      codecs: nativeCodecs(),
      logger: { ...silentLogger, warn: note('warn'), error: note('error') },
      metrics: new Metrics(),
      requestBudget: new ByteBudget(256 * MIB),
    };
  }

  /** Counts the calls of the master about each tablet server. */
  #counted(inner: LockService): LockService {
    return new Proxy(inner, {
      get: (target, name: keyof LockService) => {
        const value = target[name] as (...args: unknown[]) => unknown;
        return (...args: unknown[]): unknown => {
          const [about] = args;
          this.masterLockCalls++;
          const path = typeof about === 'string' ? about : (about as { path?: string } | undefined)?.path;
          if (path?.startsWith(SERVERS_DIRECTORY) && path !== SERVERS_DIRECTORY && name !== 'watch') {
            const server = path.slice(SERVERS_DIRECTORY.length);
            this.lockCalls.set(server, (this.lockCalls.get(server) ?? 0) + 1);
          }
          return value.apply(target, args);
        };
      },
    });
  }
}

/** The root tablet's row, those of METADATA's other tablets, and those of a table. */
function rowsOfAll({ tablets, metadataTablets }: ScaleSize, former: readonly string[]): MetadataRow[] {
  const ends = Array.from({ length: tablets }, (_, i) =>
    i === tablets - 1 ? undefined : `row${String(i + 1).padStart(8, '0')}`,
  );
  const users = ends.map((end, i) => rowOf(TABLE_ID, { start: ends[i - 1] ?? '', end }, former[i % former.length]!));
  const perTablet = Math.ceil(tablets / metadataTablets);
  const cuts = Array.from({ length: metadataTablets - 1 }, (_, i) => keyOfRow(users[(i + 1) * perTablet]!));
  const metadata = [...cuts, undefined].map((end, i) =>
    rowOf(METADATA_TABLE_ID, { start: cuts[i - 1] ?? USER_RANGE.start, end }, former[i % former.length]!),
  );
  assert(metadataKey(METADATA_TABLE_ID, undefined) === keyOfRow(metadata.at(-1)!), "METADATA's last tablet has no end");
  return [rowOf(METADATA_TABLE_ID, ROOT_RANGE, former[0]!), ...metadata, ...users];
}

/** The row of a tablet of which the server has one file. */
function rowOf(tableId: string, range: RowRange, server: string): MetadataRow {
  return {
    tableId,
    range,
    server: { name: server, address: server },
    epoch: 1,
    version: 1,
    commitId: 'made',
    files: { default: [`sstables/${server}-${range.end ?? 'last'}`] },
    redo: { epoch: 1, sequence: 1 },
    logs: [logPathOf(server)],
    lastServerMicros: 1,
  };
}
