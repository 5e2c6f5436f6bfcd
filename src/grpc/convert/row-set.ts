/** Half-open row ranges as a google.bigtable.v2.RowSet. */
import { create } from '@bufbuild/protobuf';
import { invalidArgument, quote, toBytes } from '../../base/index.ts';
import { type RowRange, rowOfRange } from '../../model/index.ts';
import {
  type RowRange as RowRangeMessage,
  RowRangeSchema,
  type RowSet,
  RowSetSchema,
} from '../generated/google/bigtable/v2/data_pb.ts';

/** Ranges of exactly one row become row keys, so that any server reads them as point reads. */
export function rowSetMessage(ranges: readonly RowRange[]): RowSet {
  const set = create(RowSetSchema);
  for (const range of ranges) {
    if (range.start !== '' && rowOfRange(range) !== undefined) set.rowKeys.push(toBytes(range.start));
    else set.rowRanges.push(rowRangeMessage(range));
  }
  return set;
}

/** INVALID_ARGUMENT for a range that ends at '' and starts above it. */
export function rowRangeMessage(range: RowRange): RowRangeMessage {
  if (range.end === '') return emptyRangeMessage(range);
  return create(RowRangeSchema, {
    ...(range.start !== '' && { startKey: { case: 'startKeyClosed', value: toBytes(range.start) } as const }),
    ...(range.end !== undefined && { endKey: { case: 'endKeyOpen', value: toBytes(range.end) } as const }),
  });
}

/** An end of '' would be no end in the API. So an empty range is sent as another empty range. */
function emptyRangeMessage({ start }: RowRange): RowRangeMessage {
  if (start !== '') throw invalidArgument(`row range starts at ${quote(start)}, above its end ""`);
  const any = Buffer.of(0);
  return create(RowRangeSchema, {
    startKey: { case: 'startKeyClosed', value: any },
    endKey: { case: 'endKeyOpen', value: any },
  });
}
