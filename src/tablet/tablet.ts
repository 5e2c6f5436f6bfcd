/**
 * One tablet, served: writes through the server's log into the memtable, reads over the merged layers, minor compactions.
 *
 * Invariants (docs/ARCHITECTURE.md, "Commit log" and "Tablets"):
 * - Changes are logged and applied by the writer alone (tablet-writer.ts).
 * - A row is held from the read of a read-modify-write to the end of its log append and application.
 * - The redo point of a commit is the last record applied to the memtable that was frozen, so that replay begins behind it.
 */
import { assert, BigtableError, type ByteString, Code, toBigtableError, unavailable } from '../base/index.ts';
import { isAfter, type RedoPoint, type RedoRecord, type RowChange, type ServerLog } from '../commitlog/index.ts';
import { checkContext, type Counter, type Env, Pacer, type PullStream, type RequestContext } from '../env/index.ts';
import { compileFilter, type RowFilter } from '../filter/index.ts';
import { Memtable } from '../memtable/index.ts';
import {
  type Cell, type FamilyUsage, type ColumnKey, type Limits, type Mutation, type Mutations, type ReadBatch, type ReadModifyWriteRule, type RowRange, rangeContains, rangeOfRow, rowOfRange,
  type TableSchema,
} from '../model/index.ts';
import type { BlockCache, MemoryBudget } from '../sstable/index.ts';
import { type CompactionKind, FileCompactor } from './file-compactor.ts';
import { familyUsage } from './family-usage.ts';
import { FileOpener } from './file-opener.ts';
import { groupingOf } from './grouping.ts';
import { clipsOf, filesByGroup, type LayerHold, LayerNeed, LayerSet, type MemtableLayer } from './layer-set.ts';
import { middleRow } from './middle-row.ts';
import { newestCells } from './newest-cells.ts';
import { compactMemtable } from './minor-compaction.ts';
import { ReadFamilies } from './read-families.ts';
import { readModifyWrite } from './read-modify-write.ts';
import { RowLocks } from './row-locks.ts';
import { RowReader } from './row-reader.ts';
import { sampleTables } from './sample-keys.ts';
import type { TabletFile } from './tablet-file.ts';
import { RowShare } from './shared-rows.ts';
import { storedChanges, storedMutations } from './stored-mutations.ts';
import { PreparedRead, type ReadSource, TabletReadStream } from './tablet-read.ts';
import { isLargeChange, TabletWriter } from './tablet-writer.ts';
import { WriteBatch } from './write-batch.ts';
import type { Decision, DivideCommit, TabletApi, TabletRead } from './tablet-api.ts';
import type { TabletCommit, TabletHost, TabletState } from './tablet-state.ts';

/** Before a tablet is divided memtables are flushed, while writes go on, until they are this small; but not again and again. */
const LEFT_TO_FLUSH_BYTES = 256 * 1024;
const MOST_FLUSHES = 4;

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
  readonly #reads: ReadSource = {
    checkServing: (context) => this.#checkServing(context),
    checkAnswering: (context) => this.#checkAnswering(context),
    prepare: (request) => this.#prepare(request),
    hold: (need) => this.#hold(need),
    reader: (context, layers, request, read) => this.#reader(context, layers, request, read),
  };
  readonly #layers: LayerSet;
  readonly #writer: TabletWriter;
  #state: TabletState;
  #closing = false;
  #isDividing = false;
  #flushing: Promise<void> | undefined;
  #nextFlush: Promise<void> | undefined;
  /** Commits to METADATA come one after another. */
  #lastCommit: Promise<unknown> = Promise.resolve();
  /** Files that a compaction is writing or has not committed yet. */
  readonly #newFiles = new Set<string>();
  /** Files that were made here: no other tablet lists them as long as this one is not split. */
  readonly #ownFiles = new Set<string>();
  readonly #filesRead: Counter;
  readonly #opener: FileOpener;
  readonly #compactor: FileCompactor;

  private constructor(options: TabletOptions, state: TabletState, tables: readonly TabletFile[], opener: FileOpener) {
    const { env, blockSizeBytes } = options;
    this.#options = options;
    this.#state = state;
    this.#opener = opener;
    this.#filesRead = env.metrics.counter('tablet.filesRead');
    this.#layers = new LayerSet(newMemtable(), tables, (files) => this.#discard(files));
    const { host, log, buffered = false } = options;
    this.#writer = new TabletWriter({ clock: env.clock, host, log, layers: this.#layers, locks: this.#locks, schema: () => this.#schema(), buffered }, state);
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
  static async load(options: TabletOptions, state: TabletState, records: Iterable<RedoRecord>): Promise<Tablet> {
    const opener = new FileOpener(options);
    const grouping = groupingOf(options.host.schema(state.tableId));
    const groups = Object.entries(state.files).map(([group, paths]) => Promise.all(paths.map((path) => opener.openListed(path, group, grouping.tuning(group), state))));
    const tablet = new Tablet(options, state, (await Promise.all(groups)).flat(), opener);
    const pacer = new Pacer(options.env.clock);
    for (const record of records) {
      const stepping = tablet.#writer.replay(record);
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

  mutateRow(context: RequestContext, row: ByteString, mutations: Mutations): Promise<void> {
    if (isLargeChange(mutations)) return this.#holdingRow(context, row, () => this.#writeRow(row, mutations));
    const share = new RowShare();
    if (!this.#locks.tryShare(row, share)) return this.#locks.enterShared(row).then((entered) => this.#writeShared(context, [{ row, mutations }], entered));
    try {
      return this.#writeShared(context, [{ row, mutations }], share);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Rows that nobody holds alone are logged in this step, in records of many: a promise and a record a batch, not a row. */
  async mutateRows(context: RequestContext, changes: readonly RowChange[]): Promise<readonly (BigtableError | undefined)[]> {
    const outcomes: (BigtableError | undefined)[] = new Array(changes.length).fill(undefined);
    const waits: Promise<void>[] = [];
    const outcomeOf = (written: Promise<void>, indexes: readonly number[]): void => {
      waits.push(written.catch((thrown: unknown) => indexes.forEach((index) => (outcomes[index] = toBigtableError(thrown)))));
    };
    let batch = new WriteBatch();
    const writeBatch = (): void => {
      const { share, indexes } = batch;
      try {
        if (indexes.length > 0) outcomeOf(this.#writeShared(context, batch.changes, share), indexes);
      } catch (thrown) {
        outcomeOf(Promise.reject(thrown), indexes);
      }
      batch = new WriteBatch();
    };
    for (let i = 0; i < changes.length; i++) {
      const change = changes[i] as RowChange;
      const { row, mutations } = change;
      if (isLargeChange(mutations) || !this.#locks.tryShare(row, batch.share)) outcomeOf(this.mutateRow(context, row, mutations), [i]);
      else if (batch.add(i, change).isFull) writeBatch();
    }
    writeBatch();
    await Promise.all(waits);
    return outcomes;
  }

  async transact(
    context: RequestContext,
    rows: readonly ByteString[],
    filter: RowFilter | undefined,
    decide: (cells: ReadonlyMap<ByteString, readonly Cell[]>) => Decision,
  ): Promise<void> {
    // all in one step and one order, so that neither two transactions nor one and a drop of rows ever wait for each other in a circle
    const held = [...new Set(rows)].sort();
    const waits = held.map((row) => this.#locks.enterAlone(row));
    try {
      await Promise.all(waits);
      for (const row of held) this.#checkRow(context, row);
      const seen = new Map<ByteString, readonly Cell[]>();
      for (const row of held) seen.set(row, await this.#collectRow(context, row, filter));
      const decision = decide(seen);
      if (decision === undefined || decision.size === 0) return;
      const schema = this.#schema();
      const changes = [...decision].map(([row, mutations]) => ({ row, mutations: storedMutations(schema, mutations) }));
      for (const { row } of changes) assert(held.includes(row), 'a transaction changes a row that it does not hold');
      await this.#writer.write(changes);
    } finally {
      for (const row of held) this.#locks.leaveAlone(row);
    }
  }

  checkAndMutateRow(
    context: RequestContext,
    row: ByteString,
    predicate: RowFilter | undefined,
    whenTrue: readonly Mutation[],
    whenFalse: readonly Mutation[],
  ): Promise<boolean> {
    return this.#holdingRow(context, row, () => {
      const write = (matched: boolean): boolean | Promise<boolean> => {
        const mutations = matched ? whenTrue : whenFalse;
        return mutations.length === 0 ? matched : this.#writeRow(row, mutations).then(() => matched);
      };
      const matched = this.#hasCells(context, row, predicate);
      return matched instanceof Promise ? matched.then(write) : write(matched);
    });
  }

  readModifyWriteRow(context: RequestContext, row: ByteString, rules: readonly ReadModifyWriteRule[]): Promise<readonly Cell[]> {
    return this.#holdingRow(context, row, () => {
      const schema = this.#schema();
      const nowMicros = this.#options.env.clock.nowMicros();
      const hold = this.#hold(new LayerNeed(rangeOfRow(row), row));
      const write = (newest: ReadonlyMap<ColumnKey, Cell>): Promise<readonly Cell[]> => {
        const { mutations, cells } = readModifyWrite(rules, newest, serverTime(nowMicros, schema));
        return this.#writeRow(row, mutations).then(() => cells);
      };
      let newest: ReturnType<typeof newestCells> | undefined;
      try {
        newest = newestCells(hold.layers, row, rules, ReadFamilies.of(schema, this.#options.env.clock), schema);
        return newest instanceof Promise ? newest.finally(() => hold.release()).then(write) : write(newest);
      } finally {
        if (!(newest instanceof Promise)) hold.release();
      }
    });
  }

  read(context: RequestContext, request: TabletRead): PullStream<ReadBatch> {
    return new TabletReadStream(this.#reads, context, request);
  }

  async dropRows(context: RequestContext, range: RowRange): Promise<void> {
    await this.#locks.enterAll();
    try {
      this.#checkServing(context);
      await this.#writer.dropRows({ kind: 'dropRows', range });
    } finally {
      this.#locks.leaveAll();
    }
  }

  sampleKeys(partBytes: number): readonly { readonly row: ByteString; readonly offsetBytes: number }[] {
    return sampleTables(this.#layers.tables, this.#state.range, partBytes);
  }

  middleRow(): ByteString | undefined {
    return middleRow(this.#layers.tables, this.#state.range);
  }

  familyUsage(): Promise<readonly FamilyUsage[]> {
    const { tables, memtables } = this.#layers;
    return familyUsage({ tables, memtables, schema: this.#schema(), pacer: new Pacer(this.#options.env.clock) });
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
    return this.#isDividing ? undefined : this.#compactor.due();
  }

  async compact(kind: CompactionKind): Promise<void> {
    if (this.#closing || this.#isDividing) throw this.#notServing();
    if (kind === 'major') {
      // what it drops must not depend on what is only in memory
      await this.flush();
      // a flush that is under way does not know into which groups this one will bring cells
      while (this.#flushing !== undefined) await this.#flushing.catch(() => {});
    }
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
    const isClean = this.#layers.memtablesAreEmpty && this.mostFiles <= 1 && tables.every((table) => !hasDeletions(table) && !table.hasForeignRows);
    if (tables.length === 0 || (isClean && !hasRules)) return undefined;
    return tables.reduce((oldest, { properties }) => Math.min(oldest, Number(properties.createdMicros)), Number.POSITIVE_INFINITY);
  }

  async close(options: { readonly flush: boolean }): Promise<void> {
    this.#closing = true;
    await this.#compactor.cancel();
    // those who hold a row now may write yet
    await this.#locks.enterAll();
    this.#locks.leaveAll();
    await this.#writer.drain();
    if (options.flush) await this.flush();
    else await this.#flushing?.catch(() => {});
    this.#ownFiles.clear();
    this.#layers.retire();
  }

  async divide(row: ByteString, commit: DivideCommit): Promise<readonly [TabletApi, TabletApi]> {
    const { range } = this.#state;
    assert(rangeContains(range, row) && row !== range.start, 'a tablet is divided at a row inside it');
    if (this.#closing || this.#isDividing) throw this.#notServing();
    this.#isDividing = true;
    try {
      await this.#compactor.cancel();
      await this.#flushMost();
      await this.#locks.enterAll();
      try {
        if (this.#closing) throw this.#notServing();
        await this.#writer.drain();
        await this.flush();
        return await this.#inTurn(() => this.#divide([{ start: range.start, end: row }, { start: row, end: range.end }], commit));
      } finally {
        this.#locks.leaveAll();
      }
    } finally {
      this.#isDividing = false;
    }
  }

  /** While writes go on: little is left to be written when they have to wait. */
  async #flushMost(): Promise<void> {
    for (let i = 0; i < MOST_FLUSHES && this.memtableBytes > LEFT_TO_FLUSH_BYTES; i++) await this.flush();
  }

  async #divide(ranges: readonly [RowRange, RowRange], commit: DivideCommit): Promise<readonly [Tablet, Tablet]> {
    assert(this.#layers.memtablesAreEmpty && this.#isCommitted(), 'everything is in files before a tablet is divided');
    const parts = ranges.map((range) => {
      const tables = this.#layers.tables.flatMap((table) => table.part(range) ?? []);
      const state: TabletState = { ...this.#state, range, files: filesByGroup(tables), clips: clipsOf(tables) };
      return { tables, state };
    });
    const [low, high] = parts as [(typeof parts)[number], (typeof parts)[number]];
    let hosts: readonly [TabletHost, TabletHost];
    try {
      hosts = await commit([low.state, high.state]);
    } catch (error) {
      for (const { tables } of parts) for (const table of tables) table.close();
      throw error;
    }
    this.#closing = true;
    // from here on the two share them
    this.#ownFiles.clear();
    this.#layers.retire();
    const open = ({ state, tables }: (typeof parts)[number], host: TabletHost): Tablet => new Tablet({ ...this.#options, host }, state, tables, this.#opener);
    return [open(low, hosts[0]), open(high, hosts[1])];
  }

  #schema(): TableSchema {
    return this.#options.host.schema(this.#state.tableId);
  }

  #checkServing(context: RequestContext): void {
    if (this.#closing) throw this.#notServing();
    this.#checkAnswering(context);
  }

  /** What was called has not been done: whoever finds the tablet's new place may call again. */
  #notServing(): BigtableError {
    return new BigtableError(Code.UNAVAILABLE, `tablet of table ${this.#state.tableId} is being given up by its server, or divided`, { details: { notServing: true } });
  }

  /** A read that stands in a row reads it to its end, also where the tablet is served no more. */
  #checkAnswering(context: RequestContext): void {
    if (!this.#options.host.leaseHeld()) throw unavailable('the lease of the tablet server may have lapsed');
    checkContext(context, this.#options.env.clock);
  }

  #checkRow(context: RequestContext, row: ByteString): void {
    this.#checkInside(row);
    this.#checkServing(context);
  }

  #checkInside(row: ByteString): void {
    assert(rangeContains(this.#state.range, row), 'a row reached a tablet that it does not belong to');
  }

  async #holdingRow<T>(context: RequestContext, row: ByteString, work: () => T | Promise<T>): Promise<T> {
    const wait = this.#locks.enterAlone(row);
    if (wait !== undefined) await wait;
    try {
      this.#checkRow(context, row);
      return await work();
    } finally {
      this.#locks.leaveAlone(row);
    }
  }

  /** The share is of these rows, and is given back by this. */
  #writeShared(context: RequestContext, changes: readonly RowChange[], share: RowShare): Promise<void> {
    try {
      this.#checkServing(context);
      for (const { row } of changes) this.#checkInside(row);
      return this.#writer.write(storedChanges(this.#schema(), changes), share);
    } catch (error) {
      this.#locks.leaveShared(share);
      throw error;
    }
  }

  /** The row is held alone. */
  #writeRow(row: ByteString, mutations: Mutations): Promise<void> {
    return this.#writer.write(storedChanges(this.#schema(), [{ row, mutations }]));
  }

  #prepare({ ranges, filter }: TabletRead): PreparedRead | undefined {
    const first = ranges[0];
    const last = ranges[ranges.length - 1];
    if (first === undefined || last === undefined) return undefined;
    const range = first === last ? first : { start: first.start, end: last.end };
    const { env, limits } = this.#options;
    const schema = this.#schema();
    const families = ReadFamilies.of(schema, env.clock);
    const program = compileFilter(filter, { limits, random: env.random, families: families.names });
    return new PreparedRead(program, families, new LayerNeed(range, rowOfRange(range), program.columnSpans && families.storedSpans(program.columnSpans)));
  }

  #hold(need: LayerNeed): LayerHold {
    const hold = this.#layers.hold(need);
    this.#filesRead.value += hold.files.length;
    return hold;
  }

  #reader(context: RequestContext, layers: RowReaderLayers, request: TabletRead, { program, families, need }: PreparedRead): RowReader {
    const { env, limits } = this.#options;
    return new RowReader({
      layers,
      ranges: program.blocksAll ? [] : request.ranges,
      row: need.row,
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

  /** A promise where blocks must be loaded. */
  #hasCells(context: RequestContext, row: ByteString, filter: RowFilter | undefined): boolean | Promise<boolean> {
    const rows = this.read(context, { ranges: [rangeOfRow(row)], filter, rowsLimit: 1, reversed: false });
    try {
      for (;;) {
        const batch = rows.pull();
        if (batch instanceof Promise) return hasCellsFrom(rows, batch);
        if (batch === undefined) return false;
        if (holdsCells(batch)) {
          rows.end();
          return true;
        }
      }
    } catch (error) {
      rows.end();
      throw error;
    }
  }

  /** Writes frozen memtables, then the active one, to SSTables and commits each. */
  async #flushAll(): Promise<void> {
    while (this.#layers.oldestFrozen !== undefined) await this.#flushOldest(this.#frozenUpTo);
    await this.#writer.settle();
    if (this.#layers.active.memtable.isEmpty && this.#isCommitted()) return;
    this.#frozenUpTo = this.#writer.applied;
    this.#layers.freeze(newMemtable());
    await this.#flushOldest(this.#frozenUpTo);
  }

  /** The last record applied to the newest frozen memtable. */
  #frozenUpTo: RedoPoint = { epoch: 0, sequence: 0 };

  #isCommitted(): boolean {
    const { redo, logs } = this.#state;
    return !isAfter(this.#writer.applied, redo) && logs.every((log) => log === this.#options.host.logPath);
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
    const work = { env, opener: this.#opener, blockSizeBytes, grouping: groupingOf(this.#schema()), memtable, tables: this.#layers.tables, groupsBeingWritten: this.#compactor.groupsBeingWritten, newPath, tableId: this.#state.tableId, range: this.#state.range, newest: redo, since: this.#state.redo };
    try {
      const tables = await compactMemtable(work).catch((error: unknown) => {
        this.#discard(paths);
        throw error;
      });
      await this.#inTurn(async () => {
        const list = this.#layers.withNewest(tables, memtable.rowRangeDeletions());
        await this.#commit({ files: filesByGroup(list), clips: clipsOf(list), redo, logs: [host.logPath] });
        this.#layers.replaceOldestFrozen(list);
      });
    } finally {
      this.#forget(paths);
    }
    host.filesChanged();
  }

  #commitTables(make: () => readonly TabletFile[] | undefined): Promise<boolean> {
    return this.#inTurn(async () => {
      const list = make();
      if (list === undefined) return false;
      const { redo, logs } = this.#state;
      await this.#commit({ files: filesByGroup(list), clips: clipsOf(list), redo, logs });
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
    if (own.length < paths.length && !this.#closing) this.#options.host.leftToSweep();
  }
}

function hasDeletions(table: TabletFile): boolean {
  const { entries } = table.properties;
  return table.rowRangeDeletions().length > 0 || entries.rowDeletion + entries.familyDeletion + entries.columnDeletion + entries.rangeDeletion > 0;
}

function newMemtable(): MemtableLayer {
  return { memtable: new Memtable(), firstPosition: undefined, rangeDeletions: false };
}

function serverTime(nowMicros: number, { granularity }: TableSchema): number {
  return granularity === 'millis' ? nowMicros - (nowMicros % 1000) : nowMicros;
}

function holdsCells({ fragments }: ReadBatch): boolean {
  return fragments.some(({ cells }) => cells.length > 0);
}

/** Whether the batch that is awaited, or one behind it, holds a cell. */
async function hasCellsFrom(rows: PullStream<ReadBatch>, pulled: Promise<ReadBatch | undefined>): Promise<boolean> {
  try {
    for (let batch = await pulled; batch !== undefined; batch = await rows.pull()) if (holdsCells(batch)) return true;
    return false;
  } finally {
    rows.end();
  }
}

type RowReaderLayers = ConstructorParameters<typeof RowReader>[0]['layers'];
