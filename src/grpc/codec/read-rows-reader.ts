/**
 * ReadRowsRequest, taken apart field by field and with pauses, since it may ask for very many row keys.
 */
import { invalidArgument } from '../../base/index.ts';
import type { Pacer } from '../../env/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import type { RowRange } from '../../model/index.ts';
import type { ReadRequest } from '../../service/index.ts';
import { rowKeyRangeOf, rowRangeOf } from '../convert/row-set.ts';
import { ReadRowsRequest_RequestStatsView as StatsView } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { RowRangeSchema } from '../generated/google/bigtable/v2/data_pb.ts';
import { filterFrom } from './filter-reader.ts';
import { decodeRequest } from './messages.ts';
import { WireReader } from './wire-reader.ts';

/** Row keys and ranges a request: a guard of memory, far above what clients ask for at once. */
const MOST_RANGES = 1_000_000;

export interface ReadRowsCall {
  readonly request: ReadRequest;
  readonly authorizedView: string;
  readonly materializedView: string;
  readonly appProfile: string;
  readonly fullStats: boolean;
}

export async function readRowsCall(bytes: Buffer, pacer: Pacer): Promise<ReadRowsCall> {
  const reader = new WireReader(bytes);
  const ranges: RowRange[] = [];
  let [table, authorizedView, materializedView, appProfile] = ['', '', '', ''];
  let filter: RowFilter | undefined;
  let [rowsLimit, reversed, fullStats] = [0, false, false];
  while (reader.next()) {
    if (reader.field === 1) table = reader.text();
    else if (reader.field === 2) await rowSet(reader.bytes(), ranges, pacer);
    else if (reader.field === 3) filter = filterFrom(reader.bytes());
    else if (reader.field === 4) rowsLimit = limitOf(reader.int64());
    else if (reader.field === 5) appProfile = reader.text();
    else if (reader.field === 6) fullStats = reader.int32() === StatsView.REQUEST_STATS_FULL;
    else if (reader.field === 7) reversed = reader.int32() !== 0;
    else if (reader.field === 9) authorizedView = reader.text();
    else if (reader.field === 11) materializedView = reader.text();
    else reader.skip();
  }
  return { request: { table, ranges, filter, rowsLimit, reversed }, authorizedView, materializedView, appProfile, fullStats };
}

async function rowSet(bytes: Buffer, ranges: RowRange[], pacer: Pacer): Promise<void> {
  const reader = new WireReader(bytes);
  while (reader.next()) {
    if (reader.field === 1) ranges.push(rowKeyRangeOf(reader.byteString(), ranges.length));
    else if (reader.field === 2) ranges.push(rowRangeOf(decodeRequest(RowRangeSchema, reader.bytes()), ranges.length));
    else reader.skip();
    if (ranges.length > MOST_RANGES) throw invalidArgument(`too many row keys and ranges: the limit is ${MOST_RANGES} a request`, { field: 'rows' });
    if (pacer.due()) await pacer.pause();
  }
}

function limitOf(value: number | bigint): number {
  if (value < 0) throw invalidArgument(`rows_limit must not be negative, is ${value}`, { field: 'rows_limit' });
  return typeof value === 'number' ? value : Number.MAX_SAFE_INTEGER;
}
