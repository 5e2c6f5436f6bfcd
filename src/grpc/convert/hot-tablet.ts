/** Hot tablets: the API's message and the model. */
import { create } from '@bufbuild/protobuf';
import { type ByteString, quote, toText, utf8 } from '../../base/index.ts';
import type { HotTablet, RowRange } from '../../model/index.ts';
import {
  type HotTablet as HotTabletMessage,
  HotTabletSchema,
} from '../generated/google/bigtable/admin/v2/instance_pb.ts';
import { microsOf, timestampOf } from './time.ts';

/** `cluster`: the full name of the one in the request. */
export function hotTabletMessage(
  cluster: string,
  { id, table, range, startMicros, endMicros, cpuPercent }: HotTablet,
): HotTabletMessage {
  return create(HotTabletSchema, {
    name: `${cluster}/hotTablets/${id}`,
    tableName: table,
    startTime: timestampOf(startMicros),
    endTime: timestampOf(endMicros),
    ...(range && { startKey: keyText(range.start), endKey: keyText(lastKey(range)) }),
    nodeCpuUsagePercent: cpuPercent,
  });
}

/** Keys as the message has them: those that are no UTF-8 are written with escapes. */
export function hotTabletOf(message: HotTabletMessage): HotTablet {
  const { name, tableName, startTime, endTime, startKey, endKey, nodeCpuUsagePercent } = message;
  return {
    id: name.slice(name.lastIndexOf('/') + 1),
    table: tableName,
    range: { start: utf8(startKey), end: endKey === '' ? undefined : utf8(endKey) },
    startMicros: microsOf(startTime, 'start_time') ?? 0,
    endMicros: microsOf(endTime, 'end_time') ?? 0,
    cpuPercent: nodeCpuUsagePercent,
  };
}

/**
 * The API's end is the last key. There is a greatest key below the end of a tablet only where that is the successor of
 * a key; elsewhere it is the end itself. '' = the end of the table.
 */
function lastKey({ end = '' }: RowRange): ByteString {
  return end.endsWith('\0') ? end.slice(0, -1) : end;
}

/** UTF-8, or printable ASCII with the other bytes as \xNN. */
function keyText(key: ByteString): string {
  const text = toText(key);
  return utf8(text) === key ? text : quote(key, key.length).slice(1, -1);
}
