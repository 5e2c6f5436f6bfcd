/**
 * The METADATA row of a tablet as far as the tablet itself is concerned, and the services of its server. The row (room
 * `metadata`) holds more: the location and the log of events.
 */
import type { BigtableError } from '../../base/index.ts';
import type { RedoPoint } from '../../commitlog/index.ts';
import type { RowRange, TableSchema } from '../../model/index.ts';

/** Paths of SSTables by locality group, newest first. */
export type TabletFiles = Readonly<Record<string, readonly string[]>>;

/** For each file that is listed for parts of the range only: those parts, sorted and disjoint. */
export type TabletClips = Readonly<Record<string, readonly RowRange[]>>;

export interface TabletState {
  readonly tableId: string;
  readonly range: RowRange;
  /** Only the master changes it: in assign, release and merge. */
  readonly epoch: number;
  readonly files: TabletFiles;
  /** Files that are missing here count in the whole range. */
  readonly clips?: TabletClips | undefined;
  /** Records at or before it are in the files. */
  readonly redo: RedoPoint;
  /** Paths of all logs that may hold records after the redo point. */
  readonly logs: readonly string[];
  /**
   * A time that is no older than any that a server gave to a cell at or before the redo point; 0 if none was given,
   * undefined if an earlier version wrote the row.
   */
  readonly lastServerMicros?: number | undefined;
}

/** A change of the METADATA row after a compaction. */
export interface TabletCommit {
  readonly files: TabletFiles;
  readonly clips: TabletClips | undefined;
  readonly redo: RedoPoint;
  /** Logs that are still needed after it. */
  readonly logs: readonly string[];
  readonly lastServerMicros: number | undefined;
}

/** The services of the server that serves a tablet, besides the seams. */
export interface TabletHost {
  /** The schema of the table now; it may change from call to call. */
  schema(tableId: string): TableSchema;
  /** True when the lease of the server surely holds now. */
  leaseHeld(): boolean;
  /**
   * The wall clock says `nowMicros`, and a cell of this tablet already has the later time `lastMicros`. Called once for
   * each time that is given.
   */
  clockIsBehind(nowMicros: number, lastMicros: number): void;
  /** The path of the log of this server, as METADATA lists it. */
  readonly logPath: string;
  /** Commits to METADATA; resolves once the row is known to be changed. Retries while the outcome is unknown. */
  commit(state: TabletState, change: TabletCommit): Promise<void>;
  /** A path for a new SSTable that was never used before. */
  newFilePath(): string;
  /**
   * Files that this tablet wrote, that its row does not list and that no read holds: they may be deleted. Files that
   * other tablets may share are never named here; the sweep finds those.
   */
  released(files: readonly string[]): void;
  /** The row stopped listing files that were written elsewhere. The sweep finds those that no other tablet needs. */
  leftToSweep(): void;
  /**
   * An invariant of the tablet is broken. From now on it takes no calls, applies and commits nothing: the server closes
   * it without a flush and opens it anew from its files and logs. Called once.
   */
  failed(error: BigtableError): void;
  /** Writes were applied, or have failed: the memtable may have grown. */
  written(): void;
  /** The list of files has changed: a compaction may be due. */
  filesChanged(): void;
  /** Reads have looked into several layers many more times, and may have earned a compaction. */
  compactionEarned(): void;
}
