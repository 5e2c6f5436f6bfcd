import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, cp, lstat, mkdtemp, readdir, readFile, rm, symlink, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Code } from '../base/index.ts';
import { moduleUrl } from '../boot/index.ts';
import { type Database, open } from './database.ts';
import { RowMutation } from './rows/row-mutation.ts';
import type { Table } from './table.ts';

const key = (n: number): string => `r${String(n).padStart(4, '0')}`;

/** Every path below with its kind, mode, times and contents. */
async function stateOf(directory: string): Promise<string[]> {
  const state: string[] = [];
  for (const name of (await readdir(directory, { recursive: true })).sort()) {
    const path = join(directory, name);
    const { mode, mtimeMs, ctimeMs, size } = await lstat(path);
    const isFile = (mode & 0o170_000) === 0o100_000;
    const hash = isFile
      ? createHash('sha256')
          .update(await readFile(path))
          .digest('hex')
      : '';
    state.push(`${name} ${mode.toString(8)} ${size} ${mtimeMs} ${ctimeMs} ${hash}`);
  }
  return state;
}

async function fill(database: Database): Promise<void> {
  const table = await database.createTable('t', {
    families: { f: { maxVersions: 2 }, n: { aggregate: 'sum' } },
    splits: [key(300)],
  });
  await table.load(
    Array.from({ length: 600 }, (_, i) => new RowMutation(key(i)).set('f:a', `first ${i}`, 1000).add('n:sum', i)),
  );
  await database.flush();
  await table.load(
    Array.from({ length: 600 }, (_, i) => new RowMutation(key(i)).set('f:a', `second ${i}`, 2000).add('n:sum', 1)),
  );
  await table.deleteRow(key(5));
  await table.createFamily('late');
}

async function check(database: Database): Promise<void> {
  assert.deepEqual(await database.listTables(), ['t']);
  const table = database.table('t');
  assert.deepEqual(Object.keys((await table.schema()).families).sort(), ['f', 'late', 'n']);
  const rows = await table.scan({ versions: 'all' }).toArray();
  assert.equal(rows.length, 599);
  assert.deepEqual(
    rows[5]?.cells.map((cell) => (cell.family === 'n' ? String(cell.int) : cell.text)),
    ['second 6', 'first 6', '7'],
  );
  assert.deepEqual(
    (await table.getMany([key(5), key(599)])).map((row) => row?.get('f:a')?.text),
    [undefined, 'second 599'],
  );
  assert.equal((await table.sampleKeys()).at(-1)?.key, '');
}

const CHANGES: Readonly<Record<string, (table: Table, database: Database) => Promise<unknown>>> = {
  apply: (t) => t.apply(new RowMutation('x').set('f:a', '1')),
  applyAll: (t) => t.applyAll([new RowMutation('x').set('f:a', '1')]),
  increment: (t) => t.increment('x', 'f:a'),
  append: (t) => t.append('x', 'f:a', '1'),
  readModifyWrite: (t) =>
    t.readModifyWrite('x', [{ family: 'f', qualifier: 'a', change: { kind: 'append', suffix: 'x' } }]),
  checkAndMutate: (t) => t.checkAndMutate('x', { column: 'f:a' }, { otherwise: (row) => row.set('f:a', '1') }),
  load: (t) => t.load([new RowMutation('x').set('f:a', '1')]),
  deleteRow: (t) => t.deleteRow(key(1)),
  deleteRows: (t) => t.deleteRows({ prefix: 'r' }),
  deleteAllRows: (t) => t.deleteAllRows(),
  createFamily: (t) => t.createFamily('g'),
  setGcRule: (t) => t.setGcRule('f', 'never'),
  setGroups: (t) => t.setGroups({}),
  deleteFamily: (t) => t.deleteFamily('f'),
  createTable: (_, database) => database.createTable('u'),
  'openTable of a missing table': (_, database) => database.openTable('u'),
  deleteTable: (_, database) => database.deleteTable('t'),
  flush: (_, database) => database.flush(),
  compact: (_, database) => database.compact(),
  split: (_, database) => database.split('t', key(100)),
  merge: (_, database) => database.merge('t', key(300)),
};

describe('a database that is opened read-only', () => {
  let root = '';
  let closed = '';
  /** The directory as a killed process leaves it. */
  let killed = '';
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'edubba-read-only-'));
    closed = join(root, 'closed');
    killed = join(root, 'killed');
    const database = await open(closed);
    await fill(database);
    // acknowledged writes are on the disk
    await cp(closed, killed, { recursive: true });
    await database.close();
  });
  after(() => rm(root, { recursive: true }));

  for (const [what, directory] of [
    ['that was closed', () => closed],
    ['of a process that was killed', () => killed],
  ] as const) {
    test(`reads a directory ${what}, several concurrently, and changes nothing in it`, async () => {
      const before = await stateOf(directory());
      const [one, two] = [
        await open(directory(), { readOnly: true }),
        await open(directory(), { readOnly: true, blockCacheBytes: 0 }),
      ];
      await Promise.all([check(one), check(two)]);
      for (const [name, change] of Object.entries(CHANGES)) {
        await assert.rejects(
          change(one.table('t'), one),
          { code: Code.FAILED_PRECONDITION, message: /opened read-only/ },
          name,
        );
      }
      assert.equal((await one.openTable('t', { families: { f: {} } })).name, 't');
      await check(one);
      await one.close();
      await check(two);
      await two.close();
      assert.deepEqual(await stateOf(directory()), before);
    });
  }

  test('reads a directory in which nothing may be written, and one without a LOCK', async () => {
    const copy = join(root, 'copy');
    await cp(killed, copy, { recursive: true });
    await unlink(join(copy, 'LOCK'));
    const directories = (await readdir(copy, { recursive: true, withFileTypes: true })).filter((entry) =>
      entry.isDirectory(),
    );
    const paths = [copy, ...directories.map(({ parentPath, name }) => join(parentPath, name))];
    for (const path of paths) await chmod(path, 0o555);
    const before = await stateOf(copy);
    await using database = await open(copy, { readOnly: true });
    await check(database);
    await database.close();
    assert.deepEqual(await stateOf(copy), before);
    for (const path of paths) await chmod(path, 0o755);
  });

  test('a killed process left all that it had acknowledged', async (t) => {
    const directory = join(root, 'really');
    const source = `
      import { open, RowMutation } from ${JSON.stringify(moduleUrl('./index.ts', import.meta.url).href)};
      const database = await open(${JSON.stringify(directory)});
      const table = await database.createTable('t', { families: { f: {} } });
      await table.load(Array.from({ length: 500 }, (_, i) => new RowMutation('r' + i).set('f:a', 'x')));
      console.log('written');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', source], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    const refused = open(directory, { readOnly: true });
    await assert.rejects(refused, {
      code: Code.FAILED_PRECONDITION,
      message: new RegExp(
        `in use by another Edubba, which calls itself: pid ${child.pid} .*opened read-only while no process writes`,
      ),
    });
    child.kill('SIGKILL');
    await once(child, 'close');
    const before = await stateOf(directory);
    const database = await open(directory, { readOnly: true });
    assert.equal((await database.table('t').scan().toArray()).length, 500);
    // no writer can start while the directory is read
    await assert.rejects(open(directory), { code: Code.FAILED_PRECONDITION, message: /is open read-only/ });
    await database.close();
    assert.deepEqual(await stateOf(directory), before);
    await using writable = await open(directory);
    assert.equal((await writable.table('t').scan().toArray()).length, 500);
  });

  test('while this process has it open for writing it is refused, by any path', async () => {
    const [directory, link] = [join(root, 'owned'), join(root, 'link')];
    const database = await open(directory);
    await symlink(directory, link);
    for (const path of [directory, link]) {
      for (const readOnly of [false, true]) {
        await assert.rejects(open(path, { readOnly }), {
          code: Code.FAILED_PRECONDITION,
          message: /is open in this very process, since \d{4}-.*close it first.*globalThis/,
        });
      }
    }
    await database.close();
    await (await open(link)).close();
  });

  test('a directory without a database is refused and not changed', async () => {
    await assert.rejects(open(join(root, 'nowhere'), { readOnly: true }), { code: Code.NOT_FOUND });
    await assert.rejects(open(root, { readOnly: true }), { code: Code.NOT_FOUND });
    await assert.rejects(open(':memory:', { readOnly: true }), { code: Code.INVALID_ARGUMENT });
    for (const wrong of [{ readOnly: 'yes' }, { readOnly: 1 }, { readonly: true }, 7, null]) {
      await assert.rejects(
        open(join(root, 'nowhere'), wrong as never),
        { code: Code.INVALID_ARGUMENT },
        JSON.stringify(wrong),
      );
    }
    assert.equal((await readdir(root)).includes('nowhere'), false);
  });
});
