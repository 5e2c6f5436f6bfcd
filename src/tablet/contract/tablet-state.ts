/**
 * What METADATA says of a tablet, as far as the tablet itself is concerned, and what it asks its server for. The METADATA row
 * (room `metadata`) holds more: the location and the log of events.
 */
import type { BigtableError } from '../../base/index.ts';
import type { RedoPoint } from '../../commitlog/index.ts';
import type { RowRange, TableSchema } from '../../model/index.ts';

/** Paths of SSTables by locality group, each list newest first. */
export type TabletFiles = Readonly<Record<string, readonly string[]>>;

/** By path of a file that is listed for parts of the tablet's range alone: those parts, sorted and disjoint. */
export type TabletClips = Readonly<Record<string, readonly RowRange[]>>;

export interface TabletState {
  readonly tableId: string;
  readonly range: RowRange;
  /** Changed by the master alone: in assign, release and merge. */
  readonly epoch: number;
  readonly files: TabletFiles;
  /** Files that are not in it count in the whole range. */
  readonly clips?: TabletClips | undefined;
  /** Records at or below it are in the files. */
  readonly redo: RedoPoint;
  /** Every log that may hold records after the redo point, by path. */
  readonly logs: readonly string[];
  /** The newest time that a server gave to a cell whose record is at or below the redo point, or a newer one; 0 where none was, undefined where an earlier version wrote the row. */
  readonly lastServerMicros?: number | undefined;
}

/** A change of the tablet's METADATA row that a compaction asks for. */
export interface TabletCommit {
  readonly files: TabletFiles;
  readonly clips: TabletClips | undefined;
  readonly redo: RedoPoint;
  /** Logs still needed after it. */
  readonly logs: readonly string[];
  readonly lastServerMicros: number | undefined;
}

/** What a tablet needs of the server that serves it, beside the seams. */
export interface TabletHost {
  /** The table's schema now; may change from call to call. */
  schema(tableId: string): TableSchema;
  /** Whether the server's lease surely holds at this instant. */
  leaseHeld(): boolean;
  /** The wall clock says `nowMicros`, and a later time has been given to a cell of this tablet, microseconds. Told once a time that is given. */
  clockIsBehind(nowMicros: number, lastMicros: number): void;
  /** The path of this server's own log, as METADATA lists it. */
  readonly logPath: string;
  /** Commits to METADATA; resolves once the row is known to show it. Repeats by itself while the outcome is unknown. */
  commit(state: TabletState, change: TabletCommit): Promise<void>;
  /** A path for a new SSTable, never used before. */
  newFilePath(): string;
  /**
   * Files that this tablet made, that its row does not list and that nothing it holds reads any more: they may be deleted. What other tablets may
   * share is never named here; the sweep finds it.
   */
  released(files: readonly string[]): void;
  /** Files that the row lists no more and that were not made here are needed no more: what other tablets do not need either the sweep finds. */
  leftToSweep(): void;
  /**
   * An invariant of the tablet is broken. It takes no calls from now on, applies nothing and commits nothing more: it is to be closed without a
   * flush and opened anew from its files and logs. Called once.
   */
  failed(error: BigtableError): void;
  /** Writes were applied, or failed: the memtable may have grown. */
  written(): void;
  /** The tablet's list of files has changed: a compaction may be due. */
  filesChanged(): void;
}
