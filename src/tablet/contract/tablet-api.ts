/** What a tablet does for the server that serves it. */
import type { BigtableError, ByteString } from '../../base/index.ts';
import type { RedoPoint } from '../../commitlog/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import type {
  Cell,
  FamilyUsage,
  Mutation,
  Mutations,
  ReadBatch,
  ReadModifyWriteRule,
  RowMutations,
  RowRange,
} from '../../model/index.ts';
import type { CompactionKind } from './compaction-job.ts';
import type { TabletHost, TabletState } from './tablet-state.ts';

export interface TabletRead {
  /** Inside the tablet's range, sorted, disjoint. */
  readonly ranges: readonly RowRange[];
  readonly filter?: RowFilter | undefined;
  /** 0 = none. */
  readonly rowsLimit: number;
  readonly reversed: boolean;
}

/** What a transaction on rows of one tablet decides once it has seen them: mutations by row (rows left out stay), or undefined for none. */
export type Decision = ReadonlyMap<ByteString, readonly Mutation[]> | undefined;

/** Makes two rows of METADATA out of one, for the two parts. Resolves with their hosts once the rows are known to be there. */
export type DivideCommit = (parts: readonly [TabletState, TabletState]) => Promise<readonly [TabletHost, TabletHost]>;

export interface TabletApi {
  readonly state: TabletState;
  /** Bytes of the active and frozen memtables, overheads included. */
  readonly memtableBytes: number;
  /** Lowest log position that holds a record not yet in SSTables; undefined where all are. */
  readonly oldestUnflushed: number | undefined;
  readonly redoPoint: RedoPoint;

  /**
   * Logs and applies. Resolves when durable, applied and the lease surely held after that; UNAVAILABLE = outcome unknown. The mutations have been
   * checked against the schema by the server. Cells without a timestamp get the server's time when the change is logged.
   */
  mutateRow(context: RequestContext, row: ByteString, mutations: Mutations): Promise<void>;
  /** The same for several rows, each atomic by itself. Answers by change: undefined = done. */
  mutateRows(
    context: RequestContext,
    changes: readonly RowMutations[],
  ): Promise<readonly (BigtableError | undefined)[]>;
  /** Holds the rows from their read to the end of the log append. `decide` gets all cells of each row (GC rules applied), filtered by `filter`. */
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
  ): Promise<boolean>;
  readModifyWriteRow(
    context: RequestContext,
    row: ByteString,
    rules: readonly ReadModifyWriteRule[],
    maxAnswerBytes?: number,
  ): Promise<readonly Cell[]>;
  read(context: RequestContext, request: TabletRead): AsyncIterable<ReadBatch>;
  /** Keys that cut the tablet into parts of about `partBytes`, with the bytes before each. */
  sampleKeys(partBytes: number): readonly { readonly row: ByteString; readonly offsetBytes: number }[];
  /** A row that parts what is in files into two about equal halves; undefined where one row is all there is. */
  middleRow(): ByteString | undefined;
  /** Deletes all rows in the range, in one instant. */
  dropRows(context: RequestContext, range: RowRange): Promise<void>;
  /** Paths of all files that it lists, reads, or is writing: a sweep must spare them. */
  heldFiles(): readonly string[];
  /** Bytes in files and memtables, about. */
  sizeBytes(): number;
  /** What each family takes, by name. */
  familyUsage(): Promise<readonly FamilyUsage[]>;

  /** Minor compaction: afterwards everything applied before the call is in committed SSTables. One at a time; calls while one runs share the next. */
  flush(): Promise<void>;
  /** The compaction of files that is due by their number, or since families were moved to other locality groups. */
  dueCompaction(): CompactionKind | undefined;
  /** Does one compaction of files; nothing where there is none to do. `major` flushes first. FAILED_PRECONDITION while one runs, CANCELLED where the tablet is closed meanwhile. */
  compact(kind: CompactionKind): Promise<void>;
  /** Calls off the compaction of files that is under way; resolves when it is over. */
  cancelCompaction(): Promise<void>;
  /** How many files of a locality group lie over one another, in the group and place where most do; or half of a group's files, where that is more. */
  readonly crowding: number;
  /** Since when something may lie in files that a major compaction would drop; undefined where nothing does. */
  readonly uncollectedSinceMicros: number | undefined;
  /**
   * Makes two tablets of this one, which meet at `row`: low and high. Reads go on; writes wait while what is left in memory is flushed and `commit`
   * runs, and are refused as "not serving" after it. This tablet then serves nothing more than the ends of rows that reads stand in. Where `commit` fails it
   * serves on.
   */
  divide(row: ByteString, commit: DivideCommit): Promise<readonly [TabletApi, TabletApi]>;
  /** Stops taking new calls ("not serving"), lets those under way end, flushes when asked to, gives up files. */
  close(options: { readonly flush: boolean }): Promise<void>;
}
