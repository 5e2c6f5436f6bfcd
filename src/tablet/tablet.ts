/**
 * One tablet: its parts put together. Writes go through the log of the server into the memtable (row-writes.ts,
 * tablet-writer.ts); reads merge the layers (layer-reads.ts); flushes write memtables to files (flusher.ts);
 * compactions merge files (file-compactor.ts). They share a TabletContext.
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
  type Mutation,
  type Mutations,
  rangeContains,
  type ReadBatch,
  type ReadModifyWriteRule,
  type RowMutations,
  type RowRange,
} from '../model/index.ts';
import type { CompactionKind } from './contract/compaction-job.ts';
import { familyUsage } from './layers/family-usage.ts';
import { FileCompactor } from './compact/file-compactor.ts';
import { FileOpener } from './layers/file-opener.ts';
import { Flusher } from './compact/flusher.ts';
import { groupingOf } from './layers/grouping.ts';
import { LayerReads } from './read/layer-reads.ts';
import { clipsOf, pathsByGroup, type LayerSet } from './layers/layer-set.ts';
import { middleRow } from './layers/middle-row.ts';
import { RowLocks } from './write/row-locks.ts';
import { RowWrites } from './write/row-writes.ts';
import { sampleFiles } from './layers/sample-keys.ts';
import type { Decision, DivideCommit, TabletApi, TabletRead } from './contract/tablet-api.ts';
import { TabletContext, type TabletOptions } from './layers/tablet-context.ts';
import type { TabletFile } from './layers/tablet-file.ts';
import type { TabletHost, TabletState } from './contract/tablet-state.ts';
import { TabletWriter } from './write/tablet-writer.ts';
import { WriteActivity } from './compact/write-activity.ts';

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

export class Tablet implements TabletApi {
  readonly #context: TabletContext;
  readonly #locks = new RowLocks();
  readonly #writer: TabletWriter;
  readonly #reads: LayerReads;
  readonly #writes: RowWrites;
  readonly #compactor: FileCompactor;
  readonly #flusher: Flusher;
  readonly #writeActivity = new WriteActivity();

  private constructor(options: TabletOptions, state: TabletState, files: readonly TabletFile[]) {
    const context = new TabletContext(options, state, files);
    this.#context = context;
    this.#writer = new TabletWriter(context, this.#locks);
    this.#reads = new LayerReads(context);
    this.#writes = new RowWrites(context, this.#locks, this.#writer);
    this.#compactor = new FileCompactor(context);
    this.#flusher = new Flusher(context, this.#writer, this.#compactor);
  }

  /** Opens the files that METADATA lists and replays `records`: those of the range after the redo point, in order. */
  static async load(options: TabletOptions, state: TabletState, records: Iterable<RedoRecord>): Promise<Tablet> {
    const tablet = new Tablet(options, state, await openFiles(options, state));
    const pacer = new Pacer(options.env.clock);
    for (const record of records) {
      const applying = tablet.#writer.replay(record);
      if (applying !== undefined) await applying;
      if (pacer.due()) await pacer.pause();
    }
    tablet.#context.serving.enter('serving');
    return tablet;
  }

  get state(): TabletState {
    return this.#context.state;
  }

  get memtableBytes(): number {
    return this.#layers.memtableBytes;
  }

  get oldestUnflushed(): number | undefined {
    return this.#layers.firstPosition;
  }

  get redoPoint(): RedoPoint {
    return this.state.redo;
  }

  sizeBytes(): number {
    return this.#layers.files.reduce((sum, file) => sum + file.sizeBytes, this.#layers.memtableBytes);
  }

  heldFiles(): readonly string[] {
    return [...this.#layers.heldFiles(), ...this.#context.ownedFiles.new];
  }

  mutateRow(context: RequestContext, row: ByteString, mutations: Mutations): Promise<void> {
    return this.#writes.mutateRow(context, row, mutations);
  }

  mutateRows(
    context: RequestContext,
    changes: readonly RowMutations[],
  ): Promise<readonly (BigtableError | undefined)[]> {
    return this.#writes.mutateRows(context, changes);
  }

  transact(
    context: RequestContext,
    rows: readonly ByteString[],
    filter: RowFilter | undefined,
    decide: (cells: ReadonlyMap<ByteString, readonly Cell[]>) => Decision,
  ): Promise<void> {
    return this.#writes.transact(context, rows, filter, decide);
  }

  checkAndMutateRow(
    context: RequestContext,
    row: ByteString,
    predicate: RowFilter | undefined,
    whenTrue: readonly Mutation[],
    whenFalse: readonly Mutation[],
  ): Promise<boolean> {
    return this.#writes.checkAndMutateRow(context, row, predicate, whenTrue, whenFalse);
  }

  readModifyWriteRow(
    context: RequestContext,
    row: ByteString,
    rules: readonly ReadModifyWriteRule[],
    maxAnswerBytes?: number,
  ): Promise<readonly Cell[]> {
    return this.#writes.readModifyWriteRow(context, row, rules, maxAnswerBytes);
  }

  dropRows(context: RequestContext, range: RowRange): Promise<void> {
    return this.#writes.dropRows(context, range);
  }

  read(context: RequestContext, request: TabletRead): PullStream<ReadBatch> {
    return this.#reads.read(context, request);
  }

  sampleKeys(partBytes: number): readonly { readonly row: ByteString; readonly offsetBytes: number }[] {
    return sampleFiles(this.#layers.files, this.state.range, partBytes);
  }

  middleRow(): ByteString | undefined {
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
    return this.#flusher.flush();
  }

  dueCompaction(): CompactionKind | undefined {
    return this.#context.serving.phase === 'serving' ? this.#compactor.due() : undefined;
  }

  earnedCompaction(): CompactionKind | undefined {
    if (this.#context.serving.phase !== 'serving') return undefined;
    const isQuiet = this.#writeActivity.isQuiet(this.#writer.applied, this.#context.env.clock.monotonicMs());
    if (isQuiet && this.#flusher.isEarned()) return 'minor';
    return this.#compactor.isEarned(isQuiet ? 1 : BUSY_PRICE) ? 'merging' : undefined;
  }

  async compact(kind: CompactionKind): Promise<void> {
    this.#checkServing();
    if (kind === 'minor') return this.flush();
    if (kind === 'major') {
      // what it drops must not depend on what is only in memory
      await this.flush();
      // a running flush does not know into which groups this compaction will move cells
      await this.#flusher.idle();
      this.#checkServing();
    }
    await this.#compactor.run(kind);
  }

  cancelCompaction(): Promise<void> {
    return this.#compactor.cancel();
  }

  get crowding(): number {
    return this.#layers.crowding;
  }

  get uncollectedSinceMicros(): number | undefined {
    const { files } = this.#layers;
    const hasRules = Object.values(this.#context.schema().families).some(({ gcRule }) => gcRule !== undefined);
    const isClean =
      this.#layers.memtablesAreEmpty &&
      this.#layers.maxFiles <= 1 &&
      files.every((file) => !hasDeletions(file) && !file.hasForeignRows);
    if (files.length === 0 || (isClean && !hasRules)) return undefined;
    return files.reduce(
      (oldest, { properties }) => Math.min(oldest, Number(properties.createdMicros)),
      Number.POSITIVE_INFINITY,
    );
  }

  async close(options: { readonly flush: boolean }): Promise<void> {
    const { serving } = this.#context;
    if (serving.phase === 'ended') return;
    serving.enter('closing');
    await this.#compactor.cancel();
    // calls that hold a row now may still write
    await this.#locks.lockTablet();
    this.#locks.unlockTablet();
    await this.#writer.drain();
    if (options.flush) await this.flush();
    else await this.#flusher.idle();
    this.#end();
  }

  async divide(row: ByteString, commit: DivideCommit): Promise<readonly [TabletApi, TabletApi]> {
    const { range } = this.state;
    assert(rangeContains(range, row) && row !== range.start, 'a tablet is divided at a row inside it');
    const { serving, commits } = this.#context;
    this.#checkServing();
    serving.enter('dividing');
    try {
      await this.#compactor.cancel();
      await this.#flushMost();
      await this.#locks.lockTablet();
      try {
        if (!serving.takesCalls) throw serving.notServingError();
        await this.#writer.drain();
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
        this.#locks.unlockTablet();
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
      this.#layers.memtablesAreEmpty && this.#flusher.isCommitted,
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
      const tablet = new Tablet({ ...this.#context.options, host }, state, files);
      tablet.#context.serving.enter('serving');
      return tablet;
    };
    return [open(low, hosts[0]), open(high, hosts[1])];
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
