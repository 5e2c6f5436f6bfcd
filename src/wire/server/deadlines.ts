/**
 * The deadlines of all calls of a server: one timer for all of them, by a wheel of coarse ticks.
 *
 * Invariant: an entry fires once, at its time or up to a tick later, never before; setting and clearing it costs a few
 * links of a list.
 */
import { assert } from '../../base/index.ts';
import type { Clock, Timer } from '../../env/index.ts';

const TICK_MS = 8;
const SLOTS = 1024;

/** Something with a deadline: embedded in what waits for it, so that nothing is allocated a call. */
export interface DeadlineEntry {
  dueMs: number;
  slot: DeadlineEntry | undefined;
  before: DeadlineEntry | undefined;
  after: DeadlineEntry | undefined;
  /** Called once `dueMs` is reached. */
  onDue(nowMs: number): void;
}

export class Deadlines {
  readonly #clock: Clock;
  /** Each a circle of entries, with a head that is no entry. */
  readonly #slots: DeadlineEntry[];
  #count = 0;
  #timer: Timer | undefined;
  /** The tick for which the timer is set. */
  #timerTick = Number.POSITIVE_INFINITY;
  /** Ticks up to this one have been searched. */
  #doneTick: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#slots = Array.from({ length: SLOTS }, circle);
    this.#doneTick = tickOf(clock.monotonicMs()) - 1;
  }

  /** Sets or moves the entry's deadline; Infinity clears it. */
  set(entry: DeadlineEntry, dueMs: number): void {
    this.clear(entry);
    if (dueMs === Number.POSITIVE_INFINITY) return;
    entry.dueMs = dueMs;
    if (this.#count === 0) this.#doneTick = tickOf(this.#clock.monotonicMs()) - 1;
    const tick = Math.max(tickOf(dueMs) + 1, this.#doneTick + 1);
    this.#insert(entry, tick);
    this.#wakeAt(Math.min(tick, this.#doneTick + SLOTS));
  }

  /** True once the time is reached; entries fire up to a tick later. */
  isReached(dueMs: number): boolean {
    return this.#clock.monotonicMs() >= dueMs;
  }

  clear(entry: DeadlineEntry): void {
    if (!entry.slot) return;
    unlink(entry);
    this.#count--;
    assert(this.#count >= 0, 'no more deadlines were cleared than set');
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerTick = Number.NEGATIVE_INFINITY;
  }

  #insert(entry: DeadlineEntry, tick: number): void {
    const head = this.#slots[tick % SLOTS]!;
    entry.slot = head;
    entry.before = head.before;
    entry.after = head;
    head.before!.after = entry;
    head.before = entry;
    this.#count++;
  }

  #wakeAt(tick: number): void {
    if (tick >= this.#timerTick) return;
    this.#timer?.cancel();
    this.#timerTick = tick;
    this.#timer = this.#clock.timer(Math.max(0, tick * TICK_MS - this.#clock.monotonicMs()), () => this.#turn());
  }

  /** Fires what is due, and sets the timer for the next slot that holds anything. */
  #turn(): void {
    const nowMs = this.#clock.monotonicMs();
    const nowTick = tickOf(nowMs);
    this.#timerTick = Number.POSITIVE_INFINITY;
    // after a long stall of the loop every slot once is enough
    for (let tick = Math.max(this.#doneTick + 1, nowTick - SLOTS + 1); tick <= nowTick; tick++)
      this.#fire(this.#slots[tick % SLOTS]!, nowMs);
    this.#doneTick = nowTick;
    if (this.#count === 0) return;
    for (let tick = nowTick + 1; tick <= nowTick + SLOTS; tick++) {
      const head = this.#slots[tick % SLOTS]!;
      if (head.after !== head) return this.#wakeAt(tick);
    }
  }

  #fire(head: DeadlineEntry, nowMs: number): void {
    for (let entry = head.after!; entry !== head; ) {
      const next = entry.after!;
      if (entry.dueMs <= nowMs) {
        this.clear(entry);
        entry.onDue(nowMs);
        // the callback may have cleared the next one
        entry = next === head || next.slot === head ? next : head.after!;
      } else entry = next;
    }
  }
}

function tickOf(ms: number): number {
  return Math.floor(ms / TICK_MS);
}

function circle(): DeadlineEntry {
  const head: DeadlineEntry = { dueMs: 0, slot: undefined, before: undefined, after: undefined, onDue() {} };
  head.before = head;
  head.after = head;
  return head;
}

function unlink(entry: DeadlineEntry): void {
  entry.before!.after = entry.after;
  entry.after!.before = entry.before;
  entry.slot = undefined;
  entry.before = undefined;
  entry.after = undefined;
}
