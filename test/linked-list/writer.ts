/**
 * A client that writes the nodes of its chain, a generation at a time, in one bulk write. What was not acknowledged is
 * written again until it is, or left as of unknown outcome, to which no node refers: a write that takes effect long
 * after its client has given it up changes nothing that is acknowledged.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { BatchError, RowMutation } from '../../src/embedded/index.ts';
import type { SeededRandom } from '../../src/env/index.ts';
import type { Doors } from '../cluster/doors.ts';
import type { Failures } from '../cluster/failures.ts';
import { outcomeOf } from '../linearizability/calls.ts';
import type { Chain } from './chain.ts';
import { keyOf, NODE, nodeOf, PREV, TABLE } from './nodes.ts';

export interface WriterOptions {
  readonly seed: number;
  /** The number of the chain. */
  readonly number: number;
  readonly chain: Chain;
  /** Closed by `close`. */
  readonly doors: Doors;
  readonly random: SeededRandom;
  readonly failures: Failures;
}

/** Short ones leave writes of unknown outcome, long ones outlast a recovery. */
const MIN_TIMEOUT_MS = 2000;
const MAX_TIMEOUT_MS = 15_000;
const MAX_PAUSE_MS = 500;
/** The share of the failed attempts after which the rest of a generation is left as it is. */
const LEFT_SHARE = 0.1;

export class Writer {
  readonly chain: Chain;
  /** When it last had acknowledged all that a call asked for, and that call began. */
  answeredCallMs = 0;
  /** `run` has ended. */
  isDone = false;
  readonly #options: WriterOptions;
  /** No generation begins when so many nodes have. */
  #limit = 0;
  #wake = (): void => {};
  #isStopped = false;

  constructor(options: WriterOptions) {
    this.chain = options.chain;
    this.#options = options;
  }

  /**
   * Resolves when the chain is complete, or after `stop` when the call under way has ended. No generation begins
   * without `allow`.
   */
  async run(): Promise<void> {
    const { random } = this.#options;
    while (!this.chain.isComplete && !this.#isStopped) {
      if (this.chain.begun >= this.#limit) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      let left = this.chain.begin();
      for (;;) {
        left = await this.#write(left);
        if (left.length === 0 || this.#isStopped || random.float() < LEFT_SHARE) break;
        await pause(random.float() * MAX_PAUSE_MS);
      }
    }
    this.isDone = true;
  }

  /** It may begin generations until so many more nodes are written, and one in any case. */
  allow(nodes: number): void {
    this.#limit = Math.max(this.#limit, this.chain.begun + nodes);
    this.#wake();
  }

  stop(): void {
    this.#isStopped = true;
    this.#wake();
  }

  async close(): Promise<void> {
    await this.#options.doors.close();
  }

  /** Returns those that were not acknowledged. */
  async #write(indexes: readonly number[]): Promise<readonly number[]> {
    const { doors, random, failures, number } = this.#options;
    const mutations = indexes.map((index) => this.#mutation(index));
    const timeoutMs = MIN_TIMEOUT_MS + random.float() * (MAX_TIMEOUT_MS - MIN_TIMEOUT_MS);
    const beganMs = performance.now();
    let left: readonly number[] = [];
    try {
      await doors.database.table(TABLE).applyAll(mutations, { timeoutMs });
      this.answeredCallMs = beganMs;
    } catch (error) {
      const outcome = outcomeOf(error);
      doors.note(outcome);
      left = error instanceof BatchError ? error.failures.map(({ index }) => indexes[index]!) : indexes;
      if (outcome.kind !== 'answered')
        failures.note(`${left.length} nodes of chain ${number}: ${outcome.code}: ${outcome.message}`);
    }
    const failed = new Set(left);
    for (const index of indexes) if (!failed.has(index)) this.chain.acknowledge(index);
    return left;
  }

  #mutation(index: number): RowMutation {
    const { seed, number, chain } = this.#options;
    const { key, text } = nodeOf(seed, { chain: number, index });
    const prev = chain.prevOf(index);
    return new RowMutation(key)
      .set(NODE, text)
      .set(PREV, prev === undefined ? '' : keyOf(seed, { chain: number, index: prev }));
  }
}
