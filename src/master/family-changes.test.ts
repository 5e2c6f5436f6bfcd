import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code } from '../base/index.ts';
import { storageFamily, type TableSchema } from '../model/index.ts';
import type { FamilyChange } from '../protocol/index.ts';
import { changeFamilies } from './family-changes.ts';

const empty: TableSchema = {
  name: 't',
  id: '00000010',
  granularity: 'micros',
  families: {},
  deletionProtection: false,
};
const fails = (code: Code, schema: TableSchema, ...changes: FamilyChange[]): void => {
  assert.throws(
    () => changeFamilies(schema, changes),
    (error) => error instanceof BigtableError && error.code === code,
  );
};
const create = (name: string): FamilyChange => ({ kind: 'create', family: { name } });
const drop = (name: string): FamilyChange => ({ kind: 'drop', name });

describe('changes of families', () => {
  test('no family is ever stored under a name that was used before', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('a', 'b', 'constructor', '__proto__'), fc.boolean()), { maxLength: 30 }),
        (steps) => {
          let schema = empty;
          const used = new Set<string>();
          for (const [name, creates] of steps) {
            const exists = Object.hasOwn(schema.families, name);
            if (creates === exists) {
              fails(creates ? Code.ALREADY_EXISTS : Code.NOT_FOUND, schema, creates ? create(name) : drop(name));
              continue;
            }
            schema = changeFamilies(schema, [creates ? create(name) : drop(name)]);
            assert.equal(Object.hasOwn(schema.families, name), creates);
            if (!creates) continue;
            const stored = storageFamily(name, schema.families[name]?.generation);
            assert.ok(!used.has(stored), stored);
            used.add(stored);
          }
        },
      ),
    );
  });

  test('a first family is stored under its own name', () => {
    assert.deepEqual(changeFamilies(empty, [create('a')]).families, { a: { name: 'a' } });
  });

  test('updates replace what they name and keep the rest', () => {
    const gcRule = { kind: 'maxVersions', versions: 2 } as const;
    const sum = { aggregate: { kind: 'sum', input: 'int64' } } as const;
    const schema = changeFamilies(empty, [
      { kind: 'create', family: { name: 'a', gcRule, valueType: sum } },
      drop('a'),
      { kind: 'create', family: { name: 'a', gcRule, valueType: sum } },
    ]);
    const update = (fields: ('gcRule' | 'valueType')[], family: Partial<TableSchema['families'][string]>) =>
      changeFamilies(schema, [{ kind: 'update', family: { name: 'a', ...family }, fields }]).families['a'];
    assert.deepEqual(update(['gcRule'], {}), { name: 'a', generation: 1, valueType: sum });
    assert.deepEqual(update(['valueType'], { valueType: { ...sum, encoded: 'x' } }), {
      name: 'a',
      generation: 1,
      gcRule,
      valueType: { ...sum, encoded: 'x' },
    });
    assert.deepEqual(update([], { gcRule: { kind: 'maxVersions', versions: 9 } }), {
      name: 'a',
      generation: 1,
      gcRule,
      valueType: sum,
    });
    fails(Code.INVALID_ARGUMENT, schema, { kind: 'update', family: { name: 'a' }, fields: ['valueType'] });
    fails(Code.INVALID_ARGUMENT, schema, {
      kind: 'update',
      family: { name: 'a', valueType: { aggregate: { kind: 'max', input: 'int64' } } },
      fields: ['valueType'],
    });
    fails(Code.NOT_FOUND, schema, { kind: 'update', family: { name: 'b' }, fields: [] });
  });

  test('a protected table loses no family', () => {
    const schema = { ...changeFamilies(empty, [create('a')]), deletionProtection: true };
    fails(Code.FAILED_PRECONDITION, schema, drop('a'));
    assert.ok(changeFamilies(schema, [create('b')]).families['b']);
  });

  test('a generation that was given before is not given again', () => {
    const schema: TableSchema = { ...empty, families: { a: { name: 'a', generation: 1 } }, nextGenerations: { a: 2 } };
    assert.throws(() => changeFamilies(schema, [drop('a')]), /the generation of a column family is new/);
  });
});
