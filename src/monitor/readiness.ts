/**
 * The readiness of a server, which /readyz answers. A server starts, serves and stops; while it serves, its obstacles
 * are checked: reasons why it cannot serve.
 */
import type { Clock } from '../env/index.ts';

/** Returns why the server cannot serve now; undefined where this does not hinder it. */
export type Obstacle = () => string | undefined | Promise<string | undefined>;

/** Obstacles are checked at most once in this time. */
const CACHE_MS = 1000;

export class Readiness {
  readonly #clock: Clock;
  readonly #obstacles: readonly Obstacle[];
  #stage: 'starting' | 'serving' | 'stopping' = 'starting';
  #checking: Promise<string | undefined> | undefined;
  #isChecking = false;
  #checkedMs = Number.NEGATIVE_INFINITY;

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

  /** Returns why it is not ready; undefined where it is. */
  async obstacle(): Promise<string | undefined> {
    if (this.#stage !== 'serving') return `the server is ${this.#stage}`;
    const found = await this.#check();
    // it may have begun to stop meanwhile
    return this.#stage === 'serving' ? found : `the server is ${this.#stage}`;
  }

  #check(): Promise<string | undefined> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#checking !== undefined && (this.#isChecking || nowMs - this.#checkedMs < CACHE_MS)) return this.#checking;
    this.#checkedMs = nowMs;
    this.#isChecking = true;
    const checking = this.#findObstacle().finally(() => {
      this.#isChecking = false;
    });
    this.#checking = checking;
    return checking;
  }

  async #findObstacle(): Promise<string | undefined> {
    for (const obstacle of this.#obstacles) {
      const found = await obstacle();
      if (found !== undefined) return found;
    }
    return undefined;
  }
}
