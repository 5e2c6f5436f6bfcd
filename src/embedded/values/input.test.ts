import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Code } from '../../base/index.ts';
import { columnOf, keyOf, timestampOf, valueOf } from './input.ts';

const invalid = (message: RegExp): object => ({ name: 'BigtableError', code: Code.INVALID_ARGUMENT, message });

describe('timestamps', () => {
  test('are Dates, and microseconds as numbers and bigints', () => {
    const now = 1_700_000_000_000;
    assert.equal(timestampOf(new Date(now)), now * 1000);
    assert.equal(timestampOf(now * 1000), now * 1000);
    assert.equal(timestampOf(BigInt(now) * 1000n), now * 1000);
    assert.equal(timestampOf(2n ** 63n - 1n), 2n ** 63n - 1n);
  });

  test('as numbers that look like milliseconds are refused, as bigints they are taken as microseconds', () => {
    for (const time of [1e12, 1_700_000_000_000, 1e13 - 1, -1e12, 1 - 1e13]) {
      assert.throws(
        () => timestampOf(time, 'since'),
        invalid(/^since must be microseconds since 1970, and -?\d+ looks like the milliseconds/),
      );
      assert.equal(timestampOf(BigInt(time)), time);
      assert.equal(BigInt(timestampOf(new Date(time))), BigInt(time) * 1000n);
    }
    for (const time of [0, 1000, -1000, 1e12 - 1, 1e13, 1 - 1e12, -1e13]) assert.equal(timestampOf(time), time);
  });

  test('of other kinds are refused', () => {
    for (const wrong of [undefined, null, '2026-01-01', 1.5, Number.NaN, new Date(Number.NaN), 2n ** 63n, {}]) {
      assert.throws(
        () => timestampOf(wrong as never),
        invalid(/must be microseconds as a whole number, a bigint within int64, or a Date/),
      );
    }
  });
});

test('keys, columns and values of the wrong kind are named', () => {
  assert.throws(() => keyOf(5 as never, 'a row key'), invalid(/^a row key must be text or bytes, not number 5$/));
  assert.throws(
    () => columnOf(undefined as never),
    invalid(/column must be "family:qualifier" or \{ family, qualifier \}, not undefined/),
  );
  assert.throws(() => columnOf({ family: 5, qualifier: 'q' } as never), invalid(/a family must be text, not number 5/));
  assert.throws(() => columnOf('f'), invalid(/"f" must be written family:qualifier/));
  assert.throws(
    () => valueOf(42 as never),
    invalid(/a value must be text, bytes or an int64 as bigint, not number 42/),
  );
});
