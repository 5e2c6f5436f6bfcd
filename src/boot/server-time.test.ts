/** Server timestamps over the whole system, under a wall clock that is set forward and back. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import type { ByteString } from '../base/index.ts';
import { MemoryFileSystem, sleep } from '../env/index.ts';
import { carryOutRepair, planRepair } from '../inspect/index.ts';
import type { Mutation } from '../model/index.ts';
import { nativeCodecs, openLocalLockService, readAllLockFiles, systemClock, systemRandom } from '../platform/index.ts';
import { keepAlive, TABLES, type TestDatabase, World, type WorldOptions } from './fixtures.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

const SECOND = 1_000_000;
const YEAR = 365 * 86_400 * SECOND;
const NOON = 1_800_000_000 * SECOND + 123_456;

/** A world whose wall clock is set by the test. */
class TimedWorld extends World {
  readonly wall: { micros: number };

  constructor(options: WorldOptions = {}) {
    const wall = { micros: NOON };
    super({ ...options, clock: { ...systemClock, nowMicros: () => wall.micros } });
    this.wall = wall;
  }

  get warnings(): string[] {
    return this.messages.filter((message) => message.startsWith('the wall clock is behind'));
  }
}

async function begun(world: World, granularity: 'micros' | 'millis' = 'micros', versions = 1): Promise<TestDatabase> {
  const db = await world.start();
  const families = [{ name: 'f', gcRule: { kind: 'maxVersions', versions } as const }];
  await db.service.createTable(db.context(), {
    name: `${TABLES}t`,
    families,
    splits: [],
    granularity,
    deletionProtection: false,
  });
  return db;
}

const timeless = (value: string, qualifier = 'q'): Mutation => ({
  kind: 'setCell',
  family: 'f',
  qualifier,
  value: Buffer.from(value),
});

/** A write with the server's time. */
const put = (db: TestDatabase, row: ByteString, value: string): Promise<void> => db.mutate('t', row, timeless(value));

/** The row's cells as `value@timestamp`, newest first. */
async function cellsOf(db: TestDatabase, row: ByteString): Promise<string[]> {
  const cells: string[] = [];
  for await (const { fragments } of db.service.readRows(db.context(), {
    table: `${TABLES}t`,
    ranges: [{ start: row, end: `${row}\0` }],
  })) {
    for (const fragment of fragments)
      cells.push(...fragment.cells.map(({ value, timestamp }) => `${Buffer.from(value).toString()}@${timestamp}`));
  }
  return cells;
}

/**
 * The METADATA of the table is lost: all files and logs in a new file system, where `inspect repair` has made METADATA
 * again.
 */
async function repaired(world: World): Promise<MemoryFileSystem> {
  const { fileSystem } = world;
  const components = {
    fileSystem,
    codecs: nativeCodecs(),
    clock: systemClock,
    readAllLockFiles: () => readAllLockFiles(fileSystem),
  };
  const elsewhere = new MemoryFileSystem();
  const uniqueName = (): string => systemRandom.uniqueName();
  const plan = await planRepair(components);
  await carryOutRepair(components, plan, {
    fileSystem: elsewhere,
    lockService: await openLocalLockService(elsewhere),
    isElsewhere: true,
    uniqueName,
  });
  return elsewhere;
}

describe('a wall clock that steps back', () => {
  test('does not let an earlier write hide a later one', async () => {
    const world = new TimedWorld();
    const db = await begun(world);
    await put(db, 'r', 'old');
    world.wall.micros -= 2 * SECOND;
    await put(db, 'r', 'new');
    assert.deepEqual(await cellsOf(db, 'r'), [`new@${NOON + 1}`]);
    await put(db, 'r', 'newer');
    assert.deepEqual(await cellsOf(db, 'r'), [`newer@${NOON + 2}`]);
    world.wall.micros = NOON + 10;
    await put(db, 'r', 'newest');
    assert.deepEqual(await cellsOf(db, 'r'), [`newest@${NOON + 10}`], 'from then on the clock sets the time');
    await db.close();
  });

  for (const durability of ['synced', 'buffered'] as const) {
    test(`is the same for all calls that use the server's time (${durability})`, async () => {
      const world = new TimedWorld({ settings: { durability } });
      const db = await begun(world);
      const { service } = db;
      const rows = ['batch', 'check', 'append', 'wide', 'wide batch'];
      for (const row of rows) await put(db, row, 'old');
      world.wall.micros -= YEAR;
      const wide = Array.from({ length: 2500 }, (_, i) => timeless(`new ${i}`, i === 2499 ? 'q' : `w${i % 3}`));
      const batch = [
        { row: 'batch', mutations: [timeless('new')] },
        { row: 'wide batch', mutations: wide },
      ];
      assert.deepEqual(await service.mutateRows(db.context(), `${TABLES}t`, batch), [undefined, undefined]);
      await service.checkAndMutateRow(db.context(), {
        table: `${TABLES}t`,
        row: 'check',
        whenTrue: [timeless('new')],
        whenFalse: [],
      });
      await service.readModifyWriteRow(db.context(), `${TABLES}t`, 'append', [
        { family: 'f', qualifier: 'q', change: { kind: 'append', suffix: Buffer.from('er') } },
      ]);
      await db.mutate('t', 'wide', ...wide);
      const expected: [string, string][] = [
        ['batch', 'new'],
        ['check', 'new'],
        ['append', 'older'],
        ['wide', 'new 2499'],
        ['wide batch', 'new 2499'],
      ];
      for (const [row, value] of expected) {
        const found = (await cellsOf(db, row)).find((cell) => cell.startsWith(`${value}@`));
        assert.ok(found !== undefined && Number(found.split('@')[1]) > NOON, `${row}: ${await cellsOf(db, row)}`);
      }
      await db.close();
    });
  }

  test('is compensated in whole milliseconds in a table of milliseconds, and the later write is the one that is read', async () => {
    const world = new TimedWorld();
    const db = await begun(world, 'millis', 5);
    const cut = (micros: number): number => micros - (micros % 1000);
    await put(db, 'r', 'old');
    world.wall.micros -= SECOND;
    await put(db, 'r', 'new');
    assert.deepEqual(await cellsOf(db, 'r'), [`new@${cut(NOON)}`]);
    // 544 more reach the next millisecond
    for (let i = 0; i < 543; i++) await put(db, 'r', `${i}`);
    assert.deepEqual(await cellsOf(db, 'r'), [`542@${cut(NOON) + 1000}`, `541@${cut(NOON)}`]);
    await db.database.flush();
    await put(db, 'r', 'last');
    assert.deepEqual(await cellsOf(db, 'r'), [`last@${cut(NOON) + 1000}`, `541@${cut(NOON)}`]);
    await db.close();
  });

  test('nor does a clock that advances: a write that waited for its row lies above those it waited for', async () => {
    let release = (): void => {};
    let gate: Promise<void> | undefined;
    const world = new TimedWorld({ faults: (operation) => (operation === 'syncLog' ? gate : undefined) });
    const db = await begun(world);
    gate = new Promise((resolve) => (release = resolve));
    // a change that is applied in several slices keeps its row locked until it is applied
    const large = db.mutate('t', 'r', ...Array.from({ length: 2001 }, () => timeless('large')));
    for (let i = 0; i < 20; i++) await systemClock.yield();
    const predicate = { kind: 'valueRegex', regex: 'large' } as const;
    const second = db.service.checkAndMutateRow(db.context(), {
      table: `${TABLES}t`,
      row: 'r',
      predicate,
      whenTrue: [timeless('seen')],
      whenFalse: [],
    });
    for (let i = 0; i < 20; i++) await systemClock.yield();
    world.wall.micros += SECOND;
    gate = undefined;
    release();
    await large;
    assert.equal(await second, true);
    assert.deepEqual(await cellsOf(db, 'r'), [`seen@${NOON + SECOND}`]);
    await db.close();
  });

  test('is logged once, with its lag, and again after the next jump', async () => {
    const world = new TimedWorld();
    const db = await begun(world);
    await put(db, 'r', '1');
    world.wall.micros -= SECOND / 2;
    await put(db, 'r', '2');
    assert.deepEqual(world.warnings, [], 'half a second is no reason for a warning');
    world.wall.micros = NOON - 90 * SECOND;
    for (let i = 0; i < 20; i++) await put(db, `r${i % 3}`, `${i}`);
    assert.equal(world.warnings.length, 1, world.warnings.join('\n'));
    assert.match(String(world.warnings[0]), /"behindMs":90000\b/);
    world.wall.micros = NOON + 60 * SECOND;
    await put(db, 'r', 'in sync');
    world.wall.micros = NOON;
    for (let i = 0; i < 20; i++) await put(db, `r${i % 3}`, `${i}`);
    assert.equal(world.warnings.length, 2, world.warnings.join('\n'));
    await db.close();
  });
});

describe('the newest time that a server assigned', () => {
  /** The event to survive, with the database that continues. */
  const ways: [string, (db: TestDatabase, world: TimedWorld) => Promise<TestDatabase>][] = [
    [
      'a close and a start',
      async (db, world) => {
        await db.close();
        return world.start();
      },
    ],
    [
      'the loss of power',
      async (_db, world) => {
        world.crash();
        return world.start();
      },
    ],
    [
      'a flush, a close and a start',
      async (db, world) => {
        await db.database.flush();
        await db.close();
        return world.start();
      },
    ],
    [
      'a flush and the loss of power',
      async (db, world) => {
        await db.database.flush();
        world.crash();
        return world.start();
      },
    ],
    [
      'a major compaction and a start',
      async (db, world) => {
        await db.database.compact();
        await db.close();
        return world.start();
      },
    ],
    [
      'a major compaction that leaves nothing',
      async (db, world) => {
        for (const row of ['a', 'z']) await db.mutate('t', row, { kind: 'deleteFromRow' });
        await db.database.compact();
        await db.database.sweep();
        await db.close();
        return world.start();
      },
    ],
    [
      'a split',
      async (db) => {
        await db.database.splitTablet(`${TABLES}t`, 'm');
        return db;
      },
    ],
    [
      'a split, a start, and a merge',
      async (db, world) => {
        await db.database.splitTablet(`${TABLES}t`, 'm');
        await db.close();
        const next = await world.start();
        await next.database.mergeTablets(`${TABLES}t`, 'm');
        return next;
      },
    ],
    [
      'a split of which one part gets no file',
      async (db, world) => {
        await db.database.splitTablet(`${TABLES}t`, 'zz');
        await db.database.splitTablet(`${TABLES}t`, 'm');
        await db.close();
        return world.start();
      },
    ],
    [
      'the repair of METADATA from files',
      async (db, world) => {
        await db.database.flush();
        await db.close();
        world.fileSystem = await repaired(world);
        return world.start();
      },
    ],
    [
      'the repair of METADATA from logs',
      async (_db, world) => {
        world.crash();
        world.fileSystem = await repaired(world);
        return world.start();
      },
    ],
  ];
  for (const [what, survive] of ways) {
    test(`survives ${what}`, async () => {
      const world = new TimedWorld();
      let db = await begun(world);
      // assigned while the clock was ahead, and so above the times in which files and logs were written
      for (const row of ['a', 'z']) await put(db, row, 'old');
      world.wall.micros -= 2 * YEAR;
      for (const row of ['a', 'z']) await put(db, row, 'before');
      db = await survive(db, world);
      for (const row of ['a', 'z', 'zzz']) await put(db, row, 'after');
      for (const row of ['a', 'z', 'zzz']) {
        const [cell = ''] = await cellsOf(db, row);
        const micros = Number(cell.split('@')[1]);
        assert.ok(
          cell.startsWith('after@') && micros > NOON + 1 && micros <= NOON + 10,
          `row ${row}: ${cell}, ${micros - NOON} us above the newest before the step`,
        );
      }
      await db.close();
    });
  }

  test('of a merged tablet is the newer of both', async () => {
    const world = new TimedWorld();
    let db = await begun(world);
    await db.database.splitTablet(`${TABLES}t`, 'm');
    for (const newer of ['a', 'z']) {
      const start = (world.wall.micros += YEAR);
      await put(db, newer, 'old');
      world.wall.micros -= YEAR / 2;
      await db.database.mergeTablets(`${TABLES}t`, 'm');
      await db.close();
      db = await world.start();
      for (const row of ['a', 'z']) await put(db, row, 'new');
      assert.deepEqual([await cellsOf(db, 'a'), await cellsOf(db, 'z')], [[`new@${start + 1}`], [`new@${start + 2}`]]);
      await db.database.splitTablet(`${TABLES}t`, 'm');
      world.wall.micros = start;
    }
    await db.close();
  });

  test('goes with the tablet to another server, when the tablet is moved and when its server has died', async () => {
    let failLog: string | undefined;
    const world = new TimedWorld({
      tabletServers: 2,
      faults: (operation, path) => {
        if (operation === 'syncLog' && path === failLog) throw new Error('the disk is gone');
      },
    });
    const db = await begun(world);
    const starts = ['', 'c', 'f', 'j'];
    for (const row of starts.slice(1)) await db.database.splitTablet(`${TABLES}t`, row);
    const rows = ['a', 'd', 'g', 'k'];
    for (const row of rows) await put(db, row, 'old');
    while ((db.env.metrics.snapshot()['master.movedTablets'] ?? 0) < 2) await sleep(systemClock, 10);
    world.wall.micros -= YEAR;
    for (const row of rows) await put(db, row, 'moved');
    for (const row of rows)
      assert.match((await cellsOf(db, row)).join(), new RegExp(`^moved@${String(NOON).slice(0, -2)}`));
    failLog = (await world.fileSystem.listLogs('logs/'))[1];
    await Promise.allSettled(rows.map((row) => put(db, row, 'dies')));
    failLog = undefined;
    world.wall.micros -= YEAR;
    for (const row of rows) await put(db, row, 'new');
    for (const row of rows)
      assert.match((await cellsOf(db, row)).join(), new RegExp(`^new@${String(NOON).slice(0, -2)}`));
    await db.close();
  });

  test("is never a client's, in memory, in the log, in files", async () => {
    const world = new TimedWorld();
    let db = await begun(world, 'micros', 2);
    const future = NOON + 100 * YEAR;
    await db.mutate('t', 'r', { ...timeless('future'), timestamp: future } as Mutation);
    // a client's, on a clock that was ahead
    world.wall.micros += YEAR;
    await db.mutate('t', 'r', { ...timeless('future too'), timestamp: future - 1 } as Mutation);
    await db.mutate('t', 's', { kind: 'deleteFromRow' });
    world.wall.micros -= YEAR;
    for (const row of ['1', '2']) {
      await put(db, row, 'now');
      assert.deepEqual(await cellsOf(db, row), [`now@${NOON}`]);
      if (row === '1') world.crash();
      else await db.database.flush().then(() => db.close());
      db = await world.start();
      await put(db, `${row} again`, 'now');
      assert.deepEqual(await cellsOf(db, `${row} again`), [`now@${NOON}`]);
    }
    assert.deepEqual(world.warnings, []);
    await db.close();
  });
});

/** One step of the property. Rows `a` and `z` lie in one tablet or in two. */
type Step =
  | { readonly kind: 'step'; readonly micros: number }
  | { readonly kind: 'put' | 'append' | 'check' | 'delete'; readonly row: 'a' | 'z' }
  | { readonly kind: 'client'; readonly row: 'a' | 'z'; readonly aheadMicros: number }
  | { readonly kind: 'flush' | 'compact' | 'divide' | 'reopen' | 'crash' };

const ofRow = (...kinds: ('put' | 'append' | 'check' | 'delete')[]): fc.Arbitrary<Step> =>
  fc.record({ kind: fc.constantFrom(...kinds), row: fc.constantFrom('a', 'z') });
const oneStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('step'),
      micros: fc.constantFrom(-2 * YEAR, -YEAR, -SECOND, -1, 1, 5, SECOND, YEAR),
    }),
  },
  { weight: 8, arbitrary: ofRow('put', 'append', 'check') },
  { weight: 1, arbitrary: ofRow('delete') },
  // never the instant of the write itself: a client's time equal to it is mistaken for the server's when the log is
  // replayed
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('client'),
      row: fc.constantFrom('a', 'z'),
      aheadMicros: fc.constantFrom(-YEAR - 3, -7, 7, 100 * YEAR + 7),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('flush', 'compact', 'divide', 'reopen', 'crash') }) },
) as fc.Arbitrary<Step>;

/**
 * The table in plain data: of each row and column, values by timestamp; of each tablet, the newest time that its server
 * assigned.
 */
class Model {
  readonly #columns = new Map<string, Map<number, string>>();
  #lastMicros: number[] = [0];
  readonly #wall: { readonly micros: number };

  constructor(wall: { readonly micros: number }) {
    this.#wall = wall;
  }

  get isDivided(): boolean {
    return this.#lastMicros.length === 2;
  }

  divide(): void {
    const [low = 0, high = low] = this.#lastMicros;
    this.#lastMicros = this.isDivided ? [Math.max(low, high)] : [low, low];
  }

  serverTime(row: string): number {
    const tablet = this.isDivided && row === 'z' ? 1 : 0;
    const last = this.#lastMicros[tablet]!;
    return (this.#lastMicros[tablet] = this.#wall.micros >= last ? this.#wall.micros : last + 1);
  }

  set(row: string, qualifier: string, timestamp: number, value: string): void {
    const key = `${row} ${qualifier}`;
    this.#columns.set(key, (this.#columns.get(key) ?? new Map<number, string>()).set(timestamp, value));
  }

  delete(row: string): void {
    for (const qualifier of ['n', 'q']) this.#columns.delete(`${row} ${qualifier}`);
  }

  /** The cell with the highest timestamp in each column. */
  cells(row: string): string[] {
    return ['n', 'q'].flatMap((qualifier) => {
      const [newest] = [...(this.#columns.get(`${row} ${qualifier}`) ?? [])].sort(([a], [b]) => b - a);
      return newest === undefined ? [] : [`${newest[1]}@${newest[0]}`];
    });
  }

  valueOf(row: string, qualifier: string): string {
    return [...(this.#columns.get(`${row} ${qualifier}`) ?? [])].sort(([a], [b]) => b - a)[0]?.[1] ?? '';
  }
}

describe('server timestamps, whatever the clock does and whichever server has the tablet', () => {
  /** Performs the step, on the model too. Returns the database that continues. */
  async function take(
    step: Step,
    number: number,
    db: TestDatabase,
    world: TimedWorld,
    model: Model,
  ): Promise<TestDatabase> {
    const value = `v${number}`;
    switch (step.kind) {
      case 'step':
        world.wall.micros += step.micros;
        return db;
      case 'put':
        await put(db, step.row, value);
        model.set(step.row, 'q', model.serverTime(step.row), value);
        return db;
      case 'check':
        await db.service.checkAndMutateRow(db.context(), {
          table: `${TABLES}t`,
          row: step.row,
          whenTrue: [timeless(value)],
          whenFalse: [timeless(value)],
        });
        model.set(step.row, 'q', model.serverTime(step.row), value);
        return db;
      case 'append': {
        const change = { kind: 'append', suffix: Buffer.from('+') } as const;
        await db.service.readModifyWriteRow(db.context(), `${TABLES}t`, step.row, [
          { family: 'f', qualifier: 'n', change },
        ]);
        model.set(step.row, 'n', model.serverTime(step.row), `${model.valueOf(step.row, 'n')}+`);
        return db;
      }
      case 'client': {
        const timestamp = world.wall.micros + step.aheadMicros;
        await db.mutate('t', step.row, { ...timeless(value), timestamp } as Mutation);
        model.set(step.row, 'q', timestamp, value);
        return db;
      }
      case 'delete':
        await db.mutate('t', step.row, { kind: 'deleteFromRow' });
        model.delete(step.row);
        return db;
      case 'flush':
        await db.database.flush();
        return db;
      case 'compact':
        await db.database.compact();
        return db;
      case 'divide':
        await (model.isDivided
          ? db.database.mergeTablets(`${TABLES}t`, 'm')
          : db.database.splitTablet(`${TABLES}t`, 'm'));
        model.divide();
        return db;
      case 'reopen':
        await db.close();
        return world.start();
      case 'crash':
        world.crash();
        return world.start();
    }
  }

  test("are those of the model, and a read returns the last write with the server's time", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(oneStep, { minLength: 4, maxLength: 25 }), async (steps) => {
        const world = new TimedWorld();
        const model = new Model(world.wall);
        let db = await begun(world);
        for (const [i, step] of steps.entries()) {
          db = await take(step, i, db, world, model);
          for (const row of ['a', 'z'])
            assert.deepEqual(await cellsOf(db, row), model.cells(row), `row ${row} after step ${i}`);
        }
        await db.close();
      }),
      { numRuns: 60 },
    );
  });
});
