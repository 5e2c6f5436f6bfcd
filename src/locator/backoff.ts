/** Waiting between repeated attempts: twice as long each time, with a random part, never past the deadline. */
import { assert } from '../base/index.ts';
import { callCancelled, type Clock, checkContext, type Random, type RequestContext, sleep } from '../env/index.ts';

const FIRST_MS = 2;
const MAX_MS = 500;

export class Backoff {
  readonly #clock: Clock;
  readonly #random: Random;
  #nextMs = FIRST_MS;
  /** When the first attempt failed; undefined before that, and after progress. */
  #failingSinceMs: number | undefined;

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock;
    this.#random = random;
  }

  /** The time since the first failure after the last progress. */
  get failingMs(): number {
    return this.#failingSinceMs === undefined ? 0 : this.#clock.monotonicMs() - this.#failingSinceMs;
  }

  /** The next failure counts as the first. */
  restart(): void {
    this.#nextMs = FIRST_MS;
    this.#failingSinceMs = undefined;
  }

  /** Waits; rethrows `error` if the deadline would be over by then. */
  async wait(context: RequestContext, error: unknown): Promise<void> {
    checkContext(context, this.#clock);
    this.#failingSinceMs ??= this.#clock.monotonicMs();
    const delayMs = this.#nextMs * (0.5 + this.#random.float() / 2);
    assert(delayMs > 0 && delayMs <= MAX_MS, 'a wait between two attempts is bounded, and not zero');
    if (this.#clock.monotonicMs() + delayMs >= context.deadlineMs) throw error;
    this.#nextMs = Math.min(this.#nextMs * 2, MAX_MS);
    await sleep(this.#clock, delayMs, context.signal).catch((cause: unknown) => {
      throw callCancelled(undefined, cause);
    });
  }
}
