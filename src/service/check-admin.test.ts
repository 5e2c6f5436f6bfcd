import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import { type GcRule, LIMITS } from '../model/index.ts';
import { checkDropRowRange, checkGcRule, checkModifyFamilies, checkNewTable } from './check-admin.ts';
import type { NewTable } from './service.ts';

const LIMIT = LIMITS.cloud;
const NAME = 'projects/p/instances/i/tables/t';
const TABLE: NewTable = {
  name: NAME,
  families: [{ name: 'cf' }],
  splits: ['m'],
  granularity: 'millis',
  deletionProtection: false,
};

function refused(check: () => void, message: RegExp): void {
  assert.throws(check, (thrown) => {
    assert.ok(thrown instanceof BigtableError);
    assert.equal(thrown.code, Code.INVALID_ARGUMENT);
    assert.match(thrown.message, message);
    return true;
  });
}

describe('GC rules', () => {
  const versions = (n: number): GcRule => ({ kind: 'maxVersions', versions: n });
  const age = (ageMicros: number): GcRule => ({ kind: 'maxAge', ageMicros });

  test('taken', () => {
    for (const rule of [versions(1), versions(2 ** 31 - 1), age(1000), age(1001), age(Number.MAX_SAFE_INTEGER)])
      checkGcRule(rule, LIMIT);
    checkGcRule(
      { kind: 'union', rules: [versions(3), { kind: 'intersection', rules: [age(5e6), versions(1)] }] },
      LIMIT,
    );
    checkGcRule({ kind: 'union', rules: [] }, LIMIT);
  });

  test('refused, inside others too', () => {
    const bad: readonly (readonly [GcRule, RegExp])[] = [
      [versions(0), /1 to 2147483647 versions, not 0/],
      [versions(-1), /not -1/],
      [versions(1.5), /not 1.5/],
      [versions(2 ** 31), /not 2147483648/],
      [age(999), /a millisecond .* not 999/],
      [age(0), /not 0/],
      [age(Number.NaN), /not NaN/],
      [{ kind: 'forever' } as unknown as GcRule, /unknown GC rule "forever"/],
    ];
    for (const [rule, message] of bad) {
      refused(() => checkGcRule(rule, LIMIT), message);
      refused(
        () => checkGcRule({ kind: 'union', rules: [versions(1), { kind: 'intersection', rules: [rule] }] }, LIMIT),
        message,
      );
    }
  });

  test('sizes are those of the serialized message', () => {
    // google.bigtable.admin.v2.GcRule: max_num_versions = 1 (int32), max_age = 2 (seconds = 1, nanos = 2), intersection
    // = 3, union = 4 (rules = 1)
    const sizes: readonly (readonly [GcRule, number])[] = [
      [versions(1), 2],
      [versions(128), 3],
      [age(1_000_000), 4],
      [age(1000), 6],
      [age(128_000_000), 5],
      [age(1_500_000), 2 + 2 + 6],
      [{ kind: 'union', rules: [versions(1), versions(2)] }, 2 + 4 + 4],
    ];
    for (const [rule, size] of sizes) {
      checkGcRule(rule, { ...LIMIT, gcRuleBytes: size });
      refused(() => checkGcRule(rule, { ...LIMIT, gcRuleBytes: size - 1 }), /the limit is|nested too deep/);
    }
  });

  test('deep nests are refused before the stack overflows', () => {
    let rule: GcRule = versions(1);
    for (let i = 0; i < 100_000; i++) rule = { kind: 'union', rules: [rule] };
    refused(() => checkGcRule(rule, LIMIT), /nested too deep/);
  });
});

describe('tables', () => {
  test('taken', () => {
    checkNewTable(TABLE, LIMIT);
    checkNewTable({ ...TABLE, families: [], splits: [], granularity: 'micros' }, LIMIT);
  });

  test('refused', () => {
    refused(() => checkNewTable({ ...TABLE, name: 't' }, LIMIT), /table name "t"/);
    refused(
      () => checkNewTable({ ...TABLE, families: [{ name: 'cf' }, { name: 'cf' }] }, LIMIT),
      /"cf" is given twice/,
    );
    refused(() => checkNewTable({ ...TABLE, families: [{ name: 'c f' }] }, LIMIT), /column family "c f"/);
    refused(
      () =>
        checkNewTable({ ...TABLE, families: [{ name: 'cf', gcRule: { kind: 'maxVersions', versions: 0 } }] }, LIMIT),
      /versions, not 0/,
    );
    refused(() => checkNewTable({ ...TABLE, splits: ['a', ''] }, LIMIT), /row to split at must not be empty/);
    refused(() => checkNewTable({ ...TABLE, splits: ['a'.repeat(4097)] }, LIMIT), /row to split at .* has 4097 bytes/);
    refused(() => checkNewTable({ ...TABLE, granularity: 'nanos' as 'micros' }, LIMIT), /granularity "nanos"/);
  });

  test('changes of families', () => {
    const check = (...changes: Parameters<typeof checkModifyFamilies>[1]): void =>
      checkModifyFamilies(NAME, changes, LIMIT);
    check(
      { kind: 'create', family: { name: 'a' } },
      { kind: 'update', family: { name: 'a' }, fields: ['gcRule'] },
      { kind: 'drop', name: 'a' },
    );
    refused(() => check(), /at least one/);
    refused(() => check({ kind: 'drop', name: '' }), /column family ""/);
    refused(() => check({ kind: 'create', family: { name: 'a/b' } }), /column family "a\/b"/);
    refused(() => check({ kind: 'update', family: { name: 'a' }, fields: [] }), /names no field/);
    refused(
      () =>
        check({ kind: 'update', family: { name: 'a', gcRule: { kind: 'maxAge', ageMicros: 1 } }, fields: ['gcRule'] }),
      /not 1 microseconds/,
    );
    refused(() => checkModifyFamilies('projects/p', [{ kind: 'drop', name: 'a' }], LIMIT), /table name/);
  });

  test('dropped ranges', () => {
    checkDropRowRange(NAME, { start: '', end: undefined }, LIMIT);
    checkDropRowRange(NAME, { start: 'a', end: 'b' }, LIMIT);
    refused(() => checkDropRowRange(NAME, { start: 'b', end: 'a' }, LIMIT), /above its end/);
    refused(() => checkDropRowRange('t', { start: '', end: undefined }, LIMIT), /table name/);
  });
});
