import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AssertionError } from '../base/index.ts';
import { type Slab, ValueArena, valueAt } from './value-arena.ts';

function add(arena: ValueArena, value: Uint8Array): { slab: Slab; bytes: () => Uint8Array; release: () => void } {
  arena.add(value);
  const { slab, offset } = arena;
  const length = value.length;
  return { slab, bytes: () => valueAt(slab, offset, length), release: () => arena.release(slab, length) };
}

describe('ValueArena', () => {
  test('values of every size come back as they were', () => {
    const arena = new ValueArena();
    const sizes = [0, 1, 15, 16, 17, 4095, 4096, 4097, 16384, 16385, 300_000];
    const added = sizes.map((size, i) => ({ size, i, ...add(arena, Buffer.alloc(size, i + 1)) }));
    for (const { size, i, bytes } of added) assert.deepEqual(Buffer.from(bytes()), Buffer.alloc(size, i + 1));
  });

  test('a small value is copied: the caller may reuse its buffer', () => {
    const arena = new ValueArena();
    const buffer = Buffer.from('a value of thirty-two bytes, yes');
    const { bytes } = add(arena, buffer);
    buffer.fill(0);
    assert.equal(Buffer.from(bytes()).toString(), 'a value of thirty-two bytes, yes');
  });

  test('a large value is kept where it fills its buffer, and copied out of a larger one', () => {
    const arena = new ValueArena();
    const own = Buffer.allocUnsafeSlow(20_000).fill(1);
    assert.equal(add(arena, own).bytes().buffer, own.buffer);
    const frame = Buffer.allocUnsafeSlow(1_000_000).fill(2);
    const copy = add(arena, frame.subarray(1000, 21_000)).bytes();
    assert.notEqual(copy.buffer, frame.buffer);
    assert.equal(copy.buffer.byteLength, 20_000);
    assert.deepEqual(Buffer.from(copy), Buffer.alloc(20_000, 2));
  });

  test('small arenas are small, and slabs grow', () => {
    const arena = new ValueArena();
    assert.equal(arena.sizeBytes, 0);
    add(arena, Buffer.alloc(10));
    assert.ok(arena.sizeBytes < 5000, `${arena.sizeBytes}`);
    for (let i = 0; i < 10_000; i++) add(arena, Buffer.alloc(100));
    assert.ok(arena.sizeBytes >= 1_000_000 && arena.sizeBytes < 1_400_000, `${arena.sizeBytes}`);
  });

  test('an arena that is released in full no longer counts', () => {
    const arena = new ValueArena();
    for (let round = 0; round < 100; round++) {
      const values = Array.from({ length: 1000 }, () => add(arena, Buffer.alloc(100)));
      values.push(add(arena, Buffer.alloc(50_000)));
      for (const { release } of values) release();
    }
    assert.ok(arena.sizeBytes < 2 * 1024 * 1024, `${arena.sizeBytes}`);
  });

  test('slabs of an arena that is recycled are reused, except those of which a reader has a view', () => {
    const fill = (arena: ValueArena, byte: number): ReturnType<typeof add>[] =>
      Array.from({ length: 3000 }, () => add(arena, Buffer.alloc(1000, byte)));
    const memories = (values: readonly ReturnType<typeof add>[]): Set<ArrayBufferLike> =>
      new Set(values.map(({ slab }) => slab.memory));
    const first = new ValueArena();
    const before = fill(first, 1);
    const lent = before[2500] as ReturnType<typeof add>;
    lent.slab.isLent = true;
    const kept = lent.bytes();
    const [old, gone] = [memories(before), before[0] as ReturnType<typeof add>];
    for (const { slab, release } of before) if (slab === gone.slab) release();
    first.recycle();
    const second = new ValueArena();
    const after = fill(second, 2);
    const again = [...memories(after)].filter((memory) => old.has(memory));
    assert.ok(again.length >= 5, `${again.length} of ${old.size} slabs`);
    assert.ok(!again.includes(lent.slab.memory) && !again.includes(gone.slab.memory));
    assert.deepEqual(Buffer.from(kept), Buffer.alloc(1000, 1));
    assert.throws(() => (before[2000] as ReturnType<typeof add>).bytes(), AssertionError);
    for (const { bytes } of after) assert.equal(bytes()[999], 2);
    assert.ok(second.sizeBytes >= 3_000_000 && second.sizeBytes < 3_500_000, `${second.sizeBytes}`);
  });
});
