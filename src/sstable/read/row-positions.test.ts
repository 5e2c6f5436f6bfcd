import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Metrics } from '../../env/index.ts';
import { columnKey } from '../../model/index.ts';
import { BlockCache } from '../cache/block-cache.ts';
import {
  inOrder,
  numberedRows,
  openFile,
  plain,
  put,
  readRow,
  rowName,
  sortedEntries,
  writeFile,
} from '../fixtures.ts';
import { BloomHash } from '../format/bloom-hash.ts';
import { Block } from './block.ts';
import { NO_POSITION } from './row-positions.ts';

const Q = columnKey('f', 'q');
const MIB = 1 << 20;

/** Any block of that size. */
function page(bytes: number): Block {
  return new Block('other', 0, Buffer.alloc(bytes), bytes);
}

function hashOf(row: string): BloomHash {
  const hash = new BloomHash();
  hash.row(row);
  return hash;
}

describe('positions of rows', () => {
  test('lead to what a search finds, for rows of one and of several blocks, and for rows that are not there', async () => {
    await fc.assert(
      fc.asyncProperty(
        sortedEntries,
        fc.constantFrom(64, 200, 65536),
        fc.array(fc.nat(), { maxLength: 12 }),
        async (entries, blockSizeBytes, picks) => {
          fc.pre(entries.length > 0);
          const file = await openFile(await writeFile(entries, { blockSizeBytes, bloomFilter: 'none' }), MIB);
          const rows = [...new Set(entries.map(({ row }) => row))];
          const requested = [...picks.map((pick) => rows[pick % rows.length]!), ...rows, ...rows, ...rows];
          for (const row of requested) {
            const expected = entries.filter((each) => each.row === row).map(plain);
            assert.deepEqual(await readRow(file, row), expected);
            const absent = `${row}?`;
            if (!rows.includes(absent)) assert.deepEqual(await readRow(file, absent), []);
          }
          file.close();
        },
      ),
      { numRuns: 150 },
    );
  });

  test('are found for every row of a block that was searched twice', async () => {
    const metrics = new Metrics();
    const cache = new BlockCache({ limitBytes: 64 * MIB, metrics });
    const file = await openFile(await writeFile(numberedRows(3000, 10), { blockSizeBytes: 1 << 16 }), 0, cache);
    const { positions: none } = cache.open(file.path);
    assert.equal(none, undefined);
    await readRow(file, rowName(0));
    await readRow(file, rowName(1));
    const { positions } = cache.open(file.path);
    assert.ok(positions);
    for (let i = 0; i < 1000; i++) assert.notEqual(positions.find(hashOf(rowName(i))), NO_POSITION);
    cache.assertConsistent();
  });

  test('of rows with the same bits of the hash are no more than hints', async () => {
    // many blocks leave a slot few bits of the hash
    const entries = inOrder(Array.from({ length: 20_000 }, (_, i) => put(rowName(i), Q, 1, `${i}`)));
    const file = await openFile(await writeFile(entries, { blockSizeBytes: 64, bloomFilter: 'none' }), 64 * MIB);
    for (let round = 0; round < 2; round++)
      for (const { row } of entries) assert.equal((await readRow(file, row)).length, 1);
    for (let i = 0; i < 20_000; i++) assert.deepEqual(await readRow(file, `${rowName(i)}x`), []);
    file.close();
  });

  test('leave before the first block does, count in the budget, and do not come back', async () => {
    const cache = new BlockCache({ limitBytes: 8 * MIB, visitorBytes: MIB, metrics: new Metrics() });
    const file = await openFile(await writeFile(numberedRows(4000, 1000)), 0, cache);
    await readRow(file, rowName(0));
    await readRow(file, rowName(1));
    const kept = cache.open(file.path);
    const bytes = kept.positions!.sizeBytes;
    assert.ok(cache.usedBytes > bytes && bytes >= 4 * 4000);
    const other = cache.open('other');
    for (let i = 0; cache.keepsAll; i++) other.keep(i, page(MIB / 2), false);
    assert.equal(kept.positions, undefined);
    cache.assertConsistent();
    await readRow(file, rowName(2));
    assert.equal(kept.positions, undefined);
  });
});
