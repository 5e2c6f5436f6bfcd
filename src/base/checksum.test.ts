import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { crc32c } from './checksum.ts';

/** Bit by bit, from the definition. */
function slow(bytes: Uint8Array): number {
  let c = 0xffff_ffff;
  for (const byte of bytes) {
    c ^= byte;
    for (let k = 0; k < 8; k++) c = c & 1 ? (c >>> 1) ^ 0x82f6_3b78 : c >>> 1;
  }
  return (c ^ 0xffff_ffff) >>> 0;
}

describe('crc32c', () => {
  test('the vectors of RFC 3720, B.4', () => {
    const counting = Uint8Array.from({ length: 32 }, (_, i) => i);
    assert.equal(crc32c(new Uint8Array(32)), 0x8a91_36aa);
    assert.equal(crc32c(new Uint8Array(32).fill(0xff)), 0x62a8_ab43);
    assert.equal(crc32c(counting), 0x46dd_794e);
    assert.equal(crc32c(counting.slice().reverse()), 0x113f_db5c);
    assert.equal(crc32c(Buffer.from('123456789')), 0xe306_9283);
    assert.equal(crc32c(new Uint8Array(0)), 0);
  });

  test('all lengths and alignments, against the definition', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat({ max: 7 }), (bytes, offset) => {
        const shifted = new Uint8Array(offset + bytes.length);
        shifted.set(bytes, offset);
        assert.equal(crc32c(shifted.subarray(offset)), slow(bytes));
      }),
    );
  });

  test('continues from the checksum of earlier bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat({ max: 40 }), (bytes, cut) => {
        assert.equal(crc32c(bytes.subarray(cut), crc32c(bytes.subarray(0, cut))), crc32c(bytes));
      }),
    );
  });

  test('changes with any one bit', () => {
    const bytes = Buffer.from('a row of bytes, some 40 of them, no more');
    const sum = crc32c(bytes);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3] = flipped[bit >> 3]! ^ (1 << (bit & 7));
      assert.notEqual(crc32c(flipped), sum);
    }
  });
});
