/**
 * Checks whether a history of concurrent operations on one object is linearizable (Herlihy and Wing, "Linearizability",
 * 1990): whether every operation can have taken effect at one instant between its beginning and its end.
 *
 * The search is just-in-time linearization (Lowe, "Testing for linearizability", 2017). Events are taken in their
 * order. The checker keeps every configuration that explains them: a state of the object, and the operations under way
 * that have taken effect. When an operation ends, each configuration in which it has not taken effect is continued by
 * operations under way, in every order, until it has. A history is linearizable while a configuration is left.
 *
 * Three rules keep the configurations few, and change no verdict:
 * - A read takes effect as soon as its answer is right.
 * - An operation of unknown outcome takes effect only where it changes the state.
 * - Of two configurations that differ in operations of unknown outcome alone, the one that has used fewer of them
 *   explains whatever the other does.
 *
 * Memory: the operations under way and the configurations, so a history may be taken in pieces. `sim/` and tests share
 * this file: it imports nothing of the product.
 */
import assert from 'node:assert/strict';

/** The object after an operation, and the answer to it. */
export interface Effect {
  /** Equal states are equal strings. */
  readonly state: string;
  /** Compared by `===`. */
  readonly answer: unknown;
}

export interface Operation {
  /** Number of the event at which it began. */
  readonly beganAt: number;
  /**
   * Number of the event at which it was answered. If it was not answered: the last instant at which it may take effect,
   * infinite if there is none.
   */
  readonly endedAt: number;
  /** False: its outcome is unknown. It takes effect once, or never. */
  readonly isAnswered: boolean;
  readonly answer: unknown;
  /** True if it never changes the state. */
  readonly isRead: boolean;
  apply(state: string): Effect;
}

/** An operation whose answer no configuration explains. */
export interface Violation {
  readonly operation: Operation;
  /** Possible states before the operation. */
  readonly states: readonly string[];
  /** Operations that were under way at its end. */
  readonly concurrent: readonly Operation[];
}

/** Configurations that a history may have before the search ends without a verdict. */
const MAX_CONFIGURATIONS = 500_000;

interface Configuration {
  readonly state: string;
  /** Answered operations under way that have taken effect, a bit each. */
  readonly done: bigint;
  /** The same for operations of unknown outcome. */
  readonly used: bigint;
}

/** An operation under way. */
interface Pending {
  readonly operation: Operation;
  readonly bit: bigint;
}

export class Checker {
  #configurations: ConfigurationSet;
  readonly #pending = new Map<Operation, Pending>();
  #usedBits = 0n;
  #takenUntil = Number.NEGATIVE_INFINITY;
  /** The most configurations that one event led to. */
  maxConfigurations = 1;
  #violation: Violation | undefined;

  constructor(initial: string) {
    this.#configurations = new ConfigurationSet();
    this.#configurations.add({ state: initial, done: 0n, used: 0n });
  }

  /** States that the object may have now, if no operation of unknown outcome is still to take effect. */
  get states(): readonly string[] {
    return [...new Set([...this.#configurations].map(({ state }) => state))];
  }

  /**
   * Takes the next operations of the history: all that began after those taken before. Those of unknown outcome without
   * an end stay under way; they may have got an end at the next call. Returns the first violation. Throws if there is
   * no verdict.
   */
  take(operations: readonly Operation[]): Violation | undefined {
    if (this.#violation !== undefined) return this.#violation;
    const begins = operations.filter(isRelevant).sort((a, b) => a.beganAt - b.beganAt);
    const ends = [...this.#pending.keys(), ...begins]
      .filter(({ endedAt }) => endedAt !== Number.POSITIVE_INFINITY)
      .sort((a, b) => a.endedAt - b.endedAt);
    let begun = 0;
    for (const operation of ends) {
      while (begun < begins.length && begins[begun]!.beganAt <= operation.endedAt) this.#begin(begins[begun++]!);
      this.#violation = this.#end(operation);
      if (this.#violation !== undefined) return this.#violation;
    }
    while (begun < begins.length) this.#begin(begins[begun++]!);
    return undefined;
  }

  #begin(operation: Operation): void {
    assert.ok(operation.beganAt >= this.#takenUntil, 'a history is taken in the order of its events');
    assert.ok(operation.endedAt >= operation.beganAt, 'an operation ends after its beginning');
    this.#takenUntil = operation.beganAt;
    let bit = 1n;
    while ((this.#usedBits & bit) !== 0n) bit <<= 1n;
    this.#usedBits |= bit;
    this.#pending.set(operation, { operation, bit });
  }

  #end(operation: Operation): Violation | undefined {
    assert.ok(operation.endedAt >= this.#takenUntil, 'a history is taken in the order of its events');
    this.#takenUntil = operation.endedAt;
    const pending = this.#pending.get(operation);
    assert.ok(pending !== undefined, 'an operation that ends has begun');
    const next = this.#linearized(pending);
    if (next.size === 0) {
      const concurrent = [...this.#pending.keys()].filter((other) => other !== operation);
      return { operation, states: this.states, concurrent };
    }
    this.#configurations = next;
    this.#pending.delete(operation);
    this.#usedBits &= ~pending.bit;
    return undefined;
  }

  /** The configurations in which `ending` has taken effect, without its bit; of unknown outcome: or never will. */
  #linearized({ operation: ending, bit }: Pending): ConfigurationSet {
    const found = new ConfigurationSet();
    const visited = new ConfigurationSet();
    const left: Configuration[] = [];
    const visit = (configuration: Configuration): void => {
      const settled = this.#withReads(configuration);
      if (visited.add(settled)) left.push(settled);
    };
    for (const configuration of this.#configurations) visit(configuration);
    for (let configuration = left.pop(); configuration; configuration = left.pop()) {
      const { state, done, used } = configuration;
      const hasEnded = ((done | used) & bit) !== 0n;
      if (hasEnded || !ending.isAnswered) found.add({ state, done: done & ~bit, used: used & ~bit });
      if (hasEnded) continue;
      for (const { operation, bit: other } of this.#pending.values()) {
        if (operation.isRead || ((done | used) & other) !== 0n) continue;
        const effect = operation.apply(state);
        if (!operation.isAnswered) {
          if (effect.state !== state) visit({ state: effect.state, done, used: used | other });
        } else if (effect.answer === operation.answer) {
          visit({ state: effect.state, done: done | other, used });
        }
      }
      this.maxConfigurations = Math.max(this.maxConfigurations, visited.size);
      if (visited.size > MAX_CONFIGURATIONS)
        throw new Error(`no verdict: more than ${MAX_CONFIGURATIONS} configurations at the end of ${ending}`);
    }
    return found;
  }

  /** The reads under way whose answer is right in this state take effect. */
  #withReads({ state, done, used }: Configuration): Configuration {
    for (const { operation, bit } of this.#pending.values()) {
      if (operation.isRead && (done & bit) === 0n && operation.apply(state).answer === operation.answer) done |= bit;
    }
    return { state, done, used };
  }
}

/** Configurations without those that another one stands in for. */
class ConfigurationSet {
  /** By state and answered operations: sets of operations of unknown outcome, none of which contains another. */
  readonly #sets = new Map<string, Configuration[]>();
  size = 0;

  /** Returns false if one that is there already explains as much. */
  add(configuration: Configuration): boolean {
    const { state, done, used } = configuration;
    const key = `${done} ${state}`;
    const others = this.#sets.get(key) ?? [];
    if (others.some((other) => (other.used & used) === other.used)) return false;
    const kept = others.filter((other) => (other.used & used) !== used);
    this.size += kept.length + 1 - others.length;
    kept.push(configuration);
    this.#sets.set(key, kept);
    return true;
  }

  *[Symbol.iterator](): Iterator<Configuration> {
    for (const configurations of this.#sets.values()) yield* configurations;
  }
}

/** A read without an answer says nothing, nor does an operation that could take effect only before it began. */
function isRelevant({ isAnswered, isRead, beganAt, endedAt }: Operation): boolean {
  return isAnswered || (!isRead && endedAt >= beganAt);
}
