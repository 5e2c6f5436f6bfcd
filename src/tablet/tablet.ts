/**
 * One tablet: its parts put together (tablet-parts.ts). Writes go through the log of the server into the memtable
 * (row-writes.ts, tablet-writer.ts); reads merge the layers (layer-reads.ts); flushes write memtables to files
 * (flusher.ts); compactions merge files (file-compactor.ts). They share a TabletContext.
 *
 * A tablet that has neither file nor record has no parts before they are needed, so that a server can have many that
 * are empty: it takes some hundred bytes then. Questions of the server alone do not make the parts.
 *
 * Invariants (docs/ARCHITECTURE.md, "Commit log" and "Locality groups and compactions"):
 * - Only the writer logs and applies changes.
 * - Only the commits of the tablet change its METADATA row (tablet-commits.ts), one after another.
 */
import { assert, type BigtableError, type ByteString } from '../base/index.ts';
import type { RedoPoint, RedoRecord } from '../commitlog/index.ts';
import { Pacer, type PullStream, type RequestContext } from '../env/index.ts';
import type { RowFilter } from '../filter/index.ts';
import {
  type Cell,
  type FamilyUsage,
  type Idempotency,
  type Mutation,
  type Mutations,
  rangeContains,
  type ReadBatch,
  type ReadModifyWriteRule,
  type RowMutations,
  type RowRange,
  TOKEN_GROUP,
} from '../model/index.ts';
import type { CompactionKind } from './contract/compaction-job.ts';
import { familyUsage } from './layers/family-usage.ts';
import { FileOpener } from './layers/file-opener.ts';
import { groupingOf } from './layers/grouping.ts';
import { clipsOf, pathsByGroup, type LayerSet } from './layers/layer-set.ts';
import { middleRow } from './layers/middle-row.ts';
import { sampleFiles } from './layers/sample-keys.ts';
import type { Admission, Decision, DivideCommit, TabletApi, TabletRead } from './contract/tablet-api.ts';
import type { TabletContext, TabletOptions } from './layers/tablet-context.ts';
import type { TabletFile } from './layers/tablet-file.ts';
import type { TabletHost, TabletState } from './contract/tablet-state.ts';
import { TabletParts } from './tablet-parts.ts';

/**
 * Before a tablet is divided its memtable is flushed, while writes go on, until it is this small, but no more than
 * MAX_FLUSHES times.
 */
const MAX_UNFLUSHED_BYTES = 256 * 1024;
const MAX_FLUSHES = 4;
/**
 * While a tablet takes writes, reads have to earn a merge this often: it would take time from the writes, and they
 * soon add files that undo its use.
 */
const BUSY_PRICE = 4;

const NO_FILES: readonly string[] = [];

export class Tablet implements TabletApi {
  readonly #options: TabletOptions;
  /** As it was when the tablet was opened. */
  readonly #opened: TabletState;
  /** Undefined for an empty tablet that has had nothing to do. */
  #made: TabletParts | undefined;
  #rowsWritten = 0;

  private constructor(options: TabletOptions, opened: TabletState, made?: TabletParts) {
    this.#options = options;
    this.#opened = opened;
    this.#made = made;
  }

  /** Opens the files that METADATA lists and replays `records`: those of the range after the redo point, in order. */
  static async load(options: TabletOptions, state: TabletState, records: Iterable<RedoRecord>): Promise<Tablet> {
    if (isEmpty(state) && isDone(records)) return new Tablet(options, state);
    const parts = new TabletParts(options, state, await openFiles(options, state));
    const pacer = new Pacer(options.env.clock);
    for (const record of records) {
      const applying = parts.writer.replay(record);
      if (applying !== undefined) await applying;
      if (pacer.due()) await pacer.pause();
    }
    parts.context.serving.enter('serving');
    return new Tablet(options, state, parts);
  }

  get #parts(): TabletParts {
    return this.#made ?? this.#make();
  }

  #make(): TabletParts {
    assert(this.#made === undefined && isEmpty(this.#opened), 'the parts of an empty tablet are made once');
    const made = new TabletParts(this.#options, this.#opened, []);
    made.context.serving.enter('serving');
    this.#made = made;
    return made;
  }

  get state(): TabletState {
    return this.#made?.context.state ?? this.#opened;
  }

  get memtableBytes(): number {
    return this.#made?.context.layers.memtableBytes ?? 0;
  }

  get oldestUnflushed(): number | undefined {
    return this.#made?.context.layers.firstPosition;
  }

  get redoPoint(): RedoPoint {
    return this.state.redo;
  }

  get rowsDone(): number {
    return this.#rowsWritten + (this.#made?.reads.rows ?? 0);
  }

  sizeBytes(): number {
    if (this.#made === undefined) return 0;
    const { files, memtableBytes } = this.#layers;
    return files.reduce((sum, file) => sum + file.sizeBytes, memtableBytes);
  }

  heldFiles(): readonly string[] {
    if (this.#made === undefined) return NO_FILES;
    return [...this.#layers.heldFiles(), ...this.#context.ownedFiles.new];
  }

  mutateRow(context: RequestContext, row: ByteString, mutations: Mutations, idempotency?: Idempotency): Promise<void> {
    return this.#parts.writes.mutateRow(context, row, mutations, idempotency);
  }

  mutateRows(
    context: RequestContext,
    changes: readonly RowMutations[],
  ): Promise<readonly (BigtableError | undefined)[]> {
    this.#rowsWritten += changes.length;
    return this.#parts.writes.mutateRows(context, changes);
  }

  transact(
    context: RequestContext,
    rows: readonly ByteString[],
    filter: RowFilter | undefined,
    decide: (cells: ReadonlyMap<ByteString, readonly Cell[]>) => Decision,
  ): Promise<void> {
    return this.#parts.writes.transact(context, rows, filter, decide);
  }

  checkAndMutateRow(
    context: RequestContext,
    row: ByteString,
    predicate: RowFilter | undefined,
    whenTrue: readonly Mutation[],
    whenFalse: readonly Mutation[],
    admit?: Admission,
  ): Promise<boolean> {
    return this.#parts.writes.checkAndMutateRow(context, row, predicate, whenTrue, whenFalse, admit);
  }

  readModifyWriteRow(
    context: RequestContext,
    row: ByteString,
    rules: readonly ReadModifyWriteRule[],
    maxAnswerBytes?: number,
    admit?: Admission,
  ): Promise<readonly Cell[]> {
    return this.#parts.writes.readModifyWriteRow(context, row, rules, maxAnswerBytes, admit);
  }

  dropRows(context: RequestContext, range: RowRange): Promise<void> {
    return this.#parts.writes.dropRows(context, range);
  }

  read(context: RequestContext, request: TabletRead): PullStream<ReadBatch> {
    return this.#parts.reads.read(context, request);
  }

  loadIndexes(): Promise<void> | undefined {
    const evicted = this.#layers.files.filter((file) => !file.hasIndex);
    if (evicted.length === 0) return undefined;
    return Promise.allSettled(evicted.map((file) => file.loadIndex())).then(() => undefined);
  }

  sampleKeys(partBytes: number): readonly { readonly row: ByteString; readonly offsetBytes: number }[] {
    return sampleFiles(this.#layers.files, this.state.range, partBytes);
  }

  middleRow(): ByteString | undefined {
    if (this.#made === undefined) return undefined;
    return middleRow(this.#layers.files, this.state.range);
  }

  familyUsage(): Promise<readonly FamilyUsage[]> {
    const { files, memtables } = this.#layers;
    return familyUsage({
      files,
      memtables,
      schema: this.#context.schema(),
      pacer: new Pacer(this.#context.env.clock),
    });
  }

  flush(): Promise<void> {
    // the logs of earlier servers are listed until a flush commits that nothing of theirs is needed
    if (this.#made === undefined && this.#opened.logs.every((log) => log === this.#options.host.logPath))
      return Promise.resolve();
    return this.#parts.flusher.flush();
  }

  async renewRow(): Promise<void> {
    const { commits } = this.#parts.context;
    this.#checkServing();
    await commits.renewed();
  }

  async shareFiles(): Promise<TabletState> {
    await this.flush();
    if (this.#made === undefined) return this.#opened;
    this.#checkServing();
    const { state } = this;
    this.#context.ownedFiles.shareCommitted(Object.values(state.files).flat());
    return { ...state, lastServerMicros: this.#context.time.lastMicros };
  }

  dueCompaction(): CompactionKind | undefined {
    if (this.#made === undefined) return undefined;
    return this.#context.serving.phase === 'serving' ? this.#parts.compactor.due() : undefined;
  }

  earnedCompaction(): CompactionKind | undefined {
    if (this.#made === undefined || this.#context.serving.phase !== 'serving') return undefined;
    const { context, writer, writeActivity, flusher, compactor } = this.#made;
    const isQuiet = writeActivity.isQuiet(writer.applied, context.env.clock.monotonicMs());
    if (isQuiet && flusher.isEarned()) return 'minor';
    const isDue = compactor.isEarned(isQuiet ? 1 : BUSY_PRICE) || compactor.isWorthwhile(isQuiet);
    return isDue ? 'merging' : undefined;
  }

  async compact(kind: CompactionKind): Promise<void> {
    this.#checkServing();
    if (kind === 'minor') return this.flush();
    if (kind === 'major') {
      // what it drops must not depend on what is only in memory
      await this.flush();
      // a running flush does not know into which groups this compaction will move cells
      while (this.#parts.flusher.underWay) await this.#parts.flusher.underWay;
      this.#checkServing();
    }
    await this.#parts.compactor.run(kind);
  }

  cancelCompaction(): Promise<void> {
    if (this.#made === undefined) return Promise.resolve();
    return this.#parts.compactor.cancel();
  }

  get crowding(): number {
    return this.#made?.context.layers.crowding ?? 0;
  }

  get uncollectedSinceMicros(): number | undefined {
    if (this.#made === undefined) return undefined;
    const { files } = this.#layers;
    const hasRules = Object.values(this.#context.schema().families).some(({ gcRule }) => gcRule !== undefined);
    const hasTokens = files.some(({ group }) => group === TOKEN_GROUP);
    const isClean =
      this.#layers.memtablesAreEmpty &&
      this.#layers.maxFiles <= 1 &&
      files.every((file) => !hasDeletions(file) && !file.hasForeignRows);
    if (files.length === 0 || (isClean && !hasRules && !hasTokens)) return undefined;
    return files.reduce(
      (oldest, { properties }) => Math.min(oldest, Number(properties.createdMicros)),
      Number.POSITIVE_INFINITY,
    );
  }

  async close(options: { readonly flush: boolean }): Promise<void> {
    const { serving } = this.#context;
    if (serving.phase === 'ended') return;
    serving.enter('closing');
    await this.#parts.compactor.cancel();
    // calls that hold a row now may still write
    await this.#parts.locks.lockTablet();
    this.#parts.locks.unlockTablet();
    await this.#parts.writer.drain();
    if (options.flush) await this.flush();
    while (this.#parts.flusher.underWay) await this.#parts.flusher.underWay;
    this.#end();
  }

  async divide(row: ByteString, commit: DivideCommit): Promise<readonly [TabletApi, TabletApi]> {
    const { range } = this.state;
    assert(rangeContains(range, row) && row !== range.start, 'a tablet is divided at a row inside it');
    const { serving, commits } = this.#context;
    this.#checkServing();
    serving.enter('dividing');
    try {
      await this.#parts.compactor.cancel();
      await this.#flushMost();
      await this.#parts.locks.lockTablet();
      try {
        if (!serving.takesCalls) throw serving.notServingError();
        await this.#parts.writer.drain();
        await this.flush();
        return await commits.inTurn(() =>
          this.#divide(
            [
              { start: range.start, end: row },
              { start: row, end: range.end },
            ],
            commit,
          ),
        );
      } catch (error) {
        this.#context.noteError(error);
        throw error;
      } finally {
        this.#parts.locks.unlockTablet();
      }
    } finally {
      // otherwise it was closed meanwhile, or has been divided
      if (serving.phase === 'dividing') serving.enter('serving');
    }
  }

  /** Writes continue meanwhile: little is left to flush when they have to wait. */
  async #flushMost(): Promise<void> {
    for (let i = 0; i < MAX_FLUSHES && this.memtableBytes > MAX_UNFLUSHED_BYTES; i++) await this.flush();
  }

  async #divide(ranges: readonly [RowRange, RowRange], commit: DivideCommit): Promise<readonly [Tablet, Tablet]> {
    assert(
      this.#layers.memtablesAreEmpty && this.#parts.flusher.isCommitted,
      'everything is in files before a tablet is divided',
    );
    const parts = ranges.map((range) => {
      const files = this.#layers.files.flatMap((file) => file.part(range) ?? []);
      const state: TabletState = {
        ...this.state,
        range,
        files: pathsByGroup(files),
        clips: clipsOf(files),
        lastServerMicros: this.#context.time.lastMicros,
      };
      return { files, state };
    });
    const [low, high] = [parts[0]!, parts[1]!];
    let hosts: readonly [TabletHost, TabletHost];
    try {
      hosts = await commit([low.state, high.state]);
    } catch (error) {
      for (const { files } of parts) for (const file of files) file.close();
      throw error;
    }
    // from here on the two tablets share its files
    this.#end();
    const open = ({ state, files }: (typeof parts)[number], host: TabletHost): Tablet => {
      const options = { ...this.#options, host };
      if (isEmpty(state)) return new Tablet(options, state);
      assert(files.length > 0, 'a tablet that lists files has them open');
      const parts = new TabletParts(options, state, files);
      parts.context.serving.enter('serving');
      return new Tablet(options, state, parts);
    };
    return [open(low, hosts[0]), open(high, hosts[1])];
  }

  get #context(): TabletContext {
    return this.#parts.context;
  }

  get #layers(): LayerSet {
    return this.#context.layers;
  }

  #checkServing(): void {
    const { serving } = this.#context;
    if (serving.phase !== 'serving') throw serving.notServingError();
  }

  #end(): void {
    const { serving, ownedFiles, layers } = this.#context;
    if (serving.phase === 'ended') return;
    serving.enter('ended');
    ownedFiles.share();
    layers.retire();
  }
}

function isEmpty({ files }: TabletState): boolean {
  for (const group in files) if (files[group]!.length > 0) return false;
  return true;
}

function isDone(records: Iterable<RedoRecord>): boolean {
  return Array.isArray(records) && records.length === 0;
}

async function openFiles(options: TabletOptions, state: TabletState): Promise<TabletFile[]> {
  const opener = new FileOpener(options);
  const grouping = groupingOf(options.host.schema(state.tableId));
  const groups = Object.entries(state.files).map(([group, paths]) =>
    Promise.all(paths.map((path) => opener.openListed(path, group, grouping.tuning(group), state))),
  );
  return (await Promise.all(groups)).flat();
}

function hasDeletions(file: TabletFile): boolean {
  const { entries } = file.properties;
  return (
    file.rowRangeDeletions().length > 0 ||
    entries.rowDeletion + entries.familyDeletion + entries.columnDeletion + entries.rangeDeletion > 0
  );
}
