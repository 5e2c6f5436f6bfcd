import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Code, type Int64 } from '../../base/index.ts';
import { CellBatchBuilder, type CellRun, type Mutation, setCell } from '../../model/index.ts';
import {
  byteString,
  bytes,
  integer,
  listOf,
  type MessageCodec,
  oneOf,
  present,
  required,
  text,
} from '../../protobuf/index.ts';
import { mutation } from './model-messages.ts';
import { MutationsCodec } from './set-cells.ts';

type Some = Extract<Mutation, { kind: 'setCell' | 'deleteFromFamily' | 'deleteFromRow' }>;

/** The same messages, all of fields. */
const BY_FIELDS: MessageCodec<readonly Some[]> = listOf(
  'Mutations',
  oneOf<Some>('Mutation', {
    setCell: [
      1,
      {
        family: required(1, text),
        qualifier: required(2, byteString),
        timestamp: present(3, integer),
        value: required(4, bytes),
      },
    ],
    deleteFromFamily: [5, { family: required(1, text) }],
    deleteFromRow: [6, {}],
  }),
);
const MUTATIONS = new MutationsCodec(mutation);

const family = fc.oneof(fc.constantFrom('f', 'g'), fc.string({ unit: 'binary', maxLength: 40 }));
const qualifier = fc.oneof(
  fc.constantFrom('', 'q'),
  fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)), maxLength: 40 }),
);
const timestamp: fc.Arbitrary<Int64 | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.maxSafeInteger(),
  fc.bigInt({ min: 2n ** 53n, max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -(2n ** 63n), max: -(2n ** 53n) }),
);
const value = fc.tuple(fc.oneof(fc.nat(5), fc.constantFrom(126, 127, 128, 16_383, 20_000)), fc.nat(255));
const cell = fc
  .tuple(family, qualifier, timestamp, value)
  .map(([name, column, at, [length, fill]]) => setCell(wellFormed(name), column, at, Buffer.alloc(length, fill)));
const other = fc.oneof(
  family.map((name): Some => ({ kind: 'deleteFromFamily', family: wellFormed(name) })),
  fc.constant<Some>({ kind: 'deleteFromRow' }),
);
const cells = fc.array(cell, { maxLength: 40, size: 'max' });

function wellFormed(name: string): string {
  return Buffer.from(name, 'utf8').toString('utf8');
}

function runOf(list: readonly ReturnType<typeof setCell>[]): CellRun {
  const brought: Buffer[] = [];
  const positions: number[][] = [];
  let at = 0;
  for (const { family: name, qualifier: column, value: given } of list) {
    const parts = [Buffer.from(name, 'utf8'), Buffer.from(column, 'latin1'), given];
    positions.push([at, ...parts.map((part) => (at += part.length))]);
    brought.push(...(parts as Buffer[]));
  }
  const builder = new CellBatchBuilder(Buffer.concat(brought));
  for (const [i, { family: name, timestamp: micros }] of list.entries()) {
    const [from, middle, begin, end] = positions[i] as [number, number, number, number];
    if (!builder.toColumn(from, middle, middle, begin)) builder.addColumn(name, middle);
    builder.add(micros, begin, end);
  }
  return builder.runFrom(0);
}

function last<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

describe('mutations written and read by hand', () => {
  test('are the bytes that fields make of them, from objects and from a run, in one step and in many', () => {
    fc.assert(
      fc.property(cells, (list) => {
        const expected = BY_FIELDS.encode(list);
        for (const form of [list, runOf(list)]) {
          assert.ok(MUTATIONS.encode(form).equals(expected));
          assert.ok(last(MUTATIONS.encodeInSteps(form)).equals(expected));
        }
        assert.deepStrictEqual(MUTATIONS.decode(expected), list);
        assert.deepStrictEqual(last(MUTATIONS.decodeInSteps(expected)), list);
      }),
    );
  });

  test('are the same among other mutations', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(cell, other), { maxLength: 10 }), (list) => {
        const expected = BY_FIELDS.encode(list);
        assert.ok(MUTATIONS.encode(list).equals(expected));
        assert.deepStrictEqual(MUTATIONS.decode(expected), list);
      }),
    );
  });

  test('lack none of their fields', () => {
    const whole = BY_FIELDS.encode([setCell('f', 'q', undefined, Buffer.of(1))]);
    for (const [field, name] of [
      [1, 'family'],
      [2, 'qualifier'],
      [4, 'value'],
    ] as const) {
      // an unknown field in its place
      const tag = whole.indexOf(field * 8 + 2, 4);
      const lacking = Buffer.from(whole);
      lacking[tag] = 15 * 8 + 2;
      assert.throws(() => MUTATIONS.decode(lacking), {
        code: Code.INVALID_ARGUMENT,
        message: `invalid protobuf message: MutationSetCell lacks its field ${name}`,
      });
    }
  });
});
