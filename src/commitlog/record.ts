/**
 * A redo record: one change of one tablet, as it is kept in the commit log. Format: docs/formats/commit-log.md.
 *
 * Records of a server are numbered by `sequence`, ascending and never twice; a number is left out only where its record was
 * refused and surely not written (a full disk). Records of a tablet over several owners are ordered by (epoch, sequence), never by
 * sequence alone.
 */
import type { Int64 } from '../base/index.ts';
import type { Mutation, Mutations, RowMutations, RowRange } from '../model/index.ts';

/** Who caused a change. Stored: never renumber. */
export const Origin = { user: 0, garbageCollection: 1, replication: 2 } as const;
export type Origin = (typeof Origin)[keyof typeof Origin];

/** Every mutation carries its final timestamp: the server's time was filled in before the record was made. */
export type RecordBody<M extends Mutations = readonly Mutation[]> =
  /** One row, or several of one tablet that change in the same instant (a batch of writes, two-row commits of METADATA). */
  | { readonly kind: 'rows'; readonly rows: readonly RowMutations<M>[] }
  | { readonly kind: 'dropRows'; readonly range: RowRange };

export interface LogRecord {
  readonly tableId: string;
  /** The tablet's epoch under which the record was written. */
  readonly epoch: number;
  readonly sequence: number;
  /** Time of the commit, microseconds: of the server's clock, or the time that was given to cells of the record where the clock had stepped back. */
  readonly commitMicros: Int64;
  readonly origin: Origin;
  /** Idempotency token of the request, where it had one. */
  readonly token?: Uint8Array | undefined;
  readonly body: RecordBody;
}

/** A record as replay wants it: what rows are given may be runs of cells beside the append's bytes, as in a live write. */
export interface RedoRecord extends Omit<LogRecord, 'body'> {
  readonly body: RecordBody<Mutations>;
}

/** A record as it was read: what tells whether it is needed, and the rest when it is asked for. */
export interface EncodedRecord extends RedoPoint {
  readonly tableId: string;
  /** Values are views of the append. Throws as the reading of the log does where the record is damaged or too new. */
  decode(): LogRecord;
  /** The same; rows that are given set-cells alone come as runs. */
  redo(): RedoRecord;
  /** Whether it changes any row of the range, told without decoding its mutations. */
  touches(range: RowRange): boolean;
}

/** A record before the log has given it its number. */
export interface NewRecord extends Omit<LogRecord, 'sequence' | 'body'> {
  readonly body: RecordBody<Mutations>;
  /** The body's rows as `encodeRows` made them of exactly these, where encoding them in one step would take too long. */
  readonly encodedRows?: readonly Uint8Array[] | undefined;
}

/** A point in a tablet's history: every record at or below it is in SSTables. */
export interface RedoPoint {
  readonly epoch: number;
  readonly sequence: number;
}

/** Whether (epoch, sequence) comes after the point. */
export function isAfter(record: RedoPoint, point: RedoPoint): boolean {
  return record.epoch > point.epoch || (record.epoch === point.epoch && record.sequence > point.sequence);
}
