/**
 * google.bigtable.v2.RowRange to half-open row ranges. Ranges that hold nothing are kept, so that a set that requests
 * nothing is not taken for one that requests everything; a start above its end is INVALID_ARGUMENT, as in the cloud.
 *
 * Empty bounds (docs/decisions/0026-corners-of-the-api.md): an empty start, open or closed, is below every row. An
 * empty open end is no end. An empty closed end holds no row, whatever the start: no row has the empty key.
 */
import { type ByteString, fromBytes, invalidArgument, quote, successor } from '../../base/index.ts';
import { rangeOfRow, type RowRange } from '../../model/index.ts';
import type { RowRange as RowRangeMessage } from '../generated/google/bigtable/v2/data_pb.ts';

/** `at`: the range's index in its request, for the message. */
export function rowRangeOf(message: Pick<RowRangeMessage, 'startKey' | 'endKey'>, at = 0): RowRange {
  const { startKey, endKey } = message;
  const start = startKey.case === undefined ? '' : fromBytes(startKey.value);
  const end = endKey.case === undefined ? '' : fromBytes(endKey.value);
  if (start !== '' && end !== '' && start > end) {
    throw invalidArgument(`row range ${at}: start ${quote(start)} is above end ${quote(end)}`, {
      field: `rows.row_ranges[${at}]`,
    });
  }
  const first = startKey.case === 'startKeyOpen' ? successor(start) : start;
  if (end === '') return { start: first, end: endKey.case === 'endKeyClosed' ? first : undefined };
  return { start: first, end: endKey.case === 'endKeyClosed' ? successor(end) : end };
}

export function rowKeyRangeOf(key: ByteString, at: number): RowRange {
  if (key === '')
    throw invalidArgument(`Row keys must be non-empty: row key ${at} is empty`, { field: `rows.row_keys[${at}]` });
  return rangeOfRow(key);
}
