/**
 * Whether a server serves: what /readyz answers. It starts, serves, and stops; while it serves there may be reasons why
 * it cannot: each is asked for.
 */
import type { Clock } from '../env/index.ts';

/** Why the server cannot serve now; undefined where that is no reason. */
export type Obstacle = () => string | undefined | Promise<string | undefined>;

/** Obstacles are looked for at most this often. */
const LASTING_MS = 1000;

export class Readiness {
  readonly #clock: Clock;
  readonly #obstacles: readonly Obstacle[];
  #stage: 'starting' | 'serving' | 'stopping' = 'starting';
  #looking: Promise<string | undefined> | undefined;
  #isLooking = false;
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, obstacles: readonly Obstacle[] = []) {
    this.#clock = clock;
    this.#obstacles = obstacles;
  }

  serving(): void {
    if (this.#stage === 'starting') this.#stage = 'serving';
  }

  stopping(): void {
    this.#stage = 'stopping';
  }

  /** Why it is not ready; undefined where it is. */
  async obstacle(): Promise<string | undefined> {
    if (this.#stage !== 'serving') return `the server is ${this.#stage}`;
    const found = await this.#look();
    // it may have been told to stop meanwhile
    return this.#stage === 'serving' ? found : `the server is ${this.#stage}`;
  }

  #look(): Promise<string | undefined> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#looking !== undefined && (this.#isLooking || nowMs - this.#lookedMs < LASTING_MS)) return this.#looking;
    this.#lookedMs = nowMs;
    this.#isLooking = true;
    const looking = this.#ask().finally(() => {
      this.#isLooking = false;
    });
    this.#looking = looking;
    return looking;
  }

  async #ask(): Promise<string | undefined> {
    for (const obstacle of this.#obstacles) {
      const found = await obstacle();
      if (found !== undefined) return found;
    }
    return undefined;
  }
}
