/** The changes of a table's rows, as a stream (API: ReadChangeStream, GenerateInitialChangeStreamPartitions). */
import type { RequestContext } from '../env/index.ts';
import type { Mutation, RowRange } from '../model/index.ts';
import type { ByteString } from '../base/index.ts';

/** A place in the stream of a range of rows, to go on from. */
export interface StreamToken {
  readonly range: RowRange;
  readonly token: string;
}

export interface ChangeStreamRequest {
  readonly table: string;
  readonly range: RowRange;
  /** Changes before this time, microseconds, are not wanted. Default: the time of the call. Not with tokens. */
  readonly startMicros?: number | undefined;
  /** They are of ranges that together are the range. */
  readonly tokens?: readonly StreamToken[] | undefined;
  /** The stream ends when it has come beyond this time. Default: never. */
  readonly endMicros?: number | undefined;
  /** Something comes after this time at the latest. Default: 5 s. */
  readonly heartbeatMs?: number | undefined;
}

export type StreamEvent =
  /** What one call has changed in a row. */
  | {
      readonly kind: 'change';
      readonly row: ByteString;
      readonly mutations: readonly Mutation[];
      readonly commitMicros: number;
      readonly origin: 'user' | 'garbageCollection';
      /** The place after the change. */
      readonly token: string;
      /** An estimate: later changes are not older, microseconds. */
      readonly watermarkMicros: number;
    }
  | { readonly kind: 'heartbeat'; readonly token: string; readonly watermarkMicros: number }
  /**
   * The last one. The tablets of the range are others now: `tokens` are those of the range's parts, and `ranges` the
   * tablets to read. One that came of a merge is read with the tokens of all its parts.
   */
  | { readonly kind: 'closed'; readonly tokens: readonly StreamToken[]; readonly ranges: readonly RowRange[] };

export interface ChangeService {
  /** The ranges of the table's tablets, ascending. FAILED_PRECONDITION where the table has no change stream. */
  changeStreamRanges(context: RequestContext, table: string): Promise<readonly RowRange[]>;
  /**
   * Each change of a row in the range, in the order of the row's changes, at least once. It ends after an event
   * `closed`, or at `endMicros`. INVALID_ARGUMENT for tokens that do not fit the range, OUT_OF_RANGE where changes that
   * were not read are no longer kept.
   */
  readChanges(context: RequestContext, request: ChangeStreamRequest): AsyncIterable<StreamEvent>;
}
