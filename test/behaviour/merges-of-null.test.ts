/** MergeToCell of NULL, which the API allows and which has no effect, at every door. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code, int64Bytes } from '../../src/base/index.ts';
import type { Mutation } from '../../src/model/index.ts';
import { DOORS, type OpenDoor } from './doors.ts';

const TABLE = 'projects/p/instances/i/tables/t';
const NULL: Mutation = { kind: 'mergeToCell', family: 'sum', qualifier: 'q', timestamp: 0, state: undefined };
const ADD: Mutation = { kind: 'addToCell', family: 'sum', qualifier: 'q', timestamp: 0, input: 5 };

for (const { name, open } of DOORS) {
  describe(`merges of NULL: ${name}`, () => {
    let door: OpenDoor;

    before(async () => {
      door = await open();
      const families = [
        { name: 'f' },
        { name: 'sum', valueType: { aggregate: { kind: 'sum', input: 'int64' } } },
      ] as const;
      await door.service.createTable(door.context, {
        name: TABLE,
        families,
        splits: ['m'],
        granularity: 'millis',
        deletionProtection: false,
      });
    });
    after(() => door.close());

    async function cells(): Promise<string[]> {
      const found: string[] = [];
      for await (const { fragments } of door.service.readRows(door.context, { table: TABLE })) {
        for (const { row, cells: all } of fragments)
          for (const { family, value } of all) found.push(`${row} ${family} ${Buffer.from(value).toString('hex')}`);
      }
      return found;
    }
    const five = int64Bytes(5).toString('hex');

    test('alone and among others they change nothing', async () => {
      const { service, context } = door;
      const mutate = (row: string, mutations: readonly Mutation[]): Promise<void> =>
        service.mutateRow(context, TABLE, { row, mutations });
      await mutate('a', [NULL]);
      await mutate('a', new Array<Mutation>(2000).fill(NULL));
      assert.deepEqual(await cells(), []);
      await mutate('a', [NULL, ADD, NULL]);
      await mutate('a', [NULL]);
      assert.deepEqual(await cells(), [`a sum ${five}`]);
      const entries = [
        ['a', [NULL]],
        ['b', [NULL, ADD]],
        ['c', [NULL]],
        ['z', [NULL]],
      ] as const;
      assert.deepEqual(
        await service.mutateRows(
          context,
          TABLE,
          entries.map(([row, mutations]) => ({ row, mutations })),
        ),
        [undefined, undefined, undefined, undefined],
      );
      assert.deepEqual(await service.mutateRows(context, TABLE, [{ row: 'y', mutations: [NULL] }]), [undefined]);
      assert.equal(
        await service.checkAndMutateRow(context, { table: TABLE, row: 'a', whenTrue: [NULL], whenFalse: [ADD] }),
        true,
      );
      assert.equal(
        await service.checkAndMutateRow(context, { table: TABLE, row: 'd', whenTrue: [ADD], whenFalse: [NULL] }),
        false,
      );
      assert.deepEqual(await cells(), [`a sum ${five}`, `b sum ${five}`]);
    });

    test('they are checked like others', async () => {
      const { service, context } = door;
      const mutate = (mutation: Mutation): Promise<void> =>
        service.mutateRow(context, TABLE, { row: 'bad', mutations: [ADD, mutation] });
      await assert.rejects(mutate({ ...NULL, family: 'none' }), { code: Code.NOT_FOUND, message: /"none"/ });
      await assert.rejects(mutate({ ...NULL, family: 'f' }), {
        code: Code.INVALID_ARGUMENT,
        message: /holds no aggregates/,
      });
      await assert.rejects(mutate({ ...NULL, timestamp: 1 }), { code: Code.INVALID_ARGUMENT, message: /granularity/ });
      assert.equal(
        (await cells()).some((cell) => cell.startsWith('bad')),
        false,
      );
    });
  });
}
