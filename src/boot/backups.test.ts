/** Backups over losses of power at any point: what was answered is there with its rows, and no file is left over. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code, toBigtableError } from '../base/index.ts';
import type { NewBackup } from '../model/index.ts';
import { keepAlive, liveUntilCrash, TABLES, type TestDatabase, until } from './fixtures.ts';

const BACKUPS = 'projects/p/instances/i/clusters/edubba/backups/';
const KEPT_MICROS = 24 * 3_600_000_000;

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

type Rows = readonly (readonly [row: string, value: string])[];

/** What may be found of a backup or a table: undefined = that there is none. */
interface Promised {
  readonly backups: Map<string, readonly (Rows | undefined)[]>;
  readonly tables: Map<string, readonly (Rows | undefined)[]>;
}

/** A life in which tables are backed up, rewritten, swept, deleted, and restored. */
class Life {
  readonly promised: Promised = { backups: new Map(), tables: new Map() };
  readonly #rows = new Map<string, Map<string, string>>();
  readonly #db: TestDatabase;

  constructor(db: TestDatabase) {
    this.#db = db;
  }

  async live(): Promise<void> {
    const db = this.#db;
    await this.#changesTable('t', new Map(), () => db.create('t', { splits: ['m'] }));
    await this.#write('t', 'a', '1');
    await this.#write('t', 'n', '1');
    await this.#backUp('first', 't');
    await this.#write('t', 'a', '2');
    await this.#rewrite('t');
    await db.database.sweep();
    await this.#restore('u', 'first');
    await this.#write('u', 'b', '3');
    await this.#copy('copy', 'first');
    await this.#delete('first');
    await this.#rewrite('u');
    await db.database.sweep();
    await this.#changesTable('t', undefined, () => db.delete('t'));
    await this.#backUp('second', 'u');
    await this.#restore('v', 'copy');
    await this.#delete('copy');
    await db.database.sweep();
    await db.close();
  }

  async #changesTable(table: string, rows: Map<string, string> | undefined, change: () => Promise<unknown>) {
    const before = this.#rows.get(table);
    this.promised.tables.set(table, [before && rowsOf(before), rows && rowsOf(rows)]);
    await change();
    if (rows === undefined) this.#rows.delete(table);
    else this.#rows.set(table, rows);
    this.promised.tables.set(table, [rows && rowsOf(rows)]);
  }

  #write(table: string, row: string, value: string): Promise<void> {
    const rows = new Map(this.#rows.get(table)).set(row, value);
    return this.#changesTable(table, rows, () => this.#db.set(table, row, value));
  }

  async #rewrite(table: string): Promise<void> {
    for await (const _ of this.#db.service.compactTables(this.#db.context(), TABLES + table));
  }

  async #changesBackup(backup: string, rows: Rows | undefined, change: () => Promise<unknown>): Promise<void> {
    const { backups } = this.promised;
    backups.set(backup, [...(backups.get(backup) ?? [undefined]), rows]);
    await change();
    backups.set(backup, [rows]);
  }

  #backUp(backup: string, table: string): Promise<void> {
    return this.#changesBackup(backup, rowsOf(this.#rows.get(table)!), () =>
      backUp(this.#db, backup, { source: TABLES + table }),
    );
  }

  #copy(backup: string, source: string): Promise<void> {
    return this.#changesBackup(backup, this.promised.backups.get(source)![0], () =>
      backUp(this.#db, backup, { source: BACKUPS + source }),
    );
  }

  #delete(backup: string): Promise<void> {
    return this.#changesBackup(backup, undefined, () =>
      this.#db.service.backups!.deleteBackup(this.#db.context(), BACKUPS + backup),
    );
  }

  #restore(table: string, backup: string): Promise<void> {
    const rows = new Map(this.promised.backups.get(backup)![0]);
    return this.#changesTable(table, rows, () => restore(this.#db, table, backup));
  }
}

function backUp(db: TestDatabase, backup: string, more: Pick<NewBackup, 'source'>) {
  const expireMicros = db.env.clock.nowMicros() + KEPT_MICROS;
  return db.service.backups!.createBackup(db.context(), {
    name: BACKUPS + backup,
    kind: 'standard',
    expireMicros,
    ...more,
  });
}

function restore(db: TestDatabase, table: string, backup: string) {
  return db.service.backups!.restoreTable(db.context(), TABLES + table, BACKUPS + backup);
}

function rowsOf(rows: ReadonlyMap<string, string>): Rows {
  return [...rows].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** All is as promised; then everything is deleted, and nothing is left. */
async function check(db: TestDatabase, { backups, tables }: Promised): Promise<void> {
  const tableNames = (await db.service.listTables(db.context(), TABLES)).map(({ name }) => name.slice(TABLES.length));
  for (const [table, allowed] of tables)
    assertOneOf(tableNames.includes(table) ? await db.read(table) : undefined, allowed, `table ${table}`);
  const all = await db.service.backups!.listBackups(db.context(), BACKUPS);
  const ready = all.filter(({ state }) => state === 'ready').map(({ name }) => name.slice(BACKUPS.length));
  for (const [backup, allowed] of backups) {
    if (!ready.includes(backup)) assertOneOf(undefined, allowed, `backup ${backup}`);
    else {
      await restore(db, `of-${backup}`, backup);
      assertOneOf(await db.read(`of-${backup}`), allowed, `backup ${backup}`);
      await db.delete(`of-${backup}`);
    }
  }
  for (const { name, state } of all)
    await db.service.backups!.deleteBackup(db.context(), name).catch((thrown: unknown) => {
      // one whose creation was cut short is removed by the master
      if (state === 'ready' || toBigtableError(thrown).code !== Code.NOT_FOUND) throw thrown;
    });
  for (const table of tableNames) await db.delete(table);
}

function assertOneOf(found: unknown, allowed: readonly (Rows | undefined)[], what: string): void {
  const texts = allowed.map((each) => JSON.stringify(each));
  assert.ok(texts.includes(JSON.stringify(found)), `${what}: ${JSON.stringify(found)}, and not ${texts.join(' or ')}`);
}

/** Lets the power fail at the storage's operation number `at`. False where the life ended before. */
async function crashAt(at: number): Promise<boolean> {
  let life: Life | undefined;
  const { crashed, world } = await liveUntilCrash(at, {}, (db) => {
    life = new Life(db);
    return life.live();
  });
  const next = await world.start();
  if (life !== undefined) await check(next, life.promised);
  await until(async () => {
    await next.database.sweep();
    const { files, logs } = await next.database.sweep();
    return files === 0 && logs === 0;
  });
  await next.close();
  return crashed;
}

describe('the power fails while tables are backed up and restored', () => {
  test('what was answered is there with its rows, and no file is left over', { timeout: 240_000 }, async () => {
    let points = 0;
    for (let at = 1; await crashAt(at); at += 3) points++;
    assert.ok(points > 20, `only ${points} points`);
  });
});
