import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AssertionError, BigtableError, Code } from '../base/index.ts';
import { ByteBudget, ManualClock, Metrics, requestContext, SeededRandom, silentLogger } from '../env/index.ts';
import { METADATA_TABLE_ID } from '../metadata/index.ts';
import { notServing } from '../protocol/index.ts';
import { type CompactionKind, TOO_CROWDED } from '../tablet/index.ts';
import { CompactionSchedule } from './compaction-schedule.ts';
import type { ServedTablet } from './tablet-map.ts';

const context = requestContext({ budget: new ByteBudget(1024) });

/** The part of a tablet that the schedule reads: the number of files, and compactions that the test ends. */
class Files {
  crowding = 0;
  due: CompactionKind | undefined;
  earned: CompactionKind | undefined;
  uncollectedSinceMicros: number | undefined;
  readonly begun: CompactionKind[] = [];
  #end: ((error?: Error) => void) | undefined;

  dueCompaction(): CompactionKind | undefined {
    return this.due;
  }

  earnedCompaction(): CompactionKind | undefined {
    return this.earned;
  }

  compact(kind: CompactionKind): Promise<void> {
    this.begun.push(kind);
    return new Promise((resolve, reject) => {
      this.#end = (error) => (error ? reject(error) : resolve());
    });
  }

  async end(error?: Error): Promise<void> {
    if (error === undefined) this.due = this.earned = this.uncollectedSinceMicros = undefined;
    this.#end?.(error);
    for (let i = 0; i < 5; i++) await Promise.resolve();
  }
}

class Fixture {
  readonly clock = new ManualClock();
  readonly metrics = new Metrics();
  readonly errors: string[] = [];
  readonly served = new Map<string, ServedTablet>();
  readonly schedule: CompactionSchedule;

  constructor(maxRunning = 1, majorMs = 1e9) {
    const note = (message: string): void => void this.errors.push(message);
    this.schedule = new CompactionSchedule({
      maxRunning,
      majorMs,
      clock: this.clock,
      random: new SeededRandom(1),
      metrics: this.metrics,
      logger: { ...silentLogger, info: note, warn: note, error: note },
      tablets: { all: () => this.served.values(), has: (served) => this.served.get(served.key) === served },
    });
  }

  tablet(key: string, tableId = '00000010'): [ServedTablet, Files] {
    const files = new Files();
    const served = {
      key,
      tableId,
      range: { start: '', end: undefined },
      epoch: 1,
      tablet: files,
      host: {},
      countedBytes: 0,
      requests: 0,
    } as unknown as ServedTablet;
    this.served.set(key, served);
    return [served, files];
  }
}

describe('the schedule of compactions', () => {
  test('a write that waits for a tablet begins its compaction, even if its files were never examined', async () => {
    const fixture = new Fixture();
    const [served, files] = fixture.tablet('loaded');
    [files.crowding, files.due] = [TOO_CROWDED, 'merging'];
    const waiting = fixture.schedule.wait(served, requestContext({ budget: new ByteBudget(1) }));
    assert.deepEqual(files.begun, ['merging']);
    files.crowding = 1;
    await files.end();
    await waiting;
  });

  test('runs only as many concurrently as allowed, METADATA first, then those with the most files', async () => {
    const fixture = new Fixture();
    const [busy, busyFiles] = fixture.tablet('busy');
    const [few, fewFiles] = fixture.tablet('few');
    const [many, manyFiles] = fixture.tablet('many');
    const [metadata, metadataFiles] = fixture.tablet('metadata', METADATA_TABLE_ID);
    for (const [files, count] of [
      [busyFiles, 9],
      [fewFiles, 8],
      [manyFiles, 20],
      [metadataFiles, 8],
    ] as const)
      [files.crowding, files.due] = [count, 'merging'];
    for (const served of [busy, few, many, metadata]) fixture.schedule.changed(served);
    assert.deepEqual(busyFiles.begun, ['merging']);
    assert.deepEqual([fewFiles.begun, manyFiles.begun, metadataFiles.begun], [[], [], []]);
    await busyFiles.end();
    assert.deepEqual([fewFiles.begun, manyFiles.begun, metadataFiles.begun], [[], [], ['merging']]);
    const demanded = fixture.schedule.compact(few, context);
    await metadataFiles.end();
    assert.deepEqual(
      [fewFiles.begun, manyFiles.begun],
      [['major'], []],
      'the compaction that a caller waits for comes first',
    );
    await fewFiles.end();
    await demanded;
    assert.deepEqual(manyFiles.begun, ['merging']);
    await manyFiles.end();
    fixture.schedule.stop();
  });

  test('what reads have earned comes last, and leaves a slot for what is due', async () => {
    const fixture = new Fixture(3);
    const [due, dueFiles] = fixture.tablet('due');
    const [late, lateFiles] = fixture.tablet('late');
    const earned = ['a', 'b', 'c'].map((key) => fixture.tablet(key));
    for (const [, files] of earned) [files.crowding, files.earned] = [20, 'merging'];
    [dueFiles.crowding, dueFiles.due] = [8, 'merging'];
    const begun = (): number[] => earned.map(([, files]) => files.begun.length);
    fixture.schedule.changed(earned[0]![0]);
    fixture.schedule.changed(due);
    fixture.schedule.changed(earned[1]![0]);
    assert.deepEqual([dueFiles.begun.length, ...begun()], [1, 1, 0, 0]);
    fixture.schedule.changed(earned[2]![0]);
    [lateFiles.crowding, lateFiles.due] = [1, 'major'];
    fixture.schedule.changed(late);
    assert.deepEqual([lateFiles.begun, begun()], [['major'], [1, 0, 0]], 'the slot was free');
    await dueFiles.end();
    assert.deepEqual(begun(), [1, 0, 0]);
    await lateFiles.end();
    assert.deepEqual(begun(), [1, 1, 0]);
    await earned[0]![1].end();
    assert.deepEqual(begun(), [1, 1, 1]);
    await earned[1]![1].end();
    await earned[2]![1].end();
    assert.deepEqual([begun(), fixture.schedule.waiting], [[1, 1, 1], 0]);
    fixture.schedule.stop();
  });

  test('a database that is only read compacts nothing for reads', () => {
    const fixture = new Fixture(0);
    const [served, files] = fixture.tablet('t');
    files.earned = 'merging';
    fixture.schedule.changed(served);
    assert.deepEqual(files.begun, []);
    fixture.schedule.stop();
  });

  test('callers that wait for a compaction that has not begun share it; it is dropped when all of them cancel', async () => {
    const fixture = new Fixture();
    const [busy, busyFiles] = fixture.tablet('busy');
    const [shared, sharedFiles] = fixture.tablet('shared');
    const [left, leftFiles] = fixture.tablet('left');
    const running = fixture.schedule.compact(busy, context);
    const cancel = new AbortController();
    const impatient = requestContext({ budget: new ByteBudget(1024), signal: cancel.signal });
    const waiting = [
      fixture.schedule.compact(shared, impatient),
      fixture.schedule.compact(shared, context),
      fixture.schedule.compact(left, impatient),
    ];
    const given = Promise.allSettled([waiting[0], waiting[2], fixture.schedule.compact(busy, impatient)]);
    cancel.abort();
    for (const { status, reason } of (await given) as PromiseRejectedResult[])
      assert.deepEqual([status, reason.code], ['rejected', Code.CANCELLED]);
    await busyFiles.end();
    await running;
    assert.deepEqual([busyFiles.begun, sharedFiles.begun, leftFiles.begun], [['major'], ['major'], []]);
    await sharedFiles.end();
    await waiting[1];
    assert.deepEqual(
      [busyFiles.begun, sharedFiles.begun, leftFiles.begun],
      [['major'], ['major'], []],
      'no caller waits for the others',
    );
    fixture.schedule.stop();
  });

  test('one that has begun continues after its caller cancels; a caller that comes meanwhile gets another one', async () => {
    const fixture = new Fixture();
    const [served, files] = fixture.tablet('t');
    const cancel = new AbortController();
    const first = fixture.schedule.compact(
      served,
      requestContext({ budget: new ByteBudget(1024), signal: cancel.signal }),
    );
    assert.deepEqual(files.begun, ['major']);
    cancel.abort();
    await assert.rejects(first, { code: Code.CANCELLED });
    const second = fixture.schedule.compact(served, context);
    await files.end();
    assert.deepEqual(files.begun, ['major', 'major'], 'what was written meanwhile is compacted too');
    await files.end();
    await second;
    fixture.schedule.stop();
  });

  test('logs failures and retries later and later', async () => {
    const fixture = new Fixture();
    const [served, files] = fixture.tablet('t');
    [files.crowding, files.due] = [8, 'merging'];
    fixture.schedule.changed(served);
    for (const delayMs of [1000, 2000, 4000]) {
      const before = files.begun.length;
      await files.end(new BigtableError(Code.RESOURCE_EXHAUSTED, 'no space'));
      fixture.clock.advance(delayMs - 1);
      assert.equal(files.begun.length, before);
      fixture.clock.advance(2);
      assert.equal(files.begun.length, before + 1);
    }
    assert.equal(fixture.metrics.get('tabletserver.failedCompactions'), 3);
    assert.match(fixture.errors[0] as string, /a merging compaction failed and will be tried again/);
    const demanded = fixture.schedule.compact(served, context);
    await files.end();
    await files.end(new BigtableError(Code.INTERNAL, 'its thread died'));
    await assert.rejects(demanded, /its thread died/);
    fixture.schedule.stop();
  });

  test('logs nothing of a tablet that is released or divided, or whose table is deleted, and retries', async () => {
    const fixture = new Fixture();
    const [served, files] = fixture.tablet('t');
    [files.crowding, files.due] = [8, 'merging'];
    fixture.schedule.changed(served);
    const races = [
      notServing('00000010', 'a'),
      new BigtableError(Code.CANCELLED, 'called off'),
      new BigtableError(Code.FAILED_PRECONDITION, 'its row is gone', { details: { tabletGone: true } }),
    ];
    for (const [i, race] of races.entries()) {
      await files.end(race);
      fixture.clock.advance(60_000);
      assert.equal(files.begun.length, i + 2);
    }
    assert.deepEqual(fixture.errors, []);
    assert.equal(fixture.metrics.get('tabletserver.failedCompactions'), 0);
    await files.end(new BigtableError(Code.FAILED_PRECONDITION, 'anything else'));
    assert.equal(fixture.errors.length, 1);
    fixture.schedule.stop();
  });

  test('begins a major one within the time set', async () => {
    const fixture = new Fixture(1, 1_000_000);
    const [, files] = fixture.tablet('t');
    files.uncollectedSinceMicros = fixture.clock.nowMicros();
    for (let ms = 0; ms < 690_000; ms += 10_000) fixture.clock.advance(10_000);
    await files.end(new Error('not begun'));
    assert.deepEqual(files.begun, []);
    for (let ms = 0; ms < 280_000; ms += 10_000) {
      fixture.clock.advance(10_000);
      await files.end(new Error('never ends'));
    }
    assert.equal(files.begun[0], 'major');
    fixture.schedule.stop();
  });

  test('begins a major one of a file dated by a clock far ahead, and waits for one a little ahead', async () => {
    const fixture = new Fixture(1, 1_000_000);
    const [, files] = fixture.tablet('t');
    const look = async (): Promise<void> => {
      fixture.clock.advance(30_000);
      for (let i = 0; i < 5; i++) await Promise.resolve();
    };
    files.uncollectedSinceMicros = fixture.clock.nowMicros() + 500 * 1e6;
    await look();
    assert.deepEqual(files.begun, []);
    files.uncollectedSinceMicros = fixture.clock.nowMicros() + 365 * 86_400 * 1e6;
    await look();
    assert.deepEqual(files.begun, ['major']);
    await files.end();
    fixture.schedule.stop();
  });

  test('lets writes to a tablet wait while it has too many files, and no longer than the server lives', async () => {
    const fixture = new Fixture();
    const [served, files] = fixture.tablet('t');
    const [metadata, metadataFiles] = fixture.tablet('m', METADATA_TABLE_ID);
    files.crowding = metadataFiles.crowding = TOO_CROWDED;
    assert.deepEqual([fixture.schedule.isBehind(served), fixture.schedule.isBehind(metadata)], [true, false]);
    let waits = true;
    const waiting = fixture.schedule.wait(served, context).then(() => (waits = false));
    fixture.schedule.changed(served);
    await Promise.resolve();
    assert.ok(waits);
    files.crowding = 8;
    fixture.schedule.changed(served);
    await waiting;
    files.crowding = TOO_CROWDED;
    const forEver = fixture.schedule.wait(served, context);
    fixture.schedule.stop();
    await assert.rejects(forEver, { code: Code.UNAVAILABLE });
    await assert.rejects(fixture.schedule.compact(served, context), { code: Code.UNAVAILABLE });
  });

  test('a negative limit is a bug; a limit of 0 is a database that is only read', () => {
    assert.throws(() => new Fixture(-1), AssertionError);
    new Fixture(0).schedule.stop();
  });
});
