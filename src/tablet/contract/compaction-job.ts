/**
 * A compaction of files as plain data, so that another thread can carry it out: the files to read, the files to write,
 * and the rules. The files it names never change, so the two sides need no other agreement
 * (docs/decisions/0011-compactions.md).
 */
import type { ByteString, Int64 } from '../../base/index.ts';
import type { ColumnKey, LocalityGroup, RowRange, TableSchema } from '../../model/index.ts';
import type { RecordPoint } from '../../sstable/index.ts';

/** The name under which the workers of a process know `compactFiles`. */
export const COMPACTION_TASK = 'compaction';

/** Bounds of the histogram of durations, ms: from ten milliseconds to an hour. */
export const COMPACTION_BOUNDS_MS: readonly number[] = Object.freeze([
  10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 3_600_000,
]);

/** Compactions of files. */
export type FileCompactionKind = 'merging' | 'major';

export type CompactionKind = 'minor' | FileCompactionKind;

export interface CompactionInput {
  readonly path: string;
  /** The parts that the tablet lists it for; undefined = all. */
  readonly clips: readonly RowRange[] | undefined;
}

export interface CompactionOutput {
  readonly group: string;
  readonly path: string;
  /** The names under which its families are stored. */
  readonly families: readonly string[];
  readonly blockSizeBytes: number;
  readonly tuning: LocalityGroup;
  /** Newest first. */
  readonly inputs: readonly CompactionInput[];
}

/** The entries to drop, besides hidden ones. */
export type Collection =
  /** Older files remain: drop nothing, keep deletions. */
  | 'nothing'
  /** The oldest file is an input: drop deletions, and versions that are too old regardless of the others. */
  | 'aged'
  /** The same, and no newer layer can make a version count again: drop everything that a read would not show. */
  | 'all';

/** A column of which garbage collection drops the version of that time, and all older ones. */
export interface CollectedVersions {
  readonly row: ByteString;
  readonly column: ColumnKey;
  readonly timestamp: Int64;
}

/** The order in which a compaction comes to columns: output by output. */
export interface CollectedPlace {
  readonly output: number;
  readonly row: ByteString;
  readonly column: ColumnKey;
}

/** Some of the versions that a compaction drops: as many as an answer of limited size holds. */
export interface CollectedBatch {
  readonly versions: readonly CollectedVersions[];
  /** The last of them; where the next batch begins. */
  readonly last: CollectedPlace | undefined;
  /** True if nothing else is dropped after them. */
  readonly isLast: boolean;
}

export interface CollectedRequest {
  /** Those up to this place are not wanted. */
  readonly after: CollectedPlace | undefined;
  /** The files were written before: nothing but these is wanted. */
  readonly isAll: boolean;
}

export interface CompactionJob {
  readonly range: RowRange;
  readonly schema: TableSchema;
  readonly nowMicros: number;
  readonly collection: Collection;
  /** The newest record in the inputs; undefined if they do not say. */
  readonly newest: RecordPoint | undefined;
  /** The record after which the inputs begin; `beginning` if they are all files, undefined if they do not say. */
  readonly since: RecordPoint | 'beginning' | undefined;
  /** The newest time that a server gave to a cell of the tablet. */
  readonly lastServerMicros: number;
  /** The inputs are all files of the tablet: a family that is in no output is empty. */
  readonly isMajor: boolean;
  readonly outputs: readonly CompactionOutput[];
  /** For a table with a change stream: the versions that garbage collection drops are to be in the result. */
  readonly collected?: CollectedRequest | undefined;
  /** The requester sets it to 1 to cancel the job. */
  readonly cancelled: Int32Array;
}

/** The outputs that are not empty, in the order of the job. */
export interface CompactionResult {
  readonly written: readonly { readonly path: string; readonly sizeBytes: number }[];
  readonly readBytes: number;
  /** Where they were requested. */
  readonly collected?: CollectedBatch | undefined;
}
