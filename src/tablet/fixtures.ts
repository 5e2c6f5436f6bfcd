/** A tablet for tests, with the plainest host. Its METADATA row is kept over reloads. */
import assert from 'node:assert/strict';
import type { ByteString } from '../base/index.ts';
import { type LogRecord, readAppends, ServerLog } from '../commitlog/index.ts';
import {
  ByteBudget,
  type Env,
  InlineWorkers,
  LocalTransport,
  ManualClock,
  MemoryFileSystem,
  MemoryLockService,
  Metrics,
  requestContext,
  SeededRandom,
  silentLogger,
} from '../env/index.ts';
import { FilterCompiler, type RowFilter } from '../filter/index.ts';
import { ALL_ROWS, LIMITS, type Mutation, rangeOfRow, type RowRange, type TableSchema } from '../model/index.ts';
import { nativeCodecs } from '../platform/index.ts';
import { BlockCache, MemoryBudget } from '../sstable/index.ts';
import { COMPACTION_TASK, type CompactionJob } from './contract/compaction-job.ts';
import { compactFiles } from './compact/compact-files.ts';
import { Tablet } from './tablet.ts';
import type { TabletState } from './contract/tablet-state.ts';

const TABLE_ID = '00000010';

export function schemaOf(families: TableSchema['families'], groups?: TableSchema['groups']): TableSchema {
  return {
    name: 'projects/p/instances/i/tables/t',
    id: TABLE_ID,
    granularity: 'micros',
    deletionProtection: false,
    families,
    ...(groups && { groups }),
  };
}

export class TabletFixture {
  readonly fileSystem: MemoryFileSystem;
  readonly env: Env;
  schema: TableSchema;
  state: TabletState;
  tablet!: Tablet;
  /** Called before a commit takes effect. */
  onCommit: () => Promise<void> = async () => {};
  /** Called when a compaction of files has begun. */
  onCompaction: () => Promise<void> = async () => {};
  /** True before `load`: writes are acknowledged before they are durable. */
  buffered = false;
  /** Before `load`: the size of the parts in which reads come. */
  readBatchBytes: number | undefined;
  /** True while the lease of its server holds. */
  isLeaseHeld = true;
  readonly clock = new ManualClock();
  #log!: ServerLog;
  #logs: string[] = [];
  #files = 0;

  constructor(schema: TableSchema, fileSystem = new MemoryFileSystem(), range: RowRange = ALL_ROWS) {
    this.schema = schema;
    this.fileSystem = fileSystem;
    this.state = { tableId: TABLE_ID, range, epoch: 0, files: {}, redo: { epoch: 0, sequence: 0 }, logs: [] };
    const { clock } = this;
    clock.advance(1e9);
    const codecs = nativeCodecs();
    const tools = { fileSystem, codecs, clock };
    this.env = {
      ...tools,
      lockService: new MemoryLockService(),
      transport: new LocalTransport(clock),
      random: new SeededRandom(1),
      workers: new InlineWorkers({
        [COMPACTION_TASK]: (job: CompactionJob) => this.onCompaction().then(() => compactFiles(tools, job)),
      }),
      logger: silentLogger,
      metrics: new Metrics(),
      requestBudget: new ByteBudget(1 << 24),
    };
  }

  get context(): ReturnType<typeof requestContext> {
    return requestContext({ budget: this.env.requestBudget });
  }

  /** Serves the tablet from its row and logs: at first, and after a crash or `close`. */
  async load(): Promise<this> {
    const records: LogRecord[] = [];
    const { redo } = this.state;
    for (const path of this.#logs)
      for await (const append of readAppends(this.fileSystem, path)) records.push(...append.records);
    const later = records.filter(
      ({ epoch, sequence }) => epoch > redo.epoch || (epoch === redo.epoch && sequence > redo.sequence),
    );
    const epoch = this.state.epoch + 1;
    this.state = { ...this.state, epoch };
    const path = `logs/${epoch}`;
    this.#log = await ServerLog.open({ fileSystem: this.fileSystem, path });
    this.#logs.push(path);
    const host = {
      schema: () => this.schema,
      leaseHeld: () => this.isLeaseHeld,
      logPath: path,
      commit: async (_state: TabletState, change: Partial<TabletState>): Promise<void> => {
        await this.onCommit();
        this.state = { ...this.state, ...change };
      },
      newFilePath: () => `sstables/${epoch}-${this.#files++}`,
      released: (files: readonly string[]) =>
        void Promise.all(files.map((file) => this.fileSystem.delete(file))).catch(() => {}),
      filesChanged: () => {},
      compactionEarned: () => {},
      written: () => {},
      leftToSweep: () => {},
      clockIsBehind: () => {},
      failed: () => {},
    };
    const cache = new BlockCache({ limitBytes: 1 << 20, metrics: this.env.metrics });
    const options = {
      env: this.env,
      host,
      log: this.#log,
      cache,
      memory: new MemoryBudget(1 << 22),
      filters: new FilterCompiler({ limits: LIMITS.default, random: this.env.random }),
      limits: LIMITS.default,
      blockSizeBytes: 256,
      buffered: this.buffered,
      readBatchBytes: this.readBatchBytes,
    };
    this.tablet = await Tablet.load(options, this.state, later);
    return this;
  }

  /** The row and the logs of another, as a start after a crash finds them. */
  takeOver(other: TabletFixture): void {
    this.state = other.state;
    this.#logs = [...other.#logs];
  }

  async reload(): Promise<void> {
    await this.tablet.close({ flush: false });
    await this.#log.close();
    await this.load();
  }

  apply(row: ByteString, ...mutations: Mutation[]): Promise<void> {
    return this.tablet.mutateRow(this.context, row, mutations);
  }

  set(row: ByteString, value: string, timestamp = 1, family = 'f', qualifier = 'q'): Promise<void> {
    return this.apply(row, { kind: 'setCell', family, qualifier, timestamp, value: Buffer.from(value) });
  }

  /** `row family:qualifier@timestamp=value` in order. */
  cells(filter?: RowFilter, range: RowRange = this.state.range, reversed = false): Promise<string[]> {
    return this.cellsIn([range], filter, reversed);
  }

  /** The same of several ranges, sorted and disjoint. */
  async cellsIn(ranges: readonly RowRange[], filter?: RowFilter, reversed = false, rowsLimit = 0): Promise<string[]> {
    const lines: string[] = [];
    for await (const { fragments } of this.tablet.read(this.context, { ranges, filter, rowsLimit, reversed })) {
      for (const { row, cells } of fragments) {
        for (const { family, qualifier, timestamp, value } of cells)
          lines.push(`${row} ${family}:${qualifier}@${timestamp}=${Buffer.from(value).toString('latin1')}`);
      }
    }
    return lines;
  }

  cellsOfRow(row: ByteString, filter?: RowFilter): Promise<string[]> {
    return this.cells(filter, rangeOfRow(row));
  }

  /** Paths of all SSTables, listed or not. */
  async files(): Promise<string[]> {
    return (await this.fileSystem.list('sstables/')).map(({ path }) => path);
  }

  /** Asserts that the files on disk are those that the row lists. */
  async assertNoOrphans(): Promise<void> {
    assert.deepEqual(await this.files(), Object.values(this.state.files).flat().sort());
  }
}
