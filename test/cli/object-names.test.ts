/**
 * Tables, families and locality groups may be called what every JavaScript object has already (`__proto__`,
 * `constructor`). Nothing of them is lost on the way through the command line, files, restarts, merges of tablets and a
 * repair.
 */
import assert from 'node:assert/strict';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { repairDirectory } from '../../src/boot/index.ts';
import { type Database, type GroupLayout, open, RowMutation } from '../../src/embedded/index.ts';
import { OBJECT_NAMES } from '../behaviour/suite.ts';
import { documents, output, temporaryDirectory } from './run.ts';

const ROWS = ['a', 'm', 'z'];
const SORTED = [...OBJECT_NAMES].sort();
/** Each family lies in a group of its own name. */
const GROUPS: GroupLayout = Object.fromEntries(
  OBJECT_NAMES.map((name) => [name, { families: [name], bloomFilter: 'none' as const }]),
);

/** Every cell as `row family=text`. */
async function cellsOf(database: Database, table = 't'): Promise<string[]> {
  const cells: string[] = [];
  for await (const row of database.table(table).scan())
    for (const cell of row.cells) cells.push(`${row.name} ${cell.family}=${cell.text}`);
  return cells;
}

async function filled(
  t: TestContext,
): Promise<{ readonly directory: string; readonly database: Database; readonly cells: readonly string[] }> {
  const directory = join(await temporaryDirectory(t), 'data');
  const database = await open(directory);
  const table = await database.createTable('t', {
    families: Object.fromEntries(OBJECT_NAMES.map((name) => [name, { group: name }])),
    groups: GROUPS,
    splits: ['k'],
  });
  for (const row of ROWS)
    await table.apply(
      OBJECT_NAMES.reduce((mutation, name) => mutation.set(`${name}:q`, `${row} ${name}`, 1000), new RowMutation(row)),
    );
  return { directory, database, cells: ROWS.flatMap((row) => SORTED.map((name) => `${row} ${name}=${row} ${name}`)) };
}

const groupsOf = async (database: Database): Promise<unknown[]> =>
  Object.entries((await database.table('t').schema()).groups ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));

test('locality groups keep such names over flushes, merges of tablets, compactions and restarts', async (t) => {
  const { directory, database: first, cells } = await filled(t);
  const tuned = SORTED.map((name) => [name, { bloomFilter: 'none' }]);
  assert.deepEqual(await groupsOf(first), tuned);
  await first.flush();
  await first.merge('t', 'k');
  assert.deepEqual(await cellsOf(first), cells);
  assert.deepEqual(
    (await first.table('t').statistics()).map(({ family, cells: count }) => [family, count]).sort(),
    SORTED.map((name) => [name, ROWS.length]),
  );
  await first.close();

  const second = await open(directory);
  assert.deepEqual(await groupsOf(second), tuned);
  assert.deepEqual(await cellsOf(second), cells);
  await second.table('t').setGroups({
    ['__proto__']: { families: ['constructor'], inMemory: true },
    constructor: { families: ['__proto__'] },
  });
  assert.deepEqual(await groupsOf(second), [
    ['__proto__', { inMemory: true }],
    ['constructor', {}],
  ]);
  await second.compact();
  await second.close();

  const third = await open(directory);
  assert.deepEqual(await groupsOf(third), [
    ['__proto__', { inMemory: true }],
    ['constructor', {}],
  ]);
  assert.deepEqual(await cellsOf(third), cells);
  const families = new Map(Object.entries((await third.table('t').schema()).families));
  assert.deepEqual(
    SORTED.map((name) => families.get(name)?.group),
    [undefined, 'constructor', '__proto__', undefined, undefined, undefined],
  );
  await third.close();
});

test('the command line sets and shows groups and families of such names', async (t) => {
  const words = ['--dir', join(await temporaryDirectory(t), 'data')];
  await output([...words, 'createtable', 't', `families=${OBJECT_NAMES.map((name) => `${name}:never`).join(',')}`]);
  await output([...words, 'set', 't', 'r', ...OBJECT_NAMES.map((name) => `${name}:q=${name}@1000`)]);
  await output([...words, 'setgroups', 't', '__proto__=__proto__:inmemory=true', 'constructor=toString:bloom=none']);
  const families = JSON.parse(await output([...words, '--json', 'ls', 't'])) as {
    name: string;
    group?: string;
    tuning?: object;
  }[];
  const group = (name: string): [string, string | undefined, object | undefined] =>
    name === '__proto__'
      ? [name, '__proto__', { inMemory: true }]
      : name === 'toString'
        ? [name, 'constructor', { bloomFilter: 'none' }]
        : [name, undefined, undefined];
  assert.deepEqual(
    families.map(({ name, group: of, tuning }) => [name, of, tuning]),
    SORTED.map(group),
  );
  assert.match(await output([...words, 'ls', 't']), /^__proto__\s+__proto__ \{"inMemory":true\}$/m);
  const statistics = JSON.parse(await output([...words, '--json', 'stats', 't'])) as {
    family: string;
    cells: number;
  }[];
  assert.deepEqual(
    statistics.map(({ family, cells }) => [family, cells]).sort(),
    SORTED.map((name) => [name, 1]),
  );
  const [row] = documents(await output([...words, '--json', 'read', 't'])) as {
    cells: { family: string; value: string }[];
  }[];
  assert.deepEqual(
    row?.cells.map(({ family, value }) => [family, value]),
    SORTED.map((name) => [name, name]),
  );
});

test('inspection shows such names, and a repair brings them back', async (t) => {
  const { directory, database, cells } = await filled(t);
  await database.flush();
  const row = new RowMutation('later');
  for (const name of OBJECT_NAMES) row.set(`${name}:q`, `later ${name}`, 1000);
  await database.table('t').apply(row);
  await database.close();
  const [, table] = documents(await output(['inspect', 'metadata', directory, '--json'])) as unknown as {
    families: object;
    groups: object;
  }[];
  assert.deepEqual(Object.keys(table?.families ?? {}).sort(), SORTED);
  assert.deepEqual(Object.keys(table?.groups ?? {}).sort(), SORTED);

  const all = [
    ...cells.slice(0, SORTED.length),
    ...SORTED.map((name) => `later ${name}=later ${name}`),
    ...cells.slice(SORTED.length),
  ];
  await repairDirectory(directory, `${directory}-repaired`);
  await isRepaired(`${directory}-repaired`, 't', all);
  // the schema is made of what the files tell
  await rm(await schemaFileOf(directory));
  await repairDirectory(directory, `${directory}-rebuilt`);
  await isRepaired(`${directory}-rebuilt`, /recovered-/, all);
});

async function isRepaired(directory: string, name: string | RegExp, cells: readonly string[]): Promise<void> {
  const database = await open(directory);
  try {
    const table = (await database.listTableNames()).find(
      (full) => full.endsWith(`/${name}`) || (name instanceof RegExp && name.test(full)),
    );
    assert.ok(table, `${await database.listTableNames()}`);
    assert.deepEqual(await cellsOf(database, table), cells);
    const { families, groups } = await database.table(table).schema();
    assert.deepEqual(
      Object.values(families)
        .map(({ name: family, group }) => [family, group])
        .sort(),
      SORTED.map((family) => [family, family]),
    );
    assert.deepEqual(Object.keys(groups ?? {}).sort(), SORTED);
  } finally {
    await database.close();
  }
}

/** The file of the lock service that is the table's schema. */
async function schemaFileOf(directory: string): Promise<string> {
  const files = join(directory, 'files', 'lock-service', 'files');
  for (const name of await readdir(files))
    if ((await readFile(join(files, name))).includes('"deletionProtection"')) return join(files, name);
  return assert.fail('there is no schema');
}
