/**
 * One tablet, served: writes through the server's log into the memtable, reads over the merged layers, minor compactions.
 *
 * Invariants (docs/ARCHITECTURE.md, "Commit log" and "Tablets"):
 * - A change is in the memtable only once its record is durable, and in log order; it is acknowledged only if the lease surely held after that.
 * - A row is held from the read of a read-modify-write to the end of its log append and application.
 * - The redo point of a commit is the last record applied to the memtable that was frozen, so that replay begins behind it.
 */
import { assert, BigtableError, type ByteString, Code, type Int64, unavailable } from '../base/index.ts';
import { encodeRows, isAfter, type LogRecord, Origin, type RecordBody, type RedoPoint, type RowChange, type ServerLog } from '../commitlog/index.ts';
import { checkContext, type Env, Pacer, type RequestContext } from '../env/index.ts';
import { compileFilter, type RowFilter } from '../filter/index.ts';
import { type AggregateOf, Memtable } from '../memtable/index.ts';
import {
  type Cell, type Limits, type Mutation, type ReadBatch, type ReadModifyWriteRule, type RowRange, rangeContains, rangeOfRow, type TableSchema,
} from '../model/index.ts';
import { type BlockCache, SsTable } from '../sstable/index.ts';
import { LayerSet } from './layer-set.ts';
import { newestCells } from './newest-cells.ts';
import { compactMemtable } from './minor-compaction.ts';
import { ReadFamilies } from './read-families.ts';
import { readModifyWrite } from './read-modify-write.ts';
import { RowLocks } from './row-locks.ts';
import { RowReader } from './row-reader.ts';
import { sampleTables } from './sample-keys.ts';
import { storedMutations } from './stored-mutations.ts';
import type { Decision, TabletApi, TabletRead } from './tablet-api.ts';
import { DEFAULT_GROUP, type TabletHost, type TabletState } from './tablet-state.ts';

/** A change with more mutations than this is applied over several steps of the event loop. */
const MOST_IN_ONE_STEP = 2000;

export interface TabletOptions {
  readonly env: Env;
  readonly host: TabletHost;
  readonly log: ServerLog;
  readonly cache: BlockCache;
  readonly limits: Limits;
  readonly blockSizeBytes: number;
}

export class Tablet implements TabletApi {
  readonly #options: TabletOptions;
  readonly #locks = new RowLocks();
  readonly #layers: LayerSet;
  #state: TabletState;
  /** The last record applied. */
  #applied: RedoPoint;
  #closing = false;
  /** Writes between their start and their end; `close` waits for them. */
  #writes = 0;
  #drained: (() => void) | undefined;
  #flushing: Promise<void> | undefined;
  #nextFlush: Promise<void> | undefined;
  /** Changes that are being applied over several steps. */
  readonly #stepping = new Set<Promise<void>>();
  /** A file that a minor compaction is writing or has not committed yet. */
  #newFile: string | undefined;

  private constructor(options: TabletOptions, state: TabletState, tables: readonly SsTable[]) {
    this.#options = options;
    this.#state = state;
    this.#applied = state.redo;
    this.#layers = new LayerSet({ memtable: new Memtable(), firstPosition: undefined }, tables, (files) => options.host.released(files));
  }

  /** Opens the files that METADATA lists and replays `records`: those of the tablet's range behind its redo point, in order. */
  static async load(options: TabletOptions, state: TabletState, records: Iterable<LogRecord>): Promise<Tablet> {
    const { fileSystem, codecs, metrics, clock } = options.env;
    const paths = state.files[DEFAULT_GROUP] ?? [];
    const tables = await Promise.all(paths.map((path) => SsTable.open({ fileSystem, path, codecs, metrics, clock, cache: options.cache })));
    const tablet = new Tablet(options, state, tables);
    const pacer = new Pacer(clock);
    for (const record of records) {
      const stepping = tablet.#apply(record.body, { epoch: record.epoch, sequence: record.sequence });
      if (stepping !== undefined) await stepping;
      if (pacer.due()) await pacer.pause();
    }
    return tablet;
  }

  get state(): TabletState {
    return this.#state;
  }

  get memtableBytes(): number {
    return this.#layers.memtableBytes;
  }

  get oldestUnflushed(): number | undefined {
    return this.#layers.firstPosition;
  }

  get redoPoint(): RedoPoint {
    return this.#state.redo;
  }

  sizeBytes(): number {
    return this.#layers.tables.reduce((sum, table) => sum + table.sizeBytes, this.#layers.memtableBytes);
  }

  heldFiles(): readonly string[] {
    return this.#newFile === undefined ? this.#layers.heldFiles() : [...this.#layers.heldFiles(), this.#newFile];
  }

  async mutateRow(context: RequestContext, row: ByteString, mutations: readonly Mutation[]): Promise<void> {
    if (mutations.length > MOST_IN_ONE_STEP) {
      return this.#holdingRow(context, row, () => this.#appendRow(row, mutations));
    }
    const wait = this.#locks.enterShared(row);
    if (wait !== undefined) await wait;
    try {
      this.#checkRow(context, row);
      await this.#appendRow(row, mutations);
    } finally {
      this.#locks.leaveShared(row);
    }
  }

  async transact(
    context: RequestContext,
    rows: readonly ByteString[],
    filter: RowFilter | undefined,
    decide: (cells: ReadonlyMap<ByteString, readonly Cell[]>) => Decision,
  ): Promise<void> {
    // one order for all, so that two transactions never wait for each other in a circle
    const sorted = [...new Set(rows)].sort();
    const held: ByteString[] = [];
    try {
      for (const row of sorted) {
        await this.#locks.enterAlone(row);
        held.push(row);
        this.#checkRow(context, row);
      }
      const seen = new Map<ByteString, readonly Cell[]>();
      for (const row of sorted) seen.set(row, await this.#collectRow(context, row, filter));
      const decision = decide(seen);
      if (decision === undefined || decision.size === 0) return;
      const schema = this.#schema();
      const changes = [...decision].map(([row, mutations]) => ({ row, mutations: storedMutations(schema, mutations) }));
      for (const { row } of changes) assert(held.includes(row), 'a transaction changes a row that it does not hold');
      await this.#append({ kind: 'rows', rows: changes });
    } finally {
      for (const row of held) this.#locks.leaveAlone(row);
    }
  }

  async checkAndMutateRow(
    context: RequestContext,
    row: ByteString,
    predicate: RowFilter | undefined,
    whenTrue: readonly Mutation[],
    whenFalse: readonly Mutation[],
  ): Promise<boolean> {
    return this.#holdingRow(context, row, async () => {
      const matched = await this.#hasCells(context, row, predicate);
      const mutations = matched ? whenTrue : whenFalse;
      if (mutations.length > 0) await this.#appendRow(row, mutations);
      return matched;
    });
  }

  async readModifyWriteRow(context: RequestContext, row: ByteString, rules: readonly ReadModifyWriteRule[]): Promise<readonly Cell[]> {
    return this.#holdingRow(context, row, async () => {
      const schema = this.#schema();
      const now = this.#serverTime(schema);
      const hold = this.#layers.hold(rangeOfRow(row));
      try {
        const newest = await newestCells(hold.layers, row, rules, new ReadFamilies(schema, this.#options.env.clock.nowMicros()), schema);
        const { mutations, cells } = readModifyWrite(rules, newest, now);
        await this.#appendRow(row, mutations, schema);
        return cells;
      } finally {
        hold.release();
      }
    });
  }

  async *read(context: RequestContext, request: TabletRead): AsyncGenerator<ReadBatch, void, void> {
    this.#checkServing(context);
    const first = request.ranges[0];
    const last = request.ranges.at(-1);
    if (first === undefined || last === undefined) return;
    const hold = this.#layers.hold({ start: first.start, end: last.end });
    try {
      for await (const batch of this.#reader(context, hold.layers, request).batches()) {
        this.#checkServing(context);
        yield batch;
      }
    } finally {
      hold.release();
    }
  }

  async dropRows(context: RequestContext, range: RowRange): Promise<void> {
    await this.#locks.enterAll();
    try {
      this.#checkServing(context);
      await this.#append({ kind: 'dropRows', range });
    } finally {
      this.#locks.leaveAll();
    }
  }

  async sampleKeys(partBytes: number): Promise<readonly { readonly row: ByteString; readonly offsetBytes: number }[]> {
    return sampleTables(this.#layers.tables, this.#state.range, partBytes);
  }

  flush(): Promise<void> {
    if (this.#flushing !== undefined) {
      this.#nextFlush ??= this.#flushing
        .catch(() => {})
        .then(() => {
          this.#nextFlush = undefined;
          return this.flush();
        });
      return this.#nextFlush;
    }
    this.#flushing = this.#flushAll().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async close(options: { readonly flush: boolean }): Promise<void> {
    this.#closing = true;
    if (this.#writes > 0) await new Promise<void>((resolve) => (this.#drained = resolve));
    if (options.flush) await this.flush();
    else await this.#flushing?.catch(() => {});
    this.#layers.close();
  }

  #schema(): TableSchema {
    return this.#options.host.schema(this.#state.tableId);
  }

  #serverTime(schema: TableSchema): Int64 {
    const now = this.#options.env.clock.nowMicros();
    return schema.granularity === 'millis' ? now - (now % 1000) : now;
  }

  #checkServing(context: RequestContext): void {
    if (this.#closing) throw unavailable(`tablet of table ${this.#state.tableId} is being given up by its server`);
    if (!this.#options.host.leaseHeld()) throw unavailable('the lease of the tablet server may have lapsed');
    checkContext(context, this.#options.env.clock);
  }

  #checkRow(context: RequestContext, row: ByteString): void {
    assert(rangeContains(this.#state.range, row), 'a row reached a tablet that it does not belong to');
    this.#checkServing(context);
  }

  async #holdingRow<T>(context: RequestContext, row: ByteString, work: () => Promise<T>): Promise<T> {
    const wait = this.#locks.enterAlone(row);
    if (wait !== undefined) await wait;
    try {
      this.#checkRow(context, row);
      return await work();
    } finally {
      this.#locks.leaveAlone(row);
    }
  }

  #appendRow(row: ByteString, mutations: readonly Mutation[], schema = this.#schema()): Promise<void> {
    return this.#append({ kind: 'rows', rows: [{ row, mutations: storedMutations(schema, mutations) }] });
  }

  /** Logs one record, then applies it. Resolves when it may be acknowledged. */
  async #append(body: RecordBody): Promise<void> {
    const { env, log, host } = this.#options;
    this.#writes++;
    try {
      const { epoch, tableId } = this.#state;
      const encodedRows = isLarge(body) ? await encodeRows(body.rows, new Pacer(env.clock)) : undefined;
      const { sequence, durable } = log.append({ tableId, epoch, commitMicros: env.clock.nowMicros(), origin: Origin.user, body, encodedRows });
      const position = await durable;
      this.#layers.active.firstPosition ??= position;
      const stepping = this.#apply(body, { epoch, sequence });
      if (stepping !== undefined) await stepping;
      if (!host.leaseHeld()) throw unavailable('the lease of the tablet server may have lapsed during the write: its outcome is unknown');
    } finally {
      this.#writes--;
      if (this.#writes === 0) this.#drained?.();
    }
  }

  /** Undefined where it is applied already. */
  #apply(body: RecordBody, at: RedoPoint): Promise<void> | undefined {
    const memtable = this.#layers.active.memtable;
    assert(isAfter(at, this.#applied), 'a record is applied twice or out of order');
    this.#applied = at;
    if (body.kind === 'dropRows') {
      memtable.dropRows(body.range);
      return undefined;
    }
    const families = this.#aggregates();
    if (isLarge(body)) {
      const { row, mutations } = body.rows[0];
      const stepping = this.#applyInSteps(row, mutations, families).finally(() => this.#stepping.delete(stepping));
      this.#stepping.add(stepping);
      return stepping;
    }
    for (const { row, mutations } of body.rows) memtable.apply(row, mutations, families);
    return undefined;
  }

  /** The row is held meanwhile, and the memtable is not frozen: a flush waits. Readers see all of it or nothing. */
  async #applyInSteps(row: ByteString, mutations: readonly Mutation[], families: AggregateOf): Promise<void> {
    const edit = this.#layers.active.memtable.edit(row, families);
    const pacer = new Pacer(this.#options.env.clock);
    for (const mutation of mutations) {
      edit.add(mutation);
      if (pacer.due()) await pacer.pause();
    }
    edit.commit();
  }

  #aggregates(): AggregateOf {
    const schema = this.#schema();
    if (this.#aggregateCache?.schema !== schema) {
      const families = new ReadFamilies(schema, 0);
      this.#aggregateCache = { schema, aggregateOf: (stored) => families.get(stored)?.aggregate };
    }
    return this.#aggregateCache.aggregateOf;
  }

  #aggregateCache: { readonly schema: TableSchema; readonly aggregateOf: AggregateOf } | undefined;

  #reader(context: RequestContext, layers: RowReaderLayers, request: TabletRead): RowReader {
    const { env, limits } = this.#options;
    const schema = this.#schema();
    const program = compileFilter(request.filter, { limits, random: env.random, families: Object.keys(schema.families) });
    return new RowReader({
      layers,
      ranges: program.blocksAll ? [] : request.ranges,
      reversed: request.reversed,
      rowsLimit: request.rowsLimit,
      families: new ReadFamilies(schema, env.clock.nowMicros()),
      program,
      clock: env.clock,
      context,
      heldBytesLimit: limits.rowBytes,
    });
  }

  async #collectRow(context: RequestContext, row: ByteString, filter: RowFilter | undefined): Promise<Cell[]> {
    const cells: Cell[] = [];
    let bytes = 0;
    for await (const batch of this.read(context, { ranges: [rangeOfRow(row)], filter, rowsLimit: 0, reversed: false })) {
      for (const fragment of batch.fragments) {
        for (const cell of fragment.cells) {
          cells.push(cell);
          bytes += cell.value.length + cell.qualifier.length;
        }
      }
      if (bytes > this.#options.limits.rowBytes) throw new BigtableError(Code.RESOURCE_EXHAUSTED, `row is larger than ${this.#options.limits.rowBytes} bytes`);
    }
    return cells;
  }

  async #hasCells(context: RequestContext, row: ByteString, filter: RowFilter | undefined): Promise<boolean> {
    for await (const batch of this.read(context, { ranges: [rangeOfRow(row)], filter, rowsLimit: 1, reversed: false })) {
      if (batch.fragments.some((fragment) => fragment.cells.length > 0)) return true;
    }
    return false;
  }

  /** Writes frozen memtables, then the active one, to SSTables and commits each. */
  async #flushAll(): Promise<void> {
    while (this.#layers.oldestFrozen !== undefined) await this.#flushOldest(this.#frozenUpTo);
    while (this.#stepping.size > 0) await Promise.allSettled(this.#stepping);
    if (this.#layers.active.memtable.isEmpty && this.#isCommitted()) return;
    this.#frozenUpTo = this.#applied;
    this.#layers.freeze({ memtable: new Memtable(), firstPosition: undefined });
    await this.#flushOldest(this.#frozenUpTo);
  }

  /** The last record applied to the newest frozen memtable. */
  #frozenUpTo: RedoPoint = { epoch: 0, sequence: 0 };

  #isCommitted(): boolean {
    const { redo, logs } = this.#state;
    return !isAfter(this.#applied, redo) && logs.every((log) => log === this.#options.host.logPath);
  }

  async #flushOldest(redo: RedoPoint): Promise<void> {
    const { env, host, cache, blockSizeBytes } = this.#options;
    const frozen = this.#layers.oldestFrozen;
    assert(frozen !== undefined, 'no frozen memtable to flush');
    this.#newFile = host.newFilePath();
    try {
      const { table, covered, files } = await compactMemtable({
        env, cache, blockSizeBytes, memtable: frozen.memtable, tables: this.#layers.tables, path: this.#newFile, range: this.#state.range,
      });
      const change = { files: { [DEFAULT_GROUP]: files }, redo, logs: [host.logPath] };
      await host.commit(this.#state, change);
      this.#state = { ...this.#state, ...change };
      this.#layers.replaceOldestFrozen(table, covered);
    } finally {
      this.#newFile = undefined;
    }
  }
}

/** A change of one row that is too large for one step. */
function isLarge(body: RecordBody): body is { readonly kind: 'rows'; readonly rows: readonly [RowChange] } {
  return body.kind === 'rows' && body.rows.length === 1 && (body.rows[0]?.mutations.length ?? 0) > MOST_IN_ONE_STEP;
}

type RowReaderLayers = ConstructorParameters<typeof RowReader>[0]['layers'];
