import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code, INT64_MAX, INT64_MIN } from '../base/index.ts';
import { type Limits, LIMITS, type Mutation, type ReadModifyWriteRule, type RowMutations } from '../model/index.ts';
import {
  checkCheckAndMutateRow,
  checkMutateRow,
  checkMutateRows,
  checkReadModifyWriteRow,
  checkReadRanges,
  checkReadRows,
} from './check-data.ts';

const TABLE = 'projects/p/instances/i/tables/t';
const LIMIT: Limits = { ...LIMITS.cloud, rowKeyBytes: 8, qualifierBytes: 4, valueBytes: 6, mutationsPerRequest: 3 };
const SET: Mutation = { kind: 'setCell', family: 'cf', qualifier: 'q', timestamp: 1000, value: Buffer.from('v') };
const DELETE: Mutation = { kind: 'deleteFromRow' };

function refused(check: () => void, message: RegExp): void {
  assert.throws(check, (thrown) => {
    assert.ok(thrown instanceof BigtableError);
    assert.equal(thrown.code, Code.INVALID_ARGUMENT);
    assert.match(thrown.message, message);
    return true;
  });
}

const noFailure = (index: number, error: BigtableError): void => assert.fail(`entry ${index}: ${error.message}`);

/** Asserts that only this entry of the batch fails. */
function failing(index: number, entries: readonly RowMutations[], message: RegExp): void {
  const failures: (readonly [number, BigtableError])[] = [];
  checkMutateRows(TABLE, entries, LIMIT, (at, error) => void failures.push([at, error]));
  assert.deepEqual(
    failures.map(([at, { code }]) => [at, code]),
    [[index, Code.INVALID_ARGUMENT]],
  );
  assert.match(failures[0]?.[1].message ?? '', message);
}

describe('mutations by their form', () => {
  const good: readonly Mutation[] = [
    SET,
    DELETE,
    { kind: 'setCell', family: 'A-z_0.9', qualifier: '', value: new Uint8Array(0) },
    { kind: 'setCell', family: 'cf', qualifier: '\0\xff', timestamp: INT64_MAX, value: Buffer.alloc(6) },
    { kind: 'addToCell', family: 'cf', qualifier: 'q', timestamp: 0, input: INT64_MIN },
    { kind: 'addToCell', family: 'cf', qualifier: 'q', timestamp: 0, input: Buffer.alloc(6) },
    { kind: 'mergeToCell', family: 'cf', qualifier: 'q', timestamp: 0, state: Buffer.alloc(6) },
    { kind: 'deleteFromColumn', family: 'cf', qualifier: 'q' },
    { kind: 'deleteFromColumn', family: 'cf', qualifier: 'q', range: { start: 5, end: 5 } },
    { kind: 'deleteFromColumn', family: 'cf', qualifier: 'q', range: { end: 2n ** 62n } },
    { kind: 'deleteFromFamily', family: 'f'.repeat(64) },
  ];
  for (const mutation of good) {
    test(`${mutation.kind} is taken`, () => checkMutateRow(TABLE, { row: 'r', mutations: [mutation] }, LIMIT));
  }

  const bad: readonly (readonly [string, Mutation, RegExp])[] = [
    ['no family', { ...SET, family: '' }, /column family "" must be 1 to 64/],
    ['a family with a space', { kind: 'deleteFromFamily', family: 'a b' }, /column family "a b"/],
    ['a family with a newline at its end', { ...SET, family: 'cf\n' }, /column family "cf\\x0a"/],
    ['a long family', { ...SET, family: 'f'.repeat(65) }, /1 to 64 characters/],
    ['a long qualifier', { ...SET, qualifier: '12345' }, /qualifier "12345" has 5 bytes; the limit is 4/],
    ['a long qualifier to delete', { kind: 'deleteFromColumn', family: 'cf', qualifier: '12345' }, /qualifier "12345"/],
    ['a large value', { ...SET, value: Buffer.alloc(7) }, /value has 7 bytes; the limit is 6/],
    [
      'a large input',
      { kind: 'addToCell', family: 'cf', qualifier: 'q', timestamp: 0, input: Buffer.alloc(7) },
      /input of an aggregate has 7 bytes/,
    ],
    [
      'a large state',
      { kind: 'mergeToCell', family: 'cf', qualifier: 'q', timestamp: 0, state: Buffer.alloc(7) },
      /state of an aggregate has 7 bytes/,
    ],
    [
      'an input beyond int64',
      { kind: 'addToCell', family: 'cf', qualifier: 'q', timestamp: 0, input: 2n ** 63n },
      /input 9223372036854775808/,
    ],
    ['a timestamp beyond int64', { ...SET, timestamp: 2n ** 63n }, /timestamp 9223372036854775808/],
    ['a timestamp that is not exact', { ...SET, timestamp: 2 ** 53 }, /timestamp 9007199254740992/],
    ['a timestamp with a fraction', { ...SET, timestamp: 1.5 }, /timestamp 1.5/],
    ['a timestamp below 0', { ...SET, timestamp: -1 }, /timestamp -1 must not be below 0/],
    [
      'a range turned around',
      { kind: 'deleteFromColumn', family: 'cf', qualifier: 'q', range: { start: 6, end: 5 } },
      /starts at 6, above its end 5/,
    ],
    [
      'a range below 0',
      { kind: 'deleteFromColumn', family: 'cf', qualifier: 'q', range: { start: -5n } },
      /timestamp -5/,
    ],
    [
      'no mutation at all',
      { kind: 'setRow', family: 'cf', qualifier: 'q' } as unknown as Mutation,
      /unknown mutation "setRow"/,
    ],
  ];
  for (const [what, mutation, message] of bad) {
    test(`${what} is refused`, () => {
      refused(() => checkMutateRow(TABLE, { row: 'r', mutations: [SET, mutation] }, LIMIT), message);
      failing(
        1,
        [
          { row: 'r', mutations: [SET] },
          { row: 'r', mutations: [mutation] },
          { row: 'r', mutations: [SET] },
        ],
        message,
      );
      refused(
        () => checkCheckAndMutateRow({ table: TABLE, row: 'r', whenTrue: [], whenFalse: [mutation] }, LIMIT),
        message,
      );
    });
  }

  test('the limits decide on timestamps below 0', () => {
    checkMutateRow(TABLE, { row: 'r', mutations: [{ ...SET, timestamp: INT64_MIN }] }, LIMITS.default);
    refused(
      () => checkMutateRow(TABLE, { row: 'r', mutations: [{ ...SET, timestamp: INT64_MIN }] }, LIMITS.cloud),
      /must not be below 0/,
    );
  });
});

describe('requests', () => {
  test('table names', () => {
    const bad = [
      't',
      TABLE.slice(1),
      TABLE.slice(0, -1),
      'projects//instances/i/tables/t',
      `${TABLE}/x`,
      'projects/p/instances/i/tables/a b',
      `${TABLE}\n`,
    ];
    for (const name of bad) {
      refused(() => checkMutateRow(name, { row: 'r', mutations: [SET] }, LIMIT), /table (name|id) "/);
    }
    refused(
      () => checkReadRows({ table: `projects/p/instances/i/tables/${'t'.repeat(51)}` }, LIMIT),
      /table id "t+" must be 1 to 50/,
    );
    checkReadRows({ table: `projects/p:q/instances/i/tables/${'t'.repeat(50)}` }, LIMIT);
    checkReadRows({ table: 'projects/p/instances/i/tables/-_.aZ0' }, LIMIT);
  });

  test('row keys', () => {
    refused(() => checkMutateRow(TABLE, { row: '', mutations: [SET] }, LIMIT), /row key must not be empty/);
    refused(
      () => checkMutateRow(TABLE, { row: '123456789', mutations: [SET] }, LIMIT),
      /row key "123456789" has 9 bytes; the limit is 8/,
    );
    checkMutateRow(TABLE, { row: '\xff'.repeat(8), mutations: [SET] }, LIMIT);
    failing(
      1,
      [
        { row: 'r', mutations: [SET] },
        { row: '', mutations: [SET] },
        { row: 's', mutations: [SET] },
      ],
      /row key of entry 1 must not be empty/,
    );
    checkMutateRow(TABLE, { row: 'r'.repeat(65_536), mutations: [SET] }, LIMITS.default);
    refused(
      () => checkMutateRow(TABLE, { row: 'r'.repeat(4097), mutations: [SET] }, LIMITS.cloud),
      /the limit is 4096/,
    );
  });

  test('counts of mutations', () => {
    refused(() => checkMutateRow(TABLE, { row: 'r', mutations: [] }, LIMIT), /at least one mutation/);
    refused(
      () => checkMutateRow(TABLE, { row: 'r', mutations: [SET, SET, SET, SET] }, LIMIT),
      /3 mutations at most; this one has 4/,
    );
    refused(() => checkMutateRows(TABLE, [], LIMIT, noFailure), /at least one entry/);
    failing(
      0,
      [
        { row: 'r', mutations: [] },
        { row: 'r', mutations: [SET] },
      ],
      /entry 0 .* no mutation/,
    );
    checkMutateRows(
      TABLE,
      [
        { row: 'r', mutations: [SET, DELETE] },
        { row: 's', mutations: [SET] },
      ],
      LIMIT,
      noFailure,
    );
    refused(
      () =>
        checkMutateRows(
          TABLE,
          [
            { row: 'r', mutations: [SET, DELETE] },
            { row: 's', mutations: [SET, SET] },
          ],
          LIMIT,
          noFailure,
        ),
      /3 mutations at most/,
    );
    refused(() => checkMutateRows('t', [{ row: 'r', mutations: [SET] }], LIMIT, noFailure), /table name/);
    checkMutateRow(TABLE, { row: 'r', mutations: new Array<Mutation>(100_000).fill(SET) }, LIMITS.cloud);
    refused(
      () => checkMutateRow(TABLE, { row: 'r', mutations: new Array<Mutation>(100_001).fill(SET) }, LIMITS.cloud),
      /100000 mutations at most/,
    );
  });

  test('check-and-mutate needs one list, each within the limit', () => {
    refused(
      () => checkCheckAndMutateRow({ table: TABLE, row: 'r', whenTrue: [], whenFalse: [] }, LIMIT),
      /true or false mutations/,
    );
    checkCheckAndMutateRow({ table: TABLE, row: 'r', whenTrue: [SET, SET, SET], whenFalse: [SET, SET, SET] }, LIMIT);
    refused(
      () => checkCheckAndMutateRow({ table: TABLE, row: 'r', whenTrue: [SET], whenFalse: [SET, SET, SET, SET] }, LIMIT),
      /3 mutations at most/,
    );
    refused(() => checkCheckAndMutateRow({ table: TABLE, row: '', whenTrue: [SET], whenFalse: [] }, LIMIT), /row key/);
    refused(
      () => checkCheckAndMutateRow({ table: 't', row: 'r', whenTrue: [SET], whenFalse: [] }, LIMIT),
      /table name/,
    );
  });

  test('read-modify-write', () => {
    const rule = (
      change: ReadModifyWriteRule['change'],
      more: Partial<ReadModifyWriteRule> = {},
    ): ReadModifyWriteRule => {
      return { family: 'cf', qualifier: 'q', change, ...more };
    };
    const plus = rule({ kind: 'increment', amount: 1 });
    const check = (rules: readonly ReadModifyWriteRule[], row = 'r'): void =>
      checkReadModifyWriteRow(TABLE, row, rules, LIMIT);
    check([
      plus,
      rule({ kind: 'increment', amount: INT64_MIN }),
      rule({ kind: 'append', suffix: Buffer.alloc(6) }, { qualifier: '' }),
    ]);
    refused(() => check([]), /at least one rule/);
    refused(() => check([plus, plus, plus, plus]), /3 mutations at most/);
    refused(() => check([plus], ''), /row key must not be empty/);
    refused(() => check([rule({ kind: 'increment', amount: -(2n ** 63n) - 1n })]), /increment -9223372036854775809/);
    refused(() => check([rule({ kind: 'append', suffix: Buffer.alloc(7) })]), /value to append has 7 bytes/);
    refused(() => check([rule(plus.change, { family: 'c:f' })]), /column family "c:f"/);
    refused(() => check([rule(plus.change, { qualifier: '12345' })]), /qualifier "12345"/);
  });

  test('reads', () => {
    const read = (start: string, end: string | undefined, rowsLimit?: number): void => {
      checkReadRows({ table: TABLE, rowsLimit }, LIMIT);
      checkReadRanges([{ start, end }], LIMIT);
    };
    read('', undefined);
    read('a', 'a');
    read('a', 'b', 0);
    read('a\0', 'a', 5);
    read('12345678\0', '12345678\0');
    refused(() => read('b', 'a'), /starts at "b", above its end "a"/);
    refused(() => read('a\0\0', 'a'), /above its end/);
    refused(() => read('1234567890', undefined), /bound of a row range "1234567890" has 10 bytes; the limit is 8/);
    refused(() => read('', '1234567890'), /bound of a row range/);
    refused(() => read('', undefined, -1), /rows limit -1/);
    refused(() => read('', undefined, 1.5), /rows limit 1.5/);
  });
});
