/** Kept tables over losses of power at any point: what was answered is so, no row is lost, and no file is left over. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code, toBigtableError } from '../base/index.ts';
import { listFiles } from '../env/index.ts';
import { deletionPath } from '../metadata/index.ts';
import { keepAlive, liveUntilCrash, TABLES, type TestDatabase, until } from './fixtures.ts';

const SETTINGS = { keepDeletedMs: 86_400_000 };

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

/** Rows and their values. */
type Rows = readonly (readonly string[])[];

/** The tables of one name: the one that exists, and those that are kept, the last deletion first. */
interface Stack {
  readonly exists: Rows | undefined;
  readonly kept: readonly Rows[];
}

/** A life in which tables of one name are created, deleted, restored, swept, and removed. */
class Life {
  /** The states in which the tables may be. */
  allowed: readonly Stack[] = [{ exists: undefined, kept: [] }];
  readonly #db: TestDatabase;

  constructor(db: TestDatabase) {
    this.#db = db;
  }

  async live(): Promise<void> {
    const db = this.#db;
    await this.#create();
    await this.#write('a', '1');
    await this.#write('n', '1');
    await this.#delete();
    await db.database.sweep();
    await this.#undelete();
    await this.#write('a', '2');
    await db.database.flush();
    await this.#write('n', '2');
    await this.#delete();
    await this.#create();
    await this.#write('b', '3');
    await this.#delete();
    await db.database.sweep();
    await this.#undelete();
    await this.#deleteNow();
    await this.#undelete();
    await this.#write('c', '4');
    await this.#delete();
    await this.#deleteNow();
    await db.close();
  }

  get #now(): Stack {
    return this.allowed[0]!;
  }

  async #changes(next: Stack, change: () => Promise<unknown>): Promise<void> {
    this.allowed = [this.#now, next];
    await change();
    this.allowed = [next];
  }

  #create(): Promise<void> {
    return this.#changes({ ...this.#now, exists: [] }, () => this.#db.create('t', { splits: ['m'] }));
  }

  #write(row: string, value: string): Promise<void> {
    const others = (this.#now.exists ?? []).filter(([other]) => other !== row);
    const rows = [...others, [row, value]].sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
    return this.#changes({ ...this.#now, exists: rows }, () => this.#db.set('t', row, value));
  }

  #delete(): Promise<void> {
    const { exists, kept } = this.#now;
    return this.#changes({ exists: undefined, kept: [exists!, ...kept] }, () => this.#db.delete('t'));
  }

  #undelete(): Promise<void> {
    const [exists, ...kept] = this.#now.kept;
    return this.#changes({ exists, kept }, () => undelete(this.#db));
  }

  #deleteNow(): Promise<void> {
    const { exists, kept } = this.#now;
    const next = { exists: undefined, kept: exists === undefined ? kept.slice(1) : kept };
    return this.#changes(next, () => deleteNow(this.#db));
  }
}

const undelete = (db: TestDatabase) => db.service.undeleteTable(db.context(), `${TABLES}t`);
const deleteNow = (db: TestDatabase) => db.service.deleteTable(db.context(), `${TABLES}t`, true);

/** Restores and removes one table after another. */
async function found(db: TestDatabase): Promise<Stack> {
  const exists = (await db.service.listTableNames(db.context(), TABLES)).length > 0;
  const rows = exists ? await db.read('t') : undefined;
  if (exists) await deleteNow(db);
  const kept: Rows[] = [];
  for (;;) {
    const listed = (await db.service.listDeletedTables(db.context(), TABLES)).length;
    try {
      await undelete(db);
    } catch (thrown) {
      assert.equal(toBigtableError(thrown).code, Code.NOT_FOUND);
      assert.equal(listed, 0);
      return { exists: rows, kept };
    }
    kept.push(await db.read('t'));
    await deleteNow(db);
  }
}

/** Lets the power fail at the storage's operation number `at`. False where the life ended before. */
async function crashAt(at: number): Promise<boolean> {
  let life: Life | undefined;
  const { crashed, world } = await liveUntilCrash(at, { settings: SETTINGS }, (db) => {
    life = new Life(db);
    return life.live();
  });
  const next = await world.start();
  if (life !== undefined) {
    const allowed = life.allowed.map((state) => JSON.stringify(state));
    const state = JSON.stringify(await found(next));
    assert.ok(allowed.includes(state), `at ${at}: ${state}, and not ${allowed.join(' or ')}`);
  }
  await until(async () => {
    await next.database.sweep();
    const { files, logs } = await next.database.sweep();
    const { lockService } = next.env;
    const marks = [...(await listFiles(lockService, deletionPath())), ...(await listFiles(lockService, 'kept/'))];
    return files === 0 && logs === 0 && marks.length === 0;
  });
  await next.close();
  return crashed;
}

describe('the power fails while tables are deleted and restored', () => {
  test('what was answered is so, no row is lost, and no file is left over', { timeout: 280_000 }, async () => {
    let points = 0;
    for (let at = 1; await crashAt(at); at += 3) points++;
    assert.ok(points > 20, `only ${points} points`);
  });
});
