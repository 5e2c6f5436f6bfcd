/**
 * The recorder of histories: operations on one object, with their beginnings, ends and outcomes, for the checker. All
 * histories of one run share a clock, which numbers events in the order in which they were observed.
 */
import { Checker, type Effect, type Operation, type Violation } from './checker.ts';

/** An operation as the object that is specified does it: `Recorded` adds what came of it. */
export interface Step {
  /** True if it never changes the state. */
  readonly isRead: boolean;
  apply(state: string): Effect;
  toString(): string;
}

/** Numbers events. */
export class EventClock {
  #events = 0;

  next(): number {
    return ++this.#events;
  }
}

/** One operation of a history. Its first outcome counts. */
export class Recorded implements Operation {
  readonly step: Step;
  readonly beganAt: number;
  endedAt = Number.POSITIVE_INFINITY;
  outcome: 'under way' | 'answered' | 'failed' | 'unknown' = 'under way';
  answer: unknown;
  readonly #clock: EventClock;

  constructor(step: Step, clock: EventClock) {
    this.step = step;
    this.#clock = clock;
    this.beganAt = clock.next();
  }

  get isRead(): boolean {
    return this.step.isRead;
  }

  get isAnswered(): boolean {
    return this.outcome === 'answered';
  }

  apply(state: string): Effect {
    return this.step.apply(state);
  }

  answered(answer: unknown): void {
    if (this.outcome !== 'under way') return;
    this.outcome = 'answered';
    this.answer = answer;
    this.endedAt = this.#clock.next();
  }

  /** It surely had no effect, and never will. */
  failed(): void {
    if (this.outcome === 'under way') this.outcome = 'failed';
  }

  /** It has taken effect, or will later, or never. */
  unknown(): void {
    if (this.outcome === 'under way') this.outcome = 'unknown';
  }

  toString(): string {
    const { step, beganAt, endedAt, outcome, answer } = this;
    return `${beganAt}-${endedAt} ${step}: ${outcome}${this.isAnswered ? ` ${JSON.stringify(answer)}` : ''}`;
  }
}

export class History {
  readonly #checker: Checker;
  readonly #clock: EventClock;
  /** Those that the checker has not taken yet. */
  #operations: Recorded[] = [];
  /** Operations of unknown outcome that may still take effect. */
  #unbounded: Recorded[] = [];
  #hasEnded = false;

  constructor(initial: string, clock = new EventClock(), maxConfigurations?: number) {
    this.#checker = new Checker(initial, maxConfigurations);
    this.#clock = clock;
  }

  /** The most configurations that one event led to. */
  get maxConfigurations(): number {
    return this.#checker.maxConfigurations;
  }

  begin(step: Step): Recorded {
    const operation = new Recorded(step, this.#clock);
    if (!this.#hasEnded) this.#operations.push(operation);
    return operation;
  }

  /** What is answered from now on is not checked. */
  end(): void {
    for (const operation of this.#operations) operation.unknown();
    this.#hasEnded = true;
  }

  /** Records an operation that `work` does. `hasFailed` is true for an error if the operation surely had no effect. */
  async record(step: Step, work: () => Promise<unknown>, hasFailed: (error: unknown) => boolean): Promise<void> {
    const operation = this.begin(step);
    try {
      operation.answered(await work());
    } catch (error) {
      if (hasFailed(error)) operation.failed();
      else operation.unknown();
    }
  }

  /** Whatever has no answer took effect before the event `at`, or never will. */
  crash(at = this.#clock.next()): void {
    for (const operation of [...this.#unbounded, ...this.#operations]) {
      operation.unknown();
      if (operation.outcome === 'unknown' && operation.endedAt > at) operation.endedAt = at;
    }
    this.#unbounded = [];
  }

  /** Checks all operations so far; those under way count as unknown. They are not kept, except for the message. */
  check(): HistoryViolation | undefined {
    const operations = this.#operations;
    this.#operations = [];
    for (const operation of operations) operation.unknown();
    const taken = operations.filter(({ outcome }) => outcome !== 'failed');
    this.#unbounded.push(...taken.filter(({ endedAt }) => endedAt === Number.POSITIVE_INFINITY));
    const violation = this.#checker.take(taken);
    return violation && new HistoryViolation(violation, operations);
  }
}

/** Operations before a violation that its message shows. */
const MAX_SHOWN = 40;

/** A violation, and the operations that were checked together with it. */
export class HistoryViolation {
  readonly violation: Violation;
  readonly #operations: readonly Recorded[];

  constructor(violation: Violation, operations: readonly Recorded[]) {
    this.violation = violation;
    this.#operations = operations;
  }

  toString(): string {
    const { operation, states, concurrent } = this.violation;
    const before = this.#operations.filter(({ beganAt }) => beganAt <= operation.endedAt).slice(-MAX_SHOWN);
    return [
      'not linearizable: no order of the operations explains',
      `  ${operation}`,
      `Possible states before it: ${states.map((state) => JSON.stringify(state)).join(' ')}`,
      `Under way: ${concurrent.length === 0 ? 'no other' : ''}`,
      ...concurrent.map((other) => `  ${other}`),
      'The operations before it:',
      ...before.map((other) => `  ${other}`),
    ].join('\n');
  }
}
