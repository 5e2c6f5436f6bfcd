/** Deleted tables that are kept: a check knows them, and a repair brings them back as what they are. */
import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { checkDirectory, repairDirectory } from '../../src/boot/index.ts';
import { BigtableError, Code, open, RowMutation } from '../../src/embedded/index.ts';
import { copyOf, filesIn, temporaryDirectory } from './damage.ts';

const DAY_MS = 86_400_000;

/** The file of the lock service whose name begins so. */
async function lockFile(directory: string, path: string): Promise<string> {
  for (const file of await filesIn(directory)) {
    if (!file.startsWith('files/lock-service/files/')) continue;
    if ((await readFile(join(directory, file))).includes(`${path}`, 0, 'utf8')) return join(directory, file);
  }
  return assert.fail(`there is no file ${path}`);
}

describe('deleted tables that are kept, in a directory', () => {
  let home: Awaited<ReturnType<typeof temporaryDirectory>>;
  let original: string;
  const alive = setInterval(() => {}, 1000);

  before(async () => {
    home = await temporaryDirectory();
    original = join(home.path, 'original');
    const database = await open(original, { keepDeletedMs: DAY_MS });
    for (const name of ['kept', 'empty', 'other']) {
      const table = await database.createTable(name, { families: { f: { maxVersions: 2 } }, splits: ['m'] });
      if (name === 'empty') continue;
      for (const row of ['a', 'z']) await table.apply(new RowMutation(row).set('f:q', name));
    }
    for (const name of ['kept', 'empty']) await database.deleteTable(name);
    await database.close();
  });
  after(async () => {
    clearInterval(alive);
    await home.remove();
  });

  async function isRestored(directory: string): Promise<void> {
    const database = await open(directory);
    try {
      assert.deepEqual(await database.listTables(), ['other']);
      assert.deepEqual(
        (await database.listDeletedTables()).map(({ name }) => name.replace(/.*\//, '')),
        ['empty', 'kept'],
      );
      const kept = await database.undeleteTable('kept');
      assert.equal((await kept.schema()).families['f']?.gcRule?.kind, 'maxVersions');
      assert.equal((await kept.getCell('z', 'f:q'))?.text, 'kept');
      const empty = await database.undeleteTable('empty');
      await empty.apply(new RowMutation('a').set('f:q', 'x'));
      assert.equal((await database.table('other').getCell('a', 'f:q'))?.text, 'other');
    } finally {
      await database.close();
    }
    assert.deepEqual((await checkDirectory(directory)).findings, []);
  }

  test('are whole, and a check names them', async () => {
    const { findings, notes, orphans } = await checkDirectory(original);
    assert.deepEqual([findings, orphans], [[], []]);
    assert.deepEqual(
      notes.map((note) => /\/tables\/(\w+)\) is kept, and can/.exec(note)?.[1]),
      ['kept', 'empty'],
    );
    await isRestored(await copyOf(original, join(home.path, 'whole')));
  });

  test('that cannot be restored are found', async () => {
    const copy = await copyOf(original, join(home.path, 'damaged'));
    await rm(await lockFile(copy, 'schemas/projects/local/instances/local/tables/kept'));
    const { findings } = await checkDirectory(copy);
    assert.equal(findings.length, 1);
    assert.match(findings[0]!.message, /tables\/kept\) cannot be restored.*copy of the schema is missing/);
    const database = await open(copy);
    await assert.rejects(
      database.undeleteTable('kept'),
      (error) => error instanceof BigtableError && error.code === Code.DATA_LOSS,
    );
    await database.close();
  });

  test('are kept tables again when METADATA is rebuilt', async () => {
    const copy = await copyOf(original, join(home.path, 'lost'));
    await rm(await lockFile(copy, 'root{'));
    assert.ok((await checkDirectory(copy)).findings.length > 0);
    const repaired = join(home.path, 'repaired');
    await repairDirectory(copy, repaired);
    assert.deepEqual((await checkDirectory(repaired)).findings, []);
    await isRestored(repaired);
  });
});
