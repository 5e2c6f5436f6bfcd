import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { INT64_MAX, INT64_MIN, int64 } from '../../base/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import {
  type RowFilter as RowFilterMessage,
  RowFilterSchema,
  TimestampRangeSchema,
} from '../generated/google/bigtable/v2/data_pb.ts';
import { filterMessage, filterOf, timestampRangeMessage, timestampRangeOf } from './filter.ts';
import { rowFilter, simpleFilters } from './fixtures.ts';

/** Over the bytes, as a client and a server would. */
function roundTrip(filter: RowFilter): RowFilter | undefined {
  return filterOf(fromBinary(RowFilterSchema, toBinary(RowFilterSchema, filterMessage(filter))));
}

const invalid = { code: 3 };

/** The filters in a composite one that have nothing set. */
function unsetIn({ filter }: RowFilterMessage): RowFilterMessage[] {
  const { predicateFilter, trueFilter, falseFilter } = filter.case === 'condition' ? filter.value : {};
  const parts =
    filter.case === 'chain' || filter.case === 'interleave'
      ? filter.value.filters
      : [predicateFilter, trueFilter, falseFilter];
  return parts.filter((part) => part !== undefined).filter((part) => part.filter.case === undefined);
}

describe('filters', () => {
  test('every filter comes back as it was', () => {
    fc.assert(
      fc.property(rowFilter, (filter) => assert.deepEqual(roundTrip(filter), filter)),
      { numRuns: 300 },
    );
  });

  test('each of the twenty kinds comes back, and all are tried', () => {
    const seen = new Set<string>();
    const pass: RowFilter = { kind: 'passAll' };
    const composite: RowFilter[] = [
      { kind: 'chain', filters: [pass, { kind: 'stripValue' }] },
      { kind: 'interleave', filters: [pass, { kind: 'blockAll' }] },
      { kind: 'condition', predicate: pass, whenTrue: { kind: 'sink' }, whenFalse: undefined },
      { kind: 'condition', predicate: pass, whenTrue: undefined, whenFalse: pass },
    ];
    for (const filter of [...simpleFilters.flatMap((kind) => fc.sample(kind, { numRuns: 5, seed: 1 })), ...composite]) {
      seen.add(filter.kind);
      assert.deepEqual(roundTrip(filter), filter);
    }
    assert.equal(seen.size, RowFilterSchema.oneofs[0]?.fields.length);
    assert.equal(seen.size, 20);
  });

  test('nothing set is no filter; a kind from the future is refused', () => {
    assert.equal(filterOf(undefined), undefined);
    assert.equal(filterOf(create(RowFilterSchema)), undefined);
    const future = fromBinary(RowFilterSchema, Buffer.from([((99 << 3) & 0x7f) | 0x80, 0x06, 0x01]));
    assert.equal(future.$unknown?.length, 1);
    assert.throws(() => filterOf(future), invalid);
  });

  const pass: RowFilter = { kind: 'passAll' };
  const nested: readonly [string, Parameters<typeof create<typeof RowFilterSchema>>[1], RowFilter][] = [
    ['a chain', { filter: { case: 'chain', value: { filters: [{}, {}] } } }, { kind: 'chain', filters: [pass, pass] }],
    [
      'an interleave',
      { filter: { case: 'interleave', value: { filters: [{ filter: { case: 'sink', value: true } }, {}] } } },
      { kind: 'interleave', filters: [{ kind: 'sink' }, pass] },
    ],
    [
      'a predicate',
      { filter: { case: 'condition', value: { predicateFilter: {} } } },
      { kind: 'condition', predicate: pass, whenTrue: undefined, whenFalse: undefined },
    ],
    [
      'the branches of a condition',
      { filter: { case: 'condition', value: { predicateFilter: {}, trueFilter: {}, falseFilter: {} } } },
      { kind: 'condition', predicate: pass, whenTrue: pass, whenFalse: pass },
    ],
  ];
  for (const [where, init, expected] of nested) {
    test(`nothing set passes all cells in ${where}, too; a kind from the future is refused there`, () => {
      const bytes = toBinary(RowFilterSchema, create(RowFilterSchema, init));
      assert.deepEqual(filterOf(fromBinary(RowFilterSchema, bytes)), expected);
      const message = fromBinary(RowFilterSchema, bytes);
      for (const part of unsetIn(message)) part.$unknown = [{ no: 99, wireType: 0, data: Buffer.of(1) }];
      const future = fromBinary(RowFilterSchema, toBinary(RowFilterSchema, message));
      assert.throws(() => filterOf(future), {
        ...invalid,
        message: /none of the twenty kinds known here: it has the field 99/,
      });
    });
  }

  const broken: readonly [string, Parameters<typeof create<typeof RowFilterSchema>>[1]][] = [
    ['pass_all false', { filter: { case: 'passAllFilter', value: false } }],
    ['block_all false', { filter: { case: 'blockAllFilter', value: false } }],
    ['sink false', { filter: { case: 'sink', value: false } }],
    ['strip_value false', { filter: { case: 'stripValueTransformer', value: false } }],
    ['a condition without predicate', { filter: { case: 'condition', value: {} } }],
  ];
  for (const [name, init] of broken) {
    test(`${name} is INVALID_ARGUMENT`, () =>
      assert.throws(() => filterOf(create(RowFilterSchema, init) as RowFilterMessage), invalid));
  }

  test('a time range has start 0 where it is left out, and an end of 0 is no end', () => {
    assert.deepEqual(timestampRangeOf(create(TimestampRangeSchema)), { start: 0, end: undefined });
    assert.deepEqual(
      timestampRangeOf(
        create(TimestampRangeSchema, { startTimestampMicros: INT64_MIN, endTimestampMicros: INT64_MAX }),
      ),
      {
        start: int64(INT64_MIN),
        end: int64(INT64_MAX),
      },
    );
    assert.equal(timestampRangeMessage({}).startTimestampMicros, INT64_MIN);
    assert.equal(timestampRangeMessage({}).endTimestampMicros, 0n);
    assert.throws(() => timestampRangeMessage({ end: 0 }), invalid);
  });
});
