/**
 * A table of an embedded database: apply, get, scan, single-row transactions (paper section 3), and its schema. Cheap
 * to make, holds no state but its name. The last argument of every method takes a signal and a timeout (CallOptions).
 * Every method fails with a BigtableError: NOT_FOUND (no such table or family), INVALID_ARGUMENT, and for writes
 * UNAVAILABLE (outcome unknown).
 */
import { BigtableError, describeValue, invalidArgument, toText, unreadable } from '../base/index.ts';
import {
  ALL_ROWS,
  type FamilySchema,
  type FamilyUsage,
  type GcRule,
  type ReadModifyWriteRule as ModelRule,
  type TableSchema,
  type TableUsage,
} from '../model/index.ts';
import type { FamilyChange } from '../service/index.ts';
import { BatchError, type BatchFailure } from './calls/batch-error.ts';
import {
  type CallOptions,
  callOptionsOf,
  checkCallOptions,
  takeOptions,
  type ThenOptions,
} from './calls/call-options.ts';
import { renamed } from './calls/caller-error.ts';
import type { Calls } from './calls/calls.ts';
import { type FamilyOptions, familySchema, gcRuleOf } from './schema/families.ts';
import { getMany } from './rows/get-many.ts';
import { readRow } from './rows/read-row.ts';
import { checkedLayout, type GroupLayout, layoutOf } from './schema/groups.ts';
import {
  asked,
  type Bytes,
  type Column,
  columnOf,
  keyOf,
  listOf,
  textOf,
  type Timestamp,
  valueOf,
} from './values/input.ts';
import { checkLoad, load, LoadError, type LoadOptions, type MutationSource } from './rows/loading.ts';
import {
  amountOf,
  type CheckAndMutateOutcomes,
  mutationsOf,
  type Predicate,
  predicateFilter,
  type ReadModifyWriteRule,
  ruleOf,
} from './rows/row-transaction.ts';
import { type Changes, type ChangesOptions, ChangeStream } from './rows/change-stream.ts';
import { Cell, type Row } from './rows/row.ts';
import { ownTableName } from './values/names.ts';
import { isRowMutation, Mutations, type RowMutation } from './rows/row-mutation.ts';
import { type Rows, RowStream } from './rows/row-stream.ts';
import {
  checkRowOptions,
  NEWEST,
  type RowBounds,
  rowKeyOf,
  type RowOptions,
  rangeToDelete,
  readRequest,
  rowRequest,
  type ScanOptions,
} from './rows/scan.ts';
import { INSPECT, type Inspect, type InspectOptions, inspected } from './values/show.ts';
import { type Quota, quotaChange } from './schema/quota.ts';
import { type TabletEvents, tabletEvents, type TabletInfo, tabletInfo } from './schema/tablet-info.ts';
import { applyEntries, type Entry, entryOf } from './rows/write-batches.ts';

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

  [INSPECT](depth: number, options: InspectOptions, inspect: Inspect): string {
    return inspected('Table', { name: ownTableName(this.fullName, this.#calls.parent) }, depth, options, inspect);
  }

  /** Applies the mutation atomically; resolves once it is on disk. */
  apply(mutation: RowMutation, options?: CallOptions): Promise<void> {
    try {
      const entry = checkedEntry(mutation);
      return this.#calls.write((service, context) => service.mutateRow(context, this.fullName, entry), options);
    } catch (error) {
      return Promise.reject(error instanceof BigtableError ? error : unreadable('the mutation', error));
    }
  }

  /**
   * Applies many mutations, each atomic by itself, together in few disk writes. Fails with BatchError naming those that
   * failed, also those whose form is wrong (INVALID_ARGUMENT); the others are applied. Very many go in several
   * requests; `load` takes them out of a source that need not fit in memory.
   */
  async applyAll(mutations: readonly RowMutation[], options?: CallOptions): Promise<void> {
    const entries = asked(() => listOf(mutations, 'mutations').map(checkedEntry));
    if (entries.length === 0) {
      // nothing to do, but the table must be there
      await this.schema(options);
      return;
    }
    const failures = await this.#calls.write(
      (service, context) => applyEntries(service, context, this.fullName, entries),
      options,
    );
    if (failures.length > 0) throw new BatchError(this.#named(failures));
  }

  /**
   * Applies the mutations of an iterable or async iterable of any length, in batches, and answers how many they were.
   * The source is read as fast as they are written. Ends with the first failure: a LoadError, which says which
   * mutations failed and how many are applied. What the source throws, it throws, after what is on its way.
   */
  async load(source: MutationSource, options: LoadOptions = {}): Promise<number> {
    asked(() => checkLoad(source, options));
    const { applied, failures, thrown } = await this.#calls.write(
      (service, context) => load(service, context, this.fullName, source, options.onProgress),
      callOptionsOf(options),
    );
    if (thrown !== undefined) throw thrown.error;
    if (failures.length > 0) throw new LoadError(this.#named(failures), applied);
    return applied;
  }

  /** The failures with tables named as the caller names them. */
  #named(failures: readonly BatchFailure[]): readonly BatchFailure[] {
    return failures.map(({ index, error }) => ({ index, error: renamed(error, this.#calls.parent) }));
  }

  /**
   * One row, with the cells that the options select (default: the newest version of every column); undefined if it has
   * none.
   */
  get(row: Bytes, options: RowOptions = NEWEST): Promise<Row | undefined> {
    try {
      const found = this.getNow(row, options);
      return found instanceof Promise ? found : Promise.resolve(found);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * As `get`, without a promise if memory has all that the read needs: rows that were just written, and cached blocks.
   * Otherwise, and always with a server, it returns a promise; `await` takes both. No other work has a turn while a
   * loop makes such reads. An invalid request is thrown.
   */
  getNow(row: Bytes, options: RowOptions = NEWEST): Row | undefined | Promise<Row | undefined> {
    return readRow(this.#calls, () => rowRequest(this.fullName, row, options, this.#calls.newestOfColumn), options);
  }

  /**
   * Several rows by their keys, in the order of the keys: undefined for a missing row, the same row where a key comes
   * twice. Each row is seen in one instant, not all of them in the same.
   */
  async getMany(rows: readonly Bytes[], options: RowOptions = NEWEST): Promise<(Row | undefined)[]> {
    const [keys, call] = asked(() => {
      checkRowOptions(options, 'getMany');
      return [listOf(rows, 'rows').map(rowKeyOf), callOptionsOf(options)] as const;
    });
    return this.#calls.read(
      (service, context) => getMany(service, context, this.fullName, keys, options, this.#calls.newestOfColumn),
      call,
    );
  }

  /**
   * One cell: the newest version of the column, or the newest at or below `at`. INVALID_ARGUMENT for an `at` that is
   * undefined.
   */
  async getCell(row: Bytes, column: Column, ...more: ThenOptions<Timestamp>): Promise<Cell | undefined> {
    const [at, options] = takeOptions<Timestamp>(more);
    if (options !== undefined) asked(() => checkCallOptions(options));
    const columns = { columns: [column], ...options };
    const found = await this.get(row, at.length === 0 ? columns : { ...columns, at: at[0] });
    return found?.get(column);
  }

  /**
   * Rows in key order, each seen in one instant; all rows without options. Leaving the loop ends the read.
   * INVALID_ARGUMENT for an option that is not known, and for a bound that is undefined or empty: leave out a bound
   * that is not meant.
   */
  scan(options: ScanOptions = {}): Rows {
    return new RowStream(this.#calls, () => readRequest(this.fullName, options, this.#calls.newestOfColumn), options);
  }

  /**
   * Adds to the 8-byte integer in a column (absent = 0) and answers the new value; wraps at 64 bits.
   * FAILED_PRECONDITION where the value has another length.
   */
  async increment(row: Bytes, column: Column, amount: number | bigint = 1, options?: CallOptions): Promise<bigint> {
    return (await this.#change(row, column, { kind: 'increment', amount: asked(() => amountOf(amount)) }, options)).int;
  }

  /** Appends to the value of a column (absent = empty) and answers the new value. */
  async append(row: Bytes, column: Column, suffix: Bytes, options?: CallOptions): Promise<Buffer> {
    return (await this.#change(row, column, { kind: 'append', suffix: asked(() => valueOf(suffix)) }, options)).value;
  }

  /** Several increments and appends of one row in one instant; the new cells, ordered by column. */
  async readModifyWrite(
    row: Bytes,
    rules: readonly ReadModifyWriteRule[],
    options?: CallOptions,
  ): Promise<readonly Cell[]> {
    return this.#readModifyWrite(
      row,
      asked(() => listOf(rules, 'rules').map((rule) => ruleOf(rule))),
      options,
    );
  }

  async #change(row: Bytes, column: Column, change: ModelRule['change'], options?: CallOptions): Promise<Cell> {
    const [cell] = await this.#readModifyWrite(row, [{ ...asked(() => columnOf(column)), change }], options);
    return cell!;
  }

  async #readModifyWrite(row: Bytes, rules: readonly ModelRule[], options?: CallOptions): Promise<readonly Cell[]> {
    const key = asked(() => keyOf(row, 'a row key'));
    const cells = await this.#calls.write(
      (service, context) => service.readModifyWriteRow(context, this.fullName, key, rules),
      options,
    );
    return cells.map((cell) => new Cell(cell));
  }

  /** Looks at the row and applies one of two mutations, in one instant; answers whether the predicate matched. */
  async checkAndMutate(
    row: Bytes,
    predicate: Predicate,
    outcomes: CheckAndMutateOutcomes,
    options?: CallOptions,
  ): Promise<boolean> {
    const asks = asked(() => ({ row: keyOf(row, 'a row key'), predicate: predicateFilter(predicate) }));
    const request = { table: this.fullName, ...asks, ...mutationsOf(outcomes) };
    return this.#calls.write((service, context) => service.checkAndMutateRow(context, request), options);
  }

  async deleteRow(row: Bytes, options?: CallOptions): Promise<void> {
    const entry = { row: asked(() => keyOf(row, 'a row key')), mutations: new Mutations().deleteRow().mutations };
    return this.#calls.write((service, context) => service.mutateRow(context, this.fullName, entry), options);
  }

  /**
   * Deletes all rows with the prefix, or from `start` up to and without `end`. INVALID_ARGUMENT without a bound, for
   * one that is undefined or empty, and for an option that is not known: `deleteAllRows` deletes all rows.
   */
  async deleteRows(bounds: RowBounds, options?: CallOptions): Promise<void> {
    const range = asked(() => rangeToDelete(bounds));
    return this.#calls.write((service, context) => service.dropRowRange(context, this.fullName, range), options);
  }

  /** Deletes every row of the table; its families stay. */
  deleteAllRows(options?: CallOptions): Promise<void> {
    return this.#calls.write((service, context) => service.dropRowRange(context, this.fullName, ALL_ROWS), options);
  }

  /** Row keys that cut the table into parts of about equal size, for parallel work. */
  async sampleKeys(options?: CallOptions): Promise<readonly { readonly key: string; readonly offsetBytes: number }[]> {
    const samples = await this.#calls.read(
      (service, context) => service.sampleRowKeys(context, this.fullName),
      options,
    );
    return samples.map(({ row, offsetBytes }) => ({ key: toText(row), offsetBytes }));
  }

  /**
   * The size of each column family: cells, logical bytes, bytes on disk and in memory. Hidden versions count until a
   * compaction drops them. UNIMPLEMENTED on servers other than Edubba.
   */
  statistics(options?: CallOptions): Promise<readonly FamilyUsage[]> {
    return this.#calls.read((service, context) => service.familyUsage(context, this.fullName), options);
  }

  /**
   * What the table and its families take, their quotas, and what calls have written and read since each server was
   * started. UNIMPLEMENTED on servers other than Edubba.
   */
  usage(options?: CallOptions): Promise<TableUsage> {
    return this.#calls.read((service, context) => service.tableUsage(context, this.fullName), options);
  }

  /**
   * Limits the bytes that the table, or one family, takes on disk and in memory together; `none` ends the limit. A
   * write that adds cells beyond it fails with RESOURCE_EXHAUSTED; a deletion does not. NOT_FOUND for a missing family.
   * UNIMPLEMENTED on servers other than Edubba.
   */
  async setQuota(quota: Quota, options?: CallOptions): Promise<void> {
    const change = asked(() => quotaChange(quota));
    await this.#calls.write((service, context) => service.setQuota(context, this.fullName, change), options);
  }

  /**
   * The tablets of the table in the order of their rows, with their sizes. UNIMPLEMENTED by servers that are not
   * Edubba's.
   */
  async tablets(options?: CallOptions): Promise<readonly TabletInfo[]> {
    const tablets = await this.#calls.read((service, context) => service.listTablets(context, this.fullName), options);
    return tablets.map(tabletInfo);
  }

  /**
   * What has happened to each tablet of the table, in the order of their rows: when it was assigned to which server,
   * released, split, merged, and when files of it were written. A tablet that is divided meanwhile may be there
   * whole, divided, or both. UNIMPLEMENTED by servers that are not Edubba's.
   */
  tabletEvents(options?: CallOptions): Promise<readonly TabletEvents[]> {
    return this.#calls.read(async (service, context) => {
      const all: TabletEvents[] = [];
      for await (const history of service.listTabletEvents(context, this.fullName)) all.push(tabletEvents(history));
      return all;
    }, options);
  }

  /**
   * The changes of the table's rows as they are made, those of each row in their order, each at least once. The loop
   * waits for further ones; leaving it ends the read. FAILED_PRECONDITION where the table keeps no changes
   * (`keepChanges`), OUT_OF_RANGE where the changes from that time or token on are no longer kept.
   *
   *   const changes = table.readChanges({ token });
   *   for await (const { row, mutation } of changes) save(row, mutation, changes.token);
   */
  readChanges(options: ChangesOptions = {}): Changes {
    return new ChangeStream(this.fullName, this.#calls, options);
  }

  /** Keeps the table's changes for that many days, 1 to 7, for `readChanges`; `never` ends that. */
  async keepChanges(days: number | 'never', options?: CallOptions): Promise<void> {
    const changeStream = asked(() => changeStreamOf(days));
    await this.#calls.write(
      (service, context) => service.updateTable(context, this.fullName, { changeStream }),
      options,
    );
  }

  schema(options?: CallOptions): Promise<TableSchema> {
    return this.#calls.read((service, context) => service.getTable(context, this.fullName), options);
  }

  async createFamily(name: string, family: FamilyOptions = {}, options?: CallOptions): Promise<void> {
    const schema = asked(() => familySchema(textOf(name, 'a family'), family));
    return this.#changeFamily({ kind: 'create', family: schema }, options);
  }

  /**
   * Replaces a family's garbage-collection rule; `never` takes it away, so that all versions are kept.
   * INVALID_ARGUMENT for undefined.
   */
  async setGcRule(name: string, rule: GcRule | 'never', options?: CallOptions): Promise<void> {
    const gcRule = asked(() => gcRuleOf(rule, 'a GC rule'));
    const family: FamilySchema = { name: textOf(name, 'a family'), ...(gcRule && { gcRule }) };
    await this.#changeFamily({ kind: 'update', family, fields: ['gcRule'] }, options);
  }

  /**
   * Replaces the table's locality groups: which families are stored together, and how. Families named in none lie in
   * `default`. Reads and writes go on; a compaction brings the files over. NOT_FOUND for a family that is not there.
   */
  async setGroups(groups: GroupLayout, options?: CallOptions): Promise<void> {
    const layout = asked(() => checkedLayout(layoutOf(groups)));
    await this.#calls.write(
      (service, context) => service.updateTable(context, this.fullName, { groups: layout }),
      options,
    );
  }

  /** Deletes the family and everything in it. */
  async deleteFamily(name: string, options?: CallOptions): Promise<void> {
    await this.#changeFamily({ kind: 'drop', name: textOf(name, 'a family') }, options);
  }

  async #changeFamily(change: FamilyChange, options?: CallOptions): Promise<void> {
    await this.#calls.write((service, context) => service.modifyFamilies(context, this.fullName, [change]), options);
  }
}

function changeStreamOf(days: number | 'never'): { readonly retentionMicros: number } | 'none' {
  if (days === 'never') return 'none';
  if (typeof days !== 'number' || !(days >= 1 && days <= 7))
    throw invalidArgument(`changes are kept for 1 to 7 days, or 'never', not ${describeValue(days)}`);
  return { retentionMicros: Math.round(days * 86_400e6) };
}

function checkedEntry(mutation: RowMutation): Entry {
  if (!isRowMutation(mutation))
    throw invalidArgument(`a mutation must be a RowMutation, not ${describeValue(mutation)}`);
  return entryOf(mutation);
}
