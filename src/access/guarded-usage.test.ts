import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import { type OpenDatabase, openDatabase } from '../boot/index.ts';
import { type RequestContext, requestContext } from '../env/index.ts';
import type { Mutation } from '../model/index.ts';
import type { Service } from '../service/index.ts';
import { guardOf } from './guarded-service.ts';

const TABLE = 'projects/p/instances/i/tables/t';

function set(family: string, bytes: number): Mutation {
  return { kind: 'setCell', family, qualifier: 'q', timestamp: 1000, value: Buffer.alloc(bytes) };
}

describe('usage and quotas of callers with rights on some families', () => {
  let database: OpenDatabase;
  let guarded: Service;
  const as = (name: string): RequestContext =>
    requestContext({ budget: database.env.requestBudget, principal: `token:${name}` });

  before(async () => {
    database = await openDatabase({ memory: true });
    const { service, env } = database;
    const context = as('owner');
    await service.policySource!.start();
    guarded = guardOf({ ...env, service, owners: ['token:owner'] })!;
    await service.createTable(context, {
      name: TABLE,
      families: [{ name: 'f' }, { name: 'g' }],
      splits: [],
      granularity: 'micros',
      deletionProtection: false,
    });
    const grant = (resource: string, role: string, ...members: string[]) =>
      service.policies!.setPolicy(context, resource, { bindings: [{ role, members }] });
    await grant(TABLE, 'roles/bigtable.viewer', 'token:viewer');
    await grant(`${TABLE}/columnFamilies/f`, 'roles/bigtable.user', 'token:user');
    await grant(`${TABLE}/columnFamilies/g`, 'roles/bigtable.admin', 'token:admin');
    await service.mutateRow(context, TABLE, { row: 'r', mutations: [set('f', 10), set('g', 1000)] });
  });
  after(() => database.close());

  const code = (call: Promise<unknown>, wanted: number) =>
    assert.rejects(call, (error) => error instanceof BigtableError && error.code === wanted);
  const usage = async (name: string) => {
    const { families, table } = await guarded.tableUsage(as(name), TABLE);
    return [families.map(({ family }) => family).join(), table !== undefined];
  };

  test('show the families that they may read or administer, and nothing of the whole table', async () => {
    assert.deepEqual(await usage('owner'), ['f,g', true]);
    assert.deepEqual(await usage('user'), ['f', false]);
    assert.deepEqual(await usage('admin'), ['g', false]);
    await code(guarded.tableUsage(as('viewer'), TABLE), Code.PERMISSION_DENIED);
    await code(guarded.tableUsage(as('stranger'), TABLE), Code.PERMISSION_DENIED);
  });

  test('are set by who administers the table, or the family', async () => {
    for (const name of ['user', 'viewer', 'stranger'])
      for (const family of ['f', 'g', 'none', undefined])
        await code(guarded.setQuota(as(name), TABLE, { family, quotaBytes: 1 }), Code.PERMISSION_DENIED);
    for (const family of ['f', undefined])
      await code(guarded.setQuota(as('admin'), TABLE, { family, quotaBytes: 1 }), Code.PERMISSION_DENIED);
    await guarded.setQuota(as('admin'), TABLE, { family: 'g', quotaBytes: 1e6 });
    await guarded.setQuota(as('owner'), TABLE, { quotaBytes: 1e6 });
  });

  test('refuse writes of others without the sizes of what they may not read', async () => {
    await guarded.setQuota(as('owner'), TABLE, { quotaBytes: 100 });
    const refusal = async (name: string): Promise<BigtableError> => {
      const entry = { row: 'r', mutations: [set('f', 50)] };
      const [outcome] = await guarded.mutateRows(as(name), TABLE, [entry]);
      assert.equal(outcome?.code, Code.RESOURCE_EXHAUSTED);
      const calls: (() => Promise<unknown>)[] = [
        () => guarded.mutateRow(as(name), TABLE, entry),
        () =>
          guarded.checkAndMutateRow(as(name), {
            table: TABLE,
            row: 'r',
            whenTrue: entry.mutations,
            whenFalse: entry.mutations,
            predicate: { kind: 'familyNameRegex', regex: 'f' },
          }),
        () =>
          guarded.readModifyWriteRow(as(name), TABLE, 'r', [
            { family: 'f', qualifier: 'q', change: { kind: 'append', suffix: Buffer.alloc(100) } },
          ]),
      ];
      for (const call of calls)
        await assert.rejects(call(), (error) => {
          assert.ok(error instanceof BigtableError);
          assert.deepEqual(
            [error.code, error.message, error.details],
            [outcome.code, outcome.message, outcome.details],
          );
          return true;
        });
      return outcome;
    };
    const shown = await refusal('owner');
    assert.match(shown.message, /it takes \d+ bytes already/);
    assert.equal(typeof shown.details['usedBytes'], 'number');
    const hidden = await refusal('user');
    assert.match(hidden.message, /has a quota of 100 bytes, and/);
    assert.deepEqual(hidden.details, { table: TABLE, quotaBytes: 100 });
  });
});
