import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Code } from '../base/index.ts';
import type { TableSchema } from '../model/index.ts';
import { withGroups } from './locality-groups.ts';

const schema: TableSchema = {
  name: 'projects/p/instances/i/tables/t',
  id: '00000010',
  granularity: 'micros',
  deletionProtection: true,
  families: {
    a: { name: 'a', generation: 2 },
    b: { name: 'b', group: 'old' },
    c: { name: 'c', gcRule: { kind: 'maxVersions', versions: 1 } },
  },
  groups: { old: { inMemory: true } },
};

describe('the groups of a schema', () => {
  test('are replaced whole; families that no group names go to the default', () => {
    const { families, groups, ...rest } = withGroups(schema, {
      new: { families: ['a'], bloomFilter: 'none' },
      default: { families: ['c'], blockSizeBytes: 4096 },
    });
    assert.deepEqual(families, {
      a: { name: 'a', generation: 2, group: 'new' },
      b: { name: 'b' },
      c: schema.families['c'],
    });
    assert.deepEqual(groups, { new: { bloomFilter: 'none' }, default: { blockSizeBytes: 4096 } });
    assert.deepEqual(rest, { name: schema.name, id: schema.id, granularity: 'micros', deletionProtection: true });
    assert.equal(withGroups(schema, {}).groups, undefined);
  });

  test('name existing families', () => {
    assert.throws(() => withGroups(schema, { new: { families: ['constructor'] } }), {
      code: Code.NOT_FOUND,
      message: /no column family "constructor"/,
    });
  });
});
