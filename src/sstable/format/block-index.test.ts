import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CorruptionError } from '../../base/index.ts';
import { columnKey, compareEntries, type Entry, EntryKind, isDeletion } from '../../model/index.ts';
import { BlockIndex, BlockIndexBuilder } from './block-index.ts';
import { sortedEntries } from '../fixtures.ts';
import { SeekTarget } from './seek-target.ts';

const FIRST = { row: 'r', column: columnKey('f', ''), kind: EntryKind.put, timestamp: 1 };

/** Three blocks of these offsets and lengths. */
function encoded(...extents: readonly (readonly [number, number])[]): Buffer {
  const builder = new BlockIndexBuilder();
  for (const [offset, lengthBytes] of extents)
    builder.add({ first: FIRST, lastRow: 'r', extent: { offset, lengthBytes }, entries: 1 });
  return builder.finish();
}

function decode(bytes: Buffer, dataEnd = 1000): BlockIndex {
  return BlockIndex.decode('t.sst', { offset: 77, lengthBytes: bytes.length }, bytes, dataEnd);
}

describe('BlockIndex', () => {
  test('decodes to what was encoded, and finds the last block before any target', () => {
    fc.assert(
      fc.property(
        sortedEntries,
        fc.nat(),
        fc.integer({ min: 1, max: 9 }),
        fc.constantFrom('row', 'column', 'version'),
        (entries, pick, perBlock, kind) => {
          fc.pre(entries.length > 0);
          const builder = new BlockIndexBuilder();
          const firsts: Entry[] = [];
          for (let at = 0; at < entries.length; at += perBlock) {
            const first = entries[at] as Entry;
            const lastRow = (entries[Math.min(at + perBlock, entries.length) - 1] as Entry).row;
            builder.add({ first, lastRow, extent: { offset: at * 100, lengthBytes: 95 }, entries: perBlock });
            firsts.push(first);
          }
          const index = decode(builder.finish(), entries.length * 100 + 1000);
          assert.equal(index.length, firsts.length);
          for (const [block, { row, column, kind: entryKind, timestamp }] of firsts.entries()) {
            assert.deepEqual(index.first(block), { row, column, kind: entryKind, timestamp });
            assert.equal(
              index.lastRow(block),
              (entries[Math.min((block + 1) * perBlock, entries.length) - 1] as Entry).row,
            );
            assert.deepEqual(index.extent(block), { offset: block * perBlock * 100, lengthBytes: 95 });
          }
          const wanted = entries[pick % entries.length] as Entry;
          const target = new SeekTarget();
          target.set(
            wanted.row,
            kind === 'row' ? undefined : wanted.column,
            kind === 'version' ? wanted.timestamp : undefined,
          );
          const isBefore = (entry: Entry): boolean => {
            if (entry.row !== wanted.row || kind === 'row') return entry.row < wanted.row;
            if (entry.column !== wanted.column || kind === 'column') return entry.column < wanted.column;
            return isDeletion(entry.kind) || entry.timestamp > wanted.timestamp;
          };
          assert.equal(index.lastBefore(target), firsts.findLastIndex(isBefore));
          assert.ok(firsts.every((entry, i) => i === 0 || compareEntries(firsts[i - 1] as Entry, entry) < 0));
        },
      ),
      { numRuns: 300 },
    );
  });

  test('accepts blocks with space between them, and none that overlap, go back, or lie after the data', () => {
    assert.equal(decode(encoded([0, 10], [15, 10], [100, 10])).length, 3);
    for (const extents of [
      [
        [0, 10],
        [14, 10],
      ],
      [
        [50, 10],
        [0, 10],
      ],
      [
        [0, 10],
        [990, 10],
      ],
      [[0, 2 ** 32]],
    ] as const) {
      assert.throws(
        () => decode(encoded(...extents)),
        (error: unknown) => error instanceof CorruptionError && error.file === 't.sst' && error.offset >= 77,
      );
    }
  });

  test('with any byte missing or added is a CorruptionError', () => {
    const bytes = encoded([0, 10], [15, 10], [100, 10]);
    for (let length = 0; length < bytes.length; length++)
      assert.throws(() => decode(bytes.subarray(0, length)), CorruptionError);
    assert.throws(() => decode(Buffer.concat([bytes, Buffer.alloc(1)])), CorruptionError);
  });

  test('with any byte changed decodes or is a CorruptionError', () => {
    const bytes = encoded([0, 10], [15, 10], [100, 10]);
    for (let at = 0; at < bytes.length; at++) {
      for (let value = 0; value < 256; value++) {
        const changed = Buffer.from(bytes);
        changed[at] = value;
        try {
          const index = decode(changed);
          for (let block = 0; block < index.length; block++) index.first(block);
        } catch (error) {
          assert.ok(error instanceof CorruptionError, String(error));
        }
      }
    }
  });
});
