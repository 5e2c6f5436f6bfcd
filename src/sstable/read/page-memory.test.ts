import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AssertionError } from '../../base/index.ts';
import { Metrics } from '../../env/index.ts';
import { CursorState, type LayerCursor } from '../../model/index.ts';
import { BlockCache } from '../cache/block-cache.ts';
import { CODECS, numberedRows, openFile, PATH, readingNow, rowName, scan, writeFile } from '../fixtures.ts';
import { SsTable } from '../ss-table.ts';
import { Block } from './block.ts';
import { BlockCursor } from './block-cursor.ts';
import { PageMemory } from './page-memory.ts';

const ROWS = 400;

describe('memory of pages', () => {
  test('is handed out again for pages of about its size', () => {
    const memory = new PageMemory();
    const first = memory.take(4000);
    assert.equal(first.length, 4000);
    memory.give(first.buffer);
    assert.notEqual(memory.take(5000).buffer, first.buffer, 'it is too small');
    assert.notEqual(memory.take(1000).buffer, first.buffer, 'it is much too large');
    assert.equal(memory.take(3600).buffer, first.buffer);
    assert.notEqual(memory.take(3600).buffer, first.buffer, 'it is handed out once');
  });

  test('of large pages, and more than there is use for, is left to the collector', () => {
    const memory = new PageMemory();
    const large = memory.take(20_000);
    memory.give(large.buffer);
    assert.notEqual(memory.take(20_000).buffer, large.buffer);
    const all = Array.from({ length: 200 }, () => memory.take(16_384).buffer);
    for (const each of all) memory.give(each);
    const reused = all.map(() => memory.take(16_384).buffer).filter((each) => all.includes(each));
    assert.equal(reused.length, 64);
  });

  test('is given back when the last holder releases the page, which cannot be read then', () => {
    const memory = new PageMemory();
    const bytes = memory.take(100);
    const page = new Block('t', 0, bytes, 100);
    page.reuseIn(memory);
    page.hold();
    page.hold();
    page.release();
    assert.notEqual(memory.take(100).buffer, bytes.buffer);
    page.release();
    assert.equal(memory.take(100).buffer, bytes.buffer);
    assert.throws(() => new BlockCursor().open(page), AssertionError);
    assert.throws(() => page.release(), AssertionError);
  });

  test('is never another page\u2019s while a cursor is on it, and values stay as they were read', async () => {
    const file = await writeFile(numberedRows(ROWS, 900), { blockSizeBytes: 16 * 1024, compression: { kind: 'none' } });
    const fileSystem = await readingNow(file.fileSystem);
    const open = (cache: BlockCache): Promise<SsTable> =>
      SsTable.open({ fileSystem, path: PATH, codecs: CODECS, cache, metrics: file.metrics, clock: file.clock });
    const table = await openFile(file);
    const expected = new Map<string, Buffer>();
    const all = table.cursor();
    for (const { row, value } of await scan(all)) expected.set(row, Buffer.from(value));
    all.close();
    table.close();
    const step = fc.record({ row: fc.nat(ROWS - 1), stays: fc.boolean(), closes: fc.nat(3) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 200, size: 'max' }),
        fc.constantFrom(0, 6_000, 40_000, 200_000),
        async (steps, limitBytes) => {
          const cache = new BlockCache({ limitBytes, metrics: new Metrics() });
          const short = await open(cache);
          const cursors: LayerCursor[] = [];
          const values: [string, Uint8Array][] = [];
          for (const { row: number, stays, closes } of steps) {
            const row = rowName(number);
            const cursor = short.rowCursor(row);
            cursor.seekRow(row);
            assert.equal(cursor.state, CursorState.ready);
            values.push([row, cursor.value()]);
            if (stays) cursors.push(cursor);
            else cursor.close();
            if (closes === 0) cursors.shift()?.close();
            for (const each of cursors) assert.deepEqual(Buffer.from(each.value()), expected.get(each.row));
            cache.assertConsistent();
          }
          for (const [row, value] of values) assert.deepEqual(Buffer.from(value), expected.get(row));
          short.close();
          for (const cursor of cursors) {
            assert.deepEqual(Buffer.from(cursor.value()), expected.get(cursor.row));
            cursor.close();
          }
          assert.equal(cache.usedBytes, 0);
        },
      ),
      { numRuns: 60 },
    );
  });
});
