import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CursorState } from '../../model/index.ts';
import { numberedRows, openFile, rowName, scan, settle, type TestFile, writeFile } from '../fixtures.ts';
import type { SsTable } from '../ss-table.ts';
import { BlockCache } from './block-cache.ts';

const KIB = 1024;
const ROWS = 20_000;

async function open(
  limitBytes: number,
  visitorBytes: number,
): Promise<{ cache: BlockCache; table: SsTable; file: TestFile }> {
  const file = await writeFile(numberedRows(ROWS, 1000), { blockSizeBytes: 16 * KIB, compression: { kind: 'none' } });
  const cache = new BlockCache({ limitBytes, visitorBytes, metrics: file.metrics });
  return { cache, table: await openFile(file, 0, cache), file };
}

describe('scans and the block cache', () => {
  for (const visitorBytes of [256 * KIB, 16 * 1024 * KIB]) {
    test(`rows that are read again and again stay, with ${visitorBytes} bytes for scans of a larger table`, async () => {
      const { cache, table, file } = await open(4096 * KIB, visitorBytes);
      const hot = Array.from({ length: 120 }, (_, i) => rowName((i * 163) % ROWS));
      const readHot = async (): Promise<number> => {
        const before = file.metrics.get('blockCache.misses');
        for (const row of hot) {
          const cursor = table.rowCursor(row);
          cursor.seekRow(row);
          await settle(cursor);
          assert.equal(cursor.row, row);
          cursor.close();
        }
        return file.metrics.get('blockCache.misses') - before;
      };
      await readHot();
      await readHot();
      let requests = 0;
      let misses = 0;
      for (let time = 0; time < 3; time++) {
        const cursor = table.cursor();
        cursor.seekRow('');
        for (let i = 0; i < ROWS; i++, cursor.next()) {
          await settle(cursor);
          if (i % 1000 !== 999) continue;
          misses += await readHot();
          requests += hot.length;
        }
        cursor.close();
      }
      assert.ok(misses < requests * 0.02, `${misses} misses of ${requests} requests`);
      cache.assertConsistent();
    });
  }

  for (const direction of ['forwards', 'backwards']) {
    test(`the first scan ${direction} leaves no more than visitors may take`, async () => {
      const { cache, table } = await open(64 * 1024 * KIB, 1024 * KIB);
      const cursor = table.cursor();
      let rows = 0;
      if (direction === 'forwards') {
        rows = (await scan(cursor)).length;
      } else {
        for (cursor.seekRowBefore(undefined); ; rows++) {
          await settle(cursor);
          if (cursor.state === CursorState.done) break;
          const { row } = cursor;
          // as a reader does that reads the whole row
          cursor.next();
          await settle(cursor);
          cursor.seekRowBefore(row);
        }
      }
      cursor.close();
      assert.equal(rows, ROWS);
      // and the memory of one read that a part of them shares: 512 KiB
      assert.ok(cache.usedBytes <= 1600 * KIB, `${cache.usedBytes} bytes`);
    });
  }

  test('many scans at a time read no block twice, since each reads less ahead', async () => {
    const { cache, table, file } = await open(64 * 1024 * KIB, 4096 * KIB);
    const before = file.metrics.get('sstable.readBytes');
    const cursors = Array.from({ length: 32 }, () => table.cursor());
    for (const [i, cursor] of cursors.entries()) cursor.seekRow(rowName((i * ROWS) / cursors.length));
    for (let i = 0; i < ROWS / cursors.length; i++) {
      for (const cursor of cursors) {
        await settle(cursor);
        cursor.next();
      }
    }
    for (const cursor of cursors) cursor.close();
    const readBytes = file.metrics.get('sstable.readBytes') - before;
    assert.ok(readBytes < table.sizeBytes * 1.1, `${readBytes} bytes read of ${table.sizeBytes}`);
    assert.ok(cache.usedBytes < 8192 * KIB, `${cache.usedBytes} bytes`);
  });

  test('a block that a scan and a row read want at the same time is no visitor', async () => {
    const { table } = await open(64 * 1024 * KIB, 64 * KIB);
    const [cursor, row] = [table.cursor(), table.rowCursor(rowName(0))];
    cursor.seekRow('');
    row.seekRow(rowName(0));
    await Promise.all([settle(cursor), settle(row)]);
    await scan(cursor);
    const again = table.rowCursor(rowName(0));
    again.seekRow(rowName(0));
    assert.equal(again.state, CursorState.ready);
  });
});
