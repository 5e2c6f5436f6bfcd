import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ReadAhead } from './posix-read-ahead.ts';

interface Watched {
  readonly ahead: ReadAhead;
  readonly reads: { readonly at: number; readonly length: number }[];
  readonly state: { underWay: number; most: number };
}

/** Reads of a file in memory that answer in a later turn, at most `most` bytes at a time. */
function open(file: Buffer, chunkBytes: number, most = Number.POSITIVE_INFINITY, sizeBytes = file.length): Watched {
  const reads: Watched['reads'] = [];
  const state = { underWay: 0, most: 0 };
  const read = async (_fd: number, into: Buffer, offset: number, length: number, position: number): Promise<number> => {
    reads.push({ at: position, length });
    state.most = Math.max(state.most, ++state.underWay);
    await new Promise<void>((resolve) => setImmediate(resolve));
    state.underWay--;
    return file.copy(into, offset, position, position + Math.min(length, most));
  };
  const tooShort = (at: number): Error => new Error(`ends at ${at}`);
  return { ahead: new ReadAhead({ syscalls: { read }, fd: 1, sizeBytes, chunkBytes, tooShort }), reads, state };
}

const bytesOf = (length: number): Buffer => Buffer.from(Uint8Array.from({ length }, (_, i) => i * 7 + (i >> 8)));

describe('reading ahead', () => {
  test('returns the bytes of the file, forwards and back, over any chunks, and returned bytes stay unchanged', async () => {
    const requested = fc.array(fc.tuple(fc.nat(300), fc.nat(300)), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(
        fc.nat(300),
        fc.integer({ min: 1, max: 90 }),
        fc.integer({ min: 1, max: 50 }),
        requested,
        async (size, chunkBytes, most, ranges) => {
          const file = bytesOf(size);
          const { ahead, state } = open(file, chunkBytes, most);
          const got: [Buffer, Buffer][] = [];
          for (const [a, b] of ranges) {
            const offset = Math.min(a, size);
            const length = Math.min(b, size - offset);
            got.push([await ahead.bytes(offset, length), file.subarray(offset, offset + length)]);
          }
          for (const [answered, expected] of got) assert.ok(answered.equals(expected));
          await ahead.stop();
          assert.ok(state.underWay === 0 && state.most <= 1, 'one read at a time, and none after the end');
        },
      ),
    );
  });

  test('reads everything once where it is requested in order, the next chunk before it is requested', async () => {
    const file = bytesOf(1000);
    const { ahead, reads } = open(file, 300);
    assert.deepEqual(reads, [{ at: 0, length: 300 }], 'immediately');
    await ahead.bytes(0, 10);
    assert.deepEqual(reads.at(-1), { at: 300, length: 300 });
    for (let at = 10; at < 1000; at += 90) assert.ok((await ahead.bytes(at, 90)).equals(file.subarray(at, at + 90)));
    assert.deepEqual(
      reads.map(({ at }) => at),
      [0, 300, 600, 900],
    );
    await ahead.stop();
  });

  test('bytes of one chunk are not copied', async () => {
    const { ahead } = open(bytesOf(100), 50);
    const [a, b, across] = [await ahead.bytes(0, 10), await ahead.bytes(10, 10), await ahead.bytes(40, 20)];
    assert.equal(a.buffer, b.buffer);
    assert.notEqual(a.buffer, across.buffer);
    await ahead.stop();
  });

  test('a failed read is reported to the caller that requests its bytes, and to no other', async () => {
    const { ahead, reads } = open(bytesOf(70), 50, undefined, 100);
    assert.equal((await ahead.bytes(0, 50)).length, 50);
    while (reads.length < 3) await new Promise<void>((resolve) => setImmediate(resolve));
    await assert.rejects(ahead.bytes(50, 50), /ends at 70/);
    await ahead.stop();
  });
});
