import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { VarintReader, varintLength, writeVarint } from './varint.ts';

const MAX = Number.MAX_SAFE_INTEGER;
const EDGES = [
  0,
  1,
  127,
  128,
  16_383,
  16_384,
  2 ** 21 - 1,
  2 ** 21,
  2 ** 31,
  2 ** 32 - 1,
  2 ** 32,
  2 ** 49 - 1,
  2 ** 49,
  MAX - 1,
  MAX,
];
const values = fc.oneof(fc.constantFrom(...EDGES), fc.nat(), fc.maxSafeNat());

function encoded(...all: number[]): Buffer {
  const bytes = Buffer.alloc(all.length * 8);
  let end = 0;
  for (const value of all) end = writeVarint(bytes, end, value);
  return bytes.subarray(0, end);
}

describe('varints', () => {
  test('known bytes', () => {
    for (const [value, hex] of [
      [0, '00'],
      [1, '01'],
      [127, '7f'],
      [128, '8001'],
      [300, 'ac02'],
      [2 ** 32, '8080808010'],
      [MAX, 'ffffffffffffff0f'],
    ] as const) {
      assert.equal(encoded(value).toString('hex'), hex);
    }
  });

  test('are read one after another, at the computed length', () => {
    fc.assert(
      fc.property(fc.array(values), (all) => {
        const bytes = encoded(...all);
        assert.equal(
          bytes.length,
          all.reduce((sum, value) => sum + varintLength(value), 0),
        );
        const reader = new VarintReader(bytes);
        assert.deepEqual(
          all.map(() => reader.next()),
          all,
        );
        assert.equal(reader.offset, bytes.length);
      }),
    );
  });

  test('from an offset on', () => {
    const reader = new VarintReader(Buffer.from([0xff, 0xac, 0x02, 5]), 1);
    assert.equal(reader.next(), 300);
    assert.equal(reader.next(), 5);
  });

  test('cut short: the reader says so and stays where it was', () => {
    for (const value of EDGES) {
      const bytes = encoded(value);
      for (let length = 0; length < bytes.length; length++) {
        const reader = new VarintReader(bytes.subarray(0, length));
        assert.throws(() => reader.next(), { name: 'RangeError', message: /past the end/ });
        assert.equal(reader.offset, 0);
      }
    }
  });

  test('too large: 2^53 and above, and more than eight bytes', () => {
    for (const hex of [
      '8080808080808010',
      'ffffffffffffff1f',
      'ffffffffffffff7f',
      'ffffffffffffffff01',
      '808080808080808000',
    ]) {
      assert.throws(
        () => new VarintReader(Buffer.from(hex, 'hex')).next(),
        { name: 'RangeError', message: /too large/ },
        hex,
      );
    }
  });
});
