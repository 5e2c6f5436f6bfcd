import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import type { Mutation, ReadModifyWriteRule } from '../../model/index.ts';
import {
  type Mutation as MutationMessage,
  MutationSchema,
  ReadModifyWriteRuleSchema,
} from '../generated/google/bigtable/v2/data_pb.ts';
import { mutation, rule } from './fixtures.ts';
import { mutationMessage, mutationOf, ruleMessage, ruleOf } from './mutation.ts';

type Init = Parameters<typeof create<typeof MutationSchema>>[1];

function roundTrip(given: Mutation): Mutation {
  return mutationOf(fromBinary(MutationSchema, toBinary(MutationSchema, mutationMessage(given))));
}

const aggregate = {
  familyName: 'cf',
  columnQualifier: { kind: { case: 'rawValue', value: Buffer.from('q') } },
  timestamp: { kind: { case: 'rawTimestampMicros', value: 7n } },
} as const;

describe('mutations', () => {
  test('every mutation comes back as it was', () => {
    fc.assert(
      fc.property(mutation, (given) => assert.deepEqual(normal(roundTrip(given)), normal(given))),
      { numRuns: 300 },
    );
  });

  test('every rule comes back as it was', () => {
    const back = (given: ReadModifyWriteRule) =>
      ruleOf(fromBinary(ReadModifyWriteRuleSchema, toBinary(ReadModifyWriteRuleSchema, ruleMessage(given))));
    fc.assert(fc.property(rule, (given) => assert.deepEqual(normal(back(given)), normal(given))));
  });

  test("-1 is the server's time in a set-cell, both ways", () => {
    const set = { kind: 'setCell', family: 'cf', qualifier: 'q', value: Buffer.from('v') } as const;
    assert.equal(
      (mutationMessage({ ...set, timestamp: undefined }).mutation.value as { timestampMicros: bigint }).timestampMicros,
      -1n,
    );
    assert.equal((roundTrip({ ...set, timestamp: undefined }) as { timestamp?: unknown }).timestamp, undefined);
    assert.throws(() => mutationMessage({ ...set, timestamp: -1 }), { code: 3 });
    assert.equal(
      (mutationOf(create(MutationSchema, { mutation: { case: 'setCell', value: {} } })) as { timestamp?: unknown })
        .timestamp,
      0,
    );
  });

  test('a deletion without any bound of time deletes all versions', () => {
    const message = mutationMessage({ kind: 'deleteFromColumn', family: 'cf', qualifier: 'q', range: {} });
    assert.equal((message.mutation.value as { timeRange?: unknown }).timeRange, undefined);
  });

  test('aggregates take every form of Value that the API knows for them', () => {
    const inputs = [
      [{ case: 'intValue', value: 5n }, 5],
      [{ case: 'rawValue', value: Buffer.from('raw') }, Buffer.from('raw')],
      [{ case: 'bytesValue', value: Buffer.from('bytes') }, Buffer.from('bytes')],
      [{ case: 'stringValue', value: 'text' }, Buffer.from('text')],
    ] as const;
    for (const [kind, expected] of inputs) {
      const made = mutationOf(
        create(MutationSchema, { mutation: { case: 'addToCell', value: { ...aggregate, input: { kind } } } }),
      );
      assert.deepEqual(made, { kind: 'addToCell', family: 'cf', qualifier: 'q', timestamp: 7, input: expected });
    }
    const at = {
      ...aggregate,
      timestamp: { kind: { case: 'timestampValue', value: { seconds: 3n, nanos: 4999 } } },
      input: { kind: { case: 'rawValue', value: Buffer.from('s') } },
    } as const;
    const merged = mutationOf(create(MutationSchema, { mutation: { case: 'mergeToCell', value: at } }));
    assert.deepEqual(merged, {
      kind: 'mergeToCell',
      family: 'cf',
      qualifier: 'q',
      timestamp: 3_000_004,
      state: Buffer.from('s'),
    });
  });

  test('a merge of NULL is one whose Value has no kind set, or which has no Value', () => {
    const merge = (input: object): Mutation =>
      mutationOf(
        fromBinary(
          MutationSchema,
          toBinary(
            MutationSchema,
            create(MutationSchema, { mutation: { case: 'mergeToCell', value: { ...aggregate, ...input } } }),
          ),
        ),
      );
    for (const input of [{}, { input: {} }, { input: { type: { kind: { case: 'bytesType', value: {} } } } }] as const) {
      assert.deepEqual(merge(input), {
        kind: 'mergeToCell',
        family: 'cf',
        qualifier: 'q',
        timestamp: 7,
        state: undefined,
      });
    }
    assert.deepEqual(
      (merge({ input: { kind: { case: 'rawValue', value: Buffer.alloc(0) } } }) as { state: Uint8Array }).state.length,
      0,
      'no bytes are not NULL',
    );
    const future = create(MutationSchema, { mutation: { case: 'mergeToCell', value: { ...aggregate, input: {} } } });
    if (future.mutation.case === 'mergeToCell' && future.mutation.value.input)
      future.mutation.value.input.$unknown = [{ no: 99, wireType: 0, data: Buffer.of(1) }];
    assert.throws(() => mutationOf(fromBinary(MutationSchema, toBinary(MutationSchema, future))), {
      code: 3,
      message: /raw_value of bytes, or NULL/,
    });
  });

  const range = (start: bigint, end: bigint): Init => ({
    mutation: {
      case: 'deleteFromColumn',
      value: { familyName: 'cf', timeRange: { startTimestampMicros: start, endTimestampMicros: end } },
    },
  });
  const broken: readonly [string, Init][] = [
    ['nothing set', {}],
    ['a time range that is empty', range(5n, 5n)],
    ['a time range that runs backwards', range(6000n, 5000n)],
    ['an aggregate without column', { mutation: { case: 'addToCell', value: { familyName: 'cf' } } }],
    [
      'an aggregate whose column is a number',
      {
        mutation: {
          case: 'addToCell',
          value: { ...aggregate, columnQualifier: { kind: { case: 'intValue', value: 1n } } },
        },
      },
    ],
    [
      'an aggregate without timestamp',
      { mutation: { case: 'addToCell', value: { columnQualifier: aggregate.columnQualifier } } },
    ],
    ['an aggregate without input', { mutation: { case: 'addToCell', value: aggregate } }],
    [
      'an aggregate with a boolean',
      { mutation: { case: 'addToCell', value: { ...aggregate, input: { kind: { case: 'boolValue', value: true } } } } },
    ],
    [
      'a merge of a number',
      { mutation: { case: 'mergeToCell', value: { ...aggregate, input: { kind: { case: 'intValue', value: 1n } } } } },
    ],
  ];
  for (const [name, init] of broken) {
    test(`${name} is INVALID_ARGUMENT`, () =>
      assert.throws(() => mutationOf(create(MutationSchema, init) as MutationMessage), { code: 3 }));
  }

  test('a rule without a change is INVALID_ARGUMENT', () => {
    assert.throws(() => ruleOf(create(ReadModifyWriteRuleSchema, { familyName: 'cf' })), { code: 3, message: /"cf"/ });
  });
});

/** Bytes compare by what they hold, not by whether they are Buffers. */
function normal(given: unknown): unknown {
  return JSON.parse(
    JSON.stringify(given, (_name, each) =>
      typeof each === 'bigint'
        ? `${each}n`
        : each?.type === 'Buffer'
          ? Buffer.from(each.data).toString('hex')
          : ArrayBuffer.isView(each)
            ? Buffer.from(each as Uint8Array).toString('hex')
            : each,
    ),
  );
}
