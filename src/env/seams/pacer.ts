/**
 * Keeps long work from holding the event loop: it runs in slices of SLICE_MS, with other work between them.
 */

/**
 * Collects young objects where there are enough of them, a seam to the runtime. True when it collected, and so took a
 * while.
 */
export type CollectYoung = () => boolean;

/** Longest slice of the event loop, ms: with a pause of the garbage collector on top it stays below 20. */
export const SLICE_MS = 5;

interface EventLoop {
  monotonicMs(): number;
  /** Resolves in a later turn of the event loop. */
  yield(): Promise<void>;
}

/**
 * The slices of all work that shares an event loop: one after another, together SLICE_MS at most. Loops that each kept
 * to slices of their own would hold the event loop for the sum of them.
 */
export class Slices {
  /**
   * Start of the present slice. It is long past after idle times: the first caller then pauses once too often, which is
   * cheap.
   */
  startMs: number;
  readonly #loop: EventLoop;
  readonly #collectYoung: CollectYoung | undefined;
  readonly #waiting: (() => void)[] = [];
  #isScheduled = false;
  #keeps = false;

  constructor(loop: EventLoop, collectYoung?: CollectYoung) {
    this.#loop = loop;
    this.#collectYoung = collectYoung;
    this.startMs = loop.monotonicMs();
  }

  /** Resolves when the caller may begin a slice: first come, first served, one a turn of the event loop. */
  next(keeps: boolean): Promise<void> {
    this.#keeps ||= keeps;
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    void this.#loop.yield().then(() => {
      const keeps = this.#keeps;
      this.#keeps = false;
      if (keeps && this.#collectYoung?.()) void this.#loop.yield().then(() => this.#begin());
      else this.#begin();
    });
  }

  #begin(): void {
    this.#isScheduled = false;
    this.startMs = this.#loop.monotonicMs();
    this.#waiting.shift()?.();
    this.#schedule();
  }
}

/** The part of a clock that a pacer needs. */
export interface SlicedClock {
  monotonicMs(): number;
  readonly slices: Slices;
}

/**
 * Asks a long loop to pause when its slice is over. Pacers of one clock share their slices.
 *
 *   if (pacer.due()) await pacer.pause();
 *
 * Hot path: `due` reads the clock once in `every` calls.
 */
export class Pacer {
  readonly #clock: SlicedClock;
  readonly #slices: Slices;
  readonly #every: number;
  #calls = 0;

  constructor(clock: SlicedClock, every = 64) {
    this.#clock = clock;
    this.#slices = clock.slices;
    this.#every = every;
  }

  /** `weight`: how many ordinary items this one counts for (a large value counts for many). */
  due(weight = 1): boolean {
    this.#calls += weight;
    if (this.#calls < this.#every) return false;
    this.#calls = 0;
    return this.#clock.monotonicMs() - this.#slices.startMs >= SLICE_MS;
  }

  pause(): Promise<void> {
    return this.#slices.next(false);
  }

  /** A pause after a slice that made mostly objects that stay: the young ones are collected before the next slice. */
  pauseForGc(): Promise<void> {
    return this.#slices.next(true);
  }
}

/** Bytes that are copied without reading the clock. */
const COPIED_BYTES = 1024 * 1024;
/** A piece costs as much as this many bytes in addition to its own. */
const PIECE_BYTES = 64;

/** The pieces as one buffer, which a caller may keep, copied with pauses. They must not change meanwhile. */
export async function joinInSlices(clock: SlicedClock, pieces: readonly Uint8Array[]): Promise<Buffer> {
  const joined = Buffer.allocUnsafeSlow(pieces.reduce((sum, { length }) => sum + length, 0));
  const pacer = new Pacer(clock, COPIED_BYTES);
  let at = 0;
  for (const piece of pieces) {
    for (let from = 0; from < piece.length; from += COPIED_BYTES) {
      const part = piece.length <= COPIED_BYTES ? piece : piece.subarray(from, from + COPIED_BYTES);
      joined.set(part, at);
      at += part.length;
      if (pacer.due(PIECE_BYTES + part.length)) await pacer.pause();
    }
  }
  return joined;
}

/** Items handled without reading the clock. */
const ITEMS_PER_SLICE = 1000;

/**
 * Runs `work` over `count` items, as ranges [from, to), with pauses between them. Up to ITEMS_PER_SLICE it is one plain
 * call and the answer is undefined: the common case stays synchronous.
 */
export function inSlices(
  clock: SlicedClock,
  count: number,
  work: (from: number, to: number) => void,
): Promise<void> | undefined {
  if (count > ITEMS_PER_SLICE) return pacedSlices(clock, count, work);
  work(0, count);
  return undefined;
}

async function pacedSlices(clock: SlicedClock, count: number, work: (from: number, to: number) => void): Promise<void> {
  const pacer = new Pacer(clock, 1);
  for (let from = 0; from < count; from += ITEMS_PER_SLICE) {
    work(from, Math.min(from + ITEMS_PER_SLICE, count));
    if (pacer.due()) await pacer.pauseForGc();
  }
}
