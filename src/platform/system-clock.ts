/**
 * The machine's clock.
 *
 * Invariant: a timer never fires early by the monotonic clock (Node's own may, by a fraction of a millisecond), and waits of any
 * length are kept (Node fires those above 2^31 - 1 ms at once).
 */
import type { Clock, Timer } from '../env/index.ts';
import { collectYoungObjects } from './young-collection.ts';

const LONGEST_WAIT_MS = 2 ** 31 - 1;
/** The clock of performance.now has microseconds, Date.now follows the machine's time: further apart than this, Date.now is right. */
const DRIFT_MS = 2;

let originMs = Date.now() - performance.now();

function nowMicros(): number {
  const fineMs = performance.now();
  const coarseMs = Date.now();
  if (Math.abs(originMs + fineMs - coarseMs) > DRIFT_MS) originMs = coarseMs - fineMs;
  return Math.floor((originMs + fineMs) * 1000);
}

function timer(delayMs: number, wake: () => void): Timer {
  const dueMs = performance.now() + delayMs;
  let handle: NodeJS.Timeout | undefined;
  const wait = (): void => {
    const leftMs = dueMs - performance.now();
    if (leftMs <= 0 && handle) return wake();
    handle = setTimeout(wait, Math.min(Math.ceil(Math.max(leftMs, 0)), LONGEST_WAIT_MS));
    handle.unref();
  };
  wait();
  return { cancel: () => clearTimeout(handle) };
}

export const systemClock: Clock = {
  nowMicros,
  monotonicMs: () => performance.now(),
  timer,
  yield: () => new Promise((resolve) => setImmediate(resolve)),
  settle: collectYoungObjects,
};
