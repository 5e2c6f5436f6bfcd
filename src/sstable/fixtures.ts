/**
 * Shared by the tests of this room: random entries, and files made of them.
 * A test file in name only, so that it stays out of the package.
 */
import fc from 'fast-check';
import { ListCursor } from '../../test/list-cursor.ts';
import { asBuffer, type ByteString, int64 } from '../base/index.ts';
import { type Codecs, ManualClock, MemoryFileSystem, Metrics } from '../env/index.ts';
import {
  type ColumnKey,
  CursorState,
  columnKey,
  compareEntries,
  type Entry,
  EntryKind,
  type LayerCursor,
  type RowRangeDeletion,
} from '../model/index.ts';
import { nativeCodecs } from '../platform/index.ts';
import { BlockCache } from './cache/block-cache.ts';
import type { IndexCache } from './cache/index-cache.ts';
import type { MemoryBudget } from './cache/memory-budget.ts';
import type { RowCache } from './cache/row-cache.ts';
import { SsTable } from './ss-table.ts';
import { type SsTableWriteOptions, type WrittenSsTable, writeSsTable } from './write/write-ss-table.ts';

export const CODECS: Codecs = nativeCodecs();
export const PATH = 'tables/1.sst';
const NO_VALUE = Buffer.alloc(0);

export function put(
  row: ByteString,
  column: ColumnKey,
  timestamp: number | bigint,
  value: string | Uint8Array = '',
): Entry {
  return { row, column, kind: EntryKind.put, timestamp, value: Buffer.from(value) };
}

export function deletion(kind: EntryKind, row: ByteString, column: ColumnKey, timestamp = 0, rangeEnd?: number): Entry {
  return { row, column, kind, timestamp, value: NO_VALUE, rangeEnd };
}

/** Rows row00000, row00001, … with one cell of `valueBytes` each. */
export function numberedRows(count: number, valueBytes: number): Entry[] {
  return Array.from({ length: count }, (_, i) =>
    put(rowName(i), columnKey('f', 'q'), 1000 + i, Buffer.alloc(valueBytes, i)),
  );
}

export function rowName(i: number): string {
  return `row${String(i).padStart(5, '0')}`;
}

const keyCharacter = fc.constantFrom('\0', 'a', 'b', '\xff');
const key = fc.array(keyCharacter, { maxLength: 5 }).map((characters) => characters.join(''));
const rowKey = fc.oneof(
  { weight: 6, arbitrary: key },
  { weight: 1, arbitrary: key.map((end) => 'long-shared-prefix/'.repeat(9) + end) },
);
const family = fc.constantFrom('f', 'fam', 'g');
const timestamp = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: -3, max: 12 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1_700_000_000_000_000, max: 1_700_000_000_000_009 }) },
  { weight: 1, arbitrary: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(int64) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, -(2n ** 53n), 2n ** 53n, 2 ** 53 - 1, 1 - 2 ** 53),
  },
);
const value = fc.oneof(
  { weight: 5, arbitrary: fc.uint8Array({ maxLength: 20 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 400 }).map((length) => new Uint8Array(length).fill(7)) },
);

export const entry: fc.Arbitrary<Entry> = fc
  .tuple(
    rowKey,
    fc.constantFrom(...Object.values(EntryKind), EntryKind.put, EntryKind.put),
    family,
    key,
    timestamp,
    value,
    fc.option(timestamp),
  )
  .map(([row, kind, name, qualifier, at, bytes, end]): Entry => {
    if (kind === EntryKind.rowDeletion) return deletion(kind, row, '');
    if (kind === EntryKind.familyDeletion) return deletion(kind, row, name);
    const column = columnKey(name, qualifier);
    if (kind === EntryKind.columnDeletion) return deletion(kind, row, column);
    if (kind === EntryKind.rangeDeletion)
      return {
        row,
        column,
        kind,
        timestamp: at,
        value: NO_VALUE,
        rangeEnd: end !== null && end > at ? end : undefined,
      };
    return { row, column, kind, timestamp: at, value: asBuffer(bytes) };
  });

/** In order, no two alike, as a layer has them. */
export const sortedEntries: fc.Arbitrary<Entry[]> = fc.array(entry, { maxLength: 60, size: 'max' }).map(inOrder);

export function inOrder(entries: readonly Entry[]): Entry[] {
  const sorted = entries.toSorted(compareEntries);
  return sorted.filter((each, i) => i === 0 || compareEntries(sorted[i - 1] as Entry, each) < 0);
}

export interface TestFile {
  readonly fileSystem: MemoryFileSystem;
  readonly clock: ManualClock;
  readonly metrics: Metrics;
  readonly written: WrittenSsTable;
}

export async function writeFile(
  entries: readonly Entry[],
  options: Partial<SsTableWriteOptions> & { readonly rowRangeDeletions?: readonly RowRangeDeletion[] } = {},
): Promise<TestFile> {
  const fileSystem = new MemoryFileSystem();
  const clock = new ManualClock(7);
  const settings = { fileSystem, path: PATH, codecs: CODECS, clock, group: 'default', ...options };
  const written = await writeSsTable(settings, new ListCursor(entries), options.rowRangeDeletions);
  if (!written) throw new Error('there was nothing to write');
  return { fileSystem, clock, metrics: new Metrics(), written };
}

export function openFile(
  file: Omit<TestFile, 'written'>,
  cacheBytes = 64 * 1024 * 1024,
  cache?: BlockCache,
  {
    rowCache,
    inMemory,
    indexes,
  }: { readonly rowCache?: RowCache; readonly inMemory?: MemoryBudget; readonly indexes?: IndexCache } = {},
): Promise<SsTable> {
  const { fileSystem, clock, metrics } = file;
  const blocks = cache ?? new BlockCache({ limitBytes: cacheBytes, metrics, rowCache });
  return SsTable.open({ fileSystem, path: PATH, codecs: CODECS, cache: blocks, inMemory, indexes, metrics, clock });
}

export async function fileBytes(fileSystem: MemoryFileSystem): Promise<Buffer> {
  return fileSystem.read(PATH, 0, await fileSystem.size(PATH));
}

/** A file system that holds these bytes under PATH. */
export async function fileSystemWith(bytes: Uint8Array): Promise<MemoryFileSystem> {
  const fileSystem = new MemoryFileSystem();
  const writer = await fileSystem.create(PATH);
  await writer.append(bytes);
  await writer.close();
  return fileSystem;
}

/** Loads until the cursor is ready or done; answers how many loads it took. */
export async function settle(cursor: LayerCursor): Promise<number> {
  let loads = 0;
  for (; cursor.state === CursorState.needsLoad; loads++) await cursor.load();
  return loads;
}

/** The present entry, copied. */
export function entryAt(cursor: LayerCursor): Entry {
  const { row, column, kind, timestamp: at, rangeEnd } = cursor;
  return { row, column, kind, timestamp: at, value: Buffer.from(cursor.value()), rangeEnd };
}

/** The entries of a row, by a cursor of that row. */
export async function readRow(file: SsTable, row: string): Promise<Entry[]> {
  const cursor = file.rowCursor(row);
  const entries = await scan(cursor, row);
  cursor.close();
  return entries;
}

/** All entries from `row` on, by default from the first row. */
export async function scan(cursor: LayerCursor, row = ''): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (cursor.seekRow(row); ; cursor.next()) {
    await settle(cursor);
    if (cursor.state === CursorState.done) return entries;
    entries.push(entryAt(cursor));
  }
}

/** An entry with its value as a plain Buffer and `rangeEnd` always there: for deepEqual. */
export function plain(each: Entry): Entry {
  return { ...each, value: Buffer.from(each.value), rangeEnd: each.rangeEnd };
}
