import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { clockOfShortSlices } from '../../../test/simulated-time.ts';
import { clockOf, type Time } from './clock.ts';
import { inSlices, joinInSlices, Pacer, SLICE_MS } from './pacer.ts';
import { ManualClock } from '../memory/manual-clock.ts';

describe('slices', () => {
  test('a collection after a slice that made objects that stay has a turn of its own', async () => {
    const turns: string[] = [];
    const manual = new ManualClock();
    const time: Time = {
      nowMicros: () => manual.nowMicros(),
      monotonicMs: () => manual.monotonicMs(),
      timer: (delayMs, wake) => manual.timer(delayMs, wake),
      yield: async () => void turns.push('turn'),
    };
    const collectYoung = (): boolean => {
      turns.push('collected');
      return turns.length < 7;
    };
    const pacer = new Pacer(clockOf(time, collectYoung), 1);
    for (const keeps of [false, true, true]) {
      await (keeps ? pacer.pauseForGc() : pacer.pause());
      turns.push('slice');
    }
    assert.deepEqual(turns, ['turn', 'slice', 'turn', 'collected', 'turn', 'slice', 'turn', 'collected', 'slice']);
  });
});

describe('work in slices', () => {
  test('is one call for few items, several with pauses for many', async () => {
    const clock = new ManualClock();
    const items = Array.from({ length: 2500 }, (_, i) => i);
    const seen: number[] = [];
    assert.equal(
      inSlices(clock, 1000, (from, to) => void seen.push(...items.slice(from, to))),
      undefined,
    );
    assert.equal(seen.length, 1000);
    seen.length = 0;
    const starts: number[] = [];
    let pauses = 0;
    const work = inSlices(clock, items.length, (from, to) => {
      starts.push(from);
      seen.push(...items.slice(from, to));
      clock.advance(SLICE_MS);
      void Promise.resolve().then(() => pauses++);
    });
    await work;
    assert.deepEqual([seen, starts, pauses], [items, [0, 1000, 2000], 3]);
  });

  test('ends at the first failure', async () => {
    const work = inSlices(new ManualClock(), 5000, (from) => {
      assert.ok(from < 2000, 'no items after the failure');
      if (from === 1000) throw new Error('no');
    });
    await assert.rejects(Promise.resolve(work), /no/);
  });
});

describe('pieces', () => {
  test('are joined in their order, with pauses between parts of large ones', async () => {
    const sliced = clockOfShortSlices();
    const sizes = [0, 1, 3_000_000, 2, 1024 * 1024, 1024 * 1024 + 1];
    const pieces = sizes.map((size, i) => Buffer.alloc(size, i + 1));
    assert.ok((await joinInSlices(sliced.clock, pieces)).equals(Buffer.concat(pieces)));
    assert.ok(sliced.pauses >= 4, `${sliced.pauses} pauses`);
    const many = Array.from({ length: 50_000 }, (_, i) => Buffer.of(i % 256));
    sliced.pauses = 0;
    assert.ok((await joinInSlices(sliced.clock, many)).equals(Buffer.concat(many)));
    assert.ok(sliced.pauses >= 3, `${sliced.pauses} pauses`);
    assert.equal((await joinInSlices(sliced.clock, [])).length, 0);
  });
});

describe('the pacer', () => {
  test('is due when a slice is over, and reads the clock only now and then', () => {
    const clock = new ManualClock();
    const pacer = new Pacer(clock, 4);
    clock.advance(SLICE_MS - 1);
    assert.deepEqual(
      [1, 2, 3, 4].map(() => pacer.due()),
      [false, false, false, false],
    );
    clock.advance(1);
    assert.deepEqual(
      [1, 2, 3, 4, 5].map(() => pacer.due()),
      [false, false, false, true, false],
    );
  });

  test('a heavy item counts for many', () => {
    const clock = new ManualClock();
    const pacer = new Pacer(clock, 64);
    clock.advance(SLICE_MS);
    assert.equal(pacer.due(63), false);
    assert.equal(pacer.due(1), true);
    assert.equal(pacer.due(1000), true);
  });

  test('a pause lets others run and begins a new slice', async () => {
    const clock = new ManualClock();
    const pacer = new Pacer(clock, 1);
    clock.advance(SLICE_MS);
    assert.equal(pacer.due(), true);
    let others = 0;
    const yielding = pacer.pause();
    Promise.resolve().then(() => others++);
    await yielding;
    await Promise.resolve();
    assert.equal(others, 1);
    assert.equal(pacer.due(), false);
    clock.advance(SLICE_MS);
    assert.equal(pacer.due(), true);
  });

  test('pacers of one clock share slices, and take turns', async () => {
    const clock = new ManualClock();
    const pacers = [new Pacer(clock, 1), new Pacer(clock, 1), new Pacer(clock, 1)];
    const order: number[] = [];
    await Promise.all(
      pacers.map(async (pacer, i) => {
        for (let round = 0; round < 3; round++) {
          clock.advance(SLICE_MS);
          assert.equal(pacer.due(), true);
          await pacer.pause();
          assert.equal(pacer.due(), false);
          order.push(i);
        }
      }),
    );
    assert.deepEqual(order, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
  });
});
