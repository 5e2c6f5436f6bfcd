import assert from 'node:assert/strict';
import { FilterCompiler } from '../filter/index.ts';
import { describe, test } from 'node:test';
import { BigtableError, type ByteString, Code } from '../base/index.ts';
import { type LogRecord, readAppends, type RedoPoint, ServerLog } from '../commitlog/index.ts';
import {
  ByteBudget,
  type Env,
  type FileFaults,
  InlineWorkers,
  LocalTransport,
  ManualClock,
  MemoryFileSystem,
  MemoryLockService,
  Metrics,
  type RequestContext,
  requestContext,
  SeededRandom,
  silentLogger,
} from '../env/index.ts';
import { LIMITS, type Mutation, rangeOfRow, type TableSchema } from '../model/index.ts';
import { nativeCodecs } from '../platform/index.ts';
import { BlockCache, MemoryBudget } from '../sstable/index.ts';
import { Tablet } from './tablet.ts';
import type { TabletCommit, TabletHost, TabletState } from './contract/tablet-state.ts';

const SCHEMA: TableSchema = {
  name: 'projects/p/instances/i/tables/t',
  id: '00000010',
  granularity: 'micros',
  deletionProtection: false,
  families: { f: { name: 'f' }, sum: { name: 'sum', valueType: { aggregate: { kind: 'sum', input: 'int64' } } } },
};
const STATE: TabletState = {
  tableId: SCHEMA.id,
  range: { start: '', end: undefined },
  epoch: 1,
  files: {},
  redo: { epoch: 0, sequence: 0 },
  logs: [],
};

/** A tablet whose server is the plainest possible host. */
class Fixture {
  readonly fileSystem: MemoryFileSystem;
  readonly env: Env;
  readonly context: RequestContext;
  leaseHeld = true;
  commits: TabletCommit[] = [];
  released: string[] = [];
  onCommit: () => Promise<void> = async () => {};
  tablet!: Tablet;
  log!: ServerLog;
  #files = 0;

  constructor(fileSystem = new MemoryFileSystem()) {
    this.fileSystem = fileSystem;
    const clock = new ManualClock();
    this.env = {
      fileSystem,
      lockService: new MemoryLockService(),
      transport: new LocalTransport(clock),
      clock,
      random: new SeededRandom(1),
      workers: new InlineWorkers({}),
      codecs: nativeCodecs(),
      logger: silentLogger,
      metrics: new Metrics(),
      requestBudget: new ByteBudget(1 << 20),
    };
    this.context = requestContext({ budget: this.env.requestBudget });
  }

  async load(state: TabletState = STATE, records: Iterable<LogRecord> = [], logPath = 'logs/one'): Promise<this> {
    this.log = await ServerLog.open({ fileSystem: this.fileSystem, path: logPath });
    const host: TabletHost = {
      schema: () => SCHEMA,
      leaseHeld: () => this.leaseHeld,
      logPath,
      commit: async (_state, change) => {
        await this.onCommit();
        this.commits.push(change);
      },
      newFilePath: () => `sstables/${logPath.replace('/', '-')}-${++this.#files}`,
      released: (files) => this.released.push(...files),
      filesChanged: () => {},
      compactionEarned: () => {},
      written: () => {},
      leftToSweep: () => {},
      clockIsBehind: () => {},
      failed: () => {},
    };
    const cache = new BlockCache({ limitBytes: 1 << 20, metrics: this.env.metrics });
    this.tablet = await Tablet.load(
      {
        env: this.env,
        host,
        log: this.log,
        cache,
        memory: new MemoryBudget(1 << 20),
        filters: new FilterCompiler({ limits: LIMITS.default, random: this.env.random }),
        limits: LIMITS.default,
        blockSizeBytes: 1024,
      },
      state,
      records,
    );
    return this;
  }

  set(row: ByteString, value: string, timestamp = 1): Promise<void> {
    return this.apply(row, { kind: 'setCell', family: 'f', qualifier: 'q', timestamp, value: Buffer.from(value) });
  }

  apply(row: ByteString, ...mutations: Mutation[]): Promise<void> {
    return this.tablet.mutateRow(this.context, row, mutations);
  }

  async rows(reversed = false): Promise<string[]> {
    const lines: string[] = [];
    for await (const batch of this.tablet.read(this.context, { ranges: [STATE.range], rowsLimit: 0, reversed })) {
      for (const { row, cells } of batch.fragments)
        lines.push(`${row}=${cells.map(({ value }) => Buffer.from(value).toString()).join(',')}`);
    }
    return lines;
  }

  /** The records that replay would find. */
  async records(redo: RedoPoint = { epoch: 0, sequence: 0 }): Promise<LogRecord[]> {
    const found: LogRecord[] = [];
    for await (const { records } of readAppends(this.fileSystem, this.log.path)) found.push(...records);
    return found.filter(({ sequence }) => sequence > redo.sequence);
  }
}

const code = async (call: Promise<unknown>): Promise<Code> => {
  try {
    await call;
    return Code.OK;
  } catch (error) {
    assert.ok(error instanceof BigtableError, String(error));
    return error.code;
  }
};

describe('a tablet', () => {
  test('reads the same before, during and after a flush, forward and reverse', async () => {
    const fixture = await new Fixture().load();
    for (const row of ['a', 'b', 'c']) await fixture.set(row, `old ${row}`);
    await fixture.tablet.flush();
    await fixture.set('b', 'new b');
    await fixture.apply('c', { kind: 'deleteFromRow' });
    const want = ['a=old a', 'b=new b'];
    assert.deepEqual(await fixture.rows(), want);
    let during: string[] = [];
    fixture.onCommit = async () => {
      during = await fixture.rows();
    };
    await fixture.tablet.flush();
    assert.deepEqual(during, want);
    assert.deepEqual(await fixture.rows(), want);
    assert.deepEqual(await fixture.rows(true), [...want].reverse());
    assert.equal(fixture.commits.length, 2);
    assert.equal(fixture.commits[1]?.files['default']?.length, 2);
  });

  test('that is empty answers its server the same before it has parts and after', async () => {
    const fixture = await new Fixture().load();
    const answers = (): object => {
      const { tablet } = fixture;
      const { state, memtableBytes, oldestUnflushed, redoPoint, crowding, uncollectedSinceMicros } = tablet;
      return {
        ...{ state, memtableBytes, oldestUnflushed, redoPoint, crowding, uncollectedSinceMicros },
        sizeBytes: tablet.sizeBytes(),
        heldFiles: tablet.heldFiles(),
        middleRow: tablet.middleRow(),
        due: tablet.dueCompaction(),
        earned: tablet.earnedCompaction(),
      };
    };
    const before = answers();
    await fixture.tablet.flush();
    await fixture.tablet.cancelCompaction();
    assert.deepEqual(await fixture.rows(), []);
    assert.deepEqual(answers(), before);
    await Promise.all([fixture.set('a', 'first'), fixture.set('b', 'second')]);
    assert.deepEqual(await fixture.rows(), ['a=first', 'b=second']);
    assert.equal((await fixture.records()).length, 2);
    assert.deepEqual(fixture.commits, []);
  });

  test('that is empty and lists the log of an earlier server drops it in a flush', async () => {
    const fixture = await new Fixture().load({ ...STATE, logs: ['logs/earlier', 'logs/one'] });
    await fixture.tablet.flush();
    assert.deepEqual(
      fixture.commits.map(({ logs }) => logs),
      [['logs/one']],
    );
    await fixture.tablet.flush();
    assert.equal(fixture.commits.length, 1);
  });

  test('that is empty closes, and takes no call after that', async () => {
    const fixture = await new Fixture().load();
    await fixture.tablet.close({ flush: true });
    assert.equal(await code(fixture.set('a', '1')), Code.UNAVAILABLE);
  });

  test('a commit names the last record in its files as redo point, and replay from there restores the same', async () => {
    const fixture = await new Fixture().load();
    await fixture.set('a', 'flushed');
    await fixture.tablet.flush();
    await fixture.set('a', 'later');
    await fixture.apply('n', { kind: 'addToCell', family: 'sum', qualifier: 'q', timestamp: 0, input: 5 });
    const state = fixture.tablet.state;
    assert.deepEqual(state.redo, { epoch: 1, sequence: 1 });
    const records = await fixture.records(state.redo);
    assert.deepEqual(
      records.map(({ sequence }) => sequence),
      [2, 3],
    );
    const before = await fixture.rows();
    const next = await new Fixture(fixture.fileSystem).load(
      { ...state, epoch: 2, logs: ['logs/one', 'logs/two'] },
      records,
      'logs/two',
    );
    assert.deepEqual(await next.rows(), before);
    // the first commit of the new owner drops the dead log
    await next.tablet.flush();
    assert.deepEqual(next.tablet.state.logs, ['logs/two']);
    assert.deepEqual(await next.rows(), before);
  });

  test('a flush that fails loses nothing, and the next one writes its records', async () => {
    let full = false;
    const faults: FileFaults = (operation, path) => {
      if (full && operation === 'create' && path.startsWith('sstables/'))
        throw new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full');
      return undefined;
    };
    const fixture = await new Fixture(new MemoryFileSystem({ faults })).load();
    await fixture.set('a', '1');
    full = true;
    assert.equal(await code(fixture.tablet.flush()), Code.RESOURCE_EXHAUSTED);
    await fixture.set('b', '2');
    assert.deepEqual(await fixture.rows(), ['a=1', 'b=2']);
    full = false;
    await fixture.tablet.flush();
    assert.deepEqual(await fixture.rows(), ['a=1', 'b=2']);
    assert.deepEqual(fixture.tablet.redoPoint, { epoch: 1, sequence: 2 });
    assert.equal(fixture.tablet.oldestUnflushed, undefined);
  });

  test('a write whose lease lapsed meanwhile is not acknowledged, and reads are refused', async () => {
    const fixture = await new Fixture().load();
    const write = fixture.set('a', '1');
    fixture.leaseHeld = false;
    assert.equal(await code(write), Code.UNAVAILABLE);
    assert.equal(await code(fixture.rows()), Code.UNAVAILABLE);
    fixture.leaseHeld = true;
    assert.deepEqual(await fixture.rows(), ['a=1']);
  });

  test('a call that meets a deleted file after its lease has lapsed is UNAVAILABLE: the tablet may be elsewhere', async () => {
    const idempotency = { token: 'a token of a write', startMs: undefined };
    const put: Mutation = { kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1, value: Buffer.from('2') };
    const append = { family: 'f', qualifier: 'q', change: { kind: 'append', suffix: Buffer.from('2') } } as const;
    const calls: Record<string, (fixture: Fixture) => Promise<unknown>> = {
      read: (fixture) => fixture.rows(),
      readModifyWriteRow: ({ tablet, context }) => tablet.readModifyWriteRow(context, 'a', [append]),
      checkAndMutateRow: ({ tablet, context }) => tablet.checkAndMutateRow(context, 'a', undefined, [put], []),
      'a write with a token': ({ tablet, context }) => tablet.mutateRow(context, 'a', [put], idempotency),
    };
    for (const [name, call] of Object.entries(calls)) {
      const before = await new Fixture().load();
      await before.tablet.mutateRow(before.context, 'a', [put], idempotency);
      await before.tablet.flush();
      const { state } = before.tablet;
      const next = { ...state, epoch: 2, logs: ['logs/two'] };
      const fixture = await new Fixture(before.fileSystem).load(next, [], 'logs/two');
      for (const path of Object.values(state.files).flat()) await before.fileSystem.delete(path);
      const called = call(fixture);
      fixture.leaseHeld = false;
      assert.equal(await code(called), Code.UNAVAILABLE, name);
    }
  });

  test('a change of 10,000 mutations is visible whole or not at all', async () => {
    const fixture = await new Fixture().load();
    const many = Array.from(
      { length: 10_000 },
      (_, i): Mutation => ({
        kind: 'setCell',
        family: 'f',
        qualifier: String(i),
        timestamp: 1,
        value: Buffer.from('v'),
      }),
    );
    let done = false;
    const write = fixture.apply('r', ...many).then(() => {
      done = true;
    });
    const seen = new Set<number>();
    while (!done) {
      let cells = 0;
      for await (const batch of fixture.tablet.read(fixture.context, {
        ranges: [rangeOfRow('r')],
        rowsLimit: 0,
        reversed: false,
      })) {
        for (const fragment of batch.fragments) cells += fragment.cells.length;
      }
      seen.add(cells);
    }
    await write;
    for (const cells of seen) assert.ok(cells === 0 || cells === many.length, `${cells} cells were seen`);
    assert.equal((await fixture.records())[0]?.body.kind, 'rows');
  });

  test('files that a drop of rows hides whole are closed after the last read of them', async () => {
    const fixture = await new Fixture().load();
    for (const row of ['a', 'b']) await fixture.set(row, 'x');
    await fixture.tablet.flush();
    await fixture.set('m', 'y');
    await fixture.tablet.flush();
    const read = fixture.tablet.read(fixture.context, { ranges: [STATE.range], rowsLimit: 0, reversed: false });
    const first = await read.next();
    await fixture.tablet.dropRows(fixture.context, { start: '', end: 'c' });
    await fixture.tablet.flush();
    assert.deepEqual(await fixture.rows(), ['m=y']);
    assert.equal(fixture.tablet.state.files['default']?.length, 2);
    assert.equal(fixture.released.length, 1, 'a read between two rows holds nothing');
    assert.equal(fixture.tablet.heldFiles().length, 2);
    assert.deepEqual(
      first.value?.fragments.map(({ row }) => row),
      ['a', 'b', 'm'],
    );
    assert.equal((await read.next()).done, true);
  });

  test('a read within a row holds its files until the row ends, and continues with the newer ones', async () => {
    const fixture = await new Fixture().load();
    const wide = (value: string): Mutation[] =>
      Array.from({ length: 3000 }, (_, i) => ({
        kind: 'setCell',
        family: 'f',
        qualifier: String(i).padStart(4, '0'),
        timestamp: 1,
        value: Buffer.alloc(200, value),
      }));
    await fixture.apply('b', ...wide('1'));
    await fixture.set('c', 'old');
    await fixture.tablet.flush();
    const read = fixture.tablet.read(fixture.context, { ranges: [STATE.range], rowsLimit: 0, reversed: false });
    const values: string[] = [];
    const take = async (): Promise<boolean> => {
      const { done, value } = await read.next();
      for (const { cells } of value?.fragments ?? [])
        values.push(...cells.map((cell) => Buffer.from(cell.value).toString()[0] as string));
      return done !== true;
    };
    assert.ok(await take());
    assert.ok(values.length < 3000, 'the read is inside the row');
    await fixture.tablet.dropRows(fixture.context, { start: 'a', end: 'd' });
    await fixture.set('c', 'new');
    await fixture.tablet.flush();
    assert.deepEqual(fixture.released, [], 'the row is not ended');
    while (await take());
    assert.deepEqual(fixture.released.length, 1);
    // cells after the row may be returned with its end, from the same layers
    assert.match(values.join(''), /^1{3000}[on]$/);
  });

  test('a batch of rows is written in order, among other writes, each row by itself', async () => {
    const fixture = await new Fixture().load();
    const set = (value: string): Mutation => ({
      kind: 'setCell',
      family: 'f',
      qualifier: 'q',
      timestamp: 1,
      value: Buffer.from(value),
    });
    const change = (row: string, value: string) => ({ row, mutations: [set(value)] });
    const { tablet, context } = fixture;
    const increment = tablet.readModifyWriteRow(context, 'held', [
      { family: 'f', qualifier: 'q', change: { kind: 'append', suffix: Buffer.from('!') } },
    ]);
    const before = tablet.mutateRow(context, 'a', [set('before')]);
    const batch = tablet.mutateRows(context, [
      change('a', 'one'),
      change('b', 'two'),
      change('held', 'three'),
      change('a', 'four'),
    ]);
    const after = tablet.mutateRow(context, 'b', [set('after')]);
    const large = {
      row: 'large',
      mutations: Array.from({ length: 3000 }, (_, i) => ({ ...set('x'), qualifier: `${i}` }) as Mutation),
    };
    const second = tablet.mutateRows(context, [large, change('c', 'five')]);
    assert.deepEqual(await batch, [undefined, undefined, undefined, undefined]);
    assert.deepEqual(await second, [undefined, undefined]);
    await Promise.all([increment, before, after]);
    assert.deepEqual(
      (await fixture.rows()).filter((row) => !row.startsWith('large')),
      ['a=four', 'b=after', 'c=five', 'held=!,three'],
    );
  });

  test('a batch is logged in few records, none of them large, and replayed to the same rows', async () => {
    const fixture = await new Fixture().load();
    const value = (bytes: number): Mutation => ({
      kind: 'setCell',
      family: 'f',
      qualifier: 'q',
      timestamp: 1,
      value: Buffer.alloc(bytes, 'x'),
    });
    const key = (i: number): string => `r${String(i).padStart(4, '0')}`;
    const small = Array.from({ length: 600 }, (_, i) => ({ row: key(i), mutations: [value(1)] }));
    const large = Array.from({ length: 4 }, (_, i) => ({ row: key(600 + i), mutations: [value(200_000)] }));
    const wide = { row: key(604), mutations: Array.from({ length: 300 }, () => value(1)) };
    assert.deepEqual(
      new Set(await fixture.tablet.mutateRows(fixture.context, [...small, ...large, wide])),
      new Set([undefined]),
    );
    const records = await fixture.records();
    assert.deepEqual(
      records.map(({ body }) => (body.kind === 'rows' ? body.rows.length : 0)),
      [256, 256, 88 + 2, 2, 1],
    );
    const again = await new Fixture(fixture.fileSystem).load(STATE, records, 'logs/two');
    assert.deepEqual(await again.rows(), await fixture.rows());
  });

  test('a batch whose lease may have lapsed meanwhile has no row acknowledged, and unlocks all of them', async () => {
    const fixture = await new Fixture().load();
    const change = (row: string) => ({
      row,
      mutations: [{ kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1, value: Buffer.from('x') } as const],
    });
    const written = fixture.tablet.mutateRows(fixture.context, [change('a'), change('b')]);
    fixture.leaseHeld = false;
    assert.deepEqual(
      (await written).map((error) => error?.code),
      [Code.UNAVAILABLE, Code.UNAVAILABLE],
    );
    assert.deepEqual(
      (await fixture.tablet.mutateRows(fixture.context, [change('a')])).map((error) => error?.code),
      [Code.UNAVAILABLE],
    );
    fixture.leaseHeld = true;
    await fixture.tablet.dropRows(fixture.context, { start: '', end: undefined });
    assert.deepEqual(await fixture.rows(), []);
  });

  test('transactions on the same rows in any order of them come to an end and see each other', async () => {
    const fixture = await new Fixture().load();
    const add = (rows: string[]): Promise<void> =>
      fixture.tablet.transact(fixture.context, rows, undefined, (seen) => {
        return new Map(
          rows.map((row) => {
            const old = seen.get(row)?.[0];
            const value = Buffer.from(`${old === undefined ? '' : Buffer.from(old.value).toString()}+`);
            return [row, [{ kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1, value }] as const];
          }),
        );
      });
    await Promise.all(Array.from({ length: 10 }, (_, i) => add(i % 2 ? ['a', 'b'] : ['b', 'a'])));
    assert.deepEqual(await fixture.rows(), ['a=++++++++++', 'b=++++++++++']);
    assert.equal((await fixture.records()).length, 10, 'two rows go in one record');
  });

  test('closing ends reads, waits for writes, and leaves nothing to replay when it flushes', async () => {
    const fixture = await new Fixture().load();
    const write = fixture.set('a', '1');
    await fixture.tablet.close({ flush: true });
    await write;
    assert.equal(fixture.tablet.redoPoint.sequence, 1);
    assert.equal(await code(fixture.set('a', '2')), Code.UNAVAILABLE);
    assert.equal(await code(fixture.rows()), Code.UNAVAILABLE);
  });

  test('closing without a flush waits for flushes that were requested before, and leaves every file listed', async () => {
    const fixture = await new Fixture().load();
    await fixture.set('a', '1');
    await fixture.tablet.flush();
    await fixture.set('b', '2');
    const flushes = [fixture.tablet.flush()];
    const late = fixture.set('c', '3');
    flushes.push(fixture.tablet.flush());
    await Promise.all([fixture.tablet.close({ flush: false }), Promise.allSettled(flushes), late]);
    const listed = fixture.commits.map(({ files }) => Object.values(files).flat().length);
    assert.deepEqual(listed, [1, 2, 3]);
  });
});
