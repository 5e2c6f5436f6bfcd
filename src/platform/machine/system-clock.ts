/**
 * The machine's clock.
 *
 * Invariant: a timer never fires early by the monotonic clock (Node's own may, by a fraction of a millisecond), and
 * waits of any length are kept (Node fires those above 2^31 - 1 ms immediately).
 */
import { type Clock, clockOf, type Timer } from '../../env/index.ts';
import { collectYoungObjects } from './gc-hint.ts';
import { RealTime } from './real-time.ts';

const MAX_WAIT_MS = 2 ** 31 - 1;
const realTime = new RealTime({ coarseMs: () => Date.now(), fineMs: () => performance.now() });

function timer(delayMs: number, wake: () => void): Timer {
  const dueMs = performance.now() + delayMs;
  let handle: NodeJS.Timeout | undefined;
  const wait = (): void => {
    const leftMs = dueMs - performance.now();
    if (leftMs <= 0 && handle) return wake();
    handle = setTimeout(wait, Math.min(Math.ceil(Math.max(leftMs, 0)), MAX_WAIT_MS));
    handle.unref();
  };
  wait();
  return { cancel: () => clearTimeout(handle) };
}

export const systemClock: Clock = clockOf(
  {
    nowMicros: () => realTime.nowMicros(),
    monotonicMs: () => performance.now(),
    busyMs: () => performance.eventLoopUtilization().active,
    timer,
    yield: () => new Promise((resolve) => setImmediate(resolve)),
  },
  collectYoungObjects,
);
