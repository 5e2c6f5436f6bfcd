import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code, INT64_MAX, INT64_MIN, int64Bytes } from '../base/index.ts';
import type { Granularity, Mutation, SetCell, TableSchema } from '../model/index.ts';
import { checkMutations, checkRules, effectiveMutations } from './check-schema.ts';

function schema(granularity: Granularity = 'millis'): TableSchema {
  return {
    name: 'projects/p/instances/i/tables/t',
    id: '00000001',
    granularity,
    families: {
      cf: { name: 'cf' },
      other: { name: 'other' },
      sum: { name: 'sum', valueType: { aggregate: { kind: 'sum', input: 'int64' } } },
      hll: { name: 'hll', valueType: { aggregate: { kind: 'hll', input: 'bytes' } } },
    },
    deletionProtection: false,
  };
}

const SET: SetCell = { kind: 'setCell', family: 'cf', qualifier: 'q', timestamp: 1000, value: Buffer.from('v') };

function refused(code: Code, message: RegExp, mutation: Mutation, granularity?: Granularity): void {
  const attempt = (): void => checkMutations(schema(granularity), [SET, mutation]);
  assert.throws(attempt, (thrown) => {
    assert.ok(thrown instanceof BigtableError);
    assert.equal(thrown.code, code, thrown.message);
    assert.match(thrown.message, message);
    return true;
  });
}

describe('mutations against the schema', () => {
  test('taken', () => {
    checkMutations(schema(), [
      SET,
      { ...SET, family: 'other' },
      { ...SET, timestamp: undefined },
      { kind: 'addToCell', family: 'sum', qualifier: 'q', timestamp: 0, input: INT64_MAX },
      { kind: 'mergeToCell', family: 'sum', qualifier: 'q', timestamp: 2000n, state: int64Bytes(5) },
      { kind: 'deleteFromColumn', family: 'sum', qualifier: 'q', range: { start: 1000, end: 2000 } },
      { kind: 'deleteFromFamily', family: 'hll' },
      { kind: 'deleteFromRow' },
    ]);
  });

  test('unknown families, also those named like a property of every object', () => {
    for (const family of ['nope', 'constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      refused(Code.NOT_FOUND, new RegExp(`projects/p/instances/i/tables/t has no column family "${family}"`), {
        ...SET,
        family,
      });
      refused(Code.NOT_FOUND, /no column family/, { kind: 'deleteFromFamily', family });
      refused(Code.NOT_FOUND, /no column family/, { kind: 'deleteFromColumn', family, qualifier: 'q' });
      refused(Code.NOT_FOUND, /no column family/, {
        kind: 'addToCell',
        family,
        qualifier: 'q',
        timestamp: 0,
        input: 1,
      });
    }
  });

  test('the type of a family', () => {
    refused(Code.INVALID_ARGUMENT, /"sum" .* holds aggregates \(sum\), which SetCell cannot change/, {
      ...SET,
      family: 'sum',
    });
    refused(Code.INVALID_ARGUMENT, /"cf" .* holds no aggregates, and AddToCell/, {
      kind: 'addToCell',
      family: 'cf',
      qualifier: 'q',
      timestamp: 0,
      input: 1,
    });
    refused(Code.INVALID_ARGUMENT, /MergeToCell/, {
      kind: 'mergeToCell',
      family: 'cf',
      qualifier: 'q',
      timestamp: 0,
      state: int64Bytes(1),
    });
    refused(Code.INVALID_ARGUMENT, /takes an int64 input/, {
      kind: 'addToCell',
      family: 'sum',
      qualifier: 'q',
      timestamp: 0,
      input: Buffer.from('12345678'),
    });
    refused(Code.INVALID_ARGUMENT, /must be 8 bytes, not 7/, {
      kind: 'mergeToCell',
      family: 'sum',
      qualifier: 'q',
      timestamp: 0,
      state: Buffer.alloc(7),
    });
    refused(Code.INVALID_ARGUMENT, /type bytes, not int64/, {
      kind: 'addToCell',
      family: 'hll',
      qualifier: 'q',
      timestamp: 0,
      input: 1,
    });
  });

  test('a merge of NULL is checked, and left out', () => {
    const merge = { kind: 'mergeToCell', family: 'sum', qualifier: 'q', timestamp: 1000, state: undefined } as const;
    checkMutations(schema(), [merge, { ...merge, family: 'hll' }]);
    refused(Code.NOT_FOUND, /no column family "nope"/, { ...merge, family: 'nope' });
    refused(Code.INVALID_ARGUMENT, /holds no aggregates, and MergeToCell/, { ...merge, family: 'cf' });
    refused(Code.INVALID_ARGUMENT, /granularity mismatch/, { ...merge, timestamp: 1001 });
    const others: readonly Mutation[] = [SET, { ...merge, state: int64Bytes(1) }, { kind: 'deleteFromRow' }];
    assert.equal(effectiveMutations(others), others);
    assert.deepEqual(effectiveMutations([merge, ...others, merge]), others);
    assert.deepEqual(effectiveMutations([merge]), []);
  });

  test('granularity', () => {
    const bad = 1_571_902_339_435_782;
    const message = /granularity mismatch.* multiple of 1000 .*, but got 1571902339435782/;
    refused(Code.INVALID_ARGUMENT, message, { ...SET, timestamp: bad });
    refused(Code.INVALID_ARGUMENT, message, {
      kind: 'addToCell',
      family: 'sum',
      qualifier: 'q',
      timestamp: bad,
      input: 1,
    });
    refused(Code.INVALID_ARGUMENT, message, {
      kind: 'mergeToCell',
      family: 'sum',
      qualifier: 'q',
      timestamp: bad,
      state: int64Bytes(1),
    });
    refused(Code.INVALID_ARGUMENT, message, {
      kind: 'deleteFromColumn',
      family: 'cf',
      qualifier: 'q',
      range: { start: bad },
    });
    refused(Code.INVALID_ARGUMENT, message, {
      kind: 'deleteFromColumn',
      family: 'cf',
      qualifier: 'q',
      range: { start: 0, end: bad },
    });
    refused(Code.INVALID_ARGUMENT, /but got 9223372036854775807/, { ...SET, timestamp: INT64_MAX });
    checkMutations(schema(), [
      { ...SET, timestamp: -1000 },
      { ...SET, timestamp: 2n ** 53n * 1000n },
      { ...SET, timestamp: 0 },
    ]);
    checkMutations(schema('micros'), [
      { ...SET, timestamp: bad },
      { ...SET, timestamp: INT64_MAX },
      { ...SET, timestamp: INT64_MIN },
    ]);
  });

  test('rules of a read-modify-write', () => {
    const rule = (family: string) => ({ family, qualifier: 'q', change: { kind: 'increment' as const, amount: 1 } });
    checkRules(schema(), [rule('cf'), rule('other')]);
    assert.throws(() => checkRules(schema(), [rule('cf'), rule('nope')]), { code: Code.NOT_FOUND });
    assert.throws(() => checkRules(schema(), [rule('sum')]), { code: Code.INVALID_ARGUMENT });
  });
});
