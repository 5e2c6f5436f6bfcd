/**
 * A compaction of files as plain data, so that it can be done on another thread: what to read, what to write, and by which rules. The files
 * it names never change, so nothing else has to be agreed upon (docs/decisions/0011-compactions.md).
 */
import type { LocalityGroup, RowRange, TableSchema } from '../../model/index.ts';
import type { RecordPoint } from '../../sstable/index.ts';

/** The name of the task under which a process's workers know `compactFiles`. */
export const COMPACTION_TASK = 'compaction';

/** Bounds of the durations that are counted, ms: from ten milliseconds to an hour. */
export const COMPACTION_BOUNDS_MS: readonly number[] = Object.freeze([
  10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 3_600_000,
]);

export type CompactionKind = 'merging' | 'major';

export interface CompactionInput {
  readonly path: string;
  /** The parts of it that count; undefined = all. */
  readonly clips: readonly RowRange[] | undefined;
}

export interface CompactionOutput {
  readonly group: string;
  readonly path: string;
  /** Names under which its families are stored. */
  readonly families: readonly string[];
  readonly blockSizeBytes: number;
  readonly tuning: LocalityGroup;
  /** Files to read for it, newest first. */
  readonly inputs: readonly CompactionInput[];
}

/** What is dropped beside what is hidden. */
export type Collection =
  /** Older files are left: nothing, and deletions stay. */
  | 'nothing'
  /** The oldest file is among the inputs: deletions, and versions too old whatever stands beside them. */
  | 'aged'
  /** And newer layers cannot make a version count again: whatever a read would not show. */
  | 'all';

export interface CompactionJob {
  readonly range: RowRange;
  readonly schema: TableSchema;
  readonly nowMicros: number;
  readonly collection: Collection;
  /** The newest record in the inputs; undefined where they do not tell. */
  readonly newest: RecordPoint | undefined;
  /** Behind which record the inputs begin; undefined where they do not tell, `beginning` where they are all there is. */
  readonly since: RecordPoint | 'beginning' | undefined;
  /** The newest time that a server has given in the tablet. */
  readonly lastServerMicros: number;
  /** The inputs are all files of the tablet: of a family that no output holds there is nothing. */
  readonly isMajor: boolean;
  readonly outputs: readonly CompactionOutput[];
  /** Set to 1 by the one who asked for it: the job is to end soon. */
  readonly cancelled: Int32Array;
}

/** The outputs that hold anything, in the job's order. */
export interface CompactionResult {
  readonly written: readonly { readonly path: string; readonly sizeBytes: number }[];
  readonly readBytes: number;
}
