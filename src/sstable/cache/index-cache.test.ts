import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Code, CorruptionError } from '../../base/index.ts';
import { ManualClock, type MemoryFileSystem, Metrics } from '../../env/index.ts';
import { columnKey, CursorState, type Entry, type LayerCursor } from '../../model/index.ts';
import {
  CODECS,
  fileBytes,
  numberedRows,
  PATH,
  plain,
  readRow,
  rowName,
  scan,
  settle,
  writeFile,
} from '../fixtures.ts';
import { SsTable } from '../ss-table.ts';
import { BlockCache } from './block-cache.ts';
import { IndexCache } from './index-cache.ts';

const ROWS = numberedRows(200, 100);
const Q = columnKey('f', 'q');
/** Room for the index of no file: one that no cursor uses is evicted. */
const NONE = 0;

interface Opened {
  readonly fileSystem: MemoryFileSystem;
  readonly metrics: Metrics;
  readonly indexes: IndexCache;
  open(number?: number): Promise<SsTable>;
}

/** `count` equal files, tables/1.sst and so on. */
async function files(limitBytes: number, count = 1): Promise<Opened> {
  const { fileSystem } = await writeFile(ROWS, { blockSizeBytes: 1000, bloomFilter: 'row-column' });
  const bytes = await fileBytes(fileSystem);
  for (let i = 2; i <= count; i++) {
    const writer = await fileSystem.create(pathOf(i));
    await writer.append(bytes);
    await writer.close();
  }
  const metrics = new Metrics();
  const indexes = new IndexCache({ limitBytes, metrics });
  const cache = new BlockCache({ limitBytes: 0, metrics });
  const open = (number = 1): Promise<SsTable> =>
    SsTable.open({
      fileSystem,
      path: pathOf(number),
      codecs: CODECS,
      cache,
      indexes,
      metrics,
      clock: new ManualClock(1),
    });
  return { fileSystem, metrics, indexes, open };
}

const pathOf = (number: number): string => `tables/${number}.sst`;

async function rowsOf(table: SsTable, from = ''): Promise<Entry[]> {
  const cursor = table.cursor();
  const rows = await scan(cursor, from);
  cursor.close();
  return rows;
}

describe('IndexCache', () => {
  test('evicts the indexes that were not used lately, and a cursor reads its one again', async () => {
    const { metrics, indexes, open } = await files(1_000_000, 5);
    const [first] = [await open(1)];
    const one = indexes.usedBytes;
    assert.ok(one > 2000 && first.hasIndex);
    first.close();
    assert.equal(indexes.usedBytes, 0);

    const small = await files(2.5 * one, 5);
    const tables = [await small.open(1), await small.open(2), await small.open(3)];
    // all were used since they were opened, so the oldest leaves
    assert.deepEqual(
      tables.map((table) => table.hasIndex),
      [false, true, true],
    );
    assert.ok(tables[1]!.mayContainRow(rowName(7)));
    tables.push(await small.open(4));
    assert.deepEqual(
      tables.map((table) => table.hasIndex),
      [false, true, false, true],
    );
    assert.equal(small.indexes.usedBytes, 2 * one);
    for (const table of tables) assert.deepEqual(await rowsOf(table), ROWS.map(plain));
    assert.equal(small.metrics.get('sstable.indexEvictions'), 6);
    assert.equal(small.metrics.get('sstable.indexLoads'), 4);
    assert.equal(metrics.get('sstable.indexLoads'), 0);
    for (const table of tables) table.close();
    assert.equal(small.indexes.usedBytes, 0);
  });

  test('evicts no index while a cursor is open on its file', async () => {
    const { indexes, metrics, open } = await files(NONE, 2);
    const table = await open(1);
    assert.equal(table.hasIndex, false);
    const cursor = table.cursor();
    cursor.seekRow(rowName(3));
    assert.equal(cursor.state, CursorState.needsLoad);
    assert.equal(await settle(cursor), 2);
    assert.equal(cursor.row, rowName(3));
    const other = await open(2);
    assert.deepEqual([table.hasIndex, other.hasIndex], [true, false]);
    assert.ok(indexes.usedBytes > NONE);
    // a cursor that was opened meanwhile needs no second read
    assert.deepEqual(await readRow(table, rowName(9)), [plain(ROWS[9]!)]);
    assert.equal(metrics.get('sstable.indexLoads'), 1);
    cursor.seekRow(rowName(150));
    await settle(cursor);
    assert.equal(cursor.row, rowName(150));
    cursor.close();
    assert.deepEqual([table.hasIndex, indexes.usedBytes], [false, 0]);
  });

  test('reads an index once for all that wait for it', async () => {
    const { metrics, open } = await files(NONE);
    const table = await open();
    const again = table.again();
    const reads = metrics.get('sstable.reads');
    const rows = await Promise.all([
      readRow(table, rowName(1)),
      readRow(again, rowName(1)),
      table.loadIndex(),
      again.verify(),
    ]);
    assert.deepEqual(rows[0], rows[1]);
    assert.equal(metrics.get('sstable.indexLoads'), 1);
    const blocks = table.blockCount;
    assert.ok(metrics.get('sstable.reads') - reads <= blocks + 3);
    table.close();
    assert.deepEqual(await readRow(again, rowName(5)), [plain(ROWS[5]!)]);
    again.close();
  });

  test('tells of a file whose index is evicted what its bounds tell', async () => {
    const { open } = await files(NONE);
    const table = await open();
    const unknown = { row: `${rowName(7)}x`, column: columnKey('f', 'other') };
    const [first, last] = [rowName(0), rowName(199)];
    const ask = (): unknown => ({
      row: table.mayContainRow(unknown.row),
      column: table.mayContainColumn(rowName(7), unknown.column),
      outside: [table.mayContainRow('a'), table.mayContainRow('z'), table.mayContainRows('z', undefined)],
      gap: table.mayContainRows(`${last}x`, undefined),
      empty: table.mayContainRows(rowName(7), rowName(7)),
      boundaries: table.blockBoundaries().length,
      whole: table.sizeInRange('', undefined) > 20_000,
      half: Math.round((10 * table.sizeInRange(rowName(100), undefined)) / table.sizeBytes),
      none: table.sizeInRange('z', undefined),
      blocks: table.blockCount,
    });
    const without = ask();
    const cursor = table.cursor();
    await table.loadIndex();
    const blocks = table.blockCount;
    const common = { outside: [false, false, false], gap: false, empty: false, whole: true, half: 5, none: 0, blocks };
    assert.deepEqual(without, { row: true, column: true, boundaries: 1, ...common });
    assert.deepEqual(ask(), { row: false, column: false, boundaries: blocks, ...common });
    assert.deepEqual([table.firstRow, table.lastRow], [first, last]);
    cursor.close();
  });

  test('a read that fails fails the cursor, which may try again', async () => {
    const { fileSystem, indexes, open } = await files(NONE);
    const table = await open();
    const bytes = await fileBytes(fileSystem);
    await fileSystem.delete(PATH);
    const cursor = table.cursor();
    cursor.seekRow(rowName(9));
    await assert.rejects(cursor.load(), { code: Code.NOT_FOUND });
    const damaged = Buffer.from(bytes);
    damaged[bytes.length - 60]! ^= 1;
    await write(fileSystem, damaged);
    await assert.rejects(cursor.load(), CorruptionError);
    await fileSystem.delete(PATH);
    await write(fileSystem, bytes);
    await settle(cursor);
    assert.equal(cursor.row, rowName(9));
    cursor.close();
    table.close();
    assert.equal(indexes.usedBytes, 0);
  });

  test('a file that is closed while its index is read keeps nothing', async () => {
    const { indexes, open } = await files(1_000_000);
    const opened = await open();
    const size = indexes.usedBytes;
    opened.close();
    const { indexes: small, open: openSmall } = await files(size - 1);
    const table = await openSmall();
    const cursor = table.cursor();
    cursor.seekRow('');
    const load = cursor.load();
    table.close();
    await load;
    assert.equal(small.usedBytes, 0);
    await settle(cursor);
    assert.equal(cursor.row, rowName(0));
    cursor.close();
    assert.equal(small.usedBytes, 0);
  });

  test('any number of files, cursors and budgets: every read is right, and the budget is kept', async () => {
    const step = fc.record({
      file: fc.nat(3),
      row: fc.nat(199),
      what: fc.constantFrom('row', 'scan', 'open', 'close', 'reopen', 'filter'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), fc.nat(20_000), async (steps, limitBytes) => {
        const { indexes, open } = await files(limitBytes, 4);
        const tables = [await open(1), await open(2), await open(3), await open(4)];
        const cursors: LayerCursor[] = [];
        for (const { file, row, what } of steps) {
          const table = tables[file]!;
          if (what === 'row') assert.deepEqual(await readRow(table, rowName(row)), [plain(ROWS[row]!)]);
          else if (what === 'scan') assert.equal((await rowsOf(table, rowName(row))).length, 200 - row);
          else if (what === 'open') cursors.push(table.cursor());
          else if (what === 'close') cursors.shift()?.close();
          else if (what === 'filter') assert.ok(table.mayContainColumn(rowName(row), Q));
          else {
            tables[file] = row < 100 ? table.again() : await open(file + 1);
            table.close();
          }
          indexes.assertConsistent();
        }
        for (const cursor of cursors) {
          cursor.seekRow(rowName(0));
          await settle(cursor);
          assert.equal(cursor.row, rowName(0));
          cursor.close();
        }
        for (const table of tables) await table.loadIndex();
        assert.ok(indexes.usedBytes <= limitBytes);
        for (const table of tables) table.close();
        assert.equal(indexes.usedBytes, 0);
      }),
    );
  });
});

async function write(fileSystem: MemoryFileSystem, bytes: Buffer): Promise<void> {
  const writer = await fileSystem.create(PATH);
  await writer.append(bytes);
  await writer.close();
}
