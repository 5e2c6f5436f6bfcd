/**
 * Work in a time that goes on by itself: whenever nothing is left to do but wait, the clock goes to the next timer. A
 * minute of retries takes no time, and a run does the same thing each time.
 */
import { type Clock, clockOf, ManualClock, SLICE_MS } from '../src/env/index.ts';

/** Turns of the event loop without a timer to wait for, after which nothing will happen any more. */
const MAX_IDLE_TURNS = 10_000;
/**
 * Simulated time after which work that still waits, while timers come and go, is taken to wait for what will
 * never come.
 */
const MAX_MS = 24 * 3_600_000;

/**
 * Lets time go on until the work has ended. `whenStuck`: words for people where it never will. `progress`: for work of
 * days, changes as long as it gets on; how long it waits counts from the last change.
 */
export async function inSimulatedTime<T>(
  clock: ManualClock,
  work: Promise<T>,
  whenStuck = (): string => '',
  progress = (): number => 0,
): Promise<T> {
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  work.then(end, end);
  let idleTurns = 0;
  let before = progress();
  let endMs = clock.monotonicMs() + MAX_MS;
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve));
    if (isOver) return work;
    const now = progress();
    if (now !== before) endMs = clock.monotonicMs() + MAX_MS;
    before = now;
    if (clock.monotonicMs() > endMs) throw new Error(`it waits for ever; ${whenStuck()}`);
    const untilMs = clock.nextTimerMs();
    if (untilMs !== Number.POSITIVE_INFINITY) {
      idleTurns = 0;
      clock.advance(untilMs - clock.monotonicMs());
    } else if (++idleTurns > MAX_IDLE_TURNS) {
      throw new Error(`nothing goes on any more; ${whenStuck()}`);
    }
  }
}

/** A clock whose timers fall due in the next turn of the event loop: whoever waits goes on, and the time has passed. */
export function quickClock(): Clock {
  let nowMs = 0;
  return clockOf({
    nowMicros: () => nowMs * 1000,
    monotonicMs: () => nowMs,
    timer: (delayMs, wake) => {
      const timer = setImmediate(() => {
        nowMs += delayMs;
        wake();
      });
      return { cancel: () => clearImmediate(timer) };
    },
    yield: () => new Promise((resolve) => setImmediate(resolve)),
  });
}

/** A clock of which each look ends a slice of work, and the number of pauses that work has made since. */
export function clockOfShortSlices(): { readonly clock: Clock; pauses: number } {
  const manual = new ManualClock();
  let nowMs = 0;
  const clock = clockOf({
    nowMicros: () => manual.nowMicros(),
    monotonicMs: () => (nowMs += SLICE_MS),
    timer: (delayMs, wake) => manual.timer(delayMs, wake),
    yield: async () => void sliced.pauses++,
  });
  const sliced = { clock, pauses: 0 };
  return sliced;
}
