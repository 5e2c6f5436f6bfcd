/**
 * Reads table and row of a request that changes one row, and skips the changes: enough to find the row's server
 * (docs/decisions/0047-calls-passed-on-as-bytes.md). Fields may come in any order, and again: the last one counts, as
 * in the whole request's reader.
 */
import { BigtableError, type ByteString } from '../../base/index.ts';
import { WireReader } from '../../protobuf/index.ts';
import type { RequestDecoder } from './request-decoder.ts';

/** Larger requests are decoded here, in slices: this reads in one. */
export const MAX_TARGET_BYTES = 256 * 1024;

export interface RowTarget {
  readonly table: string;
  readonly row: ByteString;
  readonly appProfile: string;
}

/**
 * `appProfileField`: its number in that kind of request. Undefined where the request is malformed or large: reading all
 * of it says why.
 */
export function readTarget(bytes: Buffer, appProfileField: number, decoder: RequestDecoder): RowTarget | undefined {
  if (bytes.length > MAX_TARGET_BYTES) return undefined;
  const reader = new WireReader(bytes);
  let [table, row, appProfile] = ['', '', ''];
  try {
    while (reader.next()) {
      if (reader.field === 1) table = decoder.tableName(reader);
      else if (reader.field === 2) row = reader.byteString();
      else if (reader.field === appProfileField) appProfile = reader.text();
      else reader.skip();
    }
  } catch (error) {
    if (error instanceof BigtableError) return undefined;
    throw error;
  }
  return { table, row, appProfile };
}
