/**
 * Checks whether a history of concurrent operations on one object is linearizable (Herlihy and Wing, "Linearizability",
 * 1990): whether every operation can have taken effect at one instant between its beginning and its end.
 *
 * The search is just-in-time linearization (Lowe, "Testing for linearizability", 2017). Events are taken in their
 * order. The checker keeps every configuration that explains them: a state of the object, and the operations under way
 * that have taken effect. When an operation ends, each configuration in which it has not taken effect is continued by
 * operations under way, in every order, until it has. A history is linearizable while a configuration is left.
 *
 * Four rules keep the configurations few, and change no verdict:
 * - A read takes effect as soon as its answer is right.
 * - An operation of unknown outcome takes effect only where it changes the state.
 * - Of two configurations that differ in operations of unknown outcome alone, the one that has used fewer of them
 *   explains whatever the other does.
 * - A configuration that another one can still reach is left out.
 *
 * Operations that may take effect at any later time are many where servers are slow or unreachable. So few of them are
 * tried before an operation ends, and more only if the history would not be linearizable otherwise.
 *
 * Memory: the operations under way and the configurations, so a history may be taken in pieces. A piece is kept while
 * it may have to be searched again. `sim/` and tests share this file: it imports nothing of the product.
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

/** Operations without an end that may take effect before the end of another one, in the first search. */
const FEW = 2;
/** Configurations that one event may lead to before the search ends without a verdict. */
const MAX_CONFIGURATIONS = 500_000;

/** The search has become too large. The history may be right or wrong. */
export class NoVerdictError extends Error {}

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

/** A search that can be continued from there. */
interface Position {
  readonly configurations: ConfigurationSet;
  readonly pending: ReadonlyMap<Operation, Pending>;
  readonly takenUntil: number;
}

export class Checker {
  #configurations = new ConfigurationSet();
  #pending = new Map<Operation, Pending>();
  #takenUntil = Number.NEGATIVE_INFINITY;
  /** The last position before which no order was left out, and what was taken since. */
  #complete: Position;
  #sinceComplete: Operation[] = [];
  /** The most operations without an end that are tried before the end of another one. */
  #tried = FEW;
  /** True if orders were left out since the last complete position. */
  #hasLeftOut = false;
  #violation: Violation | undefined;
  readonly #maxConfigurations: number;
  /** The most configurations that one event led to. */
  maxConfigurations = 1;

  /** `maxConfigurations`: more than so many at one event end the search with a NoVerdictError. */
  constructor(initial: string, maxConfigurations = MAX_CONFIGURATIONS) {
    this.#maxConfigurations = maxConfigurations;
    this.#configurations.add({ state: initial, done: 0n, used: 0n });
    this.#complete = this.#position();
  }

  /**
   * Takes the next operations of the history: all that began after those taken before. Those of unknown outcome without
   * an end stay under way; they may have got an end at the next call. Returns the first violation. Throws if there is
   * no verdict.
   */
  take(operations: readonly Operation[]): Violation | undefined {
    if (this.#violation !== undefined) return this.#violation;
    this.#sinceComplete.push(...operations);
    let violation = this.#search(operations);
    while (violation !== undefined && this.#hasLeftOut) {
      this.#tried *= 2;
      this.#returnTo(this.#complete);
      violation = this.#search(this.#sinceComplete);
    }
    this.#tried = FEW;
    this.#violation = violation;
    if (!this.#hasLeftOut) {
      this.#complete = this.#position();
      this.#sinceComplete = [];
    }
    return violation;
  }

  #position(): Position {
    return { configurations: this.#configurations, pending: new Map(this.#pending), takenUntil: this.#takenUntil };
  }

  #returnTo({ configurations, pending, takenUntil }: Position): void {
    this.#configurations = configurations;
    this.#pending = new Map(pending);
    this.#takenUntil = takenUntil;
    this.#hasLeftOut = false;
  }

  #search(operations: readonly Operation[]): Violation | undefined {
    const begins = operations.filter(isRelevant).sort((a, b) => a.beganAt - b.beganAt);
    const ends = [...this.#pending.keys(), ...begins].filter(hasEnd).sort((a, b) => a.endedAt - b.endedAt);
    let begun = 0;
    for (const operation of ends) {
      while (begun < begins.length && begins[begun]!.beganAt <= operation.endedAt) this.#begin(begins[begun++]!);
      const violation = this.#end(operation);
      if (violation !== undefined) return violation;
    }
    while (begun < begins.length) this.#begin(begins[begun++]!);
    return undefined;
  }

  #begin(operation: Operation): void {
    assert.ok(operation.beganAt >= this.#takenUntil, 'a history is taken in the order of its events');
    assert.ok(operation.endedAt >= operation.beganAt, 'an operation ends after its beginning');
    this.#takenUntil = operation.beganAt;
    let bit = 1n;
    const bits = [...this.#pending.values()].reduce((set, other) => set | other.bit, 0n);
    while ((bits & bit) !== 0n) bit <<= 1n;
    this.#pending.set(operation, { operation, bit });
  }

  #end(operation: Operation): Violation | undefined {
    assert.ok(operation.endedAt >= this.#takenUntil, 'a history is taken in the order of its events');
    this.#takenUntil = operation.endedAt;
    const pending = this.#pending.get(operation);
    assert.ok(pending !== undefined, 'an operation that ends has begun');
    const found = this.#linearized(pending);
    this.#pending.delete(operation);
    if (found.size === 0) {
      const states = new Set([...this.#configurations].map(({ state }) => state));
      return { operation, states: [...states], concurrent: [...this.#pending.keys()] };
    }
    this.#configurations = this.#withoutReachable(found);
    return undefined;
  }

  /** The configurations in which `ending` has taken effect, without its bit; of unknown outcome: or never will. */
  #linearized({ operation: ending, bit }: Pending): ConfigurationSet {
    const found = new ConfigurationSet();
    const visited = new ConfigurationSet();
    /** Those with the same number of operations of unknown outcome that took effect in this search. */
    let level: Configuration[] = [...this.#configurations].map((each) => this.#withReads(each));
    for (let unknown = 0; level.length > 0; unknown++) {
      const next: Configuration[] = [];
      for (let configuration = level.pop(); configuration; configuration = level.pop()) {
        if (!visited.add(configuration)) continue;
        const { state, done, used } = configuration;
        const hasEnded = ((done | used) & bit) !== 0n;
        if (hasEnded || !ending.isAnswered) found.add({ state, done: done & ~bit, used: used & ~bit });
        if (hasEnded) continue;
        for (const { operation, configuration: after } of this.#successors(configuration)) {
          if (operation.isAnswered) level.push(after);
          else if (unknown < this.#tried || hasEnd(operation)) next.push(after);
          else this.#hasLeftOut = true;
        }
      }
      level = next;
      this.maxConfigurations = Math.max(this.maxConfigurations, visited.size);
      if (visited.size > this.#maxConfigurations)
        throw new NoVerdictError(
          `no verdict: more than ${this.#maxConfigurations} configurations at the end of ${ending}`,
        );
    }
    return found;
  }

  /** Configurations after one more operation under way. */
  *#successors({ state, done, used }: Configuration): Iterable<{
    readonly operation: Operation;
    readonly configuration: Configuration;
  }> {
    for (const { operation, bit } of this.#pending.values()) {
      if (operation.isRead || ((done | used) & bit) !== 0n) continue;
      const effect = operation.apply(state);
      if (operation.isAnswered ? effect.answer !== operation.answer : effect.state === state) continue;
      const after = operation.isAnswered
        ? { state: effect.state, done: done | bit, used }
        : { state: effect.state, done, used: used | bit };
      yield { operation, configuration: this.#withReads(after) };
    }
  }

  /** The reads under way whose answer is right in this state take effect. */
  #withReads({ state, done, used }: Configuration): Configuration {
    for (const { operation, bit } of this.#pending.values()) {
      if (operation.isRead && (done & bit) === 0n && operation.apply(state).answer === operation.answer) done |= bit;
    }
    return { state, done, used };
  }

  /** Without configurations that others of them lead to by operations under way. */
  #withoutReachable(configurations: ConfigurationSet): ConfigurationSet {
    const reachable = new Set<Configuration>();
    for (const from of configurations) {
      for (const { configuration } of this.#successors(from))
        for (const other of configurations.explainedBy(configuration)) reachable.add(other);
    }
    const kept = new ConfigurationSet();
    for (const configuration of configurations) if (!reachable.has(configuration)) kept.add(configuration);
    return kept;
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

  /** Those of which the configuration explains whatever they do. */
  explainedBy({ state, done, used }: Configuration): readonly Configuration[] {
    return (this.#sets.get(`${done} ${state}`) ?? []).filter((other) => (other.used & used) === used);
  }

  *[Symbol.iterator](): Iterator<Configuration> {
    for (const configurations of this.#sets.values()) yield* configurations;
  }
}

const hasEnd = ({ endedAt }: Operation): boolean => endedAt !== Number.POSITIVE_INFINITY;

/** A read without an answer says nothing, nor does an operation that could take effect only before it began. */
function isRelevant({ isAnswered, isRead, beganAt, endedAt }: Operation): boolean {
  return isAnswered || (!isRead && endedAt >= beganAt);
}
