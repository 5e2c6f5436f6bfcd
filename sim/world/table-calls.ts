/**
 * The calls on a table that are made less often than reads and writes of a row: reads of ranges in either direction, of
 * at most so many rows, and abandoned ones; batches over all tablets, deletions of ranges, what a table has and is. Each
 * answer is judged.
 */
import { BatchError, BigtableError, type Database, RowMutation, type ScanOptions } from '../../src/embedded/index.ts';
import type { Random } from '../../src/env/index.ts';
import { COLUMN, FAMILY, type KnownTable, LETTERS } from './known-table.ts';
import { LargeCalls } from './large-calls.ts';
import { FAILURES } from './verdicts.ts';

const MAX_LIMIT = 4;
/** Calls that must be refused, one after another. */
const REFUSALS = 3;
const MAX_CANCEL_MS = 20;
/** A table that is being created or deleted is called within this time. */
const MAX_ABSENT_MS = 100;
/** The share of calls on rows that go through front doors. */
const THROUGH_DOORS = 0.3;

export interface TableCallsParts {
  readonly database: Database;
  /** The same, through front doors: for calls on rows alone. */
  readonly doors: Database;
  readonly random: Random;
  readonly timeoutMs: number;
  /** Returns a row and a value that no other has. */
  readonly newRow: (letter: string) => readonly [row: string, value: string];
  /** Calls back after that time of the client's process. */
  readonly after: (delayMs: number, callback: () => void) => void;
  readonly violation: (message: string) => void;
}

export class TableCalls {
  readonly #parts: TableCallsParts;
  readonly #kinds: readonly ((table: KnownTable) => Promise<void>)[] = [
    (table) => this.#scan(table),
    (table) => this.#scan(table),
    (table) => this.#getMany(table),
    (table) => this.#abandon(table),
    (table) => this.#cancel(table),
    (table) => this.#applyAll(table),
    (table) => this.#checkAndMutate(table),
    (table) => this.#deleteRows(table),
    (table) => this.#deleteRow(table),
    (table) => this.#sampleKeys(table),
    (table) => this.#tablets(table),
    (table) => this.#statistics(table),
    (table) => this.#setGcRule(table),
    (table) => this.#setGroups(table),
    (table) => this.#refusals(table),
    (table) => this.#large(table),
  ];
  readonly #largeCalls: LargeCalls;

  constructor(parts: TableCallsParts) {
    this.#parts = parts;
    const newRow = (): readonly [row: string, value: string] => parts.newRow(this.#letter());
    this.#largeCalls = new LargeCalls({ ...parts, newRow });
  }

  /** Makes a call that is drawn. Fails as it does. */
  async step(table: KnownTable): Promise<void> {
    await this.#oneOf(this.#kinds)(table);
  }

  async #scan(table: KnownTable): Promise<void> {
    const { options, covers } = this.#bounds(table);
    const reverse = this.#isDrawn(0.5);
    const limit = this.#isDrawn(0.5) ? 1 + Math.floor(this.#parts.random.float() * MAX_LIMIT) : undefined;
    const found = new Map<string, string | undefined>();
    let last: string | undefined;
    const scan = this.#rows(table).scan({
      ...options,
      ...this.#options(),
      reverse,
      ...(limit !== undefined && { limit }),
      ...(this.#isDrawn(0.5) && { columns: [COLUMN] }),
    });
    for await (const { name, cells } of scan) {
      if (last !== undefined && (reverse ? name >= last : name <= last))
        this.#parts.violation(
          `a scan of table ${table.name}${reverse ? ' in reverse' : ''} went from ${last} to ${name}`,
        );
      found.set(name, cells[0]?.text);
      last = name;
    }
    if (limit !== undefined && found.size > limit)
      this.#parts.violation(`a scan of at most ${limit} rows of table ${table.name} returned ${found.size}`);
    const end = found.size === limit ? last : undefined;
    this.#judge(table, found, (row) => covers(row) && (end === undefined || (reverse ? row >= end : row <= end)));
  }

  /** Rows of a prefix, of a range, of a list, or all. */
  #bounds(table: KnownTable): { options: ScanOptions; covers: (row: string) => boolean } {
    const [start, end] = [this.#letter(), this.#letter()].sort() as [string, string];
    switch (this.#oneOf(['prefix', 'range', 'rows', 'all'] as const)) {
      case 'prefix':
        return { options: { prefix: start }, covers: (row) => row.startsWith(start) };
      case 'range':
        return { options: { start, end }, covers: (row) => row >= start && row < end };
      case 'rows': {
        const rows = [...table.rows.keys()].filter(() => this.#isDrawn(0.5));
        return { options: { rows: [...rows, 'absent'] }, covers: (row) => rows.includes(row) };
      }
      case 'all':
        return { options: {}, covers: () => true };
    }
  }

  async #getMany(table: KnownTable): Promise<void> {
    const rows = [...table.rows.keys(), 'absent'];
    const found = await this.#rows(table).getMany(rows, this.#options());
    const read = rows.flatMap((row, i) => (found[i] ? [[row, found[i].cells[0]?.text] as const] : []));
    this.#judge(table, new Map(read), (row) => rows.includes(row));
  }

  /** A read that its caller ends after the first row. */
  async #abandon(table: KnownTable): Promise<void> {
    for await (const { name, cells } of this.#rows(table).scan(this.#options()))
      return this.#judge(table, new Map([[name, cells[0]?.text]]), (row) => row <= name);
  }

  /** A call that its caller cancels soon, or gives little time: it ends, as cancelled or as if it were not. */
  async #cancel(table: KnownTable): Promise<void> {
    const { after, random } = this.#parts;
    const soonMs = random.float() * MAX_CANCEL_MS;
    const controller = new AbortController();
    const isCancelled = this.#isDrawn(0.5);
    if (isCancelled) after(soonMs, () => controller.abort());
    const options = isCancelled ? { ...this.#options(), signal: controller.signal } : { timeoutMs: 1 + soonMs };
    const what = this.#oneOf(['write', 'batch', 'read'] as const);
    if (what === 'write') return this.#write(table, options);
    if (what === 'batch') return this.#applyAll(table, options);
    const found = new Map<string, string | undefined>();
    for await (const { name, cells } of this.#rows(table).scan(options)) found.set(name, cells[0]?.text);
    this.#judge(table, found, () => true);
  }

  async #write(table: KnownTable, options: object): Promise<void> {
    const [row, value] = this.#parts.newRow(this.#letter());
    table.begin(row, value);
    await this.#rows(table).apply(new RowMutation(row).set(COLUMN, value), options);
    table.wrote(row);
  }

  async #applyAll(table: KnownTable, options: object = this.#options()): Promise<void> {
    const entries = [...LETTERS].map((letter) => this.#parts.newRow(letter));
    for (const [row, value] of entries) table.begin(row, value);
    const mutations = entries.map(([row, value]) => new RowMutation(row).set(COLUMN, value));
    const failed = await this.#failedOf(this.#rows(table).applyAll(mutations, options));
    for (const [i, [row]] of entries.entries()) if (!failed.has(i)) table.wrote(row);
  }

  /** The entries of a batch that failed. */
  async #failedOf(batch: Promise<void>): Promise<ReadonlySet<number>> {
    try {
      await batch;
      return new Set();
    } catch (thrown) {
      if (!(thrown instanceof BatchError)) throw thrown;
      return new Set(thrown.failures.map(({ index }) => index));
    }
  }

  /** Writes a row that is not there. */
  async #checkAndMutate(table: KnownTable): Promise<void> {
    const [row, value] = this.#parts.newRow(this.#letter());
    const [earlier] = table.rows.keys();
    table.begin(row, value);
    const otherwise = {
      otherwise: (mutation: { set: (column: string, value: string) => unknown }) => mutation.set(COLUMN, value),
    };
    if (await this.#rows(table).checkAndMutate(row, { column: COLUMN }, otherwise, this.#options()))
      this.#parts.violation(`row ${row} of table ${table.name} was never written, and a predicate found it`);
    table.wrote(row);
    const equals = earlier === undefined ? undefined : table.rows.get(earlier);
    if (earlier === undefined || equals === undefined) return;
    const predicate = { column: COLUMN, equals };
    const isFound = await this.#rows(table).checkAndMutate(earlier, predicate, otherwise, this.#options());
    // it may have been lost meanwhile
    if (!isFound && table.rows.has(earlier))
      this.#parts.violation(`row ${earlier} of table ${table.name} is ${equals}, and a predicate did not find it`);
  }

  async #deleteRows(table: KnownTable): Promise<void> {
    const prefix = this.#isDrawn(0.8) ? this.#letter() : '';
    const rows = table.beginDeletion((row) => row.startsWith(prefix));
    if (prefix === '') await this.#table(table).deleteAllRows(this.#options());
    else await this.#table(table).deleteRows({ prefix }, this.#options());
    table.deleted(rows);
  }

  async #deleteRow(table: KnownTable): Promise<void> {
    const [row] = table.rows.keys();
    if (row === undefined) return;
    const rows = table.beginDeletion((each) => each === row);
    await this.#rows(table).deleteRow(row, this.#options());
    table.deleted(rows);
  }

  async #sampleKeys(table: KnownTable): Promise<void> {
    const samples = await this.#table(table).sampleKeys(this.#options());
    for (const [i, { key, offsetBytes }] of samples.entries()) {
      const before = samples[i - 1];
      if (before !== undefined && ((key !== '' && key <= before.key) || offsetBytes < before.offsetBytes))
        this.#parts.violation(`samples of table ${table.name} do not ascend: ${JSON.stringify(samples)}`);
    }
    if (samples.at(-1)?.key !== '') this.#parts.violation(`samples of table ${table.name} do not reach its end`);
  }

  /** They partition the table. */
  async #tablets(table: KnownTable): Promise<void> {
    const tablets = await this.#table(table).tablets(this.#options());
    const bounds = tablets.map(({ start, end }) => [start.toString(), end?.toString() ?? ''] as const);
    const meet = bounds.every(([start], i) => start === (i === 0 ? '' : bounds[i - 1]![1]));
    if (!meet || bounds.at(-1)?.[1] !== '')
      this.#parts.violation(`tablets of table ${table.name} do not partition it: ${JSON.stringify(bounds)}`);
  }

  async #statistics(table: KnownTable): Promise<void> {
    const usages = await this.#table(table).statistics(this.#options());
    const { families } = await this.#table(table).schema(this.#options());
    const other = usages.find(({ family }) => families[family] === undefined);
    if (other !== undefined)
      this.#parts.violation(`table ${table.name} has statistics of the family ${other.family}, which it does not have`);
  }

  async #setGcRule(table: KnownTable): Promise<void> {
    const versions = 1 + Math.floor(this.#parts.random.float() * 9);
    await this.#table(table).setGcRule(FAMILY, { kind: 'maxVersions', versions }, this.#options());
    const { families } = await this.#table(table).schema(this.#options());
    const rule = families[FAMILY]?.gcRule;
    if (rule?.kind !== 'maxVersions' || rule.versions !== versions)
      this.#parts.violation(
        `table ${table.name} keeps ${versions} versions, and its schema says ${JSON.stringify(rule)}`,
      );
  }

  async #setGroups(table: KnownTable): Promise<void> {
    const inMemory = this.#isDrawn(0.5);
    const group = { families: [FAMILY], inMemory, compression: this.#oneOf(['none', 'lz4'] as const) };
    await this.#table(table).setGroups(this.#isDrawn(0.8) ? { hot: group } : {}, this.#options());
  }

  /** Calls that are wrong whatever the state of the cluster. */
  async #refusals(table: KnownTable): Promise<void> {
    const { database } = this.#parts;
    const row = this.#letter();
    const calls: readonly (readonly [code: string, call: () => Promise<unknown>])[] = [
      ['ALREADY_EXISTS', () => database.createTable(table.name, { ...this.#options() })],
      ['ALREADY_EXISTS', () => this.#table(table).createFamily(FAMILY, {}, this.#options())],
      ['NOT_FOUND', () => this.#table(table).deleteFamily('absent', this.#options())],
      ['NOT_FOUND', () => this.#table(table).setGcRule('absent', 'never', this.#options())],
      ['NOT_FOUND', () => this.#table(table).apply(new RowMutation(row).set('absent:x', ''), this.#options())],
      ['NOT_FOUND', () => database.deleteTable('absent', this.#options())],
      ['NOT_FOUND', () => database.table('absent').get(row, this.#options())],
      ['NOT_FOUND', () => database.merge('absent', row, this.#options())],
      ['NOT_FOUND', () => database.table('absent').setGroups({}, this.#options())],
      ['NOT_FOUND', () => this.#table(table).createFamily('other', { group: 'absent' }, this.#options())],
      ['NOT_FOUND', () => this.#table(table).setGroups({ other: { families: ['absent'] } }, this.#options())],
    ];
    for (let left = REFUSALS; left > 0; left--) {
      const [code, call] = this.#oneOf(calls);
      const answer = await codeOf(call());
      if (answer !== code && !FAILURES.has(answer))
        this.#parts.violation(`${call.toString()} on table ${table.name} is answered with ${answer}, not ${code}`);
    }
  }

  async #large(table: KnownTable): Promise<void> {
    const wrong = await this.#largeCalls.step(table, this.#rows(table));
    if (wrong !== undefined) this.#parts.violation(wrong);
  }

  /**
   * Calls on a table that is being created or deleted, soon, which may find it or not. `isGone`: it was deleted, which
   * was answered, so each of them fails.
   */
  async callAbsent(table: KnownTable, { isGone }: { readonly isGone: boolean }): Promise<void> {
    const { database, doors, violation, random, after } = this.#parts;
    const row = this.#letter();
    table.begin(row, '');
    const mutation = (): RowMutation => new RowMutation(row).set(COLUMN, '');
    const calls: readonly ((handle: ReturnType<Database['table']>) => Promise<unknown>)[] = [
      (handle) => handle.get(row, this.#options()),
      (handle) => handle.apply(mutation(), this.#options()),
      (handle) => handle.applyAll([mutation()], this.#options()),
      (handle) => handle.scan({ ...this.#options(), reverse: true }).toArray(),
    ];
    const callOne = async (handle: ReturnType<Database['table']>): Promise<void> => {
      const call = this.#oneOf(calls);
      if (!isGone) await new Promise<void>((go) => after(random.float() * MAX_ABSENT_MS, go));
      const answer = await codeOf(call(handle));
      const isExpected = answer === 'NOT_FOUND' || FAILURES.has(answer) || (!isGone && answer === 'OK');
      if (!isExpected)
        violation(
          `table ${table.name} is ${isGone ? '' : 'being created or '}deleted, and ${call.toString()} is answered with ${answer}`,
        );
    };
    await Promise.all([database, doors].map((each) => callOne(each.table(table.name))));
  }

  #judge(table: KnownTable, found: ReadonlyMap<string, string | undefined>, covers: (row: string) => boolean): void {
    const message = table.judge(found, covers);
    if (message !== undefined) this.#parts.violation(message);
  }

  #table({ name }: KnownTable): ReturnType<Database['table']> {
    return this.#parts.database.table(name);
  }

  /** For calls on rows. */
  #rows({ name }: KnownTable): ReturnType<Database['table']> {
    const { database, doors } = this.#parts;
    return (this.#isDrawn(THROUGH_DOORS) ? doors : database).table(name);
  }

  #options(): { readonly timeoutMs: number } {
    return { timeoutMs: this.#parts.timeoutMs };
  }

  #letter(): string {
    return this.#oneOf([...LETTERS]);
  }

  #isDrawn(share: number): boolean {
    return this.#parts.random.float() < share;
  }

  #oneOf<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#parts.random.float() * choices.length)]!;
  }
}

function codeOf(call: Promise<unknown>): Promise<string | undefined> {
  return call.then(
    () => 'OK',
    (thrown: unknown) => {
      const error = thrown instanceof BatchError ? thrown.failures[0]!.error : thrown;
      if (!(error instanceof BigtableError)) throw error;
      return error.codeName;
    },
  );
}
