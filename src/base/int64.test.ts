import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  addWrapping,
  INT64_MAX,
  INT64_MIN,
  type Int64,
  int64,
  int64Bytes,
  isInt64,
  readInt64BE,
  toBigInt,
  writeInt64BE,
} from './int64.ts';

const SAFE = 2n ** 53n - 1n;
/** Both ends of int64, both sides of where numbers end, of 32 bits, and of 0. */
const EDGES: readonly bigint[] = [0n, 2n ** 31n, 2n ** 32n, SAFE, 2n ** 62n, INT64_MAX]
  .flatMap((edge) => [edge - 2n, edge - 1n, edge, edge + 1n, edge + 2n].flatMap((value) => [value, -value]))
  .concat(INT64_MIN, INT64_MIN + 1n)
  .filter((value) => value >= INT64_MIN && value <= INT64_MAX);
const values = fc.oneof(
  fc.constantFrom(...EDGES),
  fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
  fc.bigInt({ min: -SAFE, max: SAFE }),
);

describe('the canonical form', () => {
  test('is a number where that is exact, else a bigint', () => {
    for (const value of EDGES) {
      const form = int64(value);
      assert.equal(typeof form, value >= -SAFE && value <= SAFE ? 'number' : 'bigint', `${value}`);
      assert.equal(BigInt(form), value);
      assert.equal(toBigInt(form), value);
      assert.equal(isInt64(form), true);
    }
    assert.equal(int64(5), 5);
  });

  test('compares as the values do', () => {
    fc.assert(
      fc.property(values, values, (a, b) => {
        assert.equal(int64(a) < int64(b), a < b);
        assert.equal(int64(a) === int64(b), a === b);
      }),
    );
  });

  test('isInt64 accepts exact int64 values and nothing else', () => {
    for (const good of [0, -1, 2 ** 53 - 1, -(2 ** 53) + 1, 0n, INT64_MIN, INT64_MAX])
      assert.equal(isInt64(good), true, String(good));
    for (const bad of [
      2 ** 53,
      -(2 ** 53),
      0.5,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      INT64_MAX + 1n,
      INT64_MIN - 1n,
      '1',
      null,
      undefined,
      {},
    ]) {
      assert.equal(isInt64(bad), false, String(bad));
    }
  });
});

describe('eight bytes, big-endian', () => {
  test('every value comes back in its canonical form', () => {
    const check = (value: bigint): void => {
      const want = Buffer.alloc(8);
      want.writeBigInt64BE(value);
      assert.deepEqual(int64Bytes(int64(value)), want, `${value}`);
      assert.equal(readInt64BE(want, 0), int64(value));
    };
    EDGES.forEach(check);
    fc.assert(fc.property(values, check));
  });

  test('a bigint that a number could hold is written alike', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -SAFE, max: SAFE }), (value) =>
        assert.deepEqual(int64Bytes(value), int64Bytes(Number(value))),
      ),
    );
  });

  test('at an offset, without changing other bytes', () => {
    const bytes = Buffer.alloc(10, 0xaa);
    writeInt64BE(bytes, 1, -2);
    assert.equal(bytes.toString('hex'), 'aafffffffffffffffeaa');
    assert.equal(readInt64BE(bytes, 1), -2);
  });
});

describe('addWrapping', () => {
  test('is addition modulo 2^64', () => {
    const check = (a: bigint, b: bigint): void =>
      assert.equal(addWrapping(int64(a), int64(b)), int64(BigInt.asIntN(64, a + b)), `${a} + ${b}`);
    for (const a of EDGES) for (const b of EDGES) check(a, b);
    fc.assert(fc.property(values, values, check));
  });

  test('wraps at both ends and crosses where numbers end', () => {
    const cases: readonly (readonly [Int64, Int64, Int64])[] = [
      [INT64_MAX, 1, INT64_MIN],
      [INT64_MIN, -1, INT64_MAX],
      [2 ** 53 - 1, 1, 2n ** 53n],
      [2n ** 53n, -1, 2 ** 53 - 1],
      [-(2 ** 53) + 1, -1, -(2n ** 53n)],
      [INT64_MIN, INT64_MIN, 0],
    ];
    for (const [a, b, sum] of cases) assert.equal(addWrapping(a, b), sum);
  });
});
