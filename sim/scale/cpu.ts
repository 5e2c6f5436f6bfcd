/** The processor of a simulated process: work is done in the order in which it comes, and takes its cost. */
import type { SimProcess } from '../world/process.ts';
import type { Scheduler } from '../world/scheduler.ts';

export class Cpu {
  readonly #scheduler: Scheduler;
  readonly #process: SimProcess;
  #freeMs = 0;
  /** All work so far, ms. */
  usedMs = 0;

  constructor(scheduler: Scheduler, process: SimProcess) {
    this.#scheduler = scheduler;
    this.#process = process;
  }

  /** Resolves when the work is done. */
  work(ms: number): Promise<void> {
    this.usedMs += ms;
    this.#freeMs = Math.max(this.#freeMs, this.#scheduler.nowMs) + ms;
    return this.wait(this.#freeMs - this.#scheduler.nowMs);
  }

  /** Resolves after a time in which the processor is free for other work. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.#process.later(ms, 'work', resolve));
  }
}
