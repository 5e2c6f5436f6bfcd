/** Memory layers at every door: what is on stays on, for all tables of the instance and no other, until it is off. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../../src/base/index.ts';
import { LASTING_DOORS, LastingDoor } from './lasting-doors.ts';

const INSTANCE = 'projects/p/instances/quick';
const OTHER = 'projects/p/instances/other';
/** That of an instance that came with its first table. */
const CLUSTER = `${INSTANCE}/clusters/edubba`;

for (const { name: doorName, make } of LASTING_DOORS) {
  describe(`memory layers: ${doorName}`, () => {
    const door = new LastingDoor(make, async () => {
      await fill(`${INSTANCE}/tables/t`);
      await fill(`${OTHER}/tables/t`);
    });

    const layers = () => door.service.memoryLayers!;
    const turn = (isOn: boolean) => layers().updateMemoryLayer(door.context, CLUSTER, { isOn });
    /** A table of two tablets, in files. */
    async function fill(name: string): Promise<void> {
      const { service, context } = door;
      await service.createTable(context, {
        name,
        families: [{ name: 'f' }, { name: 'g' }],
        splits: ['m'],
        granularity: 'micros',
        deletionProtection: false,
      });
      await write(name, ['a', 'b', 'n', 'o']);
    }
    async function write(name: string, rows: readonly string[]): Promise<void> {
      const { service, context } = door;
      for (const row of rows)
        for (const family of ['f', 'g'])
          await service.mutateRow(context, name, {
            row,
            mutations: [{ kind: 'setCell', family, qualifier: 'q', timestamp: 1000, value: Buffer.alloc(100) }],
          });
      await service.flush(context);
    }
    /** The rows, and whether all, some or none of the bytes are to be in memory. */
    async function stateOf(name: string): Promise<[rows: string, inMemory: 'all' | 'some' | 'none']> {
      const { service, context } = door;
      const rows: string[] = [];
      for await (const { fragments } of service.readRows(context, { table: name }))
        rows.push(...fragments.map(({ row }) => row));
      const usage = await service.familyUsage(context, name);
      assert.deepEqual(
        usage.map(({ family }) => family),
        ['f', 'g'],
      );
      // blocks are not smaller in memory than the cells that they have
      const inMemory = usage.map(({ memoryBytes, logicalBytes }) =>
        memoryBytes === 0 ? 'none' : memoryBytes >= logicalBytes / 2 ? 'all' : 'some',
      );
      return [rows.join(), new Set(inMemory).size === 1 ? inMemory[0]! : 'some'];
    }

    test('one is off until it is turned on', async () => {
      const layer = await layers().getMemoryLayer(door.context, CLUSTER);
      assert.deepEqual([layer.cluster, layer.isOn], [CLUSTER, false]);
      assert.deepEqual(await layers().listMemoryLayers(door.context, INSTANCE), [layer]);
      assert.deepEqual(await stateOf(`${INSTANCE}/tables/t`), ['a,b,n,o', 'none']);
    });

    test('it acts on tables that are open, and on those of its instance alone', async () => {
      const changed = await turn(true);
      assert.equal(changed.isOn, true);
      assert.deepEqual(await stateOf(`${INSTANCE}/tables/t`), ['a,b,n,o', 'all']);
      assert.deepEqual(await stateOf(`${OTHER}/tables/t`), ['a,b,n,o', 'none']);
      assert.deepEqual(await layers().getMemoryLayer(door.context, CLUSTER), changed);
    });

    test('it acts on later tables, on files that are written later, on splits, merges and compactions', async () => {
      const { service, context } = door;
      const name = `${INSTANCE}/tables/later`;
      await fill(name);
      assert.deepEqual(await stateOf(name), ['a,b,n,o', 'all']);
      await service.splitTablets(context, name, 'b');
      await write(name, ['c']);
      assert.deepEqual(await stateOf(name), ['a,b,c,n,o', 'all']);
      await service.mergeTablets(context, name, 'b');
      for await (const _ of service.compactTables(context, name));
      assert.deepEqual(await stateOf(name), ['a,b,c,n,o', 'all']);
    });

    test('a change from a state that has passed is refused', async () => {
      const { context } = door;
      const { etag } = await layers().getMemoryLayer(context, CLUSTER);
      const stale = layers().updateMemoryLayer(context, CLUSTER, { isOn: false, etag: `${etag}0` });
      await assert.rejects(stale, (error) => error instanceof BigtableError && error.code === Code.ABORTED);
      const next = await layers().updateMemoryLayer(context, CLUSTER, { isOn: true, etag });
      assert.notEqual(next.etag, etag);
      const missing = layers().getMemoryLayer(context, `${INSTANCE}/clusters/none`);
      await assert.rejects(missing, (error) => error instanceof BigtableError && error.code === Code.NOT_FOUND);
    });

    test('it survives a restart, and can be turned off after it', async () => {
      const before = await layers().getMemoryLayer(door.context, CLUSTER);
      await door.reopen();
      assert.deepEqual(await layers().getMemoryLayer(door.context, CLUSTER), before);
      for (const table of ['t', 'later']) assert.equal((await stateOf(`${INSTANCE}/tables/${table}`))[1], 'all', table);
      assert.deepEqual(await stateOf(`${OTHER}/tables/t`), ['a,b,n,o', 'none']);
      await turn(false);
      for (const table of ['t', 'later'])
        assert.equal((await stateOf(`${INSTANCE}/tables/${table}`))[1], 'none', table);
      await door.reopen();
      assert.deepEqual(await stateOf(`${INSTANCE}/tables/t`), ['a,b,n,o', 'none']);
      await turn(true);
      assert.deepEqual(await stateOf(`${INSTANCE}/tables/t`), ['a,b,n,o', 'all']);
    });
  });
}
