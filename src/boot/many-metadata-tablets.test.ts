/** Inspection, check and repair of a database whose METADATA has many tablets. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { allRows, type AllRows, assertSound } from '../../test/metadata-rows.ts';
import { keepAlive, TABLES, type TestDatabase, until, World } from './fixtures.ts';
import { type FileSystem, sleep } from '../env/index.ts';
import { carryOutRepair, checkDatabase, type InspectedTablet, inspectMetadata, planRepair } from '../inspect/index.ts';
import { readAllLockFiles, systemClock } from '../platform/index.ts';

const SPLITS = Array.from({ length: 30 }, (_, i) => `r${10 + i}`);

const ends: (() => void)[] = [];
before(() => void ends.push(keepAlive()));
after(() => ends.forEach((end) => end()));

/** A table of 31 tablets, and METADATA of at least `tablets`. */
async function filled(tablets: number): Promise<{ world: World; db: TestDatabase }> {
  const world = new World({ tabletBytes: 2000 });
  const db = await world.start();
  await db.create('t', { splits: SPLITS });
  for (const row of SPLITS) await db.set('t', row, row);
  await db.database.flush();
  await until(async () => (await allRows(db.env, db.context())).metadata.length >= tablets);
  return { world, db };
}

/** METADATA's rows once nothing changes them any more. */
async function settled(db: TestDatabase): Promise<AllRows> {
  let all = await allRows(db.env, db.context());
  await until(async () => {
    const before = all;
    await sleep(systemClock, 300);
    all = await allRows(db.env, db.context());
    return isDeepStrictEqual(all, before);
  });
  return all;
}

const lockFilesOf = ({ env }: TestDatabase) => readAllLockFiles(env.fileSystem);

/** The tablets that inspection shows; `onTablet` is called with each. */
async function inspected(
  db: TestDatabase,
  onTablet: (tablet: InspectedTablet) => Promise<void> = async () => {},
  fileSystem: FileSystem = db.env.fileSystem,
): Promise<InspectedTablet[]> {
  const lockServiceFiles = async () => (await lockFilesOf(db)).files;
  const tablets: InspectedTablet[] = [];
  for await (const tablet of (await inspectMetadata({ ...db.env, fileSystem, lockServiceFiles })).tablets()) {
    tablets.push(tablet);
    await onTablet(tablet);
  }
  return tablets;
}

/** METADATA's rows, and what inspection and a check show of them, while nothing changed them. */
async function inspectedInPeace(db: TestDatabase) {
  for (;;) {
    const all = await settled(db);
    const tablets = await inspected(db);
    const { findings, counts } = await checkDatabase({ ...db.env, readAllLockFiles: () => lockFilesOf(db) });
    if (isDeepStrictEqual(await allRows(db.env, db.context()), all)) return { all, tablets, findings, counts };
  }
}

const usersOf = (tablets: readonly InspectedTablet[]) => tablets.filter(({ rowIn }) => rowIn === 'METADATA');

describe('a database whose METADATA has many tablets', () => {
  test('is shown whole, and checked, from logs and from files', async () => {
    const { db } = await filled(4);
    for (const flushed of [false, true]) {
      if (flushed) await db.database.flush();
      else await db.database.splitTablet(`${TABLES}t`, 'r105');
      const { all, tablets, findings, counts } = await inspectedInPeace(db);
      assert.deepEqual(
        tablets.filter(({ rowIn }) => rowIn === 'root tablet').map(({ row }) => row),
        all.metadata,
      );
      assert.deepEqual(
        usersOf(tablets).map(({ row }) => row),
        all.users,
      );
      assert.deepEqual(findings, []);
      assert.equal(counts.tablets, 1 + all.metadata.length + all.users.length);
    }
    await db.close();
  });

  test('is shown whole while METADATA’s tablets are split', async () => {
    const { db } = await filled(2);
    const before = (await allRows(db.env, db.context())).metadata.length;
    let splits = 0;
    const tablets = await inspected(db, async ({ rowIn, row }) => {
      // METADATA's tablets are listed, and none is read; later those above
      if (rowIn !== 'METADATA' && row.range.end !== undefined) return;
      if (splits >= SPLITS.length) return;
      for (const start of SPLITS.slice(splits, splits + 5)) {
        splits++;
        for (const part of ['2', '4', '6', '8']) await db.database.splitTablet(`${TABLES}t`, `${start}${part}`);
      }
      await db.database.flush();
    });
    await until(async () => (await allRows(db.env, db.context())).metadata.length > before + 2);
    const users = usersOf(tablets);
    const keys = users.map(({ key }) => key);
    assert.deepEqual(keys, [...new Set(keys)].sort(), 'each once, in order');
    for (const [i, { row }] of users.entries())
      assert.ok(i === 0 ? row.range.start === '' : row.range.start <= users[i - 1]!.row.range.end!, 'none is left out');
    assert.equal(users.at(-1)?.row.range.end, undefined);
    await db.close();
  });

  test('is repaired after its root, or one of its tablets, was lost', async () => {
    for (const lost of ['the root file', 'a tablet of METADATA'] as const) {
      const { world, db } = await filled(4);
      const rows = await db.read('t');
      const { metadata } = await allRows(db.env, db.context());
      await db.database.flush();
      const [file] = Object.values((await allRows(db.env, db.context())).metadata[1]!.files).flat();
      await db.close();
      const env = await world.env();
      if (lost === 'the root file') await env.lockService.remove('root');
      else await env.fileSystem.delete(file!);
      const components = { ...env, readAllLockFiles: () => readAllLockFiles(env.fileSystem) };
      assert.ok((await checkDatabase(components)).findings.length > 0, lost);
      const plan = await planRepair(components);
      assert.deepEqual([plan.unsaved, plan.notes], [[], []]);
      const uniqueName = (): string => env.random.uniqueName();
      await carryOutRepair(components, plan, { ...env, isElsewhere: false, uniqueName });
      assert.deepEqual((await checkDatabase(components)).findings, []);
      const again = await world.start();
      assert.deepEqual(await again.read('t'), rows);
      for (const row of SPLITS) await again.database.splitTablet(`${TABLES}t`, `${row}5`);
      await until(async () => (await allRows(again.env, again.context())).metadata.length >= metadata.length);
      assertSound(await allRows(again.env, again.context()));
      await again.database.compact();
      assert.deepEqual(await again.read('t'), rows);
      await again.close();
    }
  });
});
