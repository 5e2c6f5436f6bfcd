/**
 * A redo record: one change of one tablet in the commit log. Format: docs/formats/commit-log.md.
 *
 * The records of a server are numbered by `sequence`, ascending and each number once. A number is missing only if its
 * record was refused and surely not written (a full disk). The records of a tablet with several owners are ordered by
 * (epoch, sequence), not by sequence.
 */
import type { ByteString, Int64 } from '../base/index.ts';
import type { Mutation, Mutations, RowMutations, RowRange } from '../model/index.ts';

/** The cause of a change. Stored: never renumber. */
export const Origin = { user: 0, garbageCollection: 1, replication: 2 } as const;
export type Origin = (typeof Origin)[keyof typeof Origin];

/** Every mutation carries its final timestamp: the server's time was filled in before the record was made. */
export type RecordBody<M extends Mutations = readonly Mutation[]> =
  /** One row, or several of one tablet that change in one instant (a batch of writes, two-row commits of METADATA). */
  | { readonly kind: 'rows'; readonly rows: readonly RowMutations<M>[] }
  | { readonly kind: 'dropRows'; readonly range: RowRange };

export interface LogRecord {
  readonly tableId: string;
  /** The tablet's epoch under which the record was written. */
  readonly epoch: number;
  readonly sequence: number;
  /**
   * Time of the commit by the server's clock, microseconds; if the clock had stepped back, the timestamp of the
   * record's cells.
   */
  readonly commitMicros: Int64;
  readonly origin: Origin;
  /** Idempotency token of the request, if it had one. */
  readonly token?: Uint8Array | undefined;
  readonly body: RecordBody;
}

/** A record for replay: mutations may be runs of cells in the append's bytes, as in a live write. */
export interface RedoRecord extends Omit<LogRecord, 'body'> {
  readonly body: RecordBody<Mutations>;
}

/** The lowest and the highest row of a record. */
export interface RowSpan {
  readonly first: ByteString;
  readonly last: ByteString;
}

/** A record as it was read: enough to tell whether it is needed. The rest is decoded on request. */
export interface EncodedRecord extends RedoPoint {
  readonly tableId: string;
  /** Decodes the record. Values are views of the append. Errors are those of reading the log. */
  decode(): LogRecord;
  /** Decodes the record for replay: mutations that only set cells are runs. */
  redo(): RedoRecord;
  /** Its lowest and highest row; undefined if it drops a range of rows, or has no row. Does not decode mutations. */
  span(): RowSpan | undefined;
  /** True if the record changes a row of the range. Does not decode its mutations. */
  touches(range: RowRange): boolean;
}

/** A record in its append. */
export interface RecordOfAppend extends EncodedRecord {
  /** The record as the log has it, with its length. A view of the append. */
  encoded(): Uint8Array;
}

/** A record without its sequence number, which the log assigns. */
export interface NewRecord extends Omit<LogRecord, 'sequence' | 'body'> {
  readonly body: RecordBody<Mutations>;
  /** The body's rows as encoded by `encodeRows`, for a record that takes too long to encode in one slice. */
  readonly encodedRows?: readonly Uint8Array[] | undefined;
}

/** A point in a tablet's history: every record at or below it is in SSTables. */
export interface RedoPoint {
  readonly epoch: number;
  readonly sequence: number;
}

/** True if (epoch, sequence) comes after the point. */
export function isAfter(record: RedoPoint, point: RedoPoint): boolean {
  return record.epoch > point.epoch || (record.epoch === point.epoch && record.sequence > point.sequence);
}
