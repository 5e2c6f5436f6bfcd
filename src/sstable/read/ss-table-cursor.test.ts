import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ListCursor } from '../../../test/list-cursor.ts';
import { AssertionError } from '../../base/index.ts';
import { MemoryFileSystem } from '../../env/index.ts';
import { columnKey, CursorState, type Entry, EntryKind, type LayerCursor } from '../../model/index.ts';
import { BlockCache } from '../cache/block-cache.ts';
import { IndexCache } from '../cache/index-cache.ts';
import {
  deletion,
  entry,
  entryAt,
  fileBytes,
  numberedRows,
  openFile,
  plain,
  put,
  rowName,
  scan,
  settle,
  sortedEntries,
  writeFile,
} from '../fixtures.ts';

const Q = columnKey('f', 'q');

type Move = (cursor: LayerCursor) => void;

const absolute: fc.Arbitrary<Move> = fc.oneof(
  entry.map(
    ({ row }): Move =>
      (cursor) =>
        cursor.seekRow(row),
  ),
  entry.map(
    ({ row }): Move =>
      (cursor) =>
        cursor.seekRowBefore(row),
  ),
  fc.constant<Move>((cursor) => cursor.seekRowBefore(undefined)),
);
const relative: fc.Arbitrary<Move> = fc.oneof(
  { weight: 2, arbitrary: fc.constant<Move>((cursor) => cursor.next()) },
  {
    weight: 1,
    arbitrary: entry.map(
      ({ column }): Move =>
        (cursor) =>
          cursor.seekColumn(column),
    ),
  },
  {
    weight: 1,
    arbitrary: entry.map(
      ({ column, timestamp }): Move =>
        (cursor) =>
          cursor.seekColumn(column, timestamp),
    ),
  },
);
const step = fc.record({ isAbsolute: fc.boolean(), absolute, relative, waits: fc.boolean() });

function assertSame(cursor: LayerCursor, expected: ListCursor): void {
  assert.equal(cursor.state, expected.state);
  if (cursor.state !== CursorState.ready) return;
  assert.deepEqual(entryAt(cursor), plain(expected.present));
  assert.equal(cursor.valueLength, expected.present.value.length);
}

describe('SsTableCursor', () => {
  test('moves as a cursor over an array does, with and without a wait for each load', async () => {
    await fc.assert(
      fc.asyncProperty(
        sortedEntries,
        fc.array(step, { maxLength: 40, size: 'max' }),
        fc.constantFrom(64, 128, 700, 65536),
        fc.constantFrom(0, 3000, 1_000_000),
        fc.constantFrom(0, 1_000_000),
        async (entries, steps, blockSizeBytes, cacheBytes, indexBytes) => {
          fc.pre(entries.length > 0);
          const file = await writeFile(entries, { blockSizeBytes });
          const indexes = new IndexCache({ limitBytes: indexBytes, metrics: file.metrics });
          const cursor = (await openFile(file, cacheBytes, undefined, { indexes })).cursor();
          const expected = new ListCursor(entries);
          assertSame(cursor, expected);
          for (const { isAbsolute, absolute, relative, waits } of steps) {
            const move = isAbsolute || expected.state === CursorState.done ? absolute : relative;
            const from = expected.position;
            move(cursor);
            move(expected);
            if (cursor.state === CursorState.needsLoad && !waits && from < entries.length) {
              // the next move replaces this one
              expected.position = from;
              continue;
            }
            await settle(cursor);
            assertSame(cursor, expected);
          }
        },
      ),
      { numRuns: 250 },
    );
  });

  test('a long column seeks by timestamp without walking', async () => {
    const versions = Array.from({ length: 20_000 }, (_, i) => put('r', Q, 20_000 - i, `v${20_000 - i}`));
    const entries = [put('q', Q, 1), deletion(EntryKind.columnDeletion, 'r', Q), ...versions, put('s', Q, 1)];
    const file = await writeFile(entries, { blockSizeBytes: 1000 });
    const table = await openFile(file);
    assert.ok(table.blockBoundaries().length > 100);
    const cursor = table.cursor();
    cursor.seekRow('r');
    await settle(cursor);
    assert.equal(cursor.kind, EntryKind.columnDeletion);
    cursor.seekColumn(Q, 4321);
    assert.equal(await settle(cursor), 1);
    assert.equal(cursor.timestamp, 4321);
    cursor.seekColumn(Q, 4000);
    assert.ok((await settle(cursor)) <= 1);
    assert.equal(cursor.timestamp, 4000);
    // never back
    cursor.seekColumn(Q, 9999);
    assert.equal(cursor.timestamp, 4000);
    cursor.seekColumn(columnKey('g', ''));
    assert.ok((await settle(cursor)) <= 2);
    assert.equal(cursor.row, 's');
  });

  test('a wide row is passed, and its columns are found, by the index', async () => {
    const columns = Array.from({ length: 5000 }, (_, i) => put('wide', columnKey('f', rowName(i)), 1, 'some value'));
    const table = await openFile(
      await writeFile([put('a', Q, 1), ...columns, put('z', Q, 1)], { blockSizeBytes: 1000 }),
    );
    const cursor = table.cursor();
    cursor.seekRow('wide\0');
    assert.ok((await settle(cursor)) <= 1);
    assert.equal(cursor.row, 'z');
    // back to the beginning of a row that spans blocks
    cursor.seekRowBefore('z');
    assert.ok((await settle(cursor)) <= 2);
    assert.deepEqual([cursor.row, cursor.column], ['wide', columnKey('f', rowName(0))]);
    cursor.seekColumn(columnKey('f', `${rowName(3210)}x`));
    assert.ok((await settle(cursor)) <= 2);
    assert.equal(cursor.column, columnKey('f', rowName(3211)));
    cursor.seekRowBefore('wide');
    await settle(cursor);
    assert.equal(cursor.row, 'a');
    cursor.seekRowBefore('a');
    assert.equal(cursor.state, CursorState.done);
    cursor.next();
    assert.equal(cursor.state, CursorState.done);
  });

  test('a reverse scan sees every row once', async () => {
    const entries = numberedRows(200, 50);
    const cursor = (await openFile(await writeFile(entries, { blockSizeBytes: 400 }))).cursor();
    const rows: string[] = [];
    for (cursor.seekRowBefore(undefined); ; cursor.seekRowBefore(cursor.row)) {
      await settle(cursor);
      if (cursor.state === CursorState.done) break;
      rows.push(cursor.row);
    }
    assert.deepEqual(rows, entries.map(({ row }) => row).reverse());
  });

  test('a block in the cache needs no load', async () => {
    const file = await writeFile(numberedRows(100, 100), { blockSizeBytes: 1000 });
    const table = await openFile(file);
    await scan(table.cursor());
    const reads = file.metrics.get('sstable.reads');
    const cursor = table.cursor();
    for (let i = 99; i >= 0; i--) {
      cursor.seekRow(rowName(i));
      assert.equal(cursor.state, CursorState.ready);
      assert.equal(cursor.row, rowName(i));
    }
    assert.equal(file.metrics.get('sstable.reads'), reads);
  });

  test('a scan reads ahead, more and more, up to 1 MiB a read', async () => {
    const entries = numberedRows(8000, 1000);
    const file = await writeFile(entries);
    const table = await openFile(file);
    const blocks = table.blockBoundaries().length;
    const before = file.metrics.get('sstable.reads');
    assert.equal((await scan(table.cursor())).length, 8000);
    const reads = file.metrics.get('sstable.reads') - before;
    assert.ok(blocks > 120 && reads < 15, `${reads} reads for ${blocks} blocks`);
    assert.equal(file.metrics.get('blockCache.evictions'), 0);
  });

  test('a scan with a small cache reads ahead no more than the cache keeps', async () => {
    const entries = numberedRows(2000, 1000);
    const file = await writeFile(entries);
    const table = await openFile(file, 2 * 1024 * 1024);
    const before = file.metrics.get('sstable.readBytes');
    assert.deepEqual((await scan(table.cursor())).length, 2000);
    assert.ok(file.metrics.get('sstable.readBytes') - before <= table.sizeBytes, 'no block was read twice');
  });

  test('a scan reads nothing again that is in the cache', async () => {
    const file = await writeFile(numberedRows(3000, 1000));
    const table = await openFile(file);
    const cursor = table.cursor();
    for (const row of [100, 700, 1500, 2200, 2990]) {
      cursor.seekRow(rowName(row));
      await settle(cursor);
    }
    assert.equal((await scan(table.cursor())).length, 3000);
    const opening = 128 * 1024;
    assert.ok(file.metrics.get('sstable.readBytes') <= table.sizeBytes + opening);
  });

  test('a point read reads one block', async () => {
    const file = await writeFile(numberedRows(2000, 1000));
    const table = await openFile(file);
    const before = file.metrics.get('sstable.readBytes');
    const cursor = table.cursor();
    cursor.seekRow(rowName(1234));
    assert.equal(await settle(cursor), 1);
    assert.ok(file.metrics.get('sstable.readBytes') - before < 66_000);
    // a row that is missing between two blocks needs none
    const boundary = table.blockBoundaries()[5];
    assert.ok(boundary);
    const other = table.cursor();
    other.seekRowBefore(boundary.row);
    assert.equal(await settle(other), 1);
    assert.ok(other.row < boundary.row);
  });

  test('cursors that want the same block share one read', async () => {
    const file = await writeFile(numberedRows(100, 100), { blockSizeBytes: 1000 });
    const table = await openFile(file);
    const before = file.metrics.get('sstable.reads');
    const cursors = Array.from({ length: 10 }, () => table.cursor());
    for (const cursor of cursors) cursor.seekRow(rowName(50));
    await Promise.all(cursors.map((cursor) => cursor.load()));
    for (const cursor of cursors) assert.equal(cursor.row, rowName(50));
    assert.equal(file.metrics.get('sstable.reads') - before, 1);
  });

  test('two tables on one path share the cache', async () => {
    const file = await writeFile(numberedRows(100, 100), { blockSizeBytes: 1000 });
    const cache = new BlockCache({ limitBytes: 1_000_000, metrics: file.metrics });
    const first = await openFile(file, 0, cache);
    const second = await openFile(file, 0, cache);
    await scan(first.cursor());
    const cursor = second.cursor();
    cursor.seekRow(rowName(77));
    assert.equal(cursor.state, CursorState.ready);
    const used = cache.usedBytes;
    assert.ok(used > 10_000);
    first.close();
    assert.equal(cache.usedBytes, used);
    second.close();
    assert.equal(cache.usedBytes, 0);
  });

  test('a failed load leaves the cursor in need of it, and may be retried', async () => {
    const good = await writeFile(numberedRows(10, 100), { blockSizeBytes: 300 });
    let failures = 0;
    const fileSystem = new MemoryFileSystem({
      faults: (operation) => {
        if (operation === 'read' && failures > 0) {
          failures--;
          throw new Error('the disk is tired');
        }
      },
    });
    const writer = await fileSystem.create('tables/1.sst');
    await writer.append(await fileBytes(good.fileSystem));
    await writer.close();
    const table = await openFile({ ...good, fileSystem });
    failures = 1;
    const cursor = table.cursor();
    cursor.seekRow(rowName(5));
    await assert.rejects(cursor.load(), /tired/);
    assert.equal(cursor.state, CursorState.needsLoad);
    await cursor.load();
    assert.equal(cursor.row, rowName(5));
  });

  test('a move during a load wins, and closing ends it', async () => {
    const table = await openFile(await writeFile(numberedRows(100, 100), { blockSizeBytes: 300 }));
    const cursor = table.cursor();
    cursor.seekRow(rowName(10));
    const first = cursor.load();
    cursor.seekRow(rowName(90));
    await first;
    assert.equal(cursor.state, CursorState.needsLoad);
    await cursor.load();
    assert.equal(cursor.row, rowName(90));
    cursor.seekRow(rowName(40));
    const second = cursor.load();
    cursor.close();
    await second;
    assert.equal(cursor.state, CursorState.done);
  });

  test('a relative move without an entry is a bug, not a silent end', async () => {
    const cursor = (await openFile(await writeFile(numberedRows(3, 10)))).cursor();
    cursor.seekRow('');
    assert.throws(() => cursor.seekColumn(Q), AssertionError);
  });

  test('a long row comes back whole from every restart point and block', async () => {
    const row = 'a row key that is longer than what is copied by a loop';
    const entries: Entry[] = Array.from({ length: 100 }, (_, i) => put(row, columnKey('f', rowName(i)), 1, 'value'));
    const cursor = (await openFile(await writeFile(entries, { blockSizeBytes: 200 }))).cursor();
    assert.deepEqual(await scan(cursor), entries.map(plain));
  });
});
