import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Code, INT64_MAX, INT64_MIN, type Int64, int64, int64Bytes } from '../base/index.ts';
import { aggregateInput, checkAggregateInput, checkAggregateState, mergeAggregates } from './aggregate.ts';

const KINDS = ['sum', 'min', 'max'] as const;
const inputs: fc.Arbitrary<Int64> = fc
  .oneof(
    fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
    fc.constantFrom(INT64_MIN, INT64_MAX, 2n ** 53n, -(2n ** 53n), 2n ** 53n - 1n, 0n, -1n),
  )
  .map(int64);

function plain(kind: (typeof KINDS)[number], all: readonly Int64[]): bigint {
  const values = all.map(BigInt);
  if (kind === 'sum')
    return BigInt.asIntN(
      64,
      values.reduce((sum, value) => sum + value, 0n),
    );
  return values.reduce((a, b) => ((kind === 'min') === a < b ? a : b));
}

describe('aggregates', () => {
  test('states merged one by one make the aggregate of the inputs', () => {
    fc.assert(
      fc.property(fc.constantFrom(...KINDS), fc.array(inputs, { minLength: 1, maxLength: 6 }), (kind, all) => {
        const state = all.map((input) => aggregateInput(kind, input)).reduce((a, b) => mergeAggregates(kind, a, b));
        assert.equal(Buffer.from(state).readBigInt64BE(), plain(kind, all));
      }),
    );
  });

  test('the grouping and the order do not matter', () => {
    fc.assert(
      fc.property(fc.constantFrom(...KINDS), inputs, inputs, inputs, (kind, x, y, z) => {
        const [a, b, c] = [x, y, z].map((input) => aggregateInput(kind, input)) as [Uint8Array, Uint8Array, Uint8Array];
        const left = mergeAggregates(kind, mergeAggregates(kind, a, b), c);
        assert.deepEqual(Buffer.from(left), Buffer.from(mergeAggregates(kind, a, mergeAggregates(kind, b, c))));
        assert.deepEqual(Buffer.from(left), Buffer.from(mergeAggregates(kind, mergeAggregates(kind, c, a), b)));
      }),
    );
  });

  test('sums wrap at 64 bits', () => {
    assert.deepEqual(mergeAggregates('sum', int64Bytes(INT64_MAX), int64Bytes(1)), int64Bytes(INT64_MIN));
  });

  test('invalid inputs and states are refused', () => {
    for (const kind of KINDS) {
      assert.throws(() => aggregateInput(kind, Buffer.alloc(8)), { code: Code.INVALID_ARGUMENT });
      assert.throws(() => checkAggregateInput(kind, Buffer.alloc(8)), { code: Code.INVALID_ARGUMENT });
      checkAggregateInput(kind, 5, 'int64');
      for (const size of [0, 7, 9])
        assert.throws(() => checkAggregateState(kind, new Uint8Array(size)), { code: Code.INVALID_ARGUMENT });
      checkAggregateState(kind, new Uint8Array(8));
    }
  });

  test('hll counts inputs of the type that the family names', () => {
    const state = mergeAggregates('hll', aggregateInput('hll', 5), aggregateInput('hll', 6));
    checkAggregateState('hll', state, 'int64');
    assert.throws(() => checkAggregateState('hll', state, 'bytes'), { code: Code.INVALID_ARGUMENT });
    assert.throws(() => checkAggregateState('hll', new Uint8Array(8)), { code: Code.INVALID_ARGUMENT });
    checkAggregateInput('hll', Buffer.from('a'), 'bytes');
    assert.throws(() => checkAggregateInput('hll', 5, 'bytes'), { code: Code.INVALID_ARGUMENT });
  });
});
