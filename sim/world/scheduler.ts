/**
 * Simulated time, and the order in which things happen. All that happens are events of one queue: an answer that
 * arrives, a timer, a fault. All promises that an event settles run before the next one. Which of two events at nearly the same time comes first is drawn by the seed.
 *
 * Invariants: time never goes back; equal seeds run equal events in equal order; `trace` is a hash of them.
 */
import { createHash, type Hash } from 'node:crypto';
import { assert } from '../../src/base/index.ts';
import { SeededRandom } from '../../src/env/index.ts';

/** Who an event belongs to: it waits while its owner is paused, and never happens once its owner is dead. */
export interface Owner {
  readonly name: string;
  readonly isDead: boolean;
  /** Simulated time until which it stands still; 0: it runs. */
  readonly pausedUntilMs: number;
  /** Called after each event of it, and all that the event has settled. */
  readonly afterEvent?: (() => void) | undefined;
}

export interface ScheduledEvent {
  cancel(): void;
}

class QueuedEvent implements ScheduledEvent {
  atMs: number;
  /** Orders the events of one time. */
  readonly order: number;
  readonly what: string;
  readonly owner: Owner | undefined;
  /** Undefined: it does not happen. */
  run: (() => void) | undefined;

  constructor(atMs: number, order: number, what: string, owner: Owner | undefined, run: () => void) {
    this.atMs = atMs;
    this.order = order;
    this.what = what;
    this.owner = owner;
    this.run = run;
  }

  cancel(): void {
    this.run = undefined;
  }
}

/** Time passes within an event, too, by up to this much for each look at a clock. */
const MAX_TICK_MS = 0.002;
/** The event loop itself, which looks after signals and output, has its turn after so many events. */
const EVENTS_PER_TURN = 1000;
const RESOLVED = Promise.resolve();
/** The lines of so many characters are hashed together. */
const HASHED_TOGETHER = 1 << 16;

export class Scheduler {
  readonly random: SeededRandom;
  readonly #seed: number;
  readonly #ticks: SeededRandom;
  readonly #queue: QueuedEvent[] = [];
  readonly #hash: Hash = createHash('sha256');
  /** Lines that are not hashed yet. */
  #lines = '';
  #nowMs = 0;
  #events = 0;
  #running = false;
  /** The owner of the last event. */
  #last: Owner | undefined;
  /** What is left to do before the next event. */
  #soon: (() => void)[] = [];
  /** The last events, for the report of a failure. */
  onEvent: ((atMs: number, owner: string, what: string) => void) | undefined;

  constructor(seed: number) {
    this.#seed = seed;
    this.random = new SeededRandom(seed);
    this.#ticks = this.fork('ticks');
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Events that have happened. */
  get events(): number {
    return this.#events;
  }

  /** A generator of its own for `purpose`, so that one more draw there changes nothing elsewhere. */
  fork(purpose: string): SeededRandom {
    const digest = createHash('sha256').update(`${this.random.uniqueName()} ${purpose}`).digest();
    return new SeededRandom(digest.readUIntBE(0, 6));
  }

  /** The same for what was added later: no other generator is changed by it. */
  aside(purpose: string): SeededRandom {
    const digest = createHash('sha256').update(`${this.#seed} ${purpose}`).digest();
    return new SeededRandom(digest.readUIntBE(0, 6));
  }

  /** Time as a process sees it when it looks at its clock: a little later each time. */
  tick(): number {
    this.#nowMs += this.#ticks.float() * MAX_TICK_MS;
    return this.#nowMs;
  }

  /** Runs `run` once, `delayMs` from now. `owner`: undefined for the world itself, which never stands still. */
  after(delayMs: number, owner: Owner | undefined, what: string, run: () => void): ScheduledEvent {
    assert(delayMs >= 0 && Number.isFinite(delayMs), 'an event happens later, at some time');
    const event = new QueuedEvent(this.#nowMs + delayMs, this.random.float(), what, owner, run);
    this.#push(event);
    return event;
  }

  /** Resolves after all promises that the present event settles, before the next event. */
  endOfTurn(): Promise<void> {
    return new Promise((resolve) => this.#soon.push(resolve));
  }

  /** Runs events until `work` has ended; throws when nothing is left to happen, or at `untilMs`. */
  async run<T>(work: Promise<T>, untilMs: number): Promise<T> {
    assert(!this.#running, 'one run at a time');
    this.#running = true;
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    work.then(end, end);
    try {
      await new Promise<void>((resolve, reject) => {
        const turn = (): void => {
          try {
            if (isOver) return resolve();
            if (!this.#step()) throw new Error(`nothing is left to happen at ${this.#nowMs.toFixed(3)} ms`);
            if (this.#nowMs > untilMs) throw new Error(`the work has not ended after ${untilMs} ms`);
          } catch (thrown) {
            return reject(thrown);
          }
          if (this.#events % EVENTS_PER_TURN === 0) setImmediate(turn);
          else void RESOLVED.then(afterPromises);
        };
        // a tick that a promise asks for comes once no promise is left to run
        const afterPromises = (): void => process.nextTick(turn);
        setImmediate(turn);
      });
      return await work;
    } finally {
      this.#running = false;
    }
  }

  /** A hash of all events so far. */
  trace(): string {
    return this.#hash.copy().update(this.#lines, 'latin1').digest('hex').slice(0, 16);
  }

  /** Runs the next event. False: there is none. */
  #step(): boolean {
    if (this.#soon.length > 0) {
      const all = this.#soon;
      this.#soon = [];
      for (const run of all) run();
      return true;
    }
    this.#last?.afterEvent?.();
    for (;;) {
      const event = this.#pop();
      if (event === undefined) return false;
      const { run, owner, what } = event;
      if (run === undefined || owner?.isDead) continue;
      const atMs = Math.max(event.atMs, this.#nowMs);
      if (owner !== undefined && owner.pausedUntilMs > atMs) {
        event.atMs = owner.pausedUntilMs;
        this.#push(event);
        continue;
      }
      event.run = undefined;
      this.#last = owner;
      this.#nowMs = atMs;
      this.#events++;
      const name = owner?.name ?? '';
      this.#lines += `${Math.round(atMs * 1e6)} ${name} ${what}\n`;
      if (this.#lines.length > HASHED_TOGETHER) {
        this.#hash.update(this.#lines, 'latin1');
        this.#lines = '';
      }
      this.onEvent?.(atMs, name, what);
      run();
      return true;
    }
  }

  #push(event: QueuedEvent): void {
    const queue = this.#queue;
    let at = queue.length;
    queue.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, queue[parent]!)) break;
      queue[at] = queue[parent]!;
      at = parent;
    }
    queue[at] = event;
  }

  #pop(): QueuedEvent | undefined {
    const queue = this.#queue;
    const first = queue[0];
    const last = queue.pop();
    if (first === undefined || last === first) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= queue.length) break;
      if (child + 1 < queue.length && isBefore(queue[child + 1]!, queue[child]!)) child++;
      if (!isBefore(queue[child]!, last!)) break;
      queue[at] = queue[child]!;
      at = child;
    }
    queue[at] = last!;
    return first;
  }
}

function isBefore(a: QueuedEvent, b: QueuedEvent): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
