import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock, SeededRandom } from '../env/index.ts';
import { METADATA_TABLE_ID } from '../metadata/index.ts';
import type { HotTablet } from '../model/index.ts';
import { LoadHistory } from './load-history.ts';
import type { ServedTablet } from './tablet-map.ts';

const MINUTE_MS = 60_000;
const INSTANCE = 'projects/p/instances/i';

/** A clock whose thread has worked for as long as the test says. */
class BusyClock extends ManualClock {
  worked = 0;

  readonly busyMs = (): number => this.worked;
}

class Fixture {
  readonly clock = new BusyClock();
  readonly served: ServedTablet[] = [];
  readonly history: LoadHistory;

  constructor(leastPercent = 10) {
    this.history = new LoadHistory({
      clock: this.clock,
      random: new SeededRandom(1),
      tablets: { all: () => this.served.values() },
      nameOf: (id) => (id === 'gone' ? undefined : `${INSTANCE}/tables/${id}`),
      leastPercent,
    });
    this.history.start();
  }

  add(tableId: string, start = '', end?: string): { calls(count: number, rows?: number): void } {
    const range = { start, end };
    const tablet = { rowsDone: 0 };
    const served = { key: `${tableId}:${end}`, tableId, range, tablet, requests: 0 } as unknown as ServedTablet;
    this.served.push(served);
    return {
      calls: (count, rows = 0) => {
        served.requests += count;
        tablet.rowsDone += rows;
      },
    };
  }

  /** Time goes on, of which the thread works a share. */
  pass(ms: number, busyPercent: number): void {
    this.clock.worked += (ms * busyPercent) / 100;
    this.clock.advance(ms);
  }

  list(startMicros = 0, endMicros = Number.MAX_SAFE_INTEGER): string[] {
    return this.history.hot({ instance: INSTANCE, startMicros, endMicros }).map((each) => this.words(each));
  }

  /** Table, first row, minutes since the beginning, percent. */
  words({ table, range, startMicros, endMicros, cpuPercent }: HotTablet): string {
    const minute = (micros: number): number => (micros - START_MICROS) / (MINUTE_MS * 1000);
    return `${table.split('/').at(-1)} ${range?.start} ${minute(startMicros)}-${minute(endMicros)} ${cpuPercent}`;
  }
}

const START_MICROS = new ManualClock().nowMicros();

describe('the load of tablets', () => {
  test('is the share of the time in which the thread worked, by calls and rows', () => {
    const fixture = new Fixture();
    const [a, b, root] = [fixture.add('t', '', 'm'), fixture.add('t', 'm'), fixture.add(METADATA_TABLE_ID)];
    a.calls(40);
    b.calls(10, 20);
    root.calls(30);
    fixture.pass(MINUTE_MS, 50);
    // METADATA takes its part, and is not listed
    assert.deepEqual(fixture.list(), ['t  0-1 20', 't m 0-1 15']);
  });

  test('counts each minute by itself, and lists of a quarter of an hour the highest', () => {
    const fixture = new Fixture();
    const [a, b] = [fixture.add('t', '', 'm'), fixture.add('t', 'm')];
    for (const [ofA, ofB] of [
      [1, 3],
      [4, 0],
      [1, 1],
    ] as const) {
      a.calls(ofA);
      b.calls(ofB);
      fixture.pass(MINUTE_MS, 80);
    }
    assert.deepEqual(fixture.list(), ['t  1-2 80', 't m 0-1 60']);
    fixture.pass(15 * MINUTE_MS, 0);
    a.calls(1);
    fixture.pass(MINUTE_MS, 30);
    assert.deepEqual(fixture.list(), ['t  1-2 80', 't m 0-1 60', 't  18-19 30']);
    const from = START_MICROS + 17 * MINUTE_MS * 1000;
    assert.deepEqual(fixture.list(from), ['t  18-19 30']);
    assert.deepEqual(fixture.list(0, from), ['t  1-2 80', 't m 0-1 60']);
  });

  test('of the minute that is not over is measured with the minute before', () => {
    const fixture = new Fixture();
    const a = fixture.add('t');
    assert.deepEqual(fixture.list(), []);
    a.calls(1);
    fixture.pass(MINUTE_MS / 2, 40);
    assert.deepEqual(fixture.list(), ['t  0-0.5 40']);
    fixture.pass(MINUTE_MS / 2, 0);
    assert.deepEqual(fixture.list(), ['t  0-1 20']);
    a.calls(1);
    fixture.pass(MINUTE_MS, 60);
    a.calls(1);
    fixture.pass(1000, 100);
    assert.match(fixture.list().join(), /^t {2}1-2\.0166\d* 60\.65\d*$/);
  });

  test('is the same in all pages of a list', () => {
    const fixture = new Fixture(0);
    const a = fixture.add('t');
    a.calls(1);
    fixture.pass(1000, 50);
    const end = fixture.clock.nowMicros();
    const list = () => fixture.history.hot({ instance: INSTANCE, startMicros: 0, endMicros: end });
    const first = list();
    fixture.pass(9000, 0);
    assert.deepEqual(list(), first);
    assert.deepEqual(fixture.list(), [`t  0-${1 / 6} 5`]);
  });

  test('below the least share is not kept, nor that of other instances and of tables that are gone', () => {
    const fixture = new Fixture(25);
    for (const [table, calls] of [
      ['a', 25],
      ['b', 24],
      ['gone', 51],
    ] as const)
      fixture.add(table).calls(calls);
    fixture.pass(MINUTE_MS, 100);
    assert.deepEqual(fixture.list(), ['a  0-1 25']);
    assert.deepEqual(fixture.history.hot({ instance: `${INSTANCE}2`, startMicros: 0, endMicros: 1e18 }), []);
  });

  test('is kept for a day, and of a minute the hottest alone', () => {
    const fixture = new Fixture(0);
    const all = Array.from({ length: 50 }, (_, i) => fixture.add('t', `r${i}`, `r${i}a`));
    for (const [i, each] of all.entries()) each.calls(i + 1);
    fixture.pass(MINUTE_MS, 100);
    fixture.pass(MINUTE_MS, 0);
    assert.equal(fixture.list().length, 20);
    assert.match(fixture.list()[0]!, /^t r49 0-1 /);
    fixture.pass(24 * 60 * MINUTE_MS - 2 * MINUTE_MS, 0);
    assert.equal(fixture.list().length, 20);
    fixture.pass(MINUTE_MS, 0);
    assert.equal(fixture.list().length, 0);
  });

  test('takes no more memory than it may, whatever the keys', () => {
    const fixture = new Fixture(0);
    const key = (i: number): string => `${i}`.padEnd(60_000, 'k');
    const all = Array.from({ length: 20 }, (_, i) => fixture.add('t', key(i), `${key(i)}a`));
    for (let minute = 0; minute < 60; minute++) {
      for (const each of all) each.calls(1);
      fixture.pass(MINUTE_MS, 100);
    }
    fixture.pass(3 * MINUTE_MS, 0);
    const found = fixture.history.hot({ instance: INSTANCE, startMicros: 0, endMicros: 1e18 });
    const bytes = found.reduce((sum, { range }) => sum + range!.start.length + range!.end!.length, 0);
    assert.ok(found.length > 0 && bytes <= 1 << 20, `${found.length} of ${bytes} bytes`);
    // the oldest were forgotten
    assert.ok(found.every(({ startMicros }) => startMicros > START_MICROS + 45 * MINUTE_MS * 1000));
  });

  test('is not measured where the clock cannot', () => {
    const clock = new ManualClock();
    const parts = { clock, random: new SeededRandom(1), tablets: { all: () => [].values() } };
    const history = new LoadHistory({ ...parts, nameOf: () => '', leastPercent: 0 });
    history.start();
    clock.advance(10 * MINUTE_MS);
    assert.deepEqual(history.hot({ instance: INSTANCE, startMicros: 0, endMicros: 1e18 }), []);
  });
});
