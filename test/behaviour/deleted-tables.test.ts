/**
 * Deleted tables through every door, by the library: what was deleted before a new start is restored after it.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { BigtableError, Code, RowMutation } from '../../src/embedded/index.ts';
import { LASTING_DOORS, type LastingDatabase, openLibrary } from './lasting-doors.ts';

for (const { name, make } of LASTING_DOORS) {
  describe(`deleted tables: ${name}`, () => {
    let lasting: LastingDatabase;
    let alive: NodeJS.Timeout;
    before(async () => {
      alive = setInterval(() => {}, 1000);
      lasting = await make({ keepDeletedMs: 86_400_000 });
    });
    after(async () => {
      clearInterval(alive);
      await lasting.remove();
    });

    test('what was deleted before a new start is restored after it', { timeout: 120_000 }, async () => {
      let database = await openLibrary(lasting);
      const again = async (): Promise<void> => {
        await database.close();
        database = await openLibrary(lasting);
      };
      const table = await database.createTable('t', { families: { f: { maxVersions: 2 } }, splits: ['m'] });
      for (const row of ['a', 'z']) await table.apply(new RowMutation(row).set('f:q', 'one', 1000));
      await database.flush();
      await table.apply(new RowMutation('b').set('f:q', 'in memory', 1000));
      const before = await table.schema();
      await database.deleteTable('t');
      await again();
      assert.deepEqual(await database.listTables(), []);
      const [deleted] = await database.listDeletedTables();
      assert.equal(deleted?.name, before.name);
      const restored = await database.undeleteTable('t');
      assert.deepEqual(await restored.schema(), before);
      const cells = async (): Promise<string[]> => {
        const found: string[] = [];
        for await (const row of database.table('t').scan()) found.push(`${row.name}=${row.get('f:q')?.text}`);
        return found;
      };
      assert.deepEqual(await cells(), ['a=one', 'b=in memory', 'z=one']);
      await restored.apply(new RowMutation('c').set('f:q', 'later', 1000));
      await again();
      assert.deepEqual(await cells(), ['a=one', 'b=in memory', 'c=later', 'z=one']);
      await assert.rejects(database.undeleteTable('t'), isError(Code.ALREADY_EXISTS));

      await database.deleteTable('t');
      await database.createTable('t', { families: { g: {} } });
      await again();
      assert.deepEqual(await cells(), []);
      await database.deleteTable('t', { atOnce: true });
      await database.undeleteTable('t');
      assert.deepEqual((await cells()).length, 4);
      await database.deleteTable('t', { atOnce: true });
      await again();
      assert.deepEqual(await database.listDeletedTables(), []);
      await assert.rejects(database.undeleteTable('t'), isError(Code.NOT_FOUND));
      await database.close();
    });
  });
}

function isError(code: number): (error: unknown) => boolean {
  return (error) => error instanceof BigtableError && error.code === code;
}
