/** Rows by their keys, in the order of the keys, by scans of a bounded number of keys. */
import type { ByteString } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { Service } from '../../service/index.ts';
import { asked } from '../values/input.ts';
import { type Row, RowBuilder } from './row.ts';
import { type KeptFilters, type RowOptions, rowsRequest } from './scan.ts';

/** Keys in one read. */
const READ = { keys: 5000, bytes: 1024 * 1024 } as const;

/** The row of each key, undefined if it is missing. Equal keys share one row. */
export async function getMany(
  service: Service,
  context: RequestContext,
  table: string,
  keys: readonly ByteString[],
  options: RowOptions,
  kept: KeptFilters,
): Promise<(Row | undefined)[]> {
  const found = new Map<ByteString, Row>();
  for (const part of partsOf(new Set(keys))) {
    const builder = new RowBuilder();
    for await (const { fragments } of service.readRows(
      context,
      asked(() => rowsRequest(table, part, options, kept)),
    )) {
      for (const fragment of fragments) {
        const row = builder.add(fragment);
        if (row !== undefined) found.set(fragment.row, row);
      }
    }
  }
  return keys.map((key) => found.get(key));
}

/** At least one part, so that a missing table is detected even without keys. */
function* partsOf(keys: Iterable<ByteString>): Generator<readonly ByteString[]> {
  let part: ByteString[] = [];
  let bytes = 0;
  for (const key of keys) {
    if (part.length >= READ.keys || bytes >= READ.bytes) {
      yield part;
      [part, bytes] = [[], 0];
    }
    part.push(key);
    bytes += key.length;
  }
  yield part;
}
