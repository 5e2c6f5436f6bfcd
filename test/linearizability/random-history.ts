/**
 * Random histories of a register that also counts and compares, linearizable by construction, or with one lie. For the
 * tests of the checker, and for its comparison with Porcupine (porcupine/main.go has the same register).
 */
import type { Random } from '../../src/env/index.ts';
import type { Effect, Operation } from './checker.ts';

export type RegisterWork =
  | { readonly kind: 'read' }
  | { readonly kind: 'write' | 'append'; readonly value: string }
  | { readonly kind: 'compareAndSet'; readonly expected: string; readonly value: string };

export class RegisterOperation implements Operation {
  readonly work: RegisterWork;
  readonly beganAt: number;
  endedAt = Number.POSITIVE_INFINITY;
  isAnswered = false;
  answer = '';

  constructor(work: RegisterWork, beganAt: number) {
    this.work = work;
    this.beganAt = beganAt;
  }

  get isRead(): boolean {
    return this.work.kind === 'read';
  }

  apply(state: string): Effect {
    return registerEffect(this.work, state);
  }

  toString(): string {
    const { work, beganAt, endedAt, isAnswered, answer } = this;
    return `${beganAt}-${endedAt} ${JSON.stringify(work)}: ${isAnswered ? JSON.stringify(answer) : 'unknown'}`;
  }
}

function registerEffect(work: RegisterWork, state: string): { readonly state: string; readonly answer: string } {
  switch (work.kind) {
    case 'read':
      return { state, answer: state };
    case 'write':
      return { state: work.value, answer: '' };
    case 'append':
      return { state: state + work.value, answer: state + work.value };
    case 'compareAndSet': {
      const matched = state === work.expected;
      return { state: matched ? work.value : state, answer: String(matched) };
    }
  }
}

export interface RandomHistoryOptions {
  readonly random: Random;
  readonly clients: number;
  readonly events: number;
  /** True if one answer is wrong. The history may be linearizable all the same. */
  readonly hasLie: boolean;
}

const VALUES = ['a', 'b', 'c'];

interface Client {
  operation: RegisterOperation | undefined;
  answer: string | undefined;
}

/** A history that began with the empty register. Ends of operations are different numbers, except those of a crash. */
export function randomHistory({ random, clients: count, events, hasLie }: RandomHistoryOptions): RegisterOperation[] {
  const below = (limit: number): number => Math.floor(random.float() * limit);
  const value = (): string => VALUES[below(VALUES.length)]!;
  const clients = Array.from({ length: count }, (): Client => ({ operation: undefined, answer: undefined }));
  const operations: RegisterOperation[] = [];
  /** Without an answer, and still to take effect. */
  let late: RegisterOperation[] = [];
  let state = '';
  const draw = (): RegisterWork => {
    const kind = (['read', 'read', 'write', 'append', 'compareAndSet'] as const)[below(5)]!;
    if (kind === 'read') return { kind };
    return kind === 'compareAndSet' ? { kind, expected: value(), value: value() } : { kind, value: value() };
  };
  const takeEffect = (operation: RegisterOperation): string => {
    const effect = registerEffect(operation.work, state);
    state = effect.state;
    return effect.answer;
  };
  for (let at = 1; at <= events; at++) {
    const client = clients[below(count)]!;
    const { operation } = client;
    if (late.length > 0 && below(4) === 0) {
      takeEffect(late.splice(below(late.length), 1)[0]!);
    } else if (below(40) === 0) {
      for (const other of operations) if (!other.isAnswered) other.endedAt = Math.min(other.endedAt, at);
      for (const other of clients) other.operation = undefined;
      late = [];
    } else if (operation === undefined) {
      client.operation = new RegisterOperation(draw(), at);
      client.answer = undefined;
      operations.push(client.operation);
    } else if (client.answer === undefined && below(8) === 0) {
      client.operation = undefined;
      // the others never take effect
      if (below(2) === 0) late.push(operation);
    } else if (client.answer === undefined) {
      client.answer = takeEffect(operation);
    } else {
      client.operation = undefined;
      operation.endedAt = at;
      // an answer that gets lost
      operation.isAnswered = below(8) > 0;
      operation.answer = client.answer;
      if (!operation.isAnswered) operation.endedAt = Number.POSITIVE_INFINITY;
    }
  }
  if (hasLie) lie(operations, below);
  return operations;
}

/** Gives one operation the answer of another one of its kind, or an impossible one. */
function lie(operations: readonly RegisterOperation[], below: (limit: number) => number): void {
  const answered = operations.filter(({ isAnswered, work }) => isAnswered && work.kind !== 'write');
  if (answered.length === 0) return;
  const liar = answered[below(answered.length)]!;
  const others = answered.filter(({ work, answer }) => work.kind === liar.work.kind && answer !== liar.answer);
  liar.answer = others.length === 0 ? 'never written' : others[below(others.length)]!.answer;
}
