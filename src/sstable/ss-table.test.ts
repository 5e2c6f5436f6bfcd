import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Code, INT64_MAX, INT64_MIN } from '../base/index.ts';
import { columnKey, EntryKind } from '../model/index.ts';
import { deletion, numberedRows, openFile, plain, put, rowName, scan, sortedEntries, writeFile } from './fixtures.ts';

const Q = columnKey('f', 'q');

describe('SsTable', () => {
  test('yields the written entries, for any entries and block size', async () => {
    await fc.assert(
      fc.asyncProperty(
        sortedEntries,
        fc.constantFrom(64, 100, 300, 65536),
        fc.constantFrom(0, 2000, 1_000_000),
        async (entries, blockSizeBytes, cache) => {
          fc.pre(entries.length > 0);
          const file = await writeFile(entries, { blockSizeBytes });
          const table = await openFile(file, cache);
          assert.deepEqual(await scan(table.cursor()), entries.map(plain));
          const verified = await table.verify();
          assert.equal(verified.entries, entries.length);
          const { sizeBytes, ...properties } = file.written;
          assert.deepEqual({ ...table.properties }, properties);
          assert.equal(table.sizeBytes, sizeBytes);
        },
      ),
      { numRuns: 150 },
    );
  });

  test('describes its contents', async () => {
    const entries = [
      deletion(EntryKind.rowDeletion, 'a', ''),
      put('a', Q, INT64_MAX, 'xyz'),
      put('a', Q, INT64_MIN, ''),
      deletion(EntryKind.rangeDeletion, 'b\xff', Q, 5, 9),
    ];
    const rowRangeDeletions = [
      { start: '', end: 'a\0' },
      { start: 'b', end: undefined },
    ];
    const lineage = {
      tableId: '0000001f',
      range: { start: 'a', end: 'b\xff\xff' },
      families: ['f', 'g\x012'],
      since: { epoch: 2, sequence: 9 },
    };
    const table = await openFile(
      await writeFile(entries, {
        rowRangeDeletions,
        group: 'größe',
        origin: 'east',
        newest: { epoch: 3, sequence: 2 ** 40 },
        lineage,
        lastServerMicros: 2 ** 53 - 1,
      }),
    );
    assert.equal(table.firstRow, 'a');
    assert.equal(table.lastRow, 'b\xff');
    assert.deepEqual(table.rowRangeDeletions(), rowRangeDeletions);
    assert.deepEqual(
      { ...table.properties, entries: { ...table.properties.entries } },
      {
        entries: { rowDeletion: 1, familyDeletion: 0, columnDeletion: 0, rangeDeletion: 1, put: 2, merge: 0 },
        rows: 2,
        firstRow: 'a',
        lastRow: 'b\xff',
        minTimestamp: INT64_MIN,
        maxTimestamp: INT64_MAX,
        rawBytes: 9 + 15 + 12 + 13,
        group: 'größe',
        createdMicros: 7,
        origin: 'east',
        families: [{ family: 'f', cells: 2, logicalBytes: 15 + 12 }],
        newest: { epoch: 3, sequence: 2 ** 40 },
        lineage: { ...lineage, path: table.path },
        lastServerMicros: 2 ** 53 - 1,
        compression: {
          kind: 'none',
          rawBytes: (await table.verify()).blockBytes,
          storedBytes: (await table.verify()).blockBytes,
        },
        bloomFilter: 'none',
      },
    );
  });

  test('the bounds of its timestamps are those of cells, not of deletions', async () => {
    const entries = [
      deletion(EntryKind.rangeDeletion, 'a', Q, -50),
      put('a', Q, 8, ''),
      { ...put('a', Q, 5, 'v'), kind: EntryKind.merge },
    ];
    const { minTimestamp, maxTimestamp } = (await openFile(await writeFile(entries))).properties;
    assert.deepEqual([minTimestamp, maxTimestamp], [5, 8]);
    const alone = await openFile(await writeFile(entries.slice(0, 1)));
    assert.deepEqual([alone.properties.minTimestamp, alone.properties.maxTimestamp], [undefined, undefined]);
  });

  test('may hold only deletions of row ranges', async () => {
    const table = await openFile(await writeFile([], { rowRangeDeletions: [{ start: 'k', end: 'm' }] }));
    assert.equal(table.firstRow, undefined);
    assert.equal(table.lastRow, undefined);
    assert.deepEqual(await scan(table.cursor()), []);
    assert.equal(table.mayContainRows('', undefined), false);
    assert.deepEqual(table.blockBoundaries(), []);
    assert.deepEqual(await table.verify(), { blocks: 0, entries: 0, blockBytes: 0 });
  });

  test('mayContainRows never wrongly says no, and says no outside and between blocks', async () => {
    await fc.assert(
      fc.asyncProperty(
        sortedEntries,
        fc.string({ maxLength: 3 }),
        fc.option(fc.string({ maxLength: 3 }), { nil: undefined }),
        async (entries, start, end) => {
          fc.pre(entries.length > 0);
          const table = await openFile(await writeFile(entries, { blockSizeBytes: 64 }));
          const holds = entries.some(({ row }) => row >= start && (end === undefined || row < end));
          if (holds) assert.equal(table.mayContainRows(start, end), true);
        },
      ),
      { numRuns: 100 },
    );
    // one row a block
    const table = await openFile(await writeFile(numberedRows(5, 100), { blockSizeBytes: 64 }));
    assert.equal(table.mayContainRows('', rowName(0)), false);
    assert.equal(table.mayContainRows('', `${rowName(0)}\0`), true);
    assert.equal(table.mayContainRows(`${rowName(2)}\0`, rowName(3)), false);
    assert.equal(table.mayContainRows(`${rowName(2)}\0`, undefined), true);
    assert.equal(table.mayContainRows(`${rowName(4)}\0`, undefined), false);
    assert.equal(table.mayContainRows(rowName(3), rowName(3)), false);
  });

  test('block boundaries ascend from the first row and the start of the file', async () => {
    const table = await openFile(await writeFile(numberedRows(300, 100), { blockSizeBytes: 1000 }));
    const boundaries = table.blockBoundaries();
    assert.ok(boundaries.length >= 300 / 9 && boundaries.length <= 300 / 7, `${boundaries.length} blocks`);
    assert.deepEqual(boundaries[0], { row: rowName(0), offsetBytes: 0 });
    for (let i = 1; i < boundaries.length; i++) {
      const [before, here] = [boundaries[i - 1], boundaries[i]] as const;
      assert.ok(
        before &&
          here &&
          before.row < here.row &&
          here.offsetBytes > before.offsetBytes &&
          here.offsetBytes - before.offsetBytes < 1100,
      );
    }
  });

  test('the rows of a block are found by its offset', async () => {
    const table = await openFile(await writeFile(numberedRows(300, 100), { blockSizeBytes: 1000 }));
    const boundaries = table.blockBoundaries();
    for (const [i, { row, offsetBytes }] of boundaries.entries()) {
      const rows = table.rowsAt(offsetBytes);
      assert.equal(rows?.first, row);
      assert.ok(rows && rows.last >= row && rows.last < (boundaries[i + 1]?.row ?? rowName(300)));
      assert.equal(table.rowsAt(offsetBytes + 1), undefined);
    }
  });

  test('opens with one read, or two if the index is large', async () => {
    const small = await writeFile(numberedRows(1000, 1000));
    await openFile(small);
    assert.equal(small.metrics.get('sstable.reads'), 1);
    const large = await writeFile(numberedRows(6000, 100), { blockSizeBytes: 64 });
    const table = await openFile(large);
    assert.equal(large.metrics.get('sstable.reads'), 2);
    assert.equal(table.blockBoundaries().length, 6000);
    assert.equal((await table.verify()).entries, 6000);
  });

  test('a missing file is NOT_FOUND', async () => {
    const file = await writeFile(numberedRows(1, 1));
    await file.fileSystem.delete('tables/1.sst');
    await assert.rejects(openFile(file), { code: Code.NOT_FOUND });
  });

  test('can still be read after its close, and keeps nothing in the cache', async () => {
    const entries = numberedRows(50, 100);
    const table = await openFile(await writeFile(entries, { blockSizeBytes: 500 }));
    const cursor = table.cursor();
    table.close();
    assert.deepEqual(await scan(cursor), entries.map(plain));
    cursor.close();
  });
});
