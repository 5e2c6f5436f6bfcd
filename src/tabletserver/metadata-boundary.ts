/**
 * Where a tablet of METADATA is split: directly after the key of one of its rows, near the middle by number, since all
 * rows are about as large (docs/decisions/0065-splits-of-metadata.md).
 *
 * Invariant: the row exists when the split is committed. Otherwise its tablet may have been merged with the next one,
 * whose row would then lie above the boundary, and the rows of the parts that it is split into below.
 */
import type { ByteString } from '../base/index.ts';
import type { RequestContext } from '../env/index.ts';
import { boundaryAfter, keyBeforeBoundary, LOCATION_FAMILY, type MetadataKey } from '../metadata/index.ts';
import { rangeOfRow, type RowRange } from '../model/index.ts';
import type { TabletApi } from '../tablet/index.ts';

/** The family of an in-memory locality group. */
export const LOCATION_ONLY = { kind: 'familyNameRegex', regex: LOCATION_FAMILY } as const;

/** The first row of the upper part; undefined if the tablet has no two rows. */
export async function middleBoundary(tablet: TabletApi, context: RequestContext): Promise<ByteString | undefined> {
  const keys = await keysIn(tablet, tablet.state.range, context);
  const last = keys[(keys.length >> 1) - 1];
  return last === undefined ? undefined : boundaryAfter(last);
}

/** True when the row exists after which METADATA would be split. */
export async function isAfterRow(tablet: TabletApi, boundary: ByteString, context: RequestContext): Promise<boolean> {
  const keys = await keysIn(tablet, rangeOfRow(keyBeforeBoundary(boundary)), context);
  return keys.length > 0;
}

async function keysIn(tablet: TabletApi, range: RowRange, context: RequestContext): Promise<MetadataKey[]> {
  const keys: MetadataKey[] = [];
  const request = { ranges: [range], filter: LOCATION_ONLY, rowsLimit: 0, reversed: false };
  for await (const { fragments } of tablet.read(context, request))
    for (const { row, last } of fragments) if (last) keys.push(row);
  return keys;
}
