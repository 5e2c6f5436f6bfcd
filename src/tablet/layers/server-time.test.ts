import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { INT64_MAX, type Int64 } from '../../base/index.ts';
import type { RedoRecord } from '../../commitlog/index.ts';
import { ALL_ROWS, type Granularity, type Mutation } from '../../model/index.ts';
import { TabletFixture, schemaOf } from '../fixtures.ts';
import { ServerTime } from './server-time.ts';
import type { TabletFile } from './tablet-file.ts';
import type { TabletState } from '../contract/tablet-state.ts';

const STATE: TabletState = {
  tableId: '00000010',
  range: ALL_ROWS,
  epoch: 1,
  files: {},
  redo: { epoch: 0, sequence: 0 },
  logs: [],
  lastServerMicros: 0,
};

/** The part of a file that states times. */
function file(createdMicros: Int64, lastServerMicros?: number): TabletFile {
  return { properties: { createdMicros, lastServerMicros } } as unknown as TabletFile;
}

function record(commitMicros: Int64, ...timestamps: Int64[]): RedoRecord {
  const mutations = timestamps.map(
    (timestamp): Mutation => ({ kind: 'setCell', family: 'f', qualifier: 'q', timestamp, value: Buffer.of() }),
  );
  return {
    tableId: STATE.tableId,
    epoch: 1,
    sequence: 1,
    commitMicros,
    origin: 0,
    body: { kind: 'rows', rows: [{ row: 'r', mutations }] },
  };
}

class Fixture {
  nowMicros = 1000;
  readonly notices: [number, number][] = [];
  readonly time: ServerTime;

  constructor(state: Partial<TabletState> = {}, files: readonly TabletFile[] = []) {
    const host = { clockIsBehind: (now: number, last: number): void => void this.notices.push([now, last]) };
    this.time = new ServerTime({ nowMicros: () => this.nowMicros }, host, { ...STATE, ...state }, files);
  }

  /** The newest time after that record was replayed. */
  after(replayed: RedoRecord, granularity: Granularity = 'micros'): number {
    this.time.replayed(replayed, granularity);
    return this.time.lastMicros;
  }
}

describe("the server's time in a tablet", () => {
  test("is the clock's, or a microsecond more than the newest that was given, and then the server is notified", () => {
    const fixture = new Fixture();
    assert.deepEqual([fixture.time.lastMicros, fixture.time.next(), fixture.time.next()], [0, 1000, 1000]);
    fixture.nowMicros = 400;
    assert.deepEqual([fixture.time.next(), fixture.time.next()], [1001, 1002]);
    fixture.nowMicros = 1002;
    assert.equal(fixture.time.next(), 1002);
    assert.deepEqual(fixture.notices, [
      [400, 1000],
      [400, 1001],
    ]);
  });

  test('begins with the newest that its row or its files state', () => {
    assert.equal(new Fixture({ lastServerMicros: 7 }).time.lastMicros, 7);
    assert.equal(new Fixture({ lastServerMicros: 7 }, [file(100, 9), file(200, 0)]).time.lastMicros, 9);
    assert.equal(
      new Fixture({ lastServerMicros: 7 }, [file(100), file(200, 0)]).time.lastMicros,
      100,
      'a file of an earlier version states when it was made',
    );
  });

  test('is learnt from the records in which it was given, and not from those of clients', () => {
    const fixture = new Fixture();
    assert.equal(fixture.after(record(500, 400, 600, INT64_MAX)), 0);
    assert.equal(fixture.after(record(500, 400, 500)), 500);
    assert.equal(fixture.after(record(300, 300)), 500);
    assert.equal(fixture.after(record(INT64_MAX, INT64_MAX)), 500, 'no server gives such a time');
    assert.equal(fixture.after({ ...record(800), body: { kind: 'dropRows', range: ALL_ROWS } }), 500);
    assert.equal(fixture.after(record(7999, 7000), 'millis'), 7999, 'uncut, so that it continues from there');
  });

  test('is learnt from any record that an earlier version may have written', () => {
    assert.equal(new Fixture({ lastServerMicros: undefined }).after(record(500, 499)), 500);
  });

  test('stays a number that METADATA can hold, however far the clock is ahead', () => {
    const fixture = new Fixture({ lastServerMicros: Number.MAX_SAFE_INTEGER - 1 }, [file(INT64_MAX)]);
    assert.equal(fixture.time.lastMicros, Number.MAX_SAFE_INTEGER);
    assert.equal(fixture.time.next(), Number.MAX_SAFE_INTEGER);
    fixture.nowMicros = 2 ** 60;
    assert.equal(fixture.time.next(), Number.MAX_SAFE_INTEGER);
  });
});

describe('garbage collection by age, under a clock that is set', () => {
  const SECOND = 1_000_000;
  const set = (value: string): Mutation => ({
    kind: 'setCell',
    family: 'f',
    qualifier: 'q',
    timestamp: undefined,
    value: Buffer.from(value),
  });

  test('does not take cells that were just written, after a step back and after a jump forward and back', async () => {
    const fixture = await new TabletFixture(
      schemaOf({ f: { name: 'f', gcRule: { kind: 'maxAge', ageMicros: SECOND } } }),
    ).load();
    const valuesAfterCompaction = async (): Promise<string[]> => {
      await fixture.tablet.compact('major');
      return (await fixture.cells()).map((cell) => cell.slice(cell.indexOf('=') + 1));
    };
    await fixture.apply('a', set('1'));
    fixture.clock.setRealTime(fixture.clock.nowMicros() - 3600 * SECOND);
    await fixture.apply('b', set('2'));
    assert.deepEqual(await valuesAfterCompaction(), ['1', '2']);
    const trueMicros = fixture.clock.nowMicros();
    fixture.clock.setRealTime(trueMicros + 7200 * SECOND);
    assert.deepEqual(await valuesAfterCompaction(), [], 'by the clock they are too old');
    await fixture.apply('c', set('3'));
    fixture.clock.setRealTime(trueMicros);
    await fixture.apply('d', set('4'));
    await fixture.reload();
    await fixture.apply('e', set('5'));
    assert.deepEqual(await valuesAfterCompaction(), ['3', '4', '5']);
  });
});
