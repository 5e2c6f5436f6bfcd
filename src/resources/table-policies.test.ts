import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MemoryLockService } from '../env/index.ts';
import type { PolicyBinding, TableSchema } from '../model/index.ts';
import { encodePolicy, policyPath } from './policy-file.ts';
import { mergePolicies, policiesOfTable } from './table-policies.ts';

const TABLE = 'projects/p/instances/i/tables/t';
const schema: TableSchema = {
  name: TABLE,
  id: '00000012',
  granularity: 'millis',
  families: { f: { name: 'f' }, g: { name: 'g', generation: 2 } },
  deletionProtection: false,
};
const bindings: readonly PolicyBinding[] = [{ role: 'roles/bigtable.reader', members: ['token:a'] }];
const none: readonly PolicyBinding[] = [];

/** A lock service with policies, by what their resource is called in the table, and their owners. */
async function withPolicies(owners: Readonly<Record<string, string>>): Promise<MemoryLockService> {
  const lockService = new MemoryLockService();
  for (const [name, owner] of Object.entries(owners))
    await lockService.write(policyPath(TABLE + name), encodePolicy({ owner, bindings, write: 'w' }));
  return lockService;
}

describe('the policies of a table', () => {
  test('are its own and those of its families', async () => {
    const lockService = await withPolicies({
      '': '00000012',
      '/columnFamilies/f': '00000012/0',
      '/columnFamilies/g': '00000012/2',
      '/authorizedViews/v': '00000012',
    });
    assert.deepEqual(await policiesOfTable(lockService, schema), [
      { bindings },
      { family: 'f', bindings },
      { family: 'g', bindings },
    ]);
  });

  test('are not those of earlier tables and families, of families that it does not have, and of other tables', async () => {
    const lockService = await withPolicies({
      '': '00000011',
      '/columnFamilies/f': '00000011/0',
      '/columnFamilies/g': '00000012/1',
      '/columnFamilies/h': '00000012/0',
      '/columnFamilies/toString': '00000012/0',
      2: '00000013',
      '2/columnFamilies/f': '00000013/0',
    });
    assert.deepEqual(await policiesOfTable(lockService, schema), []);
  });

  test('give nothing where they cannot be read', async () => {
    const lockService = new MemoryLockService();
    for (const name of ['', '/columnFamilies/f'])
      await lockService.write(policyPath(TABLE + name), Buffer.from('damaged'));
    assert.deepEqual(await policiesOfTable(lockService, schema), [{ bindings: none }, { family: 'f', bindings: none }]);
  });

  test('of two times are the later ones, and the earlier ones of what has none any more', () => {
    assert.deepEqual(
      mergePolicies(
        [{ bindings }, { family: 'f', bindings }, { family: 'g', bindings }],
        [{ bindings: none }, { family: 'g', bindings: none }],
      ),
      [{ bindings: none }, { family: 'g', bindings: none }, { family: 'f', bindings }],
    );
  });
});
