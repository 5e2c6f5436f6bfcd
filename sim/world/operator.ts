/**
 * A client that creates tables, changes their families, splits and merges their tablets, deletes them, and checks what it was answered: a row that
 * was written after a change, and acknowledged, is there until its family or table is dropped. Each of its rows is
 * written once, so that it knows what it must find. What it does not know the outcome of is never judged again.
 */
import { type BigtableError, type Database, RowMutation, type TableOptions } from '../../src/embedded/index.ts';
import { type Random, sleep } from '../../src/env/index.ts';
import { TABLE } from '../../test/linearizability/calls.ts';
import { ClusterCalls } from './cluster-calls.ts';
import type { ClientSeat } from './cluster.ts';
import { COUNTERS } from './counters.ts';
import { failureOf } from './failure-of.ts';
import type { Scheduler } from './scheduler.ts';
import { COLUMN, FAMILY, KnownTable, LETTERS } from './known-table.ts';
import { TableCalls } from './table-calls.ts';
import type { Verdicts } from './verdicts.ts';

const MAX_THINK_MS = 1700;
const CALL_MS = 8000;
const MAX_TABLES = 2;
/** Rows that are written after each change: some in each tablet. */
const PROBES = 2;
/** Divisions that follow one another. */
const MAX_DIVISIONS = 3;
/** The share of divisions with a sweep next to them. */
const SWEPT_SHARE = 0.6;
const MAX_SWEEP_DELAY_MS = 100;
const REUSED_NAMES = 0.5;
/** The share of deletions during which all tables are compacted. */
const COMPACTED_SHARE = 0.15;
/** The share of tables that are created with one tablet. */
const WHOLE_SHARE = 0.3;
/** A family of tables that other clients write to, which nobody writes to. */
const UNUSED = 'unused';
/** The share of changes that lose the schema of a table for a while. */
const LOST_SHARE = 0.03;
const MAX_LOST_MS = 8000;
/** Rows at which tables that others created are split and merged. */
const DIVISIONS: Readonly<Record<string, readonly string[]>> = {
  [TABLE]: ['row-04', 'row-08', 'row-12', 'row-06'],
  [COUNTERS]: ['m0', 'a1', 'm1'],
};

export interface OperatorParts {
  readonly scheduler: Scheduler;
  readonly seat: ClientSeat;
  readonly database: Database;
  /** The same, through front doors: for calls on rows alone. */
  readonly doors: Database;
  readonly verdicts: Verdicts;
  /** Has the master sweep. */
  readonly sweep: () => Promise<void>;
  /** The schema of the table is lost for that time, and put back. */
  readonly loseSchema: (table: string, lostMs: number) => Promise<void>;
}

export class Operator {
  readonly counts = {
    created: 0,
    deleted: 0,
    familiesReplaced: 0,
    lostSchemas: 0,
    divisions: 0,
    probes: 0,
    tableCalls: 0,
    clusterCalls: 0,
  };
  readonly #parts: OperatorParts;
  readonly #random: Random;
  readonly #calls: TableCalls;
  readonly #clusterCalls: ClusterCalls;
  #tables: KnownTable[] = [];
  readonly #deleted: KnownTable[] = [];
  /** All that there were. */
  readonly #known: KnownTable[] = [];
  /** Those whose schema was lost: they are as they were once it is back, and everyone knows that. */
  readonly #lost: KnownTable[] = [];
  readonly #putBack: Promise<void>[] = [];
  #sweeping: Promise<void> | undefined;
  #names = 0;
  #values = 0;

  constructor(parts: OperatorParts) {
    this.#parts = parts;
    this.#random = parts.scheduler.fork('operator');
    this.#calls = new TableCalls({
      database: parts.database,
      doors: parts.doors,
      random: parts.scheduler.fork('table calls'),
      timeoutMs: CALL_MS,
      newRow: (letter) => this.#newRow(letter),
      after: (delayMs, callback) => parts.seat.process.later(delayMs, 'cancel', callback),
      violation: (message) => parts.verdicts.add('tables', message),
    });
    this.#clusterCalls = new ClusterCalls({
      client: parts.seat.client,
      env: parts.seat.env,
      random: parts.scheduler.fork('cluster calls'),
      timeoutMs: CALL_MS,
      violation: (message) => parts.verdicts.add('tables', message),
    });
  }

  async work(untilMs: number): Promise<void> {
    const { scheduler, seat } = this.#parts;
    while (scheduler.nowMs < untilMs) {
      await this.#change();
      await this.#callCluster();
      for (const table of this.#tables) {
        await this.#probe(table);
        await this.#call(table);
      }
      await sleep(seat.process.clock, this.#random.float() * MAX_THINK_MS);
    }
    await Promise.all(this.#putBack);
  }

  /** Changes that were acknowledged may be lost. */
  lose(): void {
    for (const table of this.#known) table.lose();
  }

  /** Reads all that was acknowledged. Returns what was not answered; undefined if all was. */
  async readAll(): Promise<string | undefined> {
    for (const table of [...this.#tables, ...this.#lost]) {
      const found = new Map<string, string>();
      const failure = await failureOf(async () => {
        for await (const row of this.#parts.database.table(table.name).scan(this.#options()))
          found.set(row.name, row.cells[0]?.text ?? '');
      });
      if (failure !== undefined) {
        if (this.#tables.includes(table)) this.#judgeFailure(table, failure);
        return failure.message;
      }
      for (const [row, value] of table.rows) this.#judge(table, row, value, found.get(row));
    }
    return undefined;
  }

  async #change(): Promise<void> {
    const table = this.#tables[Math.floor(this.#random.float() * this.#tables.length)];
    const what = this.#random.float();
    if (table === undefined || (what < 0.3 && this.#tables.length < MAX_TABLES)) return this.#create();
    if (what < 0.45) return this.#delete(table);
    if (what < 0.6) return this.#replaceFamily(table);
    if (what < 0.7) return this.#changeUnused(this.#random.float() < 0.5 ? TABLE : COUNTERS);
    if (what < 0.7 + LOST_SHARE) return this.#loseSchema(table);
    const others = [TABLE, TABLE, COUNTERS];
    return this.#divide(this.#random.float() < 0.5 ? table.name : others[Math.floor(this.#random.float() * 3)]!);
  }

  /** Splits, merges and compactions, one right after another, often while the master sweeps. */
  async #divide(table: string): Promise<void> {
    if (this.#random.float() < SWEPT_SHARE) this.#sweeping ??= this.#sweepSoon();
    const rows = DIVISIONS[table] ?? ['k', 't', 'f'];
    const row = rows[Math.floor(this.#random.float() * rows.length)]!;
    for (let left = 1 + Math.floor(this.#random.float() * MAX_DIVISIONS); left > 0; left--) {
      await this.#divideOnce(table, row);
      this.counts.divisions++;
    }
  }

  #divideOnce(table: string, row: string): Promise<unknown> {
    const { database } = this.#parts;
    const options = this.#options();
    const what = this.#random.float();
    return failureOf(() => {
      if (what < 0.45) return database.merge(table, row, options);
      if (what < 0.75) return database.split(table, row, options);
      return what < 0.9 ? database.compact(table, options) : database.flush(options);
    });
  }

  /** Its outcome is of no interest. */
  async #sweepSoon(): Promise<void> {
    await sleep(this.#parts.seat.process.clock, this.#random.float() * MAX_SWEEP_DELAY_MS);
    await this.#parts.sweep();
    this.#sweeping = undefined;
  }

  /** Often under the name of a table that was deleted: locations and schemas of that one may be known. */
  async #create(): Promise<void> {
    const former = this.#random.float() < REUSED_NAMES ? this.#deleted.pop() : undefined;
    const name = former?.name ?? `operated-${this.#names++}`;
    const table = new KnownTable(name, former);
    this.#known.push(table);
    const [failure] = await Promise.all([
      failureOf(() => this.#parts.database.createTable(name, { ...this.#drawTable(), ...this.#options() })),
      this.#calls.callAbsent(table, { isGone: false }),
    ]);
    if (failure !== undefined) return;
    this.counts.created++;
    this.#tables.push(table);
  }

  /** Some have families and groups that nobody writes to: the schemas are more than the one family. */
  #drawTable(): TableOptions {
    const splits = this.#random.float() < WHOLE_SHARE ? [] : ['k', 't'];
    if (this.#random.float() < 0.6) return { families: { [FAMILY]: {} }, splits };
    return {
      families: {
        [FAMILY]: { group: 'hot' },
        aged: { maxAgeMs: 2000, maxVersions: 2 },
        sum: { aggregate: 'sum' },
      },
      groups: { hot: { inMemory: true, blockSizeBytes: 256, bloomFilter: 'row-column', compression: { kind: 'lz4' } } },
      granularity: 'micros',
      splits,
    };
  }

  async #delete(table: KnownTable): Promise<void> {
    this.#forget(table);
    const compacts = this.#random.float() < COMPACTED_SHARE;
    const [{ failure, isRepeated }] = await Promise.all([
      this.#deleteTable(table),
      this.#calls.callAbsent(table, { isGone: false }),
      compacts ? failureOf(() => this.#clusterCalls.compactAll()) : undefined,
      compacts ? failureOf(() => this.#parts.database.merge(table.name, 'k', this.#options())) : undefined,
    ]);
    if (failure !== undefined) return;
    this.counts.deleted++;
    // the first call may yet arrive, and would delete another table of that name
    if (!isRepeated) this.#deleted.push(table);
    await this.#calls.callAbsent(table, { isGone: true });
  }

  /** Its data is kept meanwhile. */
  #loseSchema(table: KnownTable): void {
    this.#forget(table);
    this.#lost.push(table);
    this.counts.lostSchemas++;
    this.#putBack.push(this.#parts.loseSchema(table.name, this.#random.float() * MAX_LOST_MS));
  }

  /** Once more where it is not known whether it was deleted. */
  async #deleteTable({ name }: KnownTable): Promise<{ failure: BigtableError | undefined; isRepeated: boolean }> {
    const deleteOnce = (): Promise<BigtableError | undefined> =>
      failureOf(() => this.#parts.database.deleteTable(name, this.#options()));
    const failure = await deleteOnce();
    const isRepeated = failure?.codeName === 'UNAVAILABLE' || failure?.codeName === 'DEADLINE_EXCEEDED';
    return { failure: isRepeated ? await deleteOnce() : failure, isRepeated };
  }

  async #replaceFamily(table: KnownTable): Promise<void> {
    const { database } = this.#parts;
    const rows = table.beginDeletion(() => true);
    const failure = await failureOf(async () => {
      await database.table(table.name).deleteFamily(FAMILY, this.#options());
      await database.table(table.name).createFamily(FAMILY, {}, this.#options());
    });
    if (failure === undefined) {
      this.counts.familiesReplaced++;
      table.deleted(rows);
    }
    // the change may yet come about, and take with it what is written meanwhile
    else this.#forget(table);
  }

  /** Changes the schema of a table while other clients call it. */
  async #changeUnused(table: string): Promise<void> {
    const handle = this.#parts.database.table(table);
    const failure = await failureOf(() => handle.createFamily(UNUSED, {}, this.#options()));
    // an earlier deletion has failed
    if (failure !== undefined && failure.codeName !== 'ALREADY_EXISTS') return;
    await failureOf(() => handle.setGcRule(UNUSED, { kind: 'maxVersions', versions: 2 }, this.#options()));
    await failureOf(() => handle.deleteFamily(UNUSED, this.#options()));
  }

  /** Writes some rows, and reads them and one of the earlier ones. */
  async #probe(table: KnownTable): Promise<void> {
    const handle = this.#parts.database.table(table.name);
    const [earlier] = table.rows.keys();
    for (let i = 0; i < PROBES; i++) {
      this.counts.probes++;
      const [row, value] = this.#newRow(LETTERS[Math.floor(this.#random.float() * LETTERS.length)]!);
      table.begin(row, value);
      const failure = await failureOf(() => handle.apply(new RowMutation(row).set(COLUMN, value), this.#options()));
      if (failure === undefined) table.wrote(row);
      else this.#judgeFailure(table, failure);
      if (failure === undefined) await this.#read(table, row, value);
    }
    const value = earlier === undefined ? undefined : table.rows.get(earlier);
    if (earlier !== undefined && value !== undefined) await this.#read(table, earlier, value);
  }

  #newRow(letter: string): readonly [row: string, value: string] {
    const value = String(this.#values++);
    return [`${letter}-${value}`, value];
  }

  /** After half of the changes: some of these calls are about all tables, and take their time. */
  async #callCluster(): Promise<void> {
    await failureOf(() => this.#clusterCalls.heat());
    if (this.#random.float() < 0.5) return;
    this.counts.clusterCalls++;
    const [existing, deleted] = [this.#tables, this.#deleted].map((tables) => tables.map(({ name }) => name));
    const failure = await failureOf(() => this.#clusterCalls.step(existing!, deleted!));
    if (failure?.codeName === 'INTERNAL') this.#parts.verdicts.add('tables', failure.message);
  }

  async #call(table: KnownTable): Promise<void> {
    this.counts.tableCalls++;
    const failure = await failureOf(() => this.#calls.step(table));
    if (failure !== undefined) this.#judgeFailure(table, failure);
  }

  async #read(table: KnownTable, row: string, value: string): Promise<void> {
    let found: string | undefined;
    const failure = await failureOf(async () => {
      const read = await this.#parts.database.table(table.name).get(row, this.#options());
      found = read?.cells[0]?.text;
    });
    if (failure === undefined) this.#judge(table, row, value, found);
    else this.#judgeFailure(table, failure);
  }

  #judge(table: KnownTable, row: string, value: string, found: string | undefined): void {
    const isKnown = this.#tables.includes(table) || this.#lost.includes(table);
    if (found === value || !isKnown || table.rows.get(row) !== value) return;
    const message = `row ${row} of table ${table.name} was written as ${value} and acknowledged, and is read as ${found}`;
    this.#parts.verdicts.add('schemas', message);
  }

  /** A table that was created, and not deleted, exists, and so does its family. */
  #judgeFailure({ name }: KnownTable, { codeName, message }: BigtableError): void {
    if (codeName === 'NOT_FOUND' || codeName === 'INVALID_ARGUMENT' || codeName === 'INTERNAL')
      this.#parts.verdicts.add('schemas', `table ${name}, which exists: ${message}`);
  }

  #forget(table: KnownTable): void {
    this.#tables = this.#tables.filter((other) => other !== table);
  }

  #options(): { readonly timeoutMs: number } {
    return { timeoutMs: CALL_MS };
  }
}
