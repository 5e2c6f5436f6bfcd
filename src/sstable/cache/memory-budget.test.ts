import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AssertionError, CorruptionError } from '../../base/index.ts';
import { Metrics } from '../../env/index.ts';
import { BlockCache, type BlockKeeper } from './block-cache.ts';
import { MemoryBudget } from './memory-budget.ts';
import { numberedRows, openFile, PATH, plain, rowName, scan, settle, type TestFile, writeFile } from '../fixtures.ts';
import type { SsTable } from '../ss-table.ts';

const ROWS = numberedRows(200, 100);

const noCache = (): BlockKeeper => assert.fail('it fits');

function open(file: TestFile, inMemory: MemoryBudget): Promise<SsTable> {
  return openFile(file, 0, undefined, { inMemory });
}

async function readOne(table: SsTable, row: string): Promise<void> {
  const cursor = table.cursor();
  cursor.seekRow(row);
  await settle(cursor);
  assert.equal(cursor.row, row);
  cursor.close();
}

describe('an in-memory SSTable', () => {
  test('is loaded when it is first used, counts in full, and then needs no file', async () => {
    for (const kind of ['none', 'lz4'] as const) {
      const file = await writeFile(ROWS, { blockSizeBytes: 1000, compression: { kind } });
      const budget = new MemoryBudget(1_000_000);
      const table = await open(file, budget);
      assert.equal(budget.usedBytes, 0);
      await readOne(table, rowName(100));
      assert.equal(budget.usedBytes, file.written.compression.rawBytes);
      assert.deepEqual(await scan(table.cursor()), ROWS.map(plain));
      const reads = file.metrics.get('sstable.reads');
      await file.fileSystem.delete(PATH);
      assert.deepEqual(await scan(table.cursor()), ROWS.map(plain));
      for (const row of [5, 150, 77]) await readOne(table, rowName(row));
      assert.equal(file.metrics.get('sstable.reads'), reads);
      assert.equal(budget.usedBytes, file.written.compression.rawBytes);
      table.close();
      assert.equal(budget.usedBytes, 0);
    }
  });

  test('that does not fit is read through the block cache, until there is space', async () => {
    const file = await writeFile(ROWS, { blockSizeBytes: 1000 });
    const { rawBytes } = file.written.compression;
    const budget = new MemoryBudget(rawBytes + 10);
    const cache = new BlockCache({ limitBytes: 1 << 20, metrics: new Metrics() });
    const table = await openFile(file, 0, cache, { inMemory: budget });
    const otherFile = await writeFile(numberedRows(2, 100), { path: 'tables/2.sst' });
    const other = budget.open('tables/2.sst', 100, noCache);
    await other.load(0, () => Promise.reject(new Error('read'))).catch(() => {});
    assert.equal(budget.usedBytes, 100);
    await readOne(table, rowName(1));
    assert.deepEqual(await scan(table.cursor()), ROWS.map(plain));
    assert.deepEqual([budget.usedBytes, budget.unfitBytes], [100, rawBytes]);
    assert.ok(cache.usedBytes >= rawBytes);
    const reads = file.metrics.get('sstable.reads');
    for (const row of [5, 150, 77]) await readOne(table, rowName(row));
    assert.equal(file.metrics.get('sstable.reads'), reads, 'the cache has it');
    table.close();
    assert.deepEqual([budget.unfitBytes, cache.usedBytes], [0, 0]);
    const uncached = await open(file, budget);
    await readOne(uncached, rowName(1));
    assert.equal(budget.unfitBytes, rawBytes);
    other.close();
    await readOne(uncached, rowName(1));
    assert.deepEqual([budget.usedBytes, budget.unfitBytes], [rawBytes, 0]);
    uncached.close();
    assert.ok(otherFile.written.sizeBytes > 0);
  });

  test('shared by all that open it, goes with the last', async () => {
    const file = await writeFile(ROWS, { blockSizeBytes: 1000 });
    const budget = new MemoryBudget(1_000_000);
    const first = await open(file, budget);
    const second = await open(file, budget);
    await scan(first.cursor());
    const { usedBytes } = budget;
    const reads = file.metrics.get('sstable.reads');
    await scan(second.cursor());
    assert.equal(file.metrics.get('sstable.reads'), reads);
    assert.equal(budget.usedBytes, usedBytes);
    first.close();
    assert.equal(budget.usedBytes, usedBytes);
    second.close();
    assert.equal(budget.usedBytes, 0);
    assert.throws(() => budget.open('x', 1, noCache).close() ?? second.close(), AssertionError);
  });

  test('with a damaged block fails there and nowhere else', async () => {
    const file = await writeFile(ROWS, { blockSizeBytes: 1000 });
    const table = await open(file, new MemoryBudget(1_000_000));
    const boundaries = table.blockBoundaries();
    file.fileSystem.damage(PATH, (boundaries[4]?.offsetBytes ?? 0) + 2);
    await readOne(table, boundaries[1]?.row ?? '');
    await assert.rejects(scan(table.cursor()), CorruptionError);
    await assert.rejects(readOne(table, boundaries[4]?.row ?? ''), CorruptionError);
    await readOne(table, boundaries[8]?.row ?? '');
  });
});
