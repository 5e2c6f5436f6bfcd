/** METADATA as a whole, for tests: all of its rows, and what must hold of them at any time. */
import assert from 'node:assert/strict';
import type { Env, RequestContext } from '../src/env/index.ts';
import { Locator, MetadataClient } from '../src/locator/index.ts';
import {
  assertPartition,
  dividesTablet,
  keyBeforeBoundary,
  type MetadataRow,
  ROOT_RANGE,
  USER_RANGE,
} from '../src/metadata/index.ts';
import { ALL_ROWS, type RowRange } from '../src/model/index.ts';

/** A client of METADATA that knows nothing yet. */
export function metadataOf(env: Env): MetadataClient {
  return new MetadataClient({ ...env, locator: new Locator(env), stopped: () => false });
}

export async function rowsIn(
  metadata: MetadataClient,
  range: RowRange,
  context: RequestContext,
): Promise<MetadataRow[]> {
  const rows: MetadataRow[] = [];
  for await (const some of metadata.scan(range, context)) rows.push(...some);
  return rows;
}

export interface AllRows {
  /** Rows of METADATA's tablets without the root tablet. */
  readonly metadata: readonly MetadataRow[];
  readonly users: readonly MetadataRow[];
}

export async function allRows(env: Env, context: RequestContext): Promise<AllRows> {
  const metadata = metadataOf(env);
  return {
    metadata: await rowsIn(metadata, ROOT_RANGE, context),
    users: await rowsIn(metadata, USER_RANGE, context),
  };
}

/** The keys after which METADATA is split. */
export function keysBeforeBoundaries({ metadata }: AllRows): string[] {
  return metadata.slice(1).map(({ range }) => keyBeforeBoundary(range.start));
}

/** METADATA's rows partition METADATA and every table, and no boundary of METADATA divides a tablet. */
export function assertSound({ metadata, users }: AllRows): void {
  const rangesOf = (rows: readonly MetadataRow[]): RowRange[] => rows.map(({ range }) => range);
  assertPartition(rangesOf(metadata), USER_RANGE);
  for (const tableId of new Set(users.map((row) => row.tableId)))
    assertPartition(rangesOf(users.filter((row) => row.tableId === tableId)), ALL_ROWS);
  for (const { range } of metadata.slice(1))
    for (const { tableId, range: tablet } of users)
      assert.ok(!dividesTablet(range.start, tableId, tablet), `${JSON.stringify(range.start)} divides a tablet`);
}
