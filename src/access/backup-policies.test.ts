/** Who may restore and copy a backup, when the policies of what it is of have gone, or have changed. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { rejectsWith } from '../../test/tables.ts';
import { Code } from '../base/index.ts';
import { type OpenDatabase, openDatabase } from '../boot/index.ts';
import { type RequestContext, requestContext } from '../env/index.ts';
import type { Service } from '../service/index.ts';
import { type GuardedService, guardOf } from './guarded-service.ts';

const INSTANCE = 'projects/p/instances/i';
const READER = 'token:reader';
const ADMIN = 'token:admin';

describe('a backup', () => {
  let database: OpenDatabase;
  let service: Service;
  let guarded: GuardedService;
  let reader: RequestContext;
  let admin: RequestContext;
  let made = 0;

  before(async () => {
    database = await openDatabase({ memory: true });
    service = database.service;
    await service.policySource!.start();
    const { clock, logger, requestBudget: budget } = database.env;
    guarded = guardOf({ service, clock, logger })!;
    reader = requestContext({ budget, principal: READER });
    admin = requestContext({ budget, principal: ADMIN });
  });
  after(() => database.close());

  const fresh = (kind: string): string => `${INSTANCE}/${kind}/x${made++}`;
  const allow = (resource: string, ...members: string[]) =>
    service.policies!.setPolicy(admin, resource, {
      bindings: members.length === 0 ? [] : [{ role: 'roles/bigtable.admin', members }],
    });
  const create = async (table = fresh('tables')): Promise<string> => {
    const families = [{ name: 'f' }, { name: 'g' }];
    await service.createTable(admin, {
      ...{ name: table, families, splits: [] },
      granularity: 'micros',
      deletionProtection: false,
    });
    return table;
  };
  const later = (): number => database.env.clock.nowMicros() + 86_400e6;
  const backUp = async (of: Service, context: RequestContext, source: string): Promise<string> => {
    const name = fresh('clusters/edubba/backups');
    await of.backups!.createBackup(context, { name, source, kind: 'standard', expireMicros: later() });
    return name;
  };
  const restore = (context: RequestContext, backup: string) =>
    guarded.backups!.restoreTable(context, fresh('tables'), backup);
  const dropG = (table: string) => service.modifyFamilies(admin, table, [{ kind: 'drop', name: 'g' }]);

  const CHANGES: Readonly<Record<string, (table: string) => Promise<unknown>>> = {
    'nothing has changed': async () => {},
    'the family is gone': dropG,
    'the family was made anew': async (table) => {
      await dropG(table);
      await service.modifyFamilies(admin, table, [{ kind: 'create', family: { name: 'g' } }]);
    },
    'the table is gone': (table) => service.deleteTable(admin, table, true),
    'the table was made anew': async (table) => {
      await service.deleteTable(admin, table, true);
      await create(table);
    },
  };

  for (const [what, change] of Object.entries(CHANGES))
    for (const closed of ['the table', 'a family'])
      test(`of which ${closed} is closed to a caller stays closed when ${what}`, async () => {
        const table = await create();
        await allow(closed === 'the table' ? table : `${table}/columnFamilies/g`, ADMIN);
        const backup = await backUp(guarded, admin, table);
        const copy = await backUp(guarded, admin, backup);
        await change(table);
        for (const source of [backup, copy]) {
          await rejectsWith(Code.PERMISSION_DENIED, restore(reader, source));
          await rejectsWith(Code.PERMISSION_DENIED, backUp(guarded, reader, source));
          await restore(admin, source);
        }
      });

  for (const [what, change] of Object.entries(CHANGES))
    test(`is open that was of an open table when ${what}`, async () => {
      const table = await create();
      const backup = await backUp(guarded, reader, table);
      // policies are somewhere
      await allow(await create(), ADMIN);
      await change(table);
      await restore(reader, backup);
    });

  test('may be restored by those who may read now what its table still has', async () => {
    const table = await create();
    const family = `${table}/columnFamilies/g`;
    await allow(family, ADMIN);
    const backup = await backUp(guarded, admin, table);
    await allow(family, ADMIN, READER);
    await restore(reader, backup);
    await allow(family, ADMIN);
    await rejectsWith(Code.PERMISSION_DENIED, restore(reader, backup));
  });

  test('is closed again when a table that was opened after it is deleted', async () => {
    const table = await create();
    await allow(table, ADMIN);
    const backup = await backUp(guarded, admin, table);
    await allow(table);
    await restore(reader, backup);
    await service.deleteTable(admin, table, true);
    await rejectsWith(Code.PERMISSION_DENIED, restore(reader, backup));
  });

  test('is not made where its file would be too long', async () => {
    const table = await create();
    const families = Array.from({ length: 40 }, (_, i) => `h${i}`);
    await service.modifyFamilies(
      admin,
      table,
      families.map((name) => ({ kind: 'create', family: { name } })),
    );
    const members = Array.from({ length: 900 }, (_, i) => `token:${String(i).padStart(24, '0')}`);
    for (const name of families) await allow(`${table}/columnFamilies/${name}`, ADMIN, ...members);
    const before = (await service.backups!.listBackups(admin, INSTANCE)).length;
    await rejectsWith(Code.RESOURCE_EXHAUSTED, backUp(guarded, admin, table), /policies/);
    assert.equal((await service.backups!.listBackups(admin, INSTANCE)).length, before);
  });
});
