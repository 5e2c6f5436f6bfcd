import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inParts, Pacer, STEP_MS, sleep } from './clock.ts';
import { ManualClock } from '../memory/manual-clock.ts';

describe('sleep', () => {
  test('lasts as long as it was told to', async () => {
    const clock = new ManualClock();
    let awake = false;
    const sleeping = sleep(clock, 50).then(() => {
      awake = true;
    });
    clock.advance(49);
    await Promise.resolve();
    assert.equal(awake, false);
    clock.advance(1);
    await sleeping;
    assert.equal(awake, true);
  });

  test('ends with the reason of the abort, and leaves no timer', async () => {
    const clock = new ManualClock();
    const abort = new AbortController();
    const sleeping = sleep(clock, 50, abort.signal);
    const reason = new Error('no longer wanted');
    abort.abort(reason);
    await assert.rejects(sleeping, reason);
    assert.equal(clock.nextTimerMs(), Number.POSITIVE_INFINITY);
    await assert.rejects(sleep(clock, 50, abort.signal), reason);
    assert.equal(clock.nextTimerMs(), Number.POSITIVE_INFINITY);
  });

  test("an abort after the end is nobody's business", async () => {
    const clock = new ManualClock();
    const abort = new AbortController();
    const sleeping = sleep(clock, 5, abort.signal);
    clock.advance(5);
    abort.abort();
    await sleeping;
  });
});

describe('steps', () => {
  test('what is done behind one that made what stays has a turn of its own', async () => {
    const turns: string[] = [];
    class SettlingClock extends ManualClock {
      override yield(): Promise<void> {
        turns.push('turn');
        return super.yield();
      }
      settle(): boolean {
        turns.push('settled');
        return turns.length < 7;
      }
    }
    const pacer = new Pacer(new SettlingClock(), 1);
    for (const keeps of [false, true, true]) {
      await pacer.pause(keeps);
      turns.push('step');
    }
    assert.deepEqual(turns, ['turn', 'step', 'turn', 'settled', 'turn', 'step', 'turn', 'settled', 'step']);
  });
});

describe('parts', () => {
  test('of few items are one call at once, of many several with pauses', async () => {
    const clock = new ManualClock();
    const items = Array.from({ length: 2500 }, (_, i) => i);
    const seen: number[] = [];
    assert.equal(
      inParts(clock, 1000, (from, to) => void seen.push(...items.slice(from, to))),
      undefined,
    );
    assert.equal(seen.length, 1000);
    seen.length = 0;
    const starts: number[] = [];
    let pauses = 0;
    const work = inParts(clock, items.length, (from, to) => {
      starts.push(from);
      seen.push(...items.slice(from, to));
      clock.advance(STEP_MS);
      void Promise.resolve().then(() => pauses++);
    });
    await work;
    assert.deepEqual([seen, starts, pauses], [items, [0, 1000, 2000], 3]);
  });

  test('end at the first failure', async () => {
    const work = inParts(new ManualClock(), 5000, (from) => {
      assert.ok(from < 2000, 'gone on');
      if (from === 1000) throw new Error('no');
    });
    await assert.rejects(Promise.resolve(work), /no/);
  });
});

describe('the pacer', () => {
  test('is due when a step is over, and asks the clock only now and then', () => {
    const clock = new ManualClock();
    const pacer = new Pacer(clock, 4);
    clock.advance(STEP_MS - 1);
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
    clock.advance(STEP_MS);
    assert.equal(pacer.due(63), false);
    assert.equal(pacer.due(1), true);
    assert.equal(pacer.due(1000), true);
  });

  test('a pause lets others run and begins a new step', async () => {
    const clock = new ManualClock();
    const pacer = new Pacer(clock, 1);
    clock.advance(STEP_MS);
    assert.equal(pacer.due(), true);
    let others = 0;
    const yielding = pacer.pause();
    Promise.resolve().then(() => others++);
    await yielding;
    await Promise.resolve();
    assert.equal(others, 1);
    assert.equal(pacer.due(), false);
    clock.advance(STEP_MS);
    assert.equal(pacer.due(), true);
  });

  test('pacers of one clock share a step, and take turns', async () => {
    const clock = new ManualClock();
    const pacers = [new Pacer(clock, 1), new Pacer(clock, 1), new Pacer(clock, 1)];
    const order: number[] = [];
    await Promise.all(
      pacers.map(async (pacer, i) => {
        for (let round = 0; round < 3; round++) {
          clock.advance(STEP_MS);
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
