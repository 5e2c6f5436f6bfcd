import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { writeVarint } from '../base/index.ts';
import { anyBlock, noise, sampleBlock } from './fixtures.ts';
import { LongStrings, MIN_COPY } from './long-strings.ts';
import { plainLz4 } from './lz4.ts';
import { TwoPassDecoder, TwoPassEncoder } from './two-pass.ts';

const EMPTY = Buffer.alloc(0);
const words = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.length - (bytes.length % 4));

function packed(reference: Buffer, block: Buffer): Buffer {
  return new TwoPassEncoder(plainLz4, reference).encode(block);
}

/** A payload of given copies: numbers as they are in the stream. */
function payload(
  copies: readonly number[],
  literals: Buffer,
  change: { copiesBytes?: number; literalBytes?: number } = {},
): Buffer {
  const stream = Buffer.alloc(copies.length * 8);
  let end = 0;
  for (const number of copies) end = writeVarint(stream, end, number);
  const head = Buffer.alloc(20);
  const headEnd = writeVarint(
    head,
    writeVarint(head, 0, change.copiesBytes ?? end),
    change.literalBytes ?? literals.length,
  );
  return Buffer.concat([
    head.subarray(0, headEnd),
    plainLz4.compress(Buffer.concat([stream.subarray(0, end), literals])),
  ]);
}

describe('two passes', () => {
  test('return the input, with any reference', () => {
    fc.assert(
      fc.property(anyBlock, fc.array(anyBlock, { maxLength: 4 }), (reference, blocks) => {
        const encoder = new TwoPassEncoder(plainLz4, words(reference));
        const decoder = new TwoPassDecoder(plainLz4, words(reference));
        // parts of the reference, so that there are bytes to copy
        for (const block of [
          ...blocks,
          reference,
          ...blocks.map((block) => Buffer.concat([reference.subarray(100), block, reference])),
        ]) {
          assert.ok(decoder.decode(encoder.encode(block), block.length).equals(block));
        }
      }),
      { numRuns: 12 },
    );
  });

  test('a block does not affect the next one of its encoder', () => {
    const reference = words(sampleBlock(0));
    const encoder = new TwoPassEncoder(plainLz4, reference);
    // first the largest, as the table of fingerprints grows with it
    encoder.encode(Buffer.alloc(300_000, 'x'));
    const first = encoder.encode(sampleBlock(1));
    for (const block of [noise(3000), sampleBlock(2), Buffer.alloc(300_000, 'x'), EMPTY, sampleBlock(0)])
      encoder.encode(block);
    assert.ok(encoder.encode(sampleBlock(1)).equals(first));
  });

  test('a string of the reference is a copy, however far back, and whatever surrounds it', () => {
    const reference = words(noise(1_000_000, 3));
    const piece = reference.subarray(1001, 1801);
    const block = Buffer.concat([noise(333, 4), piece, noise(222, 5)]);
    assert.ok(packed(reference, block).length < 333 + 222 + 20);
    assert.ok(packed(EMPTY, block).length > 333 + 222 + 700);
  });

  test('a string of the block is a copy beyond the window of the second pass', () => {
    const piece = noise(2000, 6);
    const block = Buffer.concat([piece, noise(100_000, 7), piece]);
    assert.ok(plainLz4.compress(block).length > block.length);
    const bytes = packed(EMPTY, block);
    assert.ok(bytes.length < block.length - 1500, `${bytes.length} bytes`);
    assert.ok(new TwoPassDecoder(plainLz4, EMPTY).decode(bytes, block.length).equals(block));
  });

  test('a piece that repeats is one copy that overlaps itself', () => {
    const block = Buffer.alloc(100_000, noise(100));
    const bytes = packed(EMPTY, block);
    assert.ok(bytes.length < 250, `${bytes.length} bytes`);
    assert.ok(new TwoPassDecoder(plainLz4, EMPTY).decode(bytes, block.length).equals(block));
  });

  test('no copy is shorter than 32 bytes or crosses from the reference into the block', () => {
    const reference = words(sampleBlock(3));
    const block = Buffer.concat([reference.subarray(-40), sampleBlock(4), reference]);
    let at = reference.length;
    new LongStrings(reference).find(block, {
      copy(anchor, literals, from, length) {
        assert.equal(anchor, at);
        at += literals + length;
        assert.ok(length >= MIN_COPY);
        assert.ok(from < reference.length ? from + length <= reference.length : from < at);
      },
      rest(anchor, literals) {
        assert.equal(anchor, at);
        at += literals;
      },
    });
    assert.equal(at, reference.length + block.length);
  });

  const reference = words(noise(400, 8));
  // a copy in the stream: literals, length - 32, twice the distance from where it is expected
  const malformed: readonly (readonly [what: string, payload: Buffer, size: number])[] = [
    ['nothing', EMPTY, 10],
    ['no second pass', Buffer.of(0, 5), 5],
    ['more literals than bytes', payload([], noise(50)), 49],
    ['fewer literals than bytes', payload([], noise(50)), 51],
    ['literals beyond what is there', payload([51, 0, 0], noise(50)), 83],
    ['a copy beyond the size', payload([50, 100, 0], noise(50)), 100],
    ['literals that are left', payload([10, 0, 0], noise(50)), 81],
    ['a copy that ends early', payload([10, 0], noise(50)), 82],
    ['a copy from before the reference', payload([10, 0, 2 * 11 - 1], noise(50)), 82],
    ['a copy across the end of the reference', payload([10, 0, 2 * (400 - 10 - 31)], noise(50)), 82],
    ['a copy from where nothing is yet', payload([10, 0, 2 * 400], noise(50)), 82],
    ['a length above 2^53', payload([10, 2 ** 53 - 1, 0], noise(50)), 82],
    ['more copies than a block can have', payload([], noise(50), { copiesBytes: 1_000_000 }), 82],
    ['a part longer than what is there', payload([10, 0, 0], noise(50), { literalBytes: 60 }), 92],
  ];
  for (const [what, bytes, size] of malformed) {
    test(`refuse ${what}`, () =>
      assert.throws(() => new TwoPassDecoder(plainLz4, reference).decode(bytes, size), RangeError));
  }

  test('decode the same stream when nothing is wrong with it', () => {
    const literals = noise(50);
    const expected = Buffer.concat([literals.subarray(0, 10), reference.subarray(10, 42), literals.subarray(10)]);
    assert.ok(new TwoPassDecoder(plainLz4, reference).decode(payload([10, 0, 0], literals), 82).equals(expected));
  });

  test('a block of unusual size leaves the decoder as it was', () => {
    const decoder = new TwoPassDecoder(plainLz4, words(sampleBlock(0)));
    const encoder = new TwoPassEncoder(plainLz4, words(sampleBlock(0)));
    for (const block of [Buffer.alloc(3_000_000, 'large'), sampleBlock(1), noise(700_000), sampleBlock(2)]) {
      assert.ok(decoder.decode(encoder.encode(block), block.length).equals(block));
    }
  });
});
