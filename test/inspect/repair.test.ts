/**
 * METADATA is lost in several ways, `repairDirectory` makes it again, and everything that was in the database is there.
 */
import assert from 'node:assert/strict';
import { cp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { checkDirectory, openForInspection, repairDirectory } from '../../src/boot/index.ts';
import { BigtableError, Code, type Database, open, RowMutation } from '../../src/embedded/index.ts';
import { SeededRandom } from '../../src/env/index.ts';
import { describeSsTable } from '../../src/sstable/index.ts';
import { copyOf, filesIn, flip, temporaryDirectory } from './damage.ts';

/** EDUBBA_SEED=N tries another life. */
const SEEDS = process.env['EDUBBA_SEED'] === undefined ? [1] : [Number(process.env['EDUBBA_SEED'])];
const FAMILIES = ['a', 'b', 'c', 'n'] as const;
const LAYOUTS = [
  {},
  { one: { families: ['a'] } },
  { one: { families: ['b', 'c'] }, two: { families: ['a'] } },
  { two: { families: ['b', 'n'] } },
];

/** Every cell of every table, a line each. */
async function contentsOf(database: Database): Promise<string[]> {
  const lines: string[] = [];
  for (const name of await database.listTables()) {
    const schema = await database.table(name).schema();
    lines.push(`${name}: ${JSON.stringify(schema.families)}`);
    for await (const { key, cells } of database.table(name).scan({ versions: 100 })) {
      for (const { family, qualifier, timestamp, value } of cells)
        lines.push(`${name} ${key} ${family}:${qualifier}@${timestamp}=${value.toString('hex')}`);
    }
  }
  return lines;
}

/** Copies of files that were there at some time, to be put back as what a crash leaves. */
class Stash {
  readonly #directory: string;
  readonly #stash: string;

  constructor(directory: string) {
    this.#directory = join(directory, 'files', 'sstables');
    this.#stash = `${directory}-stash`;
  }

  async take(): Promise<void> {
    // what is deleted while it is copied was not there
    await cp(this.#directory, this.#stash, { recursive: true }).catch(() => {});
  }

  async putBack(directory: string): Promise<number> {
    const before = (await filesIn(directory)).length;
    await cp(this.#stash, join(directory, 'files', 'sstables'), { recursive: true });
    return (await filesIn(directory)).length - before;
  }
}

/**
 * A random life of a database, with flushes, compactions, families moved between groups, and new starts. `droppings`:
 * whole ranges of rows are deleted, too.
 */
async function live(directory: string, seed: number, droppings: boolean, stash: Stash): Promise<string[]> {
  const random = new SeededRandom(seed);
  const below = (most: number): number => Math.floor(random.float() * most);
  let database = await open(directory, { blockSizeBytes: 1024 });
  const families = { a: {}, b: { maxVersions: 3 }, c: {}, n: { aggregate: 'sum' as const } };
  await database.createTable('one', { families, splits: ['row-3', 'row-6'] });
  await database.createTable('two', { families, groups: LAYOUTS[1] ?? {} });
  // of each family something is always there
  for (const table of ['one', 'two'])
    await database
      .table(table)
      .apply(new RowMutation('always').set('a:', 'x', 1).set('b:', 'x', 1).set('c:', 'x', 1).add('n:', 1, 0));
  for (let step = 0; step < 80; step++) {
    const table = database.table(random.float() < 0.7 ? 'one' : 'two');
    const row = `row-${below(10)}`;
    const family = FAMILIES[below(4)] as (typeof FAMILIES)[number];
    const kind = random.float();
    if (kind < 0.55) {
      const mutation = new RowMutation(row);
      await table.apply(
        family === 'n'
          ? mutation.add(`n:${below(3)}`, below(100), 0)
          : mutation.set(`${family}:${below(3)}`, `value ${step} `.repeat(1 + below(20)), below(50) * 1000),
      );
    } else if (kind < 0.62) await table.deleteRow(row);
    else if (kind < 0.7) await table.apply(new RowMutation(row).deleteFamily(family));
    else if (kind < 0.76 && family !== 'n') await table.apply(new RowMutation(row).delete(`${family}:${below(3)}`));
    else if (kind < 0.78 && droppings) await table.deleteRows({ prefix: row });
    else if (kind < 0.88) await database.flush();
    else if (kind < 0.92) await database.compact(...(random.float() < 0.5 ? (['one'] as const) : []));
    else if (kind < 0.95) await table.setGroups(LAYOUTS[below(LAYOUTS.length)] ?? {});
    else if (kind < 0.97) {
      await database.close();
      database = await open(directory, { blockSizeBytes: 1024 });
    }
    if (kind > 0.78) await stash.take();
  }
  const contents = await contentsOf(database);
  if (random.float() < 0.5) await database.flush();
  await database.close();
  return contents;
}

const isMetadata = async (directory: string, path: string): Promise<boolean> => {
  const source = await openForInspection(directory);
  try {
    return (await describeSsTable(source, path.slice('files/'.length))).properties.lineage?.tableId === '00000000';
  } finally {
    await source.close();
  }
};

async function metadataFiles(directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const path of await filesIn(directory))
    if (path.startsWith('files/sstables/') && (await isMetadata(directory, path))) found.push(path);
  return found;
}

async function rootFile(directory: string): Promise<string> {
  for (const path of await filesIn(directory)) {
    if (
      path.startsWith('files/lock-service/files/') &&
      (await readFile(join(directory, path))).subarray(36, 41).toString() === 'root{'
    )
      return path;
  }
  return assert.fail('there is no root file');
}

const LOSSES: Readonly<Record<string, (directory: string) => Promise<void>>> = {
  'the root tablet’s location is gone': async (directory) => rm(join(directory, await rootFile(directory))),
  'the root tablet’s location is damaged': async (directory) => flip(join(directory, await rootFile(directory)), 50),
  'METADATA’s SSTables are gone': async (directory) => {
    for (const path of await metadataFiles(directory)) await rm(join(directory, path));
  },
  'METADATA’s SSTables are damaged': async (directory) => {
    for (const path of await metadataFiles(directory)) await flip(join(directory, path), 3);
  },
};

describe('repairing a database', () => {
  let home: Awaited<ReturnType<typeof temporaryDirectory>>;
  const alive = setInterval(() => {}, 1000);
  before(async () => {
    home = await temporaryDirectory();
  });
  after(async () => {
    clearInterval(alive);
    await home.remove();
  });

  async function isWhole(directory: string, expected: readonly string[]): Promise<void> {
    assert.deepEqual((await checkDirectory(directory)).findings, []);
    const database = await open(directory);
    try {
      assert.deepEqual(await contentsOf(database), expected);
      const table = await database.createTable('new', { families: { f: {} } });
      await table.apply(new RowMutation('row').set('f:q', 'v'));
      await database.table('one').apply(new RowMutation('always').add('n:', 1, 0));
      assert.equal((await database.table('one').getCell('always', 'n:'))?.int, 2n, 'writes go on where they were');
      await database.compact();
      await database.deleteTable('new');
      await database.table('one').apply(new RowMutation('always').add('n:', -1, 0));
      assert.deepEqual(await contentsOf(database), expected, 'after compactions');
    } finally {
      await database.close();
    }
    assert.deepEqual((await checkDirectory(directory)).findings, []);
  }

  for (const seed of SEEDS) {
    for (const leftovers of [false, true]) {
      test(`everything is there again, seed ${seed}${leftovers ? ', with all files that compactions had replaced' : ''}`, async () => {
        const directory = join(home.path, `life-${seed}-${leftovers}`);
        const stash = new Stash(directory);
        const expected = await live(directory, seed, !leftovers, stash);
        assert.deepEqual((await checkDirectory(directory)).findings, []);
        for (const [i, [name, lose]] of Object.entries(LOSSES).entries()) {
          // each loss with half of the lives
          if (i % 2 !== (seed + Number(leftovers)) % 2) continue;
          const damaged = await copyOf(directory, `${directory}-damaged-${name.length}`);
          if (leftovers) assert.ok((await stash.putBack(damaged)) > 0, 'files are put back');
          await lose(damaged);
          const { findings } = await checkDirectory(damaged);
          if (findings.length === 0) {
            // all of METADATA is in the log
            assert.deepEqual(await metadataFiles(damaged), []);
            await rm(damaged, { recursive: true });
            continue;
          }
          const elsewhere = `${damaged}-elsewhere`;
          const report = await repairDirectory(damaged, elsewhere);
          assert.deepEqual(
            report.unsaved.filter((what) => !what.includes('lock service') && !what.startsWith('an SSTable')),
            [],
            name,
          );
          assert.deepEqual(report.notes, []);
          if (leftovers) assert.ok(report.superfluous.length > 0);
          await isWhole(elsewhere, expected);
          await rm(elsewhere, { recursive: true });
          await repairDirectory(damaged).then(
            () => isWhole(damaged, expected),
            (error: unknown) =>
              assert.ok(
                error instanceof BigtableError &&
                  error.code === Code.FAILED_PRECONDITION &&
                  name.includes('SSTables are damaged'),
                String(error),
              ),
          );
          await rm(damaged, { recursive: true });
        }
      });
    }
  }
});
