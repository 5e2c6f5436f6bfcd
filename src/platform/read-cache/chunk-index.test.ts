import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ChunkIndex, NO_SLOT } from './chunk-index.ts';
import { type FileKey, PIECES } from './index-record.ts';

const SUMS = Uint32Array.from({ length: PIECES }, (_, i) => i);
const fileOf = (number: number): FileKey => Uint32Array.of(number % 3, 7, number, 9);

function put(index: ChunkIndex, file: number, chunk: number): number {
  const slot = index.take(true);
  if (slot !== NO_SLOT) index.add(slot, { file: fileOf(file), chunk, lengthBytes: 5 + chunk, sums: SUMS });
  return slot;
}

const chunksOf = (index: ChunkIndex, file: number, chunks: number): number[] =>
  Array.from({ length: chunks }, (_, chunk) => chunk).filter((chunk) => index.find(fileOf(file), chunk) !== NO_SLOT);

describe('the index of a read cache', () => {
  test('the chunk that was not used for longest is evicted, those on probation first', () => {
    const index = new ChunkIndex(10);
    for (let chunk = 0; chunk < 10; chunk++) put(index, 1, chunk);
    for (let chunk = 0; chunk < 9; chunk++) index.use(index.find(fileOf(1), chunk));
    index.use(index.find(fileOf(1), 0));
    put(index, 2, 0);
    // 9 is alone on probation, below its share: the main part gives up 1
    assert.deepEqual(chunksOf(index, 1, 10), [0, 2, 3, 4, 5, 6, 7, 8, 9]);
    put(index, 2, 1);
    assert.deepEqual(chunksOf(index, 1, 10), [0, 2, 3, 4, 5, 6, 7, 8]);
  });

  test('a flood of new chunks leaves those that were used', () => {
    const index = new ChunkIndex(100);
    for (let chunk = 0; chunk < 100; chunk++) index.use(put(index, 1, chunk));
    for (let chunk = 0; chunk < 1000; chunk++) put(index, 2, chunk);
    assert.equal(chunksOf(index, 1, 100).length, 80);
    assert.deepEqual(
      chunksOf(index, 2, 1000),
      Array.from({ length: 20 }, (_, i) => 980 + i),
    );
  });

  test('held slots count as new chunks: they take a share alone, and the rest is refused', () => {
    const index = new ChunkIndex(10);
    for (let chunk = 0; chunk < 10; chunk++) index.use(put(index, 1, chunk));
    const held = [index.take(true), index.take(true), index.take(true)];
    assert.deepEqual(
      held.map((slot) => slot === NO_SLOT),
      [false, false, true],
    );
    assert.equal(index.filledSlots, 8);
  });

  test('what may not grow gets the slot of an evicted chunk, or none', () => {
    const index = new ChunkIndex(10);
    assert.equal(index.take(false), NO_SLOT);
    const slot = put(index, 1, 0);
    assert.equal(index.take(false), slot);
    assert.equal(index.find(fileOf(1), 0), NO_SLOT);
  });

  test('random calls, against a map', () => {
    const call = fc.record({
      kind: fc.constantFrom('put', 'use', 'remove', 'file'),
      file: fc.nat(3),
      chunk: fc.nat(7),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.array(call, { maxLength: 80 }), (slots, calls) => {
        const evicted: number[] = [];
        const index = new ChunkIndex(slots, () => evicted.push(1));
        const model = new Map<string, { slot: number; generation: number }>();
        let evictedBefore = 0;
        for (const { kind, file, chunk } of calls) {
          const key = `${file} ${chunk}`;
          const known = model.get(key);
          if (kind === 'put' && !known) {
            const slot = put(index, file, chunk);
            assert.notEqual(slot, NO_SLOT);
            for (const [other, at] of model) if (at.slot === slot) model.delete(other);
            model.set(key, { slot, generation: index.generationOf(slot) });
          } else if (kind === 'use' && known) index.use(known.slot);
          else if (kind === 'remove' && known) {
            index.remove(known.slot);
            assert.notEqual(index.generationOf(known.slot), known.generation);
            index.release(known.slot);
            model.delete(key);
          } else if (kind === 'file') {
            const expected = [...model].filter(([name]) => name.startsWith(`${file} `)).map(([, { slot }]) => slot);
            assert.deepEqual(
              index.slotsOf(fileOf(file)),
              expected.sort((a, b) => a - b),
            );
          }
          assert.equal(index.filledSlots, model.size);
          assert.ok(model.size <= slots);
          if (evicted.length > evictedBefore) assert.equal(model.size, slots, 'nothing is evicted before it is full');
          evictedBefore = evicted.length;
          for (const [name, at] of model) {
            const [inFile = 0, inChunk = 0] = name.split(' ').map(Number);
            assert.equal(index.find(fileOf(inFile), inChunk), at.slot);
            assert.equal(index.lengthOf(at.slot), 5 + inChunk);
            assert.equal(index.sumOf(at.slot, 3), 3);
            assert.equal(index.generationOf(at.slot), at.generation);
          }
          index.assertConsistent();
        }
      }),
    );
  });
});
