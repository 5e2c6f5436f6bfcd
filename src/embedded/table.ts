/**
 * A table of an embedded database: apply, get, scan, single-row transactions (paper section 3), and its schema. Cheap to make, holds no state but
 * its name. Every method fails with a BigtableError: NOT_FOUND (no such table or family), INVALID_ARGUMENT, and for writes UNAVAILABLE
 * (outcome unknown).
 */
import { int64, invalidArgument, isInt64, prefixEnd, quote, toText } from '../base/index.ts';
import type { RowFilter } from '../filter/index.ts';
import type { FamilySchema, FamilyUsage, GcRule, GroupLayout, ReadModifyWriteRule, RowRange, TableSchema } from '../model/index.ts';
import type { FamilyChange } from '../service/index.ts';
import { BatchError } from './batch-error.ts';
import type { Calls } from './calls.ts';
import { type FamilyOptions, familySchema } from './families.ts';
import { type Bytes, type Column, columnOf, keyOf, type Value, valueOf } from './input.ts';
import { Cell, type Row } from './row.ts';
import { Mutations, type RowMutation } from './row-mutation.ts';
import { RowStream } from './row-stream.ts';
import { NEWEST, type RowOptions, readRequest, rowRequest, type ScanOptions } from './scan.ts';

/** What to ask of a row before a `checkAndMutate`: a column that is there, that holds a value, or any filter of the API. */
export type Predicate = { readonly column: Column; readonly equals?: Value } | { readonly filter: RowFilter };

export interface CheckAndMutateOutcomes {
  readonly then?: (row: Mutations) => unknown;
  readonly otherwise?: (row: Mutations) => unknown;
}

export class Table {
  /** The full resource name: projects/P/instances/I/tables/T. */
  readonly fullName: string;
  readonly #calls: Calls;

  /** Made by `Database.table`. */
  constructor(fullName: string, calls: Calls) {
    this.fullName = fullName;
    this.#calls = calls;
  }

  get name(): string {
    return this.fullName.slice(this.fullName.lastIndexOf('/') + 1);
  }

  /** Applies the mutation atomically; resolves once it is on disk. */
  apply(mutation: RowMutation): Promise<void> {
    const { row, mutations } = mutation;
    return this.#calls.run((service, context) => service.mutateRow(context, this.fullName, { row, mutations }));
  }

  /**
   * Applies many mutations, each atomic by itself, together in few disk writes. Fails with BatchError naming those that
   * failed, also those whose form is wrong (INVALID_ARGUMENT); the others are applied.
   */
  async applyAll(mutations: readonly RowMutation[]): Promise<void> {
    if (mutations.length === 0) {
      // nothing to do, but the table must be there
      await this.schema();
      return;
    }
    const entries = mutations.map(({ row, mutations: steps }) => ({ row, mutations: steps }));
    const answers = await this.#calls.run((service, context) => service.mutateRows(context, this.fullName, entries));
    const failures = answers.flatMap((error, index) => (error === undefined ? [] : [{ index, error }]));
    if (failures.length > 0) throw new BatchError(failures);
  }

  /** One row with what the options ask for (default: the newest version of every column); undefined where nothing is there. */
  get(row: Bytes, options: RowOptions = NEWEST): Promise<Row | undefined> {
    const rows = new RowStream(this.#calls, () => rowRequest(this.fullName, row, options), options.signal);
    // what is in memory costs this one promise
    try {
      const found = rows.pull();
      const ending = found instanceof Promise ? undefined : rows.end();
      return found instanceof Promise || ending !== undefined ? onlyRow(rows, found, ending) : Promise.resolve(found);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** One cell: the newest version of the column, or the newest at or below `at`. */
  async getCell(row: Bytes, column: Column, at?: ScanOptions['at']): Promise<Cell | undefined> {
    const found = await this.get(row, at === undefined ? { columns: [column] } : { columns: [column], at });
    return found?.get(column);
  }

  /** Rows in key order, each seen in one instant. Leaving the loop ends the read. */
  scan(options: ScanOptions = {}): AsyncIterableIterator<Row, void> {
    return new RowStream(this.#calls, () => readRequest(this.fullName, options), options.signal);
  }

  /**
   * Adds to the 8-byte integer in a column (absent = 0) and answers the new value; wraps at 64 bits.
   * FAILED_PRECONDITION where the value has another length.
   */
  async increment(row: Bytes, column: Column, amount: number | bigint = 1): Promise<bigint> {
    if (!isInt64(amount)) throw invalidArgument(`an amount must be a whole number within int64, not ${String(amount)}`);
    const [cell] = await this.readModifyWrite(row, [{ ...columnOf(column), change: { kind: 'increment', amount: int64(amount) } }]);
    return (cell as Cell).int;
  }

  /** Appends to the value of a column (absent = empty) and answers the new value. */
  async append(row: Bytes, column: Column, suffix: Bytes): Promise<Buffer> {
    const [cell] = await this.readModifyWrite(row, [{ ...columnOf(column), change: { kind: 'append', suffix: valueOf(suffix) } }]);
    return (cell as Cell).value;
  }

  /** Several increments and appends of one row in one instant; the new cells, ordered by column. */
  async readModifyWrite(row: Bytes, rules: readonly ReadModifyWriteRule[]): Promise<readonly Cell[]> {
    const key = keyOf(row, 'a row key');
    const cells = await this.#calls.run((service, context) => service.readModifyWriteRow(context, this.fullName, key, rules));
    return cells.map((cell) => new Cell(cell));
  }

  /** Looks at the row and applies one of two mutations, in one instant; answers whether the predicate matched. */
  checkAndMutate(row: Bytes, predicate: Predicate, outcomes: CheckAndMutateOutcomes): Promise<boolean> {
    const [whenTrue, whenFalse] = [outcomes.then, outcomes.otherwise].map((fill) => {
      const steps = new Mutations();
      fill?.(steps);
      return steps.mutations;
    }) as [Mutations['mutations'], Mutations['mutations']];
    const request = { table: this.fullName, row: keyOf(row, 'a row key'), predicate: predicateFilter(predicate), whenTrue, whenFalse };
    return this.#calls.run((service, context) => service.checkAndMutateRow(context, request));
  }

  deleteRow(row: Bytes): Promise<void> {
    const mutations = new Mutations().deleteRow().mutations;
    return this.#calls.run((service, context) => service.mutateRow(context, this.fullName, { row: keyOf(row, 'a row key'), mutations }));
  }

  /** Deletes all rows with the prefix, or from `start` up to and without `end`; without options all rows. */
  async deleteRows(options: { readonly prefix?: Bytes; readonly start?: Bytes; readonly end?: Bytes } = {}): Promise<void> {
    const range: RowRange =
      options.prefix === undefined
        ? { start: options.start === undefined ? '' : keyOf(options.start, 'start'), end: options.end === undefined ? undefined : keyOf(options.end, 'end') }
        : { start: keyOf(options.prefix, 'prefix'), end: prefixEnd(keyOf(options.prefix, 'prefix')) };
    if (range.end !== undefined && range.start > range.end) throw invalidArgument(`start ${quote(range.start)} is above end ${quote(range.end)}`);
    return this.#calls.run((service, context) => service.dropRowRange(context, this.fullName, range));
  }

  /** Row keys that cut the table into parts of about equal size, for parallel work. */
  async sampleKeys(): Promise<readonly { readonly key: string; readonly offsetBytes: number }[]> {
    const samples = await this.#calls.run((service, context) => service.sampleRowKeys(context, this.fullName));
    return samples.map(({ row, offsetBytes }) => ({ key: toText(row), offsetBytes }));
  }

  /**
   * What each column family takes: cells, logical bytes, bytes on disk and in memory. Versions that are hidden count until a compaction drops them. Not over a server
   * (UNIMPLEMENTED).
   */
  statistics(): Promise<readonly FamilyUsage[]> {
    return this.#calls.run((service, context) => service.familyUsage(context, this.fullName));
  }

  schema(): Promise<TableSchema> {
    return this.#calls.run((service, context) => service.getTable(context, this.fullName));
  }

  createFamily(name: string, options: FamilyOptions = {}): Promise<void> {
    return this.#change({ kind: 'create', family: familySchema(name, options) });
  }

  /** Replaces a family's garbage-collection rule. */
  setGcRule(name: string, rule: GcRule | undefined): Promise<void> {
    const family: FamilySchema = rule === undefined ? { name } : { name, gcRule: rule };
    return this.#change({ kind: 'update', family, fields: ['gcRule'] });
  }

  /**
   * Replaces the table's locality groups: which families are stored together, and how. Families named in none lie in `default`. Reads and writes
   * go on; a compaction brings the files over. NOT_FOUND for a family that is not there.
   */
  async setGroups(groups: GroupLayout): Promise<void> {
    await this.#calls.run((service, context) => service.updateTable(context, this.fullName, { groups }));
  }

  /** Deletes the family and everything in it. */
  deleteFamily(name: string): Promise<void> {
    return this.#change({ kind: 'drop', name });
  }

  async #change(change: FamilyChange): Promise<void> {
    await this.#calls.run((service, context) => service.modifyFamilies(context, this.fullName, [change]));
  }
}

async function onlyRow(rows: RowStream, found: Row | undefined | Promise<Row | undefined>, ending: void | Promise<void>): Promise<Row | undefined> {
  if (ending !== undefined) await ending;
  try {
    return await found;
  } finally {
    const after = rows.end();
    if (after !== undefined) await after;
  }
}

function predicateFilter(predicate: Predicate): RowFilter {
  if ('filter' in predicate) return predicate.filter;
  const { family, qualifier } = columnOf(predicate.column);
  const column: RowFilter = { kind: 'columnRange', family, start: { value: qualifier, closed: true }, end: { value: qualifier, closed: true } };
  const newest: RowFilter = { kind: 'cellsPerColumnLimit', cells: 1 };
  if (predicate.equals === undefined) return { kind: 'chain', filters: [column, newest] };
  const value = keyOf(valueOf(predicate.equals), 'equals');
  const bound = { value, closed: true };
  return { kind: 'chain', filters: [column, newest, { kind: 'valueRange', start: bound, end: bound }] };
}
