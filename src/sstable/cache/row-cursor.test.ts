import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ListCursor } from '../../../test/list-cursor.ts';
import { Metrics } from '../../env/index.ts';
import { columnKey, CursorState, type Entry, type LayerCursor } from '../../model/index.ts';
import {
  entryAt,
  inOrder,
  numberedRows,
  openFile,
  plain,
  put,
  readRow,
  rowName,
  settle,
  sortedEntries,
  writeFile,
} from '../fixtures.ts';
import { RowCache } from './row-cache.ts';

const Q = columnKey('f', 'q');

function rowCache(limitBytes = 1_000_000): { rowCache: RowCache; counts: Metrics } {
  const counts = new Metrics();
  return { rowCache: new RowCache({ limitBytes, metrics: counts }), counts };
}

type Step =
  | { readonly move: 'next' }
  | { readonly move: 'seekColumn'; readonly column: string; readonly at: number | undefined }
  | { readonly move: 'seekRow' | 'seekRowBefore'; readonly row: string };

function apply(cursor: LayerCursor, step: Step): void {
  if (step.move === 'next') cursor.next();
  else if (step.move === 'seekColumn') cursor.seekColumn(step.column, step.at);
  else cursor[step.move](step.row);
}

describe('a cursor of one row', () => {
  test('moves like a cursor over a file of that row, whether the row is kept or not', async () => {
    const key = fc.string({ unit: fc.constantFrom('\0', 'a', 'b', '\xff'), maxLength: 3 });
    const step: fc.Arbitrary<Step> = fc.oneof(
      fc.constant<Step>({ move: 'next' }),
      fc.record({
        move: fc.constant('seekColumn' as const),
        column: key.map((q) => columnKey('f', q)),
        at: fc.option(fc.integer({ min: -3, max: 12 }), { nil: undefined }),
      }),
      fc.record({ move: fc.constantFrom('seekRow' as const, 'seekRowBefore' as const), row: key }),
    );
    const options = fc.record({
      blockSizeBytes: fc.constantFrom(64, 200, 65536),
      cache: fc.constantFrom(0, 1_000_000),
      keeps: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(
        sortedEntries,
        fc.nat(),
        fc.array(step, { maxLength: 15 }),
        options,
        async (entries, pick, steps, { blockSizeBytes, cache, keeps }) => {
          fc.pre(entries.length > 0);
          const row = (entries[pick % entries.length] as Entry).row;
          const table = await openFile(
            await writeFile(entries, { blockSizeBytes }),
            cache,
            undefined,
            keeps ? { rowCache: rowCache().rowCache } : {},
          );
          const ofRow = entries.filter((each) => each.row === row);
          for (let time = 0; time < 3; time++) {
            assert.deepEqual(await readRow(table, row), ofRow.map(plain));
            const cursor = table.rowCursor(row);
            const model = new ListCursor(ofRow);
            for (const each of [{ move: 'seekRow', row } as const, ...steps]) {
              apply(cursor, each);
              apply(model, each);
              await settle(cursor);
              assert.equal(cursor.state, model.state);
              if (model.state === CursorState.ready) assert.deepEqual(entryAt(cursor), plain(model.present));
            }
            cursor.close();
            cursor.close();
          }
          assert.deepEqual(await readRow(table, `${row}\0\0\0absent`), []);
        },
      ),
      { numRuns: 150 },
    );
  });

  test('finds all of a row among rows of one large value, and of several, in blocks searched often', async () => {
    const cell = fc.record({
      row: fc.integer({ min: 10, max: 40 }),
      qualifier: fc.constantFrom('a', 'b'),
      size: fc.constantFrom(0, 10, 900),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(cell, { minLength: 1, maxLength: 60, size: 'max' }),
        fc.constantFrom(4000, 65536),
        async (cells, blockSizeBytes) => {
          const entries = inOrder(
            cells.map(({ row, qualifier, size }) => put(`row${row}`, columnKey('f', qualifier), 1, Buffer.alloc(size))),
          );
          const table = await openFile(await writeFile(entries, { blockSizeBytes }), 1_000_000);
          for (let time = 0; time < 3; time++) {
            for (let row = 9; row <= 41; row++)
              assert.deepEqual(
                await readRow(table, `row${row}`),
                entries.filter((each) => each.row === `row${row}`).map(plain),
              );
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  test("requests no block but the row's own", async () => {
    const file = await writeFile(numberedRows(20, 300), { blockSizeBytes: 700 });
    const table = await openFile(file);
    const before = file.metrics.get('sstable.reads');
    for (let i = 0; i < 20; i += 2) assert.equal((await readRow(table, rowName(i))).length, 1);
    assert.equal(file.metrics.get('sstable.reads') - before, 10);
    assert.equal(file.metrics.get('blockCache.misses'), 10);
  });

  test('of a row between two blocks reads none', async () => {
    const file = await writeFile(numberedRows(20, 300), { blockSizeBytes: 700 });
    const table = await openFile(file);
    const { row } = table.blockBoundaries()[3] as { row: string };
    const before = file.metrics.get('sstable.reads');
    const between = `${rowName(Number(row.slice(3)) - 1)}x`;
    assert.deepEqual(await readRow(table, between), []);
    assert.equal(file.metrics.get('sstable.reads'), before);
  });
});

describe('the scan cache', () => {
  test('keeps a row that is requested again, and then needs no block for it', async () => {
    const { rowCache: cache, counts } = rowCache();
    const file = await writeFile(numberedRows(50, 100), { blockSizeBytes: 1000 });
    const table = await openFile(file, 0, undefined, { rowCache: cache });
    const expected = await readRow(table, rowName(7));
    assert.equal(cache.usedBytes, 0, 'a row requested once is not kept');
    await readRow(table, rowName(7));
    assert.ok(cache.usedBytes > 100);
    const reads = file.metrics.get('sstable.reads');
    assert.deepEqual(await readRow(table, rowName(7)), expected);
    assert.equal(file.metrics.get('sstable.reads'), reads);
    assert.deepEqual(counts.snapshot(), { 'rowCache.hits': 1, 'rowCache.misses': 2 });
    table.close();
    assert.equal(cache.usedBytes, 0);
  });

  test('keeps no row as long as every block fits', async () => {
    const { rowCache: cache } = rowCache();
    const file = await writeFile(numberedRows(200, 500), { blockSizeBytes: 4000 });
    const roomy = await openFile(file, 1_000_000, undefined, { rowCache: cache });
    for (let time = 0; time < 4; time++) await readRow(roomy, rowName(7));
    assert.equal(cache.usedBytes, 0);
    const short = await openFile(file, 50_000, undefined, { rowCache: cache });
    for (let i = 0; i < 200; i += 4) await readRow(short, rowName(i));
    for (let time = 0; time < 2; time++) await readRow(short, rowName(7));
    assert.ok(cache.usedBytes > 0);
  });

  test('does not keep rows that are large, or lie in two blocks', async () => {
    const { rowCache: cache } = rowCache();
    const wide = Array.from({ length: 40 }, (_, i) =>
      put('wide', columnKey('f', String.fromCharCode(60 + i)), 1, Buffer.alloc(50)),
    );
    const entries = [put('large', Q, 1, Buffer.alloc(20_000)), ...wide, put('wider', Q, 1, 'x')];
    const table = await openFile(await writeFile(entries, { blockSizeBytes: 600 }), 0, undefined, { rowCache: cache });
    for (let time = 0; time < 3; time++) {
      assert.equal((await readRow(table, 'large')).length, 1);
      assert.equal((await readRow(table, 'wide')).length, 40);
    }
    assert.equal(cache.usedBytes, 0);
  });

  test('stays within its budget, and rows that are read again and again outlive those read once', async () => {
    const { rowCache: cache } = rowCache(20 * 1000);
    const file = await writeFile(numberedRows(400, 500), { blockSizeBytes: 4000 });
    const table = await openFile(file, 0, undefined, { rowCache: cache });
    const hot = Array.from({ length: 8 }, (_, i) => rowName(i));
    for (let i = 8; i < 400; i++) {
      for (const row of [...hot, rowName(i), rowName(i)]) await readRow(table, row);
      assert.ok(cache.usedBytes <= cache.limitBytes);
    }
    const reads = file.metrics.get('sstable.reads');
    for (const row of hot) await readRow(table, row);
    assert.equal(file.metrics.get('sstable.reads'), reads);
  });

  test('shared by two tables on one path, and one of 0 bytes keeps nothing', async () => {
    const { rowCache: cache } = rowCache();
    const file = await writeFile(numberedRows(5, 100));
    const tables = [
      await openFile(file, 0, undefined, { rowCache: cache }),
      await openFile(file, 0, undefined, { rowCache: cache }),
    ] as const;
    await readRow(tables[0], rowName(1));
    await readRow(tables[1], rowName(1));
    assert.ok(cache.usedBytes > 0);
    tables[0].close();
    const reads = file.metrics.get('sstable.reads');
    assert.equal((await readRow(tables[1], rowName(1))).length, 1);
    assert.equal(file.metrics.get('sstable.reads'), reads);
    const none = new RowCache({ limitBytes: 0, metrics: new Metrics() });
    const table = await openFile(file, 0, undefined, { rowCache: none });
    for (let time = 0; time < 3; time++) await readRow(table, rowName(1));
    assert.equal(none.usedBytes, 0);
  });
});

describe('a reverse scan', () => {
  test('sees every row, whatever is read of each before it continues', async () => {
    await fc.assert(
      fc.asyncProperty(
        sortedEntries,
        fc.constantFrom(64, 150, 400, 65536),
        fc.constantFrom(0, 1_000_000),
        fc.nat(3),
        async (entries, blockSizeBytes, cache, steps) => {
          fc.pre(entries.length > 0);
          const table = await openFile(await writeFile(entries, { blockSizeBytes }), cache);
          const cursor = table.cursor();
          const seen: Entry[] = [];
          for (cursor.seekRowBefore(undefined); ; ) {
            await settle(cursor);
            if (cursor.state === CursorState.done) break;
            const { row } = cursor;
            seen.push(entryAt(cursor));
            for (let i = 0; i < steps && cursor.state === CursorState.ready && cursor.row === row; i++) {
              cursor.next();
              if (i % 2 === 0) await settle(cursor);
            }
            cursor.seekRowBefore(row);
          }
          const firsts = entries.filter((each, i) => i === 0 || entries[i - 1]?.row !== each.row);
          assert.deepEqual(seen, firsts.toReversed().map(plain));
        },
      ),
      { numRuns: 150 },
    );
  });

  test('reads ahead, and reads no block twice', async () => {
    const file = await writeFile(numberedRows(3000, 400), { blockSizeBytes: 4096 });
    const table = await openFile(file);
    const blocks = table.blockBoundaries().length;
    const opened = file.metrics.get('sstable.readBytes');
    const cursor = table.cursor();
    let rows = 0;
    for (cursor.seekRowBefore(undefined); ; cursor.seekRowBefore(cursor.row), rows++) {
      await settle(cursor);
      if (cursor.state === CursorState.done) break;
    }
    assert.equal(rows, 3000);
    assert.ok(
      file.metrics.get('sstable.reads') * 10 < blocks,
      `${file.metrics.get('sstable.reads')} reads of ${blocks} blocks`,
    );
    assert.ok(file.metrics.get('sstable.readBytes') - opened <= table.sizeBytes);
  });
});
