import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sleep } from './clock.ts';
import { ManualClock } from '../memory/manual-clock.ts';

describe('sleep', () => {
  test('lasts for the given time', async () => {
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

  test('an abort after the end changes nothing', async () => {
    const clock = new ManualClock();
    const abort = new AbortController();
    const sleeping = sleep(clock, 5, abort.signal);
    clock.advance(5);
    abort.abort();
    await sleeping;
  });
});
