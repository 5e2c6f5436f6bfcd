/** The changes of a table's rows, as a change stream reads them (Bigtable.ReadChangeStream; decision 105). */
import type { ByteString } from '../base/index.ts';
import type { Mutation } from './mutation.ts';
import type { RowRange } from './row-set.ts';

/** A place in the log of a server that has, or had, a tablet. Ordered by epoch, server, position, record, row. */
export interface ChangePosition {
  readonly server: string;
  /** The tablet's at that server. */
  readonly epoch: number;
  /** That of the append in the log. */
  readonly position: number;
  /** Index of the record in the append; of the row in the record. */
  readonly record: number;
  readonly row: number;
}

/** How far a reader has come with a range of rows. */
export interface StreamProgress {
  readonly range: RowRange;
  /** Changes before this time, microseconds, are not wanted. */
  readonly fromMicros: number;
  /** The last place that was read. Undefined: none. */
  readonly after?: ChangePosition | undefined;
}

/** What one call has changed in a row, atomically. */
export interface RowChange {
  readonly row: ByteString;
  /** With their timestamps. */
  readonly mutations: readonly Mutation[];
  /** By the clock of the server, microseconds. */
  readonly commitMicros: number;
  readonly origin: 'user' | 'garbageCollection';
  readonly position: ChangePosition;
}

export interface ChangeBatch {
  /** In the order of each row's changes. */
  readonly changes: readonly RowChange[];
  /** Everything up to this place was read. Undefined: nothing was. */
  readonly position?: ChangePosition | undefined;
  /** An estimate: later changes are not older than this time, microseconds. */
  readonly watermarkMicros: number;
  /** Nothing up to the time at which the reader wants to end is missing. */
  readonly isEnd: boolean;
}

/** Negative where `a` comes before `b`. */
export function comparePositions(a: ChangePosition, b: ChangePosition): number {
  if (a.epoch !== b.epoch) return a.epoch - b.epoch;
  if (a.server !== b.server) return a.server < b.server ? -1 : 1;
  return a.position - b.position || a.record - b.record || a.row - b.row;
}
