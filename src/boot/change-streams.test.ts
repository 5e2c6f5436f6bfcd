/**
 * Change streams over the whole system: what consumers read, over splits, merges, restarts and losses of power, makes
 * the same table once more. EDUBBA_STREAM_ROUNDS=1000 is the long form.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ChangeConsumer } from '../../test/change-consumer.ts';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import { Code, toBigtableError } from '../base/index.ts';
import { ManualClock, SeededRandom } from '../env/index.ts';
import { checkDatabase } from '../inspect/index.ts';
import { readAllLockFiles } from '../platform/index.ts';
import { LOGS_DIRECTORY } from '../protocol/index.ts';
import { rejectsWith, setCell, TABLES, type TestDatabase, World } from './fixtures.ts';

const ROUNDS = Number(process.env['EDUBBA_STREAM_ROUNDS'] ?? 30);
const FIRST_SEED = Number(process.env['EDUBBA_STREAM_SEED'] ?? 1);
const DAY_MICROS = 86_400e6;
const ROWS = ['a', 'c', 'e', 'g', 'i', 'k', 'm', 'o', 'q', 's', 'u', 'w', 'y'];
const BOUNDARIES = ['d', 'h', 'l', 'p', 't'];

/** A test whose clock goes on by itself. */
function inTime(work: (clock: ManualClock, wait: (ms: number) => void) => Promise<void>): () => Promise<void> {
  return () => {
    const clock = new ManualClock();
    let waits = 0;
    const wait = (ms: number): void => {
      waits++;
      clock.advance(ms);
    };
    return inSimulatedTime(clock, work(clock, wait), undefined, () => waits);
  };
}

/** Family `f` keeps all versions, `g` one. */
async function createStreamed(db: TestDatabase, table: string, splits: readonly string[] = []): Promise<void> {
  await db.service.createTable(db.context(), {
    name: TABLES + table,
    families: [{ name: 'f' }, { name: 'g', gcRule: { kind: 'maxVersions', versions: 1 } }],
    splits,
    granularity: 'micros',
    deletionProtection: false,
    changeStream: { retentionMicros: DAY_MICROS },
  });
}

/** The rows of the table, with families, times and values. */
async function contents(db: TestDatabase, table: string): Promise<string[]> {
  const all: string[] = [];
  for await (const { fragments } of db.service.readRows(db.context(), { table: TABLES + table }))
    for (const { row, cells } of fragments)
      for (const { family, qualifier, timestamp, value } of cells)
        all.push(`${row} ${family}:${qualifier} ${timestamp} ${Buffer.from(value)}`);
  return all;
}

/** One database in which a table changes in many ways. */
class Life {
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly consumer: ChangeConsumer;
  db: TestDatabase;
  #writes = 0;

  private constructor(world: World, random: SeededRandom, db: TestDatabase) {
    this.#world = world;
    this.#random = random;
    this.db = db;
    this.consumer = new ChangeConsumer('t', db.env.clock.nowMicros());
  }

  static async begin(clock: ManualClock, seed: number, tabletServers: number): Promise<Life> {
    const world = new World({ clock, tabletServers });
    const db = await world.start();
    await createStreamed(db, 't', ['l']);
    await db.create('copy', { families: [{ name: 'f' }, { name: 'g' }] });
    return new Life(world, new SeededRandom(seed), db);
  }

  async step(): Promise<void> {
    const drawn = this.#random.float();
    if (drawn < 0.55) return this.#write();
    if (drawn < 0.62)
      return void (await this.#whateverComes(this.db.database.splitTablet(`${TABLES}t`, this.#one(BOUNDARIES))));
    if (drawn < 0.69)
      return void (await this.#whateverComes(this.db.database.mergeTablets(`${TABLES}t`, this.#one(BOUNDARIES))));
    if (drawn < 0.72) return this.db.service.flush(this.db.context());
    if (drawn < 0.74) return this.compact();
    if (drawn < 0.78) return void (await this.db.database.sweep());
    if (drawn < 0.82) return this.#restart(false);
    if (drawn < 0.86) return this.#restart(true);
    if (drawn < 0.9) {
      const start = this.#one(BOUNDARIES);
      return this.db.service.dropRowRange(this.db.context(), `${TABLES}t`, { start, end: `${start}\xff` });
    }
    await this.consumer.catchUp(this.db, drawn < 0.95 ? Math.floor(this.#random.float() * 20) : undefined);
  }

  /** Major compactions: they drop old versions, which the stream has to tell of. */
  async compact(): Promise<void> {
    for await (const _ of this.db.service.compactTables(this.db.context(), `${TABLES}t`));
  }

  async #write(): Promise<void> {
    const row = this.#one(ROWS);
    const value = String(++this.#writes);
    const family = this.#random.float() < 0.5 ? 'f' : 'g';
    const drawn = this.#random.float();
    const time = 1 + Math.floor(this.#random.float() * 3);
    if (drawn < 0.6) await this.db.mutate('t', row, setCell(value, family, time));
    else if (drawn < 0.7) await this.db.mutate('t', row, { kind: 'deleteFromRow' });
    else if (drawn < 0.8)
      await this.db.mutate('t', row, { kind: 'deleteFromFamily', family }, setCell(value, 'f', time));
    else if (drawn < 0.9)
      await this.db.service.readModifyWriteRow(this.db.context(), `${TABLES}t`, row, [
        { family, qualifier: 'n', change: { kind: 'append', suffix: Buffer.from(value) } },
      ]);
    else {
      const rows = [row, this.#one(ROWS)].map((key) => ({ row: key, mutations: [setCell(value, family, time)] }));
      await this.db.service.mutateRows(this.db.context(), `${TABLES}t`, rows);
    }
  }

  async #restart(isCrash: boolean): Promise<void> {
    if (isCrash) this.#world.crash(this.#random);
    else await this.db.close();
    this.db = await this.#world.start();
  }

  /** A split where there is a boundary already, a merge where there is none. */
  async #whateverComes(work: Promise<unknown>): Promise<void> {
    await work.catch((thrown: unknown) => {
      const { code } = toBigtableError(thrown);
      if (code !== Code.FAILED_PRECONDITION && code !== Code.ABORTED && code !== Code.UNAVAILABLE) throw thrown;
    });
  }

  #one(of: readonly string[]): string {
    return of[Math.floor(this.#random.float() * of.length)]!;
  }
}

describe('a change stream', () => {
  test(
    `makes the same table once more, over splits, merges, restarts and losses of power (${ROUNDS} seeds)`,
    inTime(async (clock) => {
      let closed = 0;
      let changes = 0;
      let collected = 0;
      for (let seed = FIRST_SEED; seed < FIRST_SEED + ROUNDS; seed++) {
        const life = await Life.begin(clock, seed, 1 + (seed % 2));
        for (let i = 0; i < 60; i++) await life.step();
        const { db, consumer } = life;
        await life.compact();
        await consumer.catchUp(db);
        await ChangeConsumer.replay(consumer.changes, db.service, db, 'copy');
        assert.deepEqual(await contents(db, 'copy'), await contents(db, 't'), `seed ${seed}`);
        closed += consumer.closed;
        changes += consumer.changes.length;
        collected += consumer.changes.filter(({ origin }) => origin === 'garbageCollection').length;
        await db.close();
      }
      assert.ok(closed > ROUNDS / 3 && changes > ROUNDS * 10, `${closed} partitions closed, ${changes} changes`);
      assert.ok(collected > ROUNDS, `${collected} changes by garbage collection`);
    }),
  );

  test(
    'of a table that had none begins when UpdateTable returns, and ends when it is taken away',
    inTime(async (clock) => {
      const world = new World({ clock });
      let db = await world.start();
      await db.create('t');
      await db.set('t', 'a', 'before');
      clock.advance(1);
      await rejectsWith(Code.FAILED_PRECONDITION, db.service.changes!.changeStreamRanges(db.context(), `${TABLES}t`));
      await db.service.updateTable(db.context(), `${TABLES}t`, { changeStream: { retentionMicros: DAY_MICROS } });
      const consumer = new ChangeConsumer('t', clock.nowMicros());
      await db.set('t', 'b', 'since');
      world.crash();
      db = await world.start();
      await db.set('t', 'c', 'later');
      await consumer.catchUp(db);
      assert.deepEqual(
        consumer.changes.map(({ row }) => row),
        ['b', 'c'],
      );
      await db.service.flush(db.context());
      await db.database.sweep();
      const { fileSystem } = db.env;
      assert.equal((await fileSystem.listLogs(LOGS_DIRECTORY)).length, 2, 'that of the past is kept for the stream');
      const report = await checkDatabase({ ...db.env, readAllLockFiles: () => readAllLockFiles(fileSystem) });
      assert.deepEqual([report.findings, report.orphans], [[], []], 'and is needed');
      await db.service.updateTable(db.context(), `${TABLES}t`, { changeStream: 'none' });
      await rejectsWith(Code.FAILED_PRECONDITION, consumer.catchUp(db));
      await db.service.flush(db.context());
      await db.database.sweep();
      assert.equal((await db.env.fileSystem.listLogs(LOGS_DIRECTORY)).length, 1, 'the logs of the past are gone');
      await db.close();
    }),
  );

  test(
    'goes on when its table was deleted and is restored',
    inTime(async (clock) => {
      const world = new World({ clock, settings: { keepDeletedMs: 86_400_000 } });
      const db = await world.start();
      await createStreamed(db, 't');
      const consumer = new ChangeConsumer('t', clock.nowMicros());
      await db.set('t', 'a', '1');
      await consumer.catchUp(db);
      await db.set('t', 'b', '2');
      await db.delete('t');
      await db.database.sweep();
      await db.service.undeleteTable(db.context(), `${TABLES}t`);
      await db.set('t', 'c', '3');
      await consumer.catchUp(db);
      assert.deepEqual(
        consumer.changes.map(({ row }) => row),
        ['a', 'b', 'c'],
      );
      await db.close();
    }),
  );

  test(
    'that begins at a time reads no log from its beginning that is older',
    inTime(async (clock, wait) => {
      const world = new World({ clock });
      let db = await world.start();
      await createStreamed(db, 't');
      const write = async (count: number): Promise<void> => {
        for (let i = 0; i < count; i++) await db.set('t', `r${i}`, 'v');
        wait(3_600_000);
        await db.service.flush(db.context());
        wait(3_600_000);
      };
      await write(100);
      await db.close();
      db = await world.start();
      for (const count of [1, 100, 100]) await write(count);
      // appends that are read
      const { fileSystem } = world;
      const read = fileSystem.readLog.bind(fileSystem);
      let appends = 0;
      fileSystem.readLog = async function* (...args) {
        for await (const append of read(...args)) {
          appends++;
          yield append;
        }
      };
      const consumers = [0, 2.5, 4.5].map((hours) => new ChangeConsumer('t', clock.nowMicros() - hours * 3_600e6));
      await write(10);
      const counts: number[] = [];
      for (const consumer of consumers) {
        appends = 0;
        await consumer.catchUp(db);
        counts.push(appends);
      }
      assert.deepEqual(
        consumers.map(({ changes }) => changes.length),
        [10, 110, 210],
      );
      for (const [i, { changes }] of consumers.entries())
        assert.ok(counts[i]! < changes.length + 30, `${counts} appends were read`);
      await db.close();
    }),
  );

  test(
    'keeps logs as long as its retention says, and says so to a consumer that comes later',
    inTime(async (clock, wait) => {
      const world = new World({ clock });
      let db = await world.start();
      await createStreamed(db, 't');
      const slow = new ChangeConsumer('t', clock.nowMicros());
      await db.set('t', 'a', '1');
      await slow.catchUp(db);
      await db.set('t', 'b', '2');
      await db.close();
      db = await world.start();
      await db.set('t', 'c', '3');
      await db.database.sweep();
      assert.equal((await db.env.fileSystem.listLogs(LOGS_DIRECTORY)).length, 2);
      wait((DAY_MICROS / 1000) * 1.1);
      await db.set('t', 'd', '4');
      await db.service.flush(db.context());
      await db.database.sweep();
      assert.equal((await db.env.fileSystem.listLogs(LOGS_DIRECTORY)).length, 1);
      await rejectsWith(Code.OUT_OF_RANGE, slow.catchUp(db), /no longer kept/);
      await rejectsWith(Code.OUT_OF_RANGE, new ChangeConsumer('t', 1).catchUp(db), /cannot begin before/);
      clock.advance(1);
      const fresh = new ChangeConsumer('t', clock.nowMicros());
      await db.set('t', 'e', '5');
      await fresh.catchUp(db);
      assert.deepEqual(
        fresh.changes.map(({ row }) => row),
        ['e'],
      );
      await db.close();
    }),
  );

  test(
    'is whole for a consumer that begins before it, though logs were trimmed until then, and servers came and went',
    inTime(async (clock, wait) => {
      const world = new World({ clock });
      let db = await world.start();
      await db.create('other');
      const trim = async (): Promise<void> => {
        for (const row of ['a', 'b', 'c']) {
          await db.set('other', row, row);
          await db.service.flush(db.context());
        }
        wait(10_000);
      };
      await trim();
      await createStreamed(db, 't');
      const begun = clock.nowMicros();
      wait(10_000);
      await db.set('t', 'a', '1');
      // an owner that writes nothing to the table, and ends
      for (const isCrash of [false, true, true]) {
        if (isCrash) world.crash();
        else await db.close();
        db = await world.start();
      }
      await trim();
      await db.set('t', 'b', '2');
      for (const startMicros of [begun - 3600e6, begun]) {
        const consumer = new ChangeConsumer('t', startMicros);
        await consumer.catchUp(db);
        assert.deepEqual(
          consumer.changes.map(({ row }) => row),
          ['a', 'b'],
        );
      }
      await db.close();
    }),
  );
});
