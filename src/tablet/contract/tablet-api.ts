/** The calls of a tablet, for the server that serves it. */
import type { BigtableError, ByteString } from '../../base/index.ts';
import type { RedoPoint } from '../../commitlog/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import type {
  Cell,
  FamilyUsage,
  Idempotency,
  Mutation,
  Mutations,
  ReadBatch,
  ReadModifyWriteRule,
  RowMutations,
  RowRange,
} from '../../model/index.ts';
import type { CompactionKind } from './compaction-job.ts';
import type { TabletHost, TabletState } from './tablet-state.ts';

/** Counts what reads answer. */
export interface BatchCount {
  answered(batch: ReadBatch): void;
}

export interface TabletRead {
  /** Inside the tablet's range, sorted, disjoint. */
  readonly ranges: readonly RowRange[];
  readonly filter?: RowFilter | undefined;
  /** 0 = none. */
  readonly rowsLimit: number;
  readonly reversed: boolean;
  /** Takes each batch before it is answered. */
  readonly count?: BatchCount | undefined;
}

/**
 * Decides on the change that a transaction is about to make of its row: throws to refuse it, and then nothing is
 * written.
 */
export type Admission = (mutations: readonly Mutation[]) => void;

/** The outcome of a transaction on rows of one tablet: mutations by row (other rows stay), or undefined for none. */
export type Decision = ReadonlyMap<ByteString, readonly Mutation[]> | undefined;

/**
 * Replaces the METADATA row by the rows of the two parts. Resolves with their hosts once the rows are known to be
 * committed.
 */
export type DivideCommit = (parts: readonly [TabletState, TabletState]) => Promise<readonly [TabletHost, TabletHost]>;

export interface TabletApi {
  readonly state: TabletState;
  /** Bytes of the active and frozen memtables, overheads included. */
  readonly memtableBytes: number;
  /** Lowest log position of a record that is not yet in SSTables; undefined if all are. */
  readonly oldestUnflushed: number | undefined;
  readonly redoPoint: RedoPoint;
  /** Rows that calls have written in batches, and fragments of rows that they have read, since it was opened. */
  readonly rowsDone: number;

  /**
   * Logs and applies the mutations, which the server has checked against the schema. Resolves when they are durable and
   * applied and the lease surely held after that; UNAVAILABLE: the outcome is unknown. Cells without a timestamp get
   * the time of the server when the change is logged. A change whose token the row has is made already, and stays so.
   */
  mutateRow(context: RequestContext, row: ByteString, mutations: Mutations, idempotency?: Idempotency): Promise<void>;
  /** The same for several rows, each atomic by itself. Returns an outcome for each change: undefined = done. */
  mutateRows(
    context: RequestContext,
    changes: readonly RowMutations[],
  ): Promise<readonly (BigtableError | undefined)[]>;
  /**
   * Locks the rows from their read to the end of the log append. `decide` receives all cells of each row (after garbage
   * collection) that pass `filter`.
   */
  transact(
    context: RequestContext,
    rows: readonly ByteString[],
    filter: RowFilter | undefined,
    decide: (cells: ReadonlyMap<ByteString, readonly Cell[]>) => Decision,
  ): Promise<void>;
  checkAndMutateRow(
    context: RequestContext,
    row: ByteString,
    predicate: RowFilter | undefined,
    whenTrue: readonly Mutation[],
    whenFalse: readonly Mutation[],
    admit?: Admission,
  ): Promise<boolean>;
  readModifyWriteRow(
    context: RequestContext,
    row: ByteString,
    rules: readonly ReadModifyWriteRule[],
    maxAnswerBytes?: number,
    admit?: Admission,
  ): Promise<readonly Cell[]>;
  read(context: RequestContext, request: TabletRead): AsyncIterable<ReadBatch>;
  /**
   * Reads the indexes of files that were evicted: `sampleKeys` and `middleRow` know the bounds alone of a file without
   * one. Undefined if there is nothing to read. A file that cannot be read is left as it is.
   */
  loadIndexes(): Promise<void> | undefined;
  /** Keys that cut the tablet into parts of about `partBytes`, with the number of bytes before each. */
  sampleKeys(partBytes: number): readonly { readonly row: ByteString; readonly offsetBytes: number }[];
  /** A row that divides the bytes in files into about equal halves; undefined if the tablet has one row only. */
  middleRow(): ByteString | undefined;
  /** Deletes all rows of the range atomically. */
  dropRows(context: RequestContext, range: RowRange): Promise<void>;
  /** Paths of all files that the tablet lists, reads or writes: a sweep must spare them. */
  heldFiles(): readonly string[];
  /** Approximate bytes in files and memtables. */
  sizeBytes(): number;
  /** The usage of each family, by name. */
  familyUsage(): Promise<readonly FamilyUsage[]>;

  /**
   * Minor compaction: afterwards everything applied before the call is in committed SSTables. One runs at a time; calls
   * during a flush share the next one.
   */
  flush(): Promise<void>;
  /** Commits the tablet's row again, for what the host keeps in it. "Not serving" if the tablet is divided first. */
  renewRow(): Promise<void>;
  /**
   * Flushes, and returns the state whose files hold everything that was applied before the call. Others may list these
   * files from here on: the tablet leaves them to the sweep.
   */
  shareFiles(): Promise<TabletState>;
  /** The compaction that is due because of the number of files, or because families moved to other locality groups. */
  dueCompaction(): CompactionKind | undefined;
  /**
   * The compaction that reads have earned (docs/decisions/0045-merges-for-reads.md). Called again while the tablet
   * is read: it learns by its calls for how long nothing was written.
   */
  earnedCompaction(): CompactionKind | undefined;
  /**
   * Does one compaction, if there is anything to do. `minor` flushes; `merging` does the one that is due, otherwise the
   * one that reads have earned; `major` flushes first. FAILED_PRECONDITION if a compaction of files is running,
   * CANCELLED if the tablet is closed meanwhile.
   */
  compact(kind: CompactionKind): Promise<void>;
  /** Cancels the running compaction of files; resolves when it has ended. */
  cancelCompaction(): Promise<void>;
  /**
   * The largest number of files of a locality group that overlap, or half the number of files of a group, whichever is
   * larger.
   */
  readonly crowding: number;
  /** The age of the oldest file from which a major compaction could drop something; undefined if there is none. */
  readonly uncollectedSinceMicros: number | undefined;
  /**
   * Divides this tablet at `row` into two: low and high. Reads continue; writes wait during the last flush and
   * `commit`, and fail with "not serving" after it. The tablet then only completes the rows that reads have begun. If
   * `commit` fails, the tablet continues to serve.
   */
  divide(row: ByteString, commit: DivideCommit): Promise<readonly [TabletApi, TabletApi]>;
  /** Takes no new calls ("not serving"), completes those in progress, flushes if requested, and releases its files. */
  close(options: { readonly flush: boolean }): Promise<void>;
}
