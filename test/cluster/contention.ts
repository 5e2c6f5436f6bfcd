/**
 * Clients that contend on a few rows through the front doors, with every call of the data API. The history of each row
 * must be linearizable.
 *
 * Each round has rows of its own. So an operation of unknown outcome, which may take effect at any later time, makes
 * the check of one round costlier, and not that of all later ones.
 */
import { appendFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { SeededRandom } from '../../src/env/index.ts';
import { type Call, type Outcome, perform, TABLE } from '../linearizability/calls.ts';
import { NoVerdictError } from '../linearizability/checker.ts';
import { Draw } from '../linearizability/draw.ts';
import { EventClock, History, type Recorded } from '../linearizability/history.ts';
import { EMPTY_ROW, FAMILIES, firstValueOf, RowStep } from '../linearizability/row.ts';
import { Doors } from './doors.ts';
import type { Failures } from './failures.ts';
import type { Finding } from './findings.ts';

export const CALL_TIMEOUT_MS = 5000;
const CLIENTS = 12;
const ROWS = 16;
const ROWS_OF_A_TABLET = 2;
const MAX_THINK_MS = 30;
/** With too many calls of unknown outcome a history explains anything. */
const MAX_THINK_AFTER_FAILURE_MS = 2000;
/** Above this the checker gives up on a row, which Porcupine may still judge. */
const MAX_CONFIGURATIONS = 5000;

export interface ContentionOptions {
  /** The front doors. */
  readonly addresses: readonly string[];
  readonly seed: number;
  readonly failures: Failures;
  /** The histories are written there, for other checkers: a line of JSON for each row of each round. */
  readonly historiesFile: string;
}

export interface ContentionCounts {
  calls: number;
  operations: number;
  answered: number;
  failed: number;
  unknown: number;
  /** Histories that the checker gave up. */
  undecided: number;
}

export class Contention {
  readonly counts: ContentionCounts = { calls: 0, operations: 0, answered: 0, failed: 0, unknown: 0, undecided: 0 };
  readonly #clients: readonly Doors[];
  readonly #random: SeededRandom;
  readonly #failures: Failures;
  /** By row, of all rounds. */
  readonly #histories = new Map<string, History>();
  readonly #clock = new EventClock();
  #round: { readonly draw: Draw; readonly work: readonly Promise<void>[] } | undefined;
  /** By row, of this round. */
  #operations = new Map<string, Recorded[]>();
  readonly #historiesFile: string;
  #isEnding = false;

  private constructor(
    clients: readonly Doors[],
    random: SeededRandom,
    { failures, historiesFile }: Pick<ContentionOptions, 'failures' | 'historiesFile'>,
  ) {
    this.#historiesFile = historiesFile;
    this.#clients = clients;
    this.#random = random;
    this.#failures = failures;
  }

  static async open({ addresses, seed, ...more }: ContentionOptions): Promise<Contention> {
    const random = new SeededRandom(seed);
    const clients = await Promise.all(Array.from({ length: CLIENTS }, () => Doors.at(addresses, random)));
    const splits = new Draw(ROWS, seed).rows.filter((_, i) => i > 0 && i % ROWS_OF_A_TABLET === 0);
    await clients[0]!.database.createTable(TABLE, { families: FAMILIES, splits });
    return new Contention(clients, random, more);
  }

  /** A row in each tablet, which no client writes. */
  get probes(): readonly string[] {
    return new Draw(ROWS, 1).rows.filter((_, i) => i % ROWS_OF_A_TABLET === 0);
  }

  begin(round: number, seed: number): void {
    const draw = new Draw(ROWS, seed, `-${String(round).padStart(4, '0')}`);
    for (const row of draw.rows) this.#histories.set(row, new History(EMPTY_ROW, this.#clock, MAX_CONFIGURATIONS));
    this.#operations = new Map(draw.rows.map((row) => [row, []]));
    this.#isEnding = false;
    this.#round = { draw, work: this.#clients.map((client) => this.#work(client, draw)) };
  }

  /** Ends the round, reads its rows, and checks their histories. */
  async end(): Promise<readonly Finding[]> {
    this.#isEnding = true;
    const { draw, work } = this.#round!;
    await Promise.all(work);
    const violations = await this.#readAndCheck(draw.rows);
    for (const operations of this.#operations.values())
      appendFileSync(this.#historiesFile, `${JSON.stringify(written(operations))}\n`);
    return violations;
  }

  /** Reads the rows of all rounds again: their histories still hold. */
  endAll(): Promise<readonly Finding[]> {
    this.#operations = new Map();
    return this.#readAndCheck([...this.#histories.keys()].sort());
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  async #work(client: Doors, draw: Draw): Promise<void> {
    while (!this.#isEnding) {
      const outcomes = await this.#call(client, draw, draw.call());
      const hasFailed = outcomes.some((outcome) => outcome.kind !== 'answered' && outcome.code !== 'NOT_FOUND');
      await pause(this.#random.float() * (hasFailed ? MAX_THINK_AFTER_FAILURE_MS : MAX_THINK_MS));
    }
  }

  async #call(client: Doors, draw: Draw, call: Call): Promise<readonly Outcome[]> {
    const operations = call.rows.map(({ row, work }) => this.#histories.get(row)!.begin(new RowStep(work)));
    const outcomes = await perform(client.database, call, CALL_TIMEOUT_MS);
    this.counts.calls++;
    this.counts.operations += operations.length;
    for (const [i, operation] of operations.entries()) this.#operations.get(call.rows[i]!.row)?.push(operation);
    for (const [i, operation] of operations.entries()) {
      const { row, work } = call.rows[i]!;
      const outcome = outcomes[i]!;
      this.counts[outcome.kind]++;
      if (outcome.kind === 'answered') {
        operation.answered(outcome.answer);
        if (work.kind === 'read') draw.saw(row, firstValueOf(String(outcome.answer)));
        continue;
      }
      operation[outcome.kind]();
      const isOwn =
        (work.kind === 'mutateInvalidly' && outcome.code === 'NOT_FOUND') ||
        (call.cancelAfter !== undefined && outcome.code === 'CANCELLED');
      if (!isOwn) this.#failures.note(`${call.method} ${row}: ${outcome.code}: ${outcome.message}`);
    }
    const failed = outcomes.find(({ kind }) => kind !== 'answered');
    if (failed !== undefined) client.note(failed);
    return outcomes;
  }

  async #readAndCheck(rows: readonly string[]): Promise<readonly Finding[]> {
    const [client] = this.#clients;
    const found: Finding[] = [];
    for (let at = 0; at < rows.length; at += ROWS) {
      const some = rows.slice(at, at + ROWS);
      const call: Call = { method: 'readRows', rows: some.map((row) => ({ row, work: { kind: 'read' } })) };
      const outcomes = await this.#call(client!, new Draw(ROWS, 1), call);
      const bad = outcomes.find(({ kind }) => kind !== 'answered');
      if (bad !== undefined)
        found.push({ kind: 'served', what: `rows cannot be read after the faults: ${JSON.stringify(bad)}` });
    }
    for (const row of rows) {
      const violation = this.#violationOf(row);
      if (violation !== undefined) found.push({ kind: 'linearizable', what: violation });
    }
    return found;
  }

  #violationOf(row: string): string | undefined {
    try {
      const violation = this.#histories.get(row)!.check();
      return violation && `${row} is ${violation}`;
    } catch (error) {
      if (!(error instanceof NoVerdictError)) throw error;
      this.counts.undecided++;
      this.#histories.delete(row);
      return undefined;
    }
  }
}

/** As test/linearizability/porcupine reads it; an infinite number is null in JSON. */
function written(operations: readonly Recorded[]): readonly object[] {
  return operations
    .filter(({ outcome, isRead, isAnswered }) => outcome !== 'failed' && (isAnswered || !isRead))
    .map(({ step, beganAt, endedAt, isAnswered, answer }) => ({
      work: (step as RowStep).work,
      beganAt,
      endedAt,
      isAnswered,
      answer: String(answer ?? ''),
    }));
}
