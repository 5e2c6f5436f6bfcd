import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { crc32c } from '../../base/index.ts';
import { decodeRecord, encodeRecord, PIECES, RECORD_BYTES } from './index-record.ts';

const word = fc.nat(0xffff_ffff);
const words = (count: number): fc.Arbitrary<Uint32Array> =>
  fc.array(word, { minLength: count, maxLength: count }).map((values) => Uint32Array.from(values));
const record = fc.record(
  {
    file: words(4),
    chunk: word,
    lengthBytes: fc.integer({ min: 1, max: 0xffff_ffff }),
    sums: words(PIECES),
  },
  { noNullPrototype: true },
);

describe('records of a read cache', () => {
  test('a record reads back as it was written', () => {
    fc.assert(
      fc.property(record, word, (written, slot) => {
        assert.deepEqual(decodeRecord(slot, encodeRecord(slot, written, crc32c), crc32c), written);
      }),
    );
  });

  test('a record with a changed bit, or of another slot, is none', () => {
    fc.assert(
      fc.property(record, fc.nat(1000), fc.nat(RECORD_BYTES * 8 - 1), (written, slot, bit) => {
        const bytes = encodeRecord(slot, written, crc32c);
        assert.equal(decodeRecord(slot + 1, bytes, crc32c), undefined);
        bytes[bit >> 3]! ^= 1 << (bit & 7);
        assert.equal(decodeRecord(slot, bytes, crc32c), undefined);
      }),
    );
  });

  test('zeros are no record', () => {
    assert.equal(decodeRecord(0, Buffer.alloc(RECORD_BYTES), crc32c), undefined);
  });
});
