/**
 * One tablet, served: writes through the server's log into the memtable, reads over the merged layers, minor compactions.
 *
 * Invariants (docs/ARCHITECTURE.md, "Commit log" and "Tablets"):
 * - A change is in the memtable only once its record is durable (buffered: handed to the log), and in log order; it is acknowledged only if the lease
 *   surely held after that.
 * - A row is held from the read of a read-modify-write to the end of its log append and application.
 * - The redo point of a commit is the last record applied to the memtable that was frozen, so that replay begins behind it.
 */
import { assert, BigtableError, type ByteString, Code, type Int64, successor, toBigtableError, unavailable } from '../base/index.ts';
import { encodeRows, isAfter, type LogRecord, Origin, type RecordBody, type RedoPoint, type RowChange, type ServerLog } from '../commitlog/index.ts';
import { checkContext, type Env, Pacer, type PullStream, type RequestContext } from '../env/index.ts';
import { compileFilter, type FilterProgram, type RowFilter } from '../filter/index.ts';
import { type AggregateOf, Memtable } from '../memtable/index.ts';
import {
  type Cell, type Limits, type Mutation, type ReadBatch, type ReadModifyWriteRule, type RowRange, rangeContains, rangeOfRow, type TableSchema,
} from '../model/index.ts';
import type { BlockCache, MemoryBudget, SsTable } from '../sstable/index.ts';
import { type CompactionKind, FileCompactor } from './file-compactor.ts';
import { FileOpener } from './file-opener.ts';
import { groupingOf } from './grouping.ts';
import { filesByGroup, type LayerHold, type LayerNeed, LayerSet, type MemtableLayer } from './layer-set.ts';
import { newestCells } from './newest-cells.ts';
import { compactMemtable } from './minor-compaction.ts';
import { ReadFamilies } from './read-families.ts';
import { readModifyWrite } from './read-modify-write.ts';
import { RowLocks } from './row-locks.ts';
import { RowReader } from './row-reader.ts';
import { sampleTables } from './sample-keys.ts';
import { storedMutations } from './stored-mutations.ts';
import { TabletReadStream } from './tablet-read.ts';
import type { Decision, TabletApi, TabletRead } from './tablet-api.ts';
import type { TabletCommit, TabletHost, TabletState } from './tablet-state.ts';

/** A change with more mutations than this is applied over several steps of the event loop. */
const MOST_IN_ONE_STEP = 2000;

/** Changes of one call that one append makes durable. */
interface LoggedGroup {
  readonly durable: ReturnType<ServerLog['append']>['durable'];
  readonly logged: { readonly index: number; readonly body: RecordBody; readonly sequence: number; readonly epoch: number }[];
}

export interface TabletOptions {
  readonly env: Env;
  readonly host: TabletHost;
  readonly log: ServerLog;
  readonly cache: BlockCache;
  /** Of in-memory locality groups. */
  readonly memory: MemoryBudget;
  readonly limits: Limits;
  readonly blockSizeBytes: number;
  /** Writes are applied and acknowledged before their records are durable (the setting `durability: 'buffered'`). Default false. */
  readonly buffered?: boolean;
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
  /** Commits to METADATA come one after another. */
  #lastCommit: Promise<unknown> = Promise.resolve();
  /** Changes that are being applied over several steps. */
  readonly #stepping = new Set<Promise<void>>();
  /** Files that a compaction is writing or has not committed yet. */
  readonly #newFiles = new Set<string>();
  /** Files that were made here: no other tablet lists them as long as this one is not split. */
  readonly #ownFiles = new Set<string>();
  readonly #opener: FileOpener;
  readonly #compactor: FileCompactor;

  private constructor(options: TabletOptions, state: TabletState, tables: readonly SsTable[], opener: FileOpener) {
    const { env, blockSizeBytes } = options;
    this.#options = options;
    this.#state = state;
    this.#applied = state.redo;
    this.#opener = opener;
    this.#layers = new LayerSet(newMemtable(), tables, (files) => this.#discard(files));
    this.#compactor = new FileCompactor({
      env, layers: this.#layers, opener, blockSizeBytes, range: state.range,
      schema: () => this.#schema(),
      newPath: () => this.#newPath(),
      forget: (paths) => this.#forget(paths),
      discard: (paths) => this.#discard(paths),
      commitTables: (make) => this.#commitTables(make),
    });
  }

  /** Opens the files that METADATA lists and replays `records`: those of the tablet's range behind its redo point, in order. */
  static async load(options: TabletOptions, state: TabletState, records: Iterable<LogRecord>): Promise<Tablet> {
    const opener = new FileOpener(options);
    const grouping = groupingOf(options.host.schema(state.tableId));
    const groups = Object.entries(state.files).map(([group, paths]) => Promise.all(paths.map((path) => opener.openListed(path, group, grouping.tuning(group)))));
    const tablet = new Tablet(options, state, (await Promise.all(groups)).flat(), opener);
    const pacer = new Pacer(options.env.clock);
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
    return [...this.#layers.heldFiles(), ...this.#newFiles];
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

  /** Rows that nobody holds alone are logged in this step, and wait for their appends together: a promise an append, not a row. */
  async mutateRows(context: RequestContext, changes: readonly RowChange[]): Promise<readonly (BigtableError | undefined)[]> {
    const outcomes: (BigtableError | undefined)[] = new Array(changes.length).fill(undefined);
    const waits: Promise<void>[] = [];
    let group: LoggedGroup | undefined;
    for (let i = 0; i < changes.length; i++) {
      const { row, mutations } = changes[i] as RowChange;
      try {
        if (this.#options.buffered === true || mutations.length > MOST_IN_ONE_STEP || !this.#locks.tryShared(row)) {
          waits.push(this.mutateRow(context, row, mutations).catch((thrown: unknown) => void (outcomes[i] = toBigtableError(thrown))));
          continue;
        }
      } catch (thrown) {
        outcomes[i] = toBigtableError(thrown);
        continue;
      }
      try {
        this.#checkRow(context, row);
        const { log, env } = this.#options;
        const body: RecordBody = { kind: 'rows', rows: [{ row, mutations: storedMutations(this.#schema(), mutations) }] };
        const { epoch, tableId } = this.#state;
        const { sequence, durable } = log.append({ tableId, epoch, commitMicros: env.clock.nowMicros(), origin: Origin.user, body });
        if (group === undefined || group.durable !== durable) {
          group = { durable, logged: [] };
          waits.push(this.#finishGroup(group, changes, outcomes));
        }
        group.logged.push({ index: i, body, sequence, epoch });
      } catch (thrown) {
        outcomes[i] = toBigtableError(thrown);
        this.#locks.leaveShared(row);
      }
    }
    await Promise.all(waits);
    return outcomes;
  }

  /** Applies what one append has made durable, in its order. */
  async #finishGroup({ durable, logged }: LoggedGroup, changes: readonly RowChange[], outcomes: (BigtableError | undefined)[]): Promise<void> {
    this.#writes++;
    try {
      const position = await durable;
      this.#layers.active.firstPosition ??= position;
      for (const { body, sequence, epoch } of logged) this.#apply(body, { epoch, sequence });
      if (!this.#options.host.leaseHeld()) throw unavailable('the lease of the tablet server may have lapsed during the write: its outcome is unknown');
    } catch (thrown) {
      for (const { index } of logged) outcomes[index] = toBigtableError(thrown);
    } finally {
      for (const { index } of logged) this.#locks.leaveShared((changes[index] as RowChange).row);
      this.#writes--;
      if (this.#writes === 0) this.#drained?.();
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
      const hold = this.#hold({ range: rangeOfRow(row), row });
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

  read(context: RequestContext, request: TabletRead): PullStream<ReadBatch> {
    let need: LayerNeed = { range: this.#state.range };
    return new TabletReadStream({
      check: () => this.#checkServing(context),
      begin: () => {
        const [first, last] = [request.ranges[0], request.ranges.at(-1)];
        if (first === undefined || last === undefined) return undefined;
        const read = this.#prepare(request, { start: first.start, end: last.end });
        need = read.need;
        const hold = this.#hold(need);
        return { hold, reader: this.#reader(context, hold.layers, request, read) };
      },
      hold: () => this.#hold(need),
    });
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

  dueCompaction(): CompactionKind | undefined {
    return this.#compactor.due();
  }

  async compact(kind: CompactionKind): Promise<void> {
    if (this.#closing) throw unavailable(`tablet of table ${this.#state.tableId} is being given up by its server`);
    // what a major compaction drops must not depend on what is only in memory
    if (kind === 'major') await this.flush();
    await this.#compactor.run(kind);
  }

  cancelCompaction(): Promise<void> {
    return this.#compactor.cancel();
  }

  get mostFiles(): number {
    return this.#layers.mostFiles;
  }

  get uncollectedSinceMicros(): number | undefined {
    const { tables } = this.#layers;
    const hasRules = Object.values(this.#schema().families).some(({ gcRule }) => gcRule !== undefined);
    const isClean = this.#layers.memtablesAreEmpty && this.mostFiles <= 1 && tables.every((table) => !hasDeletions(table));
    if (tables.length === 0 || (isClean && !hasRules)) return undefined;
    return tables.reduce((oldest, { properties }) => Math.min(oldest, Number(properties.createdMicros)), Number.POSITIVE_INFINITY);
  }

  async close(options: { readonly flush: boolean }): Promise<void> {
    this.#closing = true;
    await this.#compactor.cancel();
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
    const { env, log, host, buffered = false } = this.#options;
    this.#writes++;
    try {
      const { epoch, tableId } = this.#state;
      const encodedRows = isLarge(body) ? await encodeRows(body.rows, new Pacer(env.clock)) : undefined;
      // before the append: between that and the application of a buffered record nothing may come, or another would be applied first
      if (buffered) for (let room = log.room(); room !== undefined; room = log.room()) await room;
      const { sequence, durable } = log.append({ tableId, epoch, commitMicros: env.clock.nowMicros(), origin: Origin.user, body, encodedRows });
      if (buffered) log.acknowledgedEarly();
      // the newest durable append comes before this record's: the log is kept from there on
      const position = buffered ? log.newestPosition : await durable;
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
    const { active } = this.#layers;
    active.rangeDeletions ||= body.rows.some(({ mutations }) => deletesRanges(mutations));
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

  /** What the read asks for, made ready: its filter, its "now", and the layers it needs. */
  #prepare({ filter }: TabletRead, range: RowRange): PreparedRead {
    const { env, limits } = this.#options;
    const schema = this.#schema();
    const program = compileFilter(filter, { limits, random: env.random, families: Object.keys(schema.families) });
    const families = new ReadFamilies(schema, env.clock.nowMicros());
    const row = range.end === successor(range.start) ? range.start : undefined;
    return { program, families, need: { range, row, spans: program.columnSpans && families.storedSpans(program.columnSpans) } };
  }

  #hold(need: LayerNeed): LayerHold {
    const hold = this.#layers.hold(need);
    if (hold.files.length > 0) this.#options.env.metrics.add('tablet.filesRead', hold.files.length);
    return hold;
  }

  #reader(context: RequestContext, layers: RowReaderLayers, request: TabletRead, { program, families }: PreparedRead): RowReader {
    const { env, limits } = this.#options;
    return new RowReader({
      layers,
      ranges: program.blocksAll ? [] : request.ranges,
      reversed: request.reversed,
      rowsLimit: request.rowsLimit,
      families,
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
    const rows = this.read(context, { ranges: [rangeOfRow(row)], filter, rowsLimit: 1, reversed: false });
    try {
      for (;;) {
        const pulled = rows.pull();
        const batch = pulled instanceof Promise ? await pulled : pulled;
        if (batch === undefined) return false;
        if (batch.fragments.some((fragment) => fragment.cells.length > 0)) return true;
      }
    } finally {
      rows.end();
    }
  }

  /** Writes frozen memtables, then the active one, to SSTables and commits each. */
  async #flushAll(): Promise<void> {
    while (this.#layers.oldestFrozen !== undefined) await this.#flushOldest(this.#frozenUpTo);
    while (this.#stepping.size > 0) await Promise.allSettled(this.#stepping);
    if (this.#layers.active.memtable.isEmpty && this.#isCommitted()) return;
    this.#frozenUpTo = this.#applied;
    this.#layers.freeze(newMemtable());
    await this.#flushOldest(this.#frozenUpTo);
  }

  /** The last record applied to the newest frozen memtable. */
  #frozenUpTo: RedoPoint = { epoch: 0, sequence: 0 };

  #isCommitted(): boolean {
    const { redo, logs } = this.#state;
    return !isAfter(this.#applied, redo) && logs.every((log) => log === this.#options.host.logPath);
  }

  async #flushOldest(redo: RedoPoint): Promise<void> {
    const { env, host, blockSizeBytes } = this.#options;
    const frozen = this.#layers.oldestFrozen;
    assert(frozen !== undefined, 'no frozen memtable to flush');
    const { memtable } = frozen;
    const paths: string[] = [];
    const newPath = (): string => {
      const path = this.#newPath();
      paths.push(path);
      return path;
    };
    const work = { env, opener: this.#opener, blockSizeBytes, grouping: groupingOf(this.#schema()), memtable, tables: this.#layers.tables, newPath, tableId: this.#state.tableId, range: this.#state.range, newest: redo, since: this.#state.redo };
    try {
      const tables = await compactMemtable(work).catch((error: unknown) => {
        this.#discard(paths);
        throw error;
      });
      await this.#inTurn(async () => {
        const list = this.#layers.withNewest(tables, memtable.rowRangeDeletions());
        await this.#commit({ files: filesByGroup(list), redo, logs: [host.logPath] });
        this.#layers.replaceOldestFrozen(list);
      });
    } finally {
      this.#forget(paths);
    }
    host.filesChanged();
  }

  #commitTables(make: () => readonly SsTable[] | undefined): Promise<boolean> {
    return this.#inTurn(async () => {
      const list = make();
      if (list === undefined) return false;
      const { redo, logs } = this.#state;
      await this.#commit({ files: filesByGroup(list), redo, logs });
      this.#layers.replaceTables(list);
      return true;
    }).finally(() => this.#options.host.filesChanged());
  }

  async #commit(change: TabletCommit): Promise<void> {
    await this.#options.host.commit(this.#state, change);
    this.#state = { ...this.#state, ...change };
  }

  /** One change of the row at a time. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#lastCommit.then(work);
    this.#lastCommit = result.catch(() => {});
    return result;
  }

  #newPath(): string {
    const path = this.#options.host.newFilePath();
    this.#newFiles.add(path);
    this.#ownFiles.add(path);
    return path;
  }

  /** The files are listed by now, or never will be. */
  #forget(paths: readonly string[]): void {
    const held = this.#layers.heldFiles();
    for (const path of paths) {
      this.#newFiles.delete(path);
      if (!held.includes(path)) this.#ownFiles.delete(path);
    }
  }

  /** Files that nothing here needs any more. Those that were not made here others may need: they are left to the sweep. */
  #discard(paths: readonly string[]): void {
    const own = paths.filter((path) => this.#ownFiles.delete(path));
    if (own.length > 0) this.#options.host.released(own);
  }
}

interface PreparedRead {
  readonly program: FilterProgram;
  readonly families: ReadFamilies;
  readonly need: LayerNeed;
}

function hasDeletions(table: SsTable): boolean {
  const { entries } = table.properties;
  return table.rowRangeDeletions().length > 0 || entries.rowDeletion + entries.familyDeletion + entries.columnDeletion + entries.rangeDeletion > 0;
}

function newMemtable(): MemtableLayer {
  return { memtable: new Memtable(), firstPosition: undefined, rangeDeletions: false };
}

function deletesRanges(mutations: readonly Mutation[]): boolean {
  return mutations.some((mutation) => mutation.kind === 'deleteFromColumn' && mutation.range !== undefined);
}

/** A change of one row that is too large for one step. */
function isLarge(body: RecordBody): body is { readonly kind: 'rows'; readonly rows: readonly [RowChange] } {
  return body.kind === 'rows' && body.rows.length === 1 && (body.rows[0]?.mutations.length ?? 0) > MOST_IN_ONE_STEP;
}

type RowReaderLayers = ConstructorParameters<typeof RowReader>[0]['layers'];
