/**
 * Backups that are exported to another store and imported from there, through every door, by the library: what was
 * exported outlives the backup and its table, also over a new start.
 */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { BigtableError, Code, open, RowMutation } from '../../src/embedded/index.ts';
import { LASTING_DOORS, type LastingDatabase, openLibrary } from './lasting-doors.ts';

for (const { name, make } of LASTING_DOORS) {
  describe(`exported backups: ${name}`, () => {
    let lasting: LastingDatabase;
    let backups: string;
    let alive: NodeJS.Timeout;
    before(async () => {
      alive = setInterval(() => {}, 1000);
      backups = await mkdtemp(join(tmpdir(), 'edubba-exports-'));
      lasting = await make({ backupStore: backups });
    });
    after(async () => {
      clearInterval(alive);
      await lasting.remove();
      await rm(backups, { recursive: true });
    });

    test('outlive the backup and its table, over a new start', { timeout: 120_000 }, async () => {
      let database = await openLibrary(lasting);
      const again = async (): Promise<void> => {
        await database.close();
        database = await openLibrary(lasting);
      };
      const rowsOf = async (table: string): Promise<string[]> => {
        const found: string[] = [];
        for await (const row of database.table(table).scan()) found.push(`${row.name}=${row.get('f:q')?.text}`);
        return found;
      };
      await database.createTable('stays', { families: { f: {} } });
      const table = await database.createTable('t', { families: { f: { maxVersions: 2 } }, splits: ['m'] });
      for (const row of ['a', 'z']) await table.apply(new RowMutation(row).set('f:q', 'one', 1000));
      const backup = await database.createBackup('t', 'b');
      const exported = await database.backupStore.export('b', { id: 'monday' });
      assert.deepEqual(
        [exported.id, exported.backup, exported.table, exported.startMicros, exported.endMicros],
        ['monday', 'b', 't', backup.startMicros, backup.endMicros],
      );
      assert.equal(exported.files, 2);
      await table.deleteAllRows();
      await database.deleteBackup('b');
      await database.deleteTable('t', { atOnce: true });
      await again();
      assert.deepEqual(await database.backupStore.list(), [exported]);
      const imported = await database.backupStore.import('monday', 'c');
      assert.deepEqual([imported.name, imported.sourceBackup, imported.state], ['c', 'b', 'ready']);
      assert.deepEqual(
        (await database.listBackups()).map((one) => one.name),
        ['c'],
      );
      const restored = await database.restoreTable('c', 't');
      assert.deepEqual(await rowsOf('t'), ['a=one', 'z=one']);
      await restored.apply(new RowMutation('b').set('f:q', 'later', 1000));
      await database.deleteBackup('c');
      await again();
      assert.deepEqual(await rowsOf('t'), ['a=one', 'b=later', 'z=one']);

      await assert.rejects(database.backupStore.export('c'), isError(Code.NOT_FOUND));
      await assert.rejects(database.backupStore.import('tuesday', 'd'), isError(Code.NOT_FOUND));
      await assert.rejects(database.backupStore.import('..', 'd'), isError(Code.INVALID_ARGUMENT));
      await assert.rejects(database.backupStore.export('c', { as: 'x' } as object), isError(Code.INVALID_ARGUMENT));
      await assert.rejects(
        database.backupStore.import('monday', 'd', { expires: new Date() }),
        isError(Code.INVALID_ARGUMENT),
      );
      await database.createBackup('t', 'b');
      await assert.rejects(database.backupStore.export('b', { id: 'monday' }), isError(Code.ALREADY_EXISTS));
      await assert.rejects(database.backupStore.import('monday', 'b'), isError(Code.ALREADY_EXISTS));
      await database.backupStore.delete('monday');
      await assert.rejects(database.backupStore.delete('monday'), isError(Code.NOT_FOUND));
      assert.deepEqual(await database.backupStore.list(), []);
      await database.close();
    });
  });
}

test('a database without a backup store says so', async () => {
  const database = await open(':memory:');
  await database.createTable('t', { families: { f: {} } });
  await database.createBackup('t', 'b');
  for (const call of [
    () => database.backupStore.export('b'),
    () => database.backupStore.import('b', 'c'),
    () => database.backupStore.list(),
    () => database.backupStore.delete('b'),
  ])
    await assert.rejects(
      call,
      (error) => isError(Code.FAILED_PRECONDITION)(error) && /backup-store/.test(String(error)),
    );
  await database.close();
});

test('the directory of the database, one inside it, and that of another database are no backup store', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-exports-'));
  t.after(() => rm(directory, { recursive: true }));
  const data = join(directory, 'data');
  const other = await open(join(directory, 'other'));
  await other.close();
  for (const backupStore of [data, join(data, 'backups'), join(directory, 'other')]) {
    const database = await open(data, { backupStore });
    await database.openTable('t', { families: { f: {} } });
    await assert.rejects(database.backupStore.list(), isError(Code.FAILED_PRECONDITION), backupStore);
    await database.close();
  }
  assert.deepEqual((await readdir(data)).includes('backups'), false);
});

function isError(code: number): (error: unknown) => boolean {
  return (error) => error instanceof BigtableError && error.code === code;
}
