import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { nativeCodecs } from '../platform/index.ts';
import { anyBlock, noise } from './fixtures.ts';
import { plainLz4 } from './lz4.ts';

const CODECS = nativeCodecs();
const PAIRS = [
  ['plain to plain', plainLz4, plainLz4],
  ['plain to native', plainLz4, CODECS.lz4],
  ['native to plain', CODECS.lz4, plainLz4],
] as const;

describe('plainLz4', () => {
  for (const [name, writer, reader] of PAIRS) {
    test(`returns the input: ${name}`, () => {
      fc.assert(
        fc.property(anyBlock, (block) => {
          assert.ok(reader.decompress(writer.compress(block), block.length).equals(block));
        }),
        { numRuns: 25 },
      );
      for (const length of [
        0, 1, 4, 5, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 255, 269, 270, 271, 65_535, 65_536, 65_537, 200_000,
      ]) {
        for (const block of [Buffer.alloc(length), Buffer.alloc(length, 'abcde'), noise(length)]) {
          assert.ok(reader.decompress(writer.compress(block), length).equals(block), `${length} bytes`);
        }
      }
    });
  }

  test('shrinks text about as much as the native one', () => {
    const block = Buffer.from(
      Array.from({ length: 3000 }, (_, i) => `line ${(i * 7919) % 1000} of the text\n`).join(''),
    );
    assert.ok(plainLz4.compress(block).length < CODECS.lz4.compress(block).length * 1.1);
  });

  test('a match may be 65,535 bytes back and no further', () => {
    const piece = noise(64);
    for (const [distance, found] of [
      [65_535, true],
      [65_536, false],
    ] as const) {
      const block = Buffer.concat([piece, Buffer.alloc(distance - piece.length, 'a'), piece, Buffer.alloc(12, 'b')]);
      const packed = plainLz4.compress(block);
      // the piece, a byte for every 255 that repeat, and, if it is too far back, the piece again
      assert.equal(packed.length < 64 + 257 + 40, found, `${distance} back: ${packed.length} bytes`);
      assert.ok(CODECS.lz4.decompress(packed, block.length).equals(block));
    }
  });

  const malformed: readonly (readonly [what: string, bytes: string, size: number])[] = [
    ['nothing', '', 0],
    ['literals that are not there', '50 61 62', 5],
    ['a literal length without its end', 'f0 ff ff', 600],
    ['more literals than the size', '50 61 62 63 64 65', 4],
    ['fewer bytes than the size', '50 61 62 63 64 65', 6],
    ['half an offset', '10 61 01', 5],
    ['offset 0', '10 61 00 00 00', 5],
    ['an offset before the beginning', '10 61 02 00 00', 5],
    ['a match beyond the size', '1f 61 01 00 ff 00 00', 100],
    ['a match and no last literals', '10 61 01 00', 5],
    ['a size that so few bytes cannot have', '10 61', 1_000_000_000],
  ];
  for (const [what, hex, size] of malformed) {
    test(`refuses ${what}`, () => {
      const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex');
      assert.throws(() => plainLz4.decompress(bytes, size), RangeError);
      assert.throws(() => CODECS.lz4.decompress(bytes, size), RangeError);
    });
  }
});
