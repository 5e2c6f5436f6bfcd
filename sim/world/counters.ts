/**
 * Counters that clients add to: sums, whose additions read nothing, and increments, which read and write. An addition
 * that was answered counts once, one of unknown outcome once or never, one that failed never. So a read lies between
 * what was answered before it began and what had begun when it ended. What was answered before acknowledged changes were
 * lost does not count. Some additions have a token: they are sent again when their outcome is unknown, and some when it
 * is known, and count once.
 */
import { type Database, RowMutation, type Table } from '../../src/embedded/index.ts';
import type { Random } from '../../src/env/index.ts';
import { type Outcome, outcomeOf } from '../../test/linearizability/calls.ts';
import type { Verdicts } from './verdicts.ts';

export const COUNTERS = 'counters';
export const ROWS = ['a0', 'a1', 'm0', 'm1'] as const;
const SUM = 'sum:x';
const COUNT = 'count:x';
const COLUMNS = [SUM, COUNT] as const;
const MAX_AMOUNT = 9;
/** Together more than memtables may take. */
const FLOOD_ROWS = 6;
const FLOOD_CHARS = 60_000;
const FLOOD_PREFIX = 'b-';
/** The share of additions to sums that have a token, and of those that are sent again though they were answered. */
const TOKEN_SHARE = 0.4;
const AGAIN_SHARE = 0.2;
const MAX_ATTEMPTS = 4;
/** The share of additions that have others with them. */
const OTHERS_SHARE = 0.1;
/** The state of an empty sum. */
const ZERO = new Uint8Array(8);

interface Counter {
  readonly row: string;
  readonly column: (typeof COLUMNS)[number];
  /** The sum of what was answered. */
  answered: number;
  /** The sum of what has begun, and has not failed. */
  begun: number;
}

type Failure = Exclude<Outcome, { readonly kind: 'answered' }>;

export class Counters {
  readonly counts = { additions: 0, additionsAgain: 0, counterReads: 0, floods: 0 };
  readonly #verdicts: Verdicts;
  readonly #random: Random;
  #losses = 0;
  #tokens = 0;
  readonly #counters: readonly Counter[] = ROWS.flatMap((row) =>
    COLUMNS.map((column): Counter => ({ row, column, answered: 0, begun: 0 })),
  );

  constructor(verdicts: Verdicts, random: Random) {
    this.#verdicts = verdicts;
    this.#random = random;
  }

  async create(database: Database): Promise<void> {
    const families = { sum: { aggregate: 'sum' }, count: { maxVersions: 1 }, distinct: { aggregate: 'hll' } } as const;
    await database.openTable(COUNTERS, { families, splits: ROWS.slice(1) });
  }

  /** Changes that were acknowledged may be lost. */
  lose(): void {
    this.#losses++;
    for (const counter of this.#counters) counter.answered = 0;
  }

  /** Adds to a counter, or reads a row. */
  async step(database: Database): Promise<void> {
    const counter = this.#counters[Math.floor(this.#random.float() * this.#counters.length)]!;
    if (this.#random.float() < 0.3) await this.#read(database, counter.row);
    else await this.#add(database, counter, 1 + Math.floor(this.#random.float() * MAX_AMOUNT));
  }

  /** Returns the message of what was not answered; undefined if all was. */
  async readAll(database: Database): Promise<string | undefined> {
    for (const row of ROWS) {
      const failure = await this.#read(database, row);
      if (failure !== undefined) return failure.message;
    }
    return undefined;
  }

  /** Writes rows that together are more than memtables take without a wait, and deletes them. */
  async flood(database: Database): Promise<void> {
    const table = database.table(COUNTERS);
    const rows = Array.from({ length: FLOOD_ROWS }, (_, i) =>
      new RowMutation(`${FLOOD_PREFIX}${i}`).set('count:flood', 'x'.repeat(FLOOD_CHARS)),
    );
    const failure = await this.#try(() => table.applyAll(rows));
    const after = await this.#try(() => table.deleteRows({ prefix: FLOOD_PREFIX }));
    this.counts.floods += failure === undefined && after === undefined ? 1 : 0;
  }

  async #add(database: Database, counter: Counter, amount: number): Promise<void> {
    const table = database.table(COUNTERS);
    const { row, column, answered } = counter;
    const losses = this.#losses;
    this.counts.additions++;
    counter.begun += amount;
    const increase = async (): Promise<void> => {
      const increment = { family: 'count', qualifier: 'x', change: { kind: 'increment', amount } } as const;
      const [cell] = await table.readModifyWrite(row, [increment]);
      this.#judge(counter, losses === this.#losses ? answered + amount : amount, Number(cell!.int));
    };
    const failure = await (column === SUM ? this.#addTo(table, this.#addition(row, amount)) : this.#try(increase));
    if (failure === undefined) counter.answered += losses === this.#losses ? amount : 0;
    else if (failure.kind === 'failed') counter.begun -= amount;
  }

  /** With a token it is sent several times. */
  async #addTo(table: Table, addition: RowMutation): Promise<Failure | undefined> {
    const send = (): Promise<Failure | undefined> => this.#try(() => table.apply(addition));
    if (this.#random.float() >= TOKEN_SHARE) return send();
    addition.withToken(`addition ${this.#tokens++}`);
    let failure = await send();
    for (let attempts = 1; attempts < MAX_ATTEMPTS; attempts++) {
      if (failure?.kind !== 'unknown' && this.#random.float() >= AGAIN_SHARE) break;
      this.counts.additionsAgain++;
      const again = await send();
      // whatever comes of this one, an earlier one may have been made, or was
      if (again === undefined || failure?.kind === 'failed') failure = again;
    }
    return failure;
  }

  /** Some have states and inputs of other aggregates with them, which change no counter. */
  #addition(row: string, amount: number): RowMutation {
    const mutation = new RowMutation(row).add(SUM, amount);
    if (this.#random.float() >= OTHERS_SHARE) return mutation;
    return mutation.merge('sum:none', ZERO).add('distinct:x', 'an input');
  }

  async #read(database: Database, row: string): Promise<Failure | undefined> {
    const counters = this.#counters.filter((counter) => counter.row === row);
    const before = counters.map(({ answered }) => answered);
    const losses = this.#losses;
    this.counts.counterReads++;
    return this.#try(async () => {
      const { cells = [] } = (await database.table(COUNTERS).get(row)) ?? {};
      for (const [i, counter] of counters.entries())
        this.#judge(
          counter,
          losses === this.#losses ? before[i]! : 0,
          Number(cells.find(({ column }) => column === counter.column)?.int ?? 0),
        );
    });
  }

  #judge({ row, column, begun }: Counter, least: number, found: number): void {
    if (found >= least && found <= begun) return;
    const message = `counter ${column} of row ${row} is ${found}: ${least} were answered, ${begun} have begun`;
    this.#verdicts.add('counters', message);
  }

  async #try(work: () => Promise<void>): Promise<Failure | undefined> {
    try {
      await work();
      return undefined;
    } catch (thrown) {
      const outcome = outcomeOf(thrown);
      return outcome.kind === 'answered' ? undefined : outcome;
    }
  }
}
