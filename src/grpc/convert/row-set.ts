/**
 * google.bigtable.v2.RowSet and RowRange to half-open row ranges and back. Ranges that hold nothing are kept, so that a set that asks
 * for nothing is not taken for one that asks for everything; a start above its end is INVALID_ARGUMENT, as in the cloud.
 */
import { create } from '@bufbuild/protobuf';
import { type ByteString, fromBytes, invalidArgument, quote, successor, toBytes } from '../../base/index.ts';
import type { RowRange } from '../../model/index.ts';
import { rangeOfRow, rowOfRange } from '../../model/index.ts';
import { type RowRange as RowRangeMessage, RowRangeSchema, type RowSet, RowSetSchema } from '../generated/google/bigtable/v2/data_pb.ts';

/** `at` is the range's place in its request, for the message. */
export function rowRangeOf(message: RowRangeMessage, at = 0): RowRange {
  const { startKey, endKey } = message;
  const start = startKey.case === undefined ? '' : fromBytes(startKey.value);
  const end = endKey.case === undefined ? '' : fromBytes(endKey.value);
  if (start !== '' && end !== '' && start > end) {
    throw invalidArgument(`row range ${at}: start ${quote(start)} is above end ${quote(end)}`, { field: `rows.row_ranges[${at}]` });
  }
  return {
    start: startKey.case === 'startKeyOpen' ? successor(start) : start,
    end: endKey.case === 'endKeyClosed' ? successor(end) : end === '' ? undefined : end,
  };
}

export function rowKeyRangeOf(key: ByteString, at: number): RowRange {
  if (key === '') throw invalidArgument(`row key ${at}: row keys must not be empty`, { field: `rows.row_keys[${at}]` });
  return rangeOfRow(key);
}

/** Ranges of exactly one row become row keys, so that any server reads them as point reads. */
export function rowSetMessage(ranges: readonly RowRange[]): RowSet {
  const set = create(RowSetSchema);
  for (const range of ranges) {
    if (range.start !== '' && rowOfRange(range) !== undefined) set.rowKeys.push(toBytes(range.start));
    else set.rowRanges.push(rowRangeMessage(range));
  }
  return set;
}

export function rowRangeMessage(range: RowRange): RowRangeMessage {
  return create(RowRangeSchema, {
    ...(range.start !== '' && { startKey: { case: 'startKeyClosed', value: toBytes(range.start) } as const }),
    ...(range.end !== undefined && { endKey: { case: 'endKeyOpen', value: toBytes(range.end) } as const }),
  });
}
