import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ManualClock } from '../memory/manual-clock.ts';
import type { LockEvent, LockService } from '../seams/lock-service.ts';
import { followChanges } from './follow-changes.ts';

/** A lock service whose watches report what the test says. */
function watched() {
  const listeners: ((event: LockEvent) => void)[] = [];
  let stopped = 0;
  const watch = (_prefix: string, listener: (event: LockEvent) => void): (() => void) => {
    listeners.push(listener);
    return () => void stopped++;
  };
  const lockService = { watch } as LockService;
  return { lockService, clock: new ManualClock(), listeners, stopped: () => stopped };
}

describe('an owner that follows changes', () => {
  test('without an end of its own has another watch begun after one has ended, and reads again', async () => {
    const { lockService, clock, listeners, stopped } = watched();
    const seen: string[] = [];
    let readings = 0;
    const following = followChanges({ lockService, clock }, 'p/', {
      onChange: (event) => void seen.push(event.kind === 'changed' ? event.path : event.kind),
      readAgain: async () => void readings++,
    });
    listeners[0]!({ kind: 'established' });
    const stop = await following;
    listeners[0]!({ kind: 'changed', path: 'p/a', version: 1 });
    listeners[0]!({ kind: 'ended' });
    assert.equal(listeners.length, 1, 'not in the same instant');
    clock.advance(1000);
    // the second one ends before it was established
    listeners[1]!({ kind: 'ended' });
    clock.advance(1000);
    assert.equal(readings, 0);
    listeners[2]!({ kind: 'established' });
    await turn();
    assert.equal(readings, 1);
    listeners[2]!({ kind: 'changed', path: 'p/b', version: 2 });
    assert.deepEqual(seen, ['p/a', 'p/b']);
    stop();
    assert.equal(stopped(), 1);
    listeners[2]!({ kind: 'ended' });
    clock.advance(10_000);
    assert.equal(listeners.length, 3, 'one that was stopped begins no other');
  });

  test('that is stopped between two watches begins no other', async () => {
    const { lockService, clock, listeners } = watched();
    const following = followChanges({ lockService, clock }, 'p/', { onChange: () => {}, readAgain: async () => {} });
    listeners[0]!({ kind: 'established' });
    const stop = await following;
    listeners[0]!({ kind: 'ended' });
    stop();
    clock.advance(10_000);
    assert.equal(listeners.length, 1);
  });

  test('with an end of its own hears of it, after the first watch was established', async () => {
    const { lockService, clock, listeners } = watched();
    let ends = 0;
    const follower = { onChange: () => {}, readAgain: async () => {}, onEnd: () => void ends++ };
    const failing = followChanges({ lockService, clock }, 'p/', follower);
    listeners[0]!({ kind: 'ended' });
    await assert.rejects(failing, { codeName: 'UNAVAILABLE' });
    assert.equal(ends, 0);
    const following = followChanges({ lockService, clock }, 'p/', follower);
    listeners[1]!({ kind: 'established' });
    await following;
    listeners[1]!({ kind: 'ended' });
    clock.advance(10_000);
    assert.deepEqual([ends, listeners.length], [1, 2]);
  });
});
