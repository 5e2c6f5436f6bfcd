/**
 * The minor compactions of one tablet (paper section 5.4), one at a time: freezes the memtable, has it written to
 * SSTables (write-memtable.ts), and commits them.
 *
 * Invariant: the redo point of a commit is the last record applied to the frozen memtable, so that replay begins after
 * it. All records up to it are durable by then.
 */
import { assert } from '../../base/index.ts';
import { isAfter, type RedoPoint } from '../../commitlog/index.ts';
import { compactionMicros } from '../layers/earned-merge.ts';
import type { FileCompactor } from './file-compactor.ts';
import { groupingOf } from '../layers/grouping.ts';
import type { TabletContext } from '../layers/tablet-context.ts';
import { writeMemtable } from './write-memtable.ts';
import type { TabletWriter } from '../write/tablet-writer.ts';

/** A smaller memtable is not flushed for reads: it would be one more small file. */
const MIN_EARNED_BYTES = 8 * 1024 * 1024;

export class Flusher {
  readonly #context: TabletContext;
  readonly #writer: TabletWriter;
  readonly #compactor: FileCompactor;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  /** The last record applied to the newest frozen memtable. */
  #frozenUpTo: RedoPoint = { epoch: 0, sequence: 0 };

  constructor(context: TabletContext, writer: TabletWriter, compactor: FileCompactor) {
    this.#context = context;
    this.#writer = writer;
    this.#compactor = compactor;
  }

  /**
   * Resolves, and never rejects, when the flush under way is over; undefined: none is. One that waited for it begins at
   * once, so a caller that needs none looks until there is none, with no await after that.
   */
  get underWay(): Promise<void> | undefined {
    return this.#running?.catch(() => {});
  }

  /** True if everything applied is in files that METADATA lists. */
  get isCommitted(): boolean {
    const { state, host } = this.#context;
    const { redo, logs } = state;
    return !isAfter(this.#writer.applied, redo) && logs.every((log) => log === host.logPath);
  }

  /** True if reads have earned a flush of the memtable. The caller has checked that it takes no writes now. */
  isEarned(): boolean {
    const { layers } = this.#context;
    const { sizeBytes, rowCount: entryCount } = layers.active.memtable;
    return (
      sizeBytes >= MIN_EARNED_BYTES && layers.credits.memtableMicros >= compactionMicros([{ sizeBytes, entryCount }])
    );
  }

  /** Afterwards everything applied before the call is in committed files. Calls during a flush share the next one. */
  flush(): Promise<void> {
    if (this.#running !== undefined) {
      this.#next ??= this.#running
        .catch(() => {})
        .then(() => {
          this.#next = undefined;
          return this.flush();
        });
      return this.#next;
    }
    this.#running = this.#run();
    return this.#running;
  }

  async #run(): Promise<void> {
    try {
      await this.#flushAll();
    } catch (error) {
      this.#context.noteError(error);
      throw error;
    } finally {
      this.#running = undefined;
    }
  }

  /** Writes memtables that earlier failures left frozen, then the active one. */
  async #flushAll(): Promise<void> {
    const { layers, serving } = this.#context;
    const writer = this.#writer;
    if (layers.memtablesAreEmpty && this.isCommitted) return;
    if (serving.phase === 'ended' || serving.failure) throw serving.notServingError();
    while (layers.oldestFrozen !== undefined) await this.#flushOldest(this.#frozenUpTo);
    await writer.allApplied();
    if (layers.active.memtable.isEmpty && this.isCommitted) return;
    assert(layers.oldestFrozen === undefined, 'one memtable is frozen at a time');
    assert(
      !isAfter(this.#frozenUpTo, writer.applied),
      'the last record of a memtable is no older than that of the one before',
    );
    this.#frozenUpTo = writer.applied;
    layers.freeze();
    await this.#flushOldest(this.#frozenUpTo);
  }

  async #flushOldest(redo: RedoPoint): Promise<void> {
    const context = this.#context;
    const { layers, commits, ownedFiles, serving } = context;
    const frozen = layers.oldestFrozen;
    assert(frozen !== undefined, 'a flush has a frozen memtable');
    const { memtable, tokens } = frozen;
    assert(memtable.isFrozen, 'a memtable takes no writes while it is written to files');
    assert(!isAfter(context.state.redo, redo), 'redo points ascend');
    assert(serving.phase !== 'ended', 'a tablet that has ended writes no files');
    const paths: string[] = [];
    const newPath = (): string => {
      const path = ownedFiles.newPath();
      paths.push(path);
      return path;
    };
    try {
      const work = {
        grouping: groupingOf(context.schema()),
        memtable,
        tokens,
        groupsBeingWritten: this.#compactor.groupsBeingWritten,
        newPath,
        newest: redo,
      };
      const files = await writeMemtable(context, work).catch((error: unknown) => {
        ownedFiles.discard(paths);
        throw error;
      });
      // files never have a record that the log may still lose: with it, an earlier one of another tablet would be lost
      await this.#writer.allDurable();
      if (serving.failure) throw serving.notServingError();
      await commits.flushed(files, memtable.rowRangeDeletions(), redo);
      assert(layers.oldestFrozen !== frozen, 'a memtable that is in files is no longer a layer');
    } finally {
      ownedFiles.finish(paths, layers.heldFiles());
    }
    context.host.filesChanged();
  }
}
