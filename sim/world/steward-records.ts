/** What the steward has changed and must find, and how its calls are made and judged. */
import type { Client } from '../../src/client/index.ts';
import type { BigtableError } from '../../src/embedded/index.ts';
import { type Random, type RequestContext, sleep } from '../../src/env/index.ts';
import { DEFAULT_PROJECT } from '../../src/model/index.ts';
import { outcomeOf } from '../../test/linearizability/calls.ts';
import { Tables } from '../../test/tables.ts';
import type { ClientSeat, Door } from './cluster.ts';
import { failureOf, untilAnswered } from './failure-of.ts';
import { ABSENT, LATE_MS, Register } from './register.ts';
import { FAILURES, type Verdicts } from './verdicts.ts';

const CALL_MS = 8000;

/** What the steward looks after. */
export const INSTANCE = `projects/${DEFAULT_PROJECT}/instances/stewarded`;
export const TABLE = `${INSTANCE}/tables/t`;
export const CLUSTER = 'c0';
export const FAMILIES = ['g', 'h'];
export const ROWS = ['a', 'f', 'm', 'z'];

export interface StewardParts {
  readonly random: Random;
  readonly seat: ClientSeat;
  readonly verdicts: Verdicts;
  readonly nowMs: () => number;
  /** The front doors that are open. */
  readonly doors: () => readonly Door[];
}

export class StewardRecords {
  readonly seat: ClientSeat;
  readonly client: Client;
  readonly random: Random;
  readonly nowMs: () => number;
  readonly doors: () => readonly Door[];
  /** By the full name of what it is, and for a policy of what it is about. */
  readonly registers = new Map<string, Register>();
  readonly policies = new Map<string, Register>();
  /** The backups that were found when they were last listed. */
  ownBackups: readonly string[] = [];
  /** Until then calls may take effect of which an earlier attempt was answered. */
  doubtfulUntilMs = 0;
  /** How many changes were answered. */
  changes = 0;
  readonly #verdicts: Verdicts;
  readonly #tables: Tables;
  #values = 0;

  constructor({ random, seat, verdicts, nowMs, doors }: StewardParts) {
    this.seat = seat;
    this.client = seat.client;
    this.random = random;
    this.nowMs = nowMs;
    this.doors = doors;
    this.#verdicts = verdicts;
    this.#tables = new Tables(seat.env, seat.client);
  }

  /** Makes a change of what one register holds. False: it was not answered. */
  async make(name: string, register: Register, value: string, call: () => Promise<unknown>): Promise<boolean> {
    register.begin(value);
    const failure = await failureOf(call);
    if (failure === undefined) {
      this.changes++;
      register.done();
      return true;
    }
    if (outcomeOf(failure).kind === 'unknown' || FAILURES.has(failure.codeName)) {
      register.mayBeDone();
      return false;
    }
    register.refused();
    // after a change of unknown outcome what is there may be another one, or nothing
    const isExplained = register.known === undefined && ['NOT_FOUND', 'ALREADY_EXISTS'].includes(failure.codeName);
    if (!isExplained) this.found(`a change of ${name} fails: ${failure.message}`);
    return false;
  }

  judge(what: string, register: Register, found: string): void {
    if (!register.mayBe(found))
      this.found(`${what} is ${found === ABSENT ? 'not there' : found}, and must be ${register}`);
  }

  judgeFailure(what: string, { codeName, message }: BigtableError): void {
    if (!FAILURES.has(codeName)) this.found(`${what} fails: ${message}`);
  }

  found(what: string): void {
    this.#verdicts.add('resources', what);
  }

  register(name: string): Register {
    return registerIn(this.registers, name, this.nowMs);
  }

  policyRegister(resource: string): Register {
    return registerIn(this.policies, resource, this.nowMs);
  }

  /** Makes the call until it is answered. `done`: the code that says that an earlier attempt has done it. */
  async untilAnswered(
    isOver: () => boolean,
    done: string | undefined,
    call: () => Promise<unknown>,
  ): Promise<'done' | 'unknown' | BigtableError> {
    const { clock } = this.seat.process;
    let attempts = 0;
    const outcome = await untilAnswered({ clock, isOver, done }, () => {
      attempts++;
      return call();
    });
    if (attempts > 1) this.doubtfulUntilMs = this.nowMs() + LATE_MS;
    return outcome;
  }

  pause(delayMs: number): Promise<void> {
    return sleep(this.seat.process.clock, delayMs);
  }

  context(): RequestContext {
    return this.#tables.context(CALL_MS);
  }

  newValue(): string {
    return `v${++this.#values}`;
  }

  oneOf<T>(choices: readonly [T, ...T[]] | readonly T[]): T {
    return choices[Math.floor(this.random.float() * choices.length)]!;
  }
}

function registerIn(registers: Map<string, Register>, name: string, nowMs: () => number): Register {
  let register = registers.get(name);
  if (register === undefined) registers.set(name, (register = new Register(nowMs)));
  return register;
}
