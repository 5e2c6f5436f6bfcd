/**
 * Backups that are exported to another store and imported from there: over losses of power at any point, over damage of
 * the store, and from one database into another.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code, crc32c } from '../base/index.ts';
import type { MemoryFileSystem } from '../env/index.ts';
import { FILES_DIRECTORY } from '../protocol/index.ts';
import { keepAlive, liveUntilCrash, rejectsWith, TABLES, type TestDatabase, until, World } from './fixtures.ts';

const BACKUPS = 'projects/p/instances/i/clusters/edubba/backups/';
const IMPORTED_FILES = `${FILES_DIRECTORY}imported-`;
const KEPT_MICROS = 24 * 3_600_000_000;

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

const inADay = (db: TestDatabase): number => db.env.clock.nowMicros() + KEPT_MICROS;

function backUp(db: TestDatabase, backup: string, table: string) {
  const wanted = {
    name: BACKUPS + backup,
    source: TABLES + table,
    kind: 'standard',
    expireMicros: inADay(db),
  } as const;
  return db.service.backups!.createBackup(db.context(), wanted);
}

function exportBackup(db: TestDatabase, backup: string, id = backup) {
  return db.service.exports!.exportBackup(db.context(), BACKUPS + backup, id);
}

function importBackup(db: TestDatabase, backup: string, from: string) {
  return db.service.exports!.importBackup(db.context(), { name: BACKUPS + backup, from, expireMicros: inADay(db) });
}

function restore(db: TestDatabase, table: string, backup: string) {
  return db.service.backups!.restoreTable(db.context(), TABLES + table, BACKUPS + backup);
}

const listExports = (db: TestDatabase) => db.service.exports!.listExports(db.context());
const deleteExport = (db: TestDatabase, id: string) => db.service.exports!.deleteExport(db.context(), id);

/** The paths in a store, in order. */
async function paths(store: MemoryFileSystem, prefix = ''): Promise<string[]> {
  return (await store.list(prefix)).map(({ path }) => path);
}

/** Files of tablets that share some, in two locality groups, some of them with row deletions. */
async function fill(db: TestDatabase): Promise<void> {
  await db.service.createTable(db.context(), {
    name: `${TABLES}t`,
    families: [{ name: 'f' }, { name: 'g' }],
    groups: { apart: { families: ['g'], inMemory: true } },
    splits: ['k'],
    granularity: 'micros',
    deletionProtection: false,
  });
  for (const row of ['a', 'c', 'e', 'm', 'o', 'z']) {
    await db.set('t', row, `f of ${row}`);
    await db.set('t', row, `g of ${row}`, 'g');
  }
  await db.database.flush();
  await db.mutate('t', 'c', { kind: 'deleteFromRow' });
  await db.set('t', 'd', 'in memory');
  await db.service.splitTablets(db.context(), `${TABLES}t`, 'n');
}

const FILLED = [
  ['a', 'f of a', 'g of a'],
  ['d', 'in memory'],
  ['e', 'f of e', 'g of e'],
  ['m', 'f of m', 'g of m'],
  ['o', 'f of o', 'g of o'],
  ['z', 'f of z', 'g of z'],
];

/** Changes a byte in the middle of a file of the store. */
async function damage(store: MemoryFileSystem, path: string): Promise<void> {
  const bytes = await store.read(path, 0, await store.size(path));
  bytes[bytes.length >> 1]! ^= 1;
  await store.delete(path);
  const writer = await store.create(path);
  await writer.append(bytes);
  await writer.close();
}

describe('an exported backup', () => {
  test('outlives its database, and is restored in another, which has a table of the same id', async () => {
    const world = new World();
    const db = await world.start();
    await fill(db);
    const { startMicros, endMicros, sizeBytes } = await backUp(db, 'b', 't');
    const exported = await exportBackup(db, 'b', 'monday');
    const { files, exportedMicros } = exported;
    assert.ok(files >= 3 && exportedMicros >= endMicros! && sizeBytes > 0, JSON.stringify(exported));
    const expected = {
      id: 'monday',
      state: 'ready',
      backup: `${BACKUPS}b`,
      table: `${TABLES}t`,
      startMicros,
      endMicros,
    };
    assert.deepEqual(exported, { ...expected, files, exportedMicros, sizeBytes: exported.sizeBytes });
    assert.deepEqual(await listExports(db), [exported]);
    await db.close();

    const other = new World();
    other.backupStore = world.backupStore;
    const there = await other.start();
    await there.create('of-its-own');
    await there.set('of-its-own', 'a', 'own');
    const imported = await importBackup(there, 'from-there', 'monday');
    assert.equal(imported.sourceBackup, `${BACKUPS}b`);
    assert.equal(imported.sizeBytes, exported.sizeBytes);
    const { schema } = await there.service.backups!.sourceOf!(there.context(), `${BACKUPS}from-there`);
    const own = await there.service.getTable(there.context(), `${TABLES}of-its-own`);
    assert.notEqual(schema.id, own.id);
    await restore(there, 't', 'from-there');
    assert.deepEqual(await there.read('t'), FILLED);
    const { groups } = await there.service.getTable(there.context(), `${TABLES}t`);
    assert.equal(groups?.['apart']?.inMemory, true);
    await there.set('t', 'a', 'newer', 'g');
    for await (const _ of there.service.compactTables(there.context(), `${TABLES}t`));
    await there.service.backups!.deleteBackup(there.context(), `${BACKUPS}from-there`);
    await until(async () => {
      await there.database.sweep();
      return (await paths(other.fileSystem, IMPORTED_FILES)).length === 0;
    });
    assert.deepEqual((await there.read('t'))[0], ['a', 'f of a', 'newer']);
    assert.deepEqual(await there.read('of-its-own'), [['a', 'own']]);
    await there.close();
  });

  test('of a table without a row', async () => {
    const world = new World();
    const db = await world.start();
    await db.create('t', { splits: ['m'] });
    await backUp(db, 'b', 't');
    assert.equal((await exportBackup(db, 'b')).files, 0);
    await importBackup(db, 'c', 'b');
    await restore(db, 'u', 'c');
    assert.deepEqual(await db.read('u'), []);
    await deleteExport(db, 'b');
    assert.deepEqual(await paths(world.backupStore), []);
    await db.close();
  });

  test('is exported once: a repetition answers the same, another backup finds the id taken', async () => {
    const world = new World();
    const db = await world.start();
    await fill(db);
    await backUp(db, 'b', 't');
    await backUp(db, 'c', 't');
    const [one, two] = await Promise.all([exportBackup(db, 'b', 'x'), exportBackup(db, 'b', 'x')]);
    assert.deepEqual(one, two);
    assert.deepEqual(await exportBackup(db, 'b', 'x'), one);
    await rejectsWith(Code.ALREADY_EXISTS, exportBackup(db, 'c', 'x'), /has a backup x already/);
    await db.service.backups!.deleteBackup(db.context(), `${BACKUPS}b`);
    await backUp(db, 'b', 't');
    await rejectsWith(Code.ALREADY_EXISTS, exportBackup(db, 'b', 'x'));
    await deleteExport(db, 'x');
    assert.deepEqual(await paths(world.backupStore), []);
    assert.deepEqual(await listExports(db), []);
    await rejectsWith(Code.NOT_FOUND, deleteExport(db, 'x'));
    await rejectsWith(Code.NOT_FOUND, importBackup(db, 'd', 'x'), /has no backup x/);
    await rejectsWith(Code.NOT_FOUND, exportBackup(db, 'none', 'x'));
    await rejectsWith(Code.INVALID_ARGUMENT, exportBackup(db, 'b', '../x'));
    await rejectsWith(Code.INVALID_ARGUMENT, importBackup(db, 'd', '.x'));
    await rejectsWith(Code.ALREADY_EXISTS, importBackup(db, 'b', (await exportBackup(db, 'c', 'y')).id));
    await db.close();
  });

  test('takes the place of files that an attempt has left', async () => {
    const world = new World();
    const db = await world.start();
    await fill(db);
    await backUp(db, 'b', 't');
    const left = await world.backupStore.create('files/x/earlier/1-1');
    await left.append(Buffer.from('of an attempt that was cut short'));
    await left.close();
    const { files } = await exportBackup(db, 'b', 'x');
    assert.deepEqual((await paths(world.backupStore, 'files/x/')).length, files + 1);
    await importBackup(db, 'c', 'x');
    await db.close();
  });

  test('that is damaged, or has lost a file, is refused, and nothing of it stays', async () => {
    const world = new World();
    const db = await world.start();
    await fill(db);
    await backUp(db, 'b', 't');
    await exportBackup(db, 'b', 'x');
    const there = await paths(world.backupStore);
    const own = await paths(world.fileSystem, FILES_DIRECTORY);
    const whole = await Promise.all(
      there.map(
        async (path) => [path, await world.backupStore.read(path, 0, await world.backupStore.size(path))] as const,
      ),
    );
    const write = async (path: string, bytes: Buffer): Promise<void> => {
      await world.backupStore.delete(path);
      const writer = await world.backupStore.create(path);
      await writer.append(bytes);
      await writer.close();
    };
    for (const [path, bytes] of whole) {
      await damage(world.backupStore, path);
      await rejectsWith(Code.DATA_LOSS, importBackup(db, 'd', 'x'), new RegExp(path));
      await write(path, bytes.subarray(0, bytes.length - 3));
      await rejectsWith(Code.DATA_LOSS, importBackup(db, 'd', 'x'), new RegExp(path));
      await world.backupStore.delete(path);
      const isManifest = path.startsWith('manifests/');
      await rejectsWith(isManifest ? Code.NOT_FOUND : Code.DATA_LOSS, importBackup(db, 'd', 'x'));
      await write(path, bytes);
    }
    await rejectsWith(Code.NOT_FOUND, db.service.backups!.getBackup(db.context(), `${BACKUPS}d`));
    await db.database.sweep();
    assert.deepEqual(await paths(world.fileSystem, FILES_DIRECTORY), own);
    await importBackup(db, 'd', 'x');

    await damage(world.backupStore, 'manifests/x');
    assert.deepEqual(await listExports(db), [{ id: 'x', state: 'unreadable' }]);
    await rejectsWith(Code.ALREADY_EXISTS, exportBackup(db, 'b', 'x'), /cannot be read/);
    await deleteExport(db, 'x');
    assert.deepEqual(await paths(world.backupStore), []);
    await db.close();
  });

  test('is not made of a file that is damaged', async () => {
    const world = new World();
    const db = await world.start();
    await fill(db);
    await backUp(db, 'b', 't');
    await db.close();
    const next = await world.start();
    const [path] = await paths(world.fileSystem, FILES_DIRECTORY);
    const bytes = await world.fileSystem.read(path!, 0, await world.fileSystem.size(path!));
    bytes[40]! ^= 1;
    await world.fileSystem.delete(path!);
    const writer = await world.fileSystem.create(path!);
    await writer.append(bytes);
    await writer.close();
    await rejectsWith(Code.DATA_LOSS, exportBackup(next, 'b', 'x'));
    assert.deepEqual(await paths(world.backupStore), []);
    await next.close();
  });

  test('keeps its files while it is imported and the files are swept', async () => {
    const world = new World();
    const db = await world.start();
    await fill(db);
    await backUp(db, 'b', 't');
    await exportBackup(db, 'b', 'x');
    let isDone = false;
    let sweeps = 0;
    const sweeping = (async () => {
      while (!isDone) {
        await db.database.sweep();
        sweeps++;
      }
    })();
    for (const name of ['c', 'd', 'e']) await importBackup(db, name, 'x');
    isDone = true;
    await sweeping;
    assert.ok(sweeps > 3, `${sweeps} sweeps`);
    for (const name of ['c', 'd', 'e']) {
      await restore(db, `of-${name}`, name);
      assert.deepEqual(await db.read(`of-${name}`), FILLED);
    }
    await db.close();
  });
});

/** Backs up, exports, loses the table and imports, until the power fails. What is promised when. */
class Life {
  isExported: 'no' | 'perhaps' | 'yes' = 'no';
  isImported: 'no' | 'perhaps' | 'yes' = 'no';
  isDeleted: 'no' | 'perhaps' | 'yes' = 'no';
  readonly #db: TestDatabase;

  constructor(db: TestDatabase) {
    this.#db = db;
  }

  async live(): Promise<void> {
    const db = this.#db;
    // an instance is there as long as it has a table
    await db.create('other');
    await db.create('t', { splits: ['m'] });
    await db.set('t', 'a', '1');
    await db.set('t', 'n', '1');
    await backUp(db, 'b', 't');
    this.isExported = 'perhaps';
    await exportBackup(db, 'b', 'x');
    this.isExported = 'yes';
    await db.delete('t');
    await db.service.backups!.deleteBackup(db.context(), `${BACKUPS}b`);
    await db.database.sweep();
    this.isImported = 'perhaps';
    await importBackup(db, 'c', 'x');
    this.isImported = 'yes';
    await db.database.sweep();
    this.isDeleted = 'perhaps';
    await deleteExport(db, 'x');
    this.isDeleted = 'yes';
    await db.close();
  }
}

async function crashAt(at: number): Promise<boolean> {
  let life: Life | undefined;
  const { crashed, world } = await liveUntilCrash(at, {}, (db) => {
    life = new Life(db);
    return life.live();
  });
  const db = await world.start();
  const listed = await listExports(db);
  const { isExported = 'no', isImported = 'no', isDeleted = 'no' } = life ?? {};
  if (isExported === 'no' || isDeleted === 'yes') assert.deepEqual(listed, []);
  if (isExported === 'yes' && isDeleted === 'no') assert.equal(listed.length, 1);
  if (listed.length > 0) {
    await db.create('another');
    await importBackup(db, 'again', 'x');
    await restore(db, 'u', 'again');
    assert.deepEqual(await db.read('u'), [
      ['a', '1'],
      ['n', '1'],
    ]);
    await deleteExport(db, 'x');
  }
  const ready = (await db.service.backups!.listBackups(db.context(), BACKUPS)).filter(({ state }) => state === 'ready');
  const hasCopy = ready.some(({ name }) => name === `${BACKUPS}c`);
  assert.ok(isImported === 'perhaps' || hasCopy === (isImported === 'yes'), 'what was imported is there');
  if (hasCopy) {
    await restore(db, 'v', 'c');
    assert.equal((await db.read('v')).length, 2);
  }
  // nothing but what is listed, here and there
  for (const { name } of ready) await db.service.backups!.deleteBackup(db.context(), name);
  for (const { name } of await db.service.listTables(db.context(), TABLES)) await db.delete(name.slice(TABLES.length));
  await until(async () => {
    await db.database.sweep();
    return (await paths(world.fileSystem, IMPORTED_FILES)).length === 0;
  });
  await db.create('t');
  await backUp(db, 'last', 't');
  await exportBackup(db, 'last', 'x');
  await deleteExport(db, 'x');
  assert.deepEqual(await paths(world.backupStore), []);
  await db.close();
  return crashed;
}

describe('the power fails while backups are exported and imported', () => {
  test('what was answered is there, and nothing is left over, here and there', { timeout: 240_000 }, async () => {
    let points = 0;
    for (let at = 1; await crashAt(at); at += 3) points++;
    assert.ok(points > 20, `only ${points} points`);
  });
});

test('the checksum of what is exported is that of all its bytes', async () => {
  const world = new World();
  const db = await world.start();
  await fill(db);
  await backUp(db, 'b', 't');
  await exportBackup(db, 'b', 'x');
  const rows = (await paths(world.backupStore)).find((path) => path.endsWith('/rows'))!;
  const text = (await world.backupStore.read(rows, 0, await world.backupStore.size(rows))).toString('utf8');
  const files = text.split('\n').flatMap((line) => (line.startsWith('{') ? (JSON.parse(line).file ?? []) : []));
  assert.ok(files.length >= 3);
  for (const { path, sizeBytes, checksum } of files) {
    const bytes = await world.backupStore.read(path, 0, await world.backupStore.size(path));
    assert.deepEqual([bytes.length, crc32c(bytes)], [sizeBytes, checksum]);
  }
  await db.close();
});
