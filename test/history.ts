/**
 * Histories of concurrent operations on one object, and the question whether they are linearizable: whether every
 * operation took effect at one instant between its beginning and its end. The search is that of Wing and Gong ("Testing
 * and verifying concurrent objects", 1993), with visited states kept.
 */
import assert from 'node:assert/strict';

/** The object after the operation, and the answer to it. */
export interface Effect {
  readonly state: string;
  readonly answer: unknown;
}

interface Operation {
  readonly name: string;
  readonly apply: (state: string) => Effect;
  readonly beganAt: number;
  endedAt: number;
  /** unknown: it may have taken effect, then or later. failed: it surely has not. */
  outcome: 'answered' | 'failed' | 'unknown';
  answer: unknown;
}

export class History {
  readonly #initial: string;
  readonly #operations: Operation[] = [];
  #events = 0;

  constructor(initial: string) {
    this.#initial = initial;
  }

  /** Notes an operation. `hasFailed` says of an error that the operation surely had no effect. */
  async note(
    name: string,
    apply: Operation['apply'],
    work: () => Promise<unknown>,
    hasFailed: (error: unknown) => boolean,
  ): Promise<void> {
    const operation: Operation = {
      name,
      apply,
      beganAt: this.#events++,
      endedAt: Number.POSITIVE_INFINITY,
      outcome: 'unknown',
      answer: undefined,
    };
    this.#operations.push(operation);
    try {
      operation.answer = await work();
      operation.outcome = 'answered';
      operation.endedAt = this.#events++;
    } catch (error) {
      if (hasFailed(error)) operation.outcome = 'failed';
    }
  }

  /** What is under way is unknown from now on. */
  end(): History {
    const ended = new History(this.#initial);
    ended.#events = this.#events;
    ended.#operations.push(...this.#operations.map((operation) => ({ ...operation })));
    return ended;
  }

  get isLinearizable(): boolean {
    const operations = this.#operations.filter(({ outcome }) => outcome !== 'failed');
    assert.ok(operations.length <= 30, 'a history is short');
    const answered = operations.reduce((set, { outcome }, i) => (outcome === 'answered' ? set | (1 << i) : set), 0);
    const visited = new Set<string>();
    const search = (done: number, state: string): boolean => {
      if ((done & answered) === answered) return true;
      const key = `${done} ${state}`;
      if (visited.has(key)) return false;
      visited.add(key);
      // the next one began before any other ended
      const left = operations.filter((_, i) => (done & (1 << i)) === 0);
      const firstEnd = Math.min(...left.map(({ endedAt }) => endedAt));
      return operations.some((operation, i) => {
        if (done & (1 << i) || operation.beganAt > firstEnd) return false;
        const effect = operation.apply(state);
        if (operation.outcome === 'answered' && effect.answer !== operation.answer) return false;
        return search(done | (1 << i), effect.state);
      });
    };
    return search(0, this.#initial);
  }

  toString(): string {
    return this.#operations
      .map(({ name, beganAt, endedAt, outcome, answer }) => `${beganAt}-${endedAt} ${name}: ${outcome} ${answer}`)
      .join('\n');
  }
}
