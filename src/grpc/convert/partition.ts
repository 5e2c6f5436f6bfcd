/** google.bigtable.v2.StreamPartition, which is [start_key_closed, end_key_open). */
import { fromBytes, invalidArgument, toBytes } from '../../base/index.ts';
import type { RowRange } from '../../model/index.ts';
import type { StreamPartition } from '../generated/google/bigtable/v2/data_pb.ts';

/** INVALID_ARGUMENT, naming the field, where there is none, or it has other bounds. */
export function rangeOfPartition(partition: StreamPartition | undefined, field: string): RowRange {
  if (partition === undefined) throw invalidArgument(`${field} must be set`, { field });
  const { startKey, endKey } = partition.rowRange ?? {};
  if (startKey?.case === 'startKeyOpen' || endKey?.case === 'endKeyClosed')
    throw invalidArgument(`${field} must have a closed start and an open end`, { field });
  const end = endKey?.value === undefined ? '' : fromBytes(endKey.value);
  return { start: startKey?.value === undefined ? '' : fromBytes(startKey.value), end: end === '' ? undefined : end };
}

export function partitionOf({ start, end = '' }: RowRange) {
  return {
    rowRange: {
      startKey: { case: 'startKeyClosed' as const, value: toBytes(start) },
      endKey: { case: 'endKeyOpen' as const, value: toBytes(end) },
    },
  };
}
