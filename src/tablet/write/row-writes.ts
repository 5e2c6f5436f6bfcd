/**
 * The calls that change rows of one tablet. A change that does not depend on the contents of its row locks it shared. A
 * call that reads a row before it writes locks it exclusively, from its read until its change is logged and applied.
 */
import { assert, BigtableError, type ByteString, Code, toBigtableError } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import {
  type Cell,
  type ColumnKey,
  cutToGranularity,
  type Mutation,
  type Mutations,
  rangeContains,
  rangeOfRow,
  type ReadModifyWriteRule,
  type RowMutations,
  type RowRange,
} from '../../model/index.ts';
import type { LayerReads } from '../read/layer-reads.ts';
import { LayerNeed } from '../layers/layer-set.ts';
import { newestCells } from '../read/newest-cells.ts';
import { ReadFamilies } from '../read/read-families.ts';
import { readModifyWrite } from './read-modify-write.ts';
import type { RowLocks } from './row-locks.ts';
import type { TabletContext } from '../layers/tablet-context.ts';
import { SharedLock } from './shared-locks.ts';
import { storedChanges, storedMutations } from './stored-mutations.ts';
import type { Decision } from '../contract/tablet-api.ts';
import { isLargeChange, type TabletWriter } from './tablet-writer.ts';
import { WriteBatch } from './write-batch.ts';

export class RowWrites {
  readonly #context: TabletContext;
  readonly #locks: RowLocks;
  readonly #writer: TabletWriter;
  readonly #reads: LayerReads;

  constructor(context: TabletContext, locks: RowLocks, writer: TabletWriter, reads: LayerReads) {
    this.#context = context;
    this.#locks = locks;
    this.#writer = writer;
    this.#reads = reads;
  }

  mutateRow(context: RequestContext, row: ByteString, mutations: Mutations): Promise<void> {
    if (isLargeChange(mutations)) return this.#withRowLocked(context, row, () => this.#writeRow(row, mutations));
    const lock = new SharedLock();
    if (!this.#locks.tryLockShared(row, lock))
      return this.#locks.lockShared(row).then((entered) => this.#writeShared(context, [{ row, mutations }], entered));
    try {
      return this.#writeShared(context, [{ row, mutations }], lock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Rows that are not locked exclusively are logged in this slice, many in a record: a promise and a record for each
   * batch, not for each row.
   */
  async mutateRows(
    context: RequestContext,
    changes: readonly RowMutations[],
  ): Promise<readonly (BigtableError | undefined)[]> {
    const outcomes: (BigtableError | undefined)[] = new Array(changes.length).fill(undefined);
    const waits: Promise<void>[] = [];
    const outcomeOf = (written: Promise<void>, indexes: readonly number[]): void => {
      waits.push(
        written.catch((thrown: unknown) => indexes.forEach((index) => (outcomes[index] = toBigtableError(thrown)))),
      );
    };
    let batch = new WriteBatch();
    const writeBatch = (): void => {
      const { lock, indexes } = batch;
      assert(lock.rows.length === indexes.length, 'the lock of a batch holds its rows');
      try {
        if (indexes.length > 0) outcomeOf(this.#writeShared(context, batch.changes, lock), indexes);
      } catch (thrown) {
        outcomeOf(Promise.reject(thrown), indexes);
      }
      batch = new WriteBatch();
    };
    for (let i = 0; i < changes.length; i++) {
      const change = changes[i]!;
      const { row, mutations } = change;
      if (isLargeChange(mutations) || !this.#locks.tryLockShared(row, batch.lock))
        outcomeOf(this.mutateRow(context, row, mutations), [i]);
      else if (batch.add(i, change).isFull) writeBatch();
    }
    writeBatch();
    await Promise.all(waits);
    return outcomes;
  }

  async transact(
    context: RequestContext,
    rows: readonly ByteString[],
    filter: RowFilter | undefined,
    decide: (cells: ReadonlyMap<ByteString, readonly Cell[]>) => Decision,
  ): Promise<void> {
    // all in one slice and in one order, so that no two transactions, and no transaction and drop of rows, wait for
    // each other
    const held = [...new Set(rows)].sort();
    const waits = held.map((row) => this.#locks.lockExclusive(row));
    try {
      await Promise.all(waits);
      for (const row of held) this.#checkRow(context, row);
      const seen = new Map<ByteString, readonly Cell[]>();
      for (const row of held) seen.set(row, await this.#reads.collectRow(context, row, filter));
      const decision = decide(seen);
      if (decision === undefined || decision.size === 0) return;
      const schema = this.#context.schema();
      const changes = [...decision].map(([row, mutations]) => ({ row, mutations: storedMutations(schema, mutations) }));
      for (const { row } of changes) assert(held.includes(row), 'a transaction changes a row that it does not hold');
      await this.#writer.write(changes);
    } finally {
      for (const row of held) this.#locks.unlockExclusive(row);
    }
  }

  checkAndMutateRow(
    context: RequestContext,
    row: ByteString,
    predicate: RowFilter | undefined,
    whenTrue: readonly Mutation[],
    whenFalse: readonly Mutation[],
  ): Promise<boolean> {
    return this.#withRowLocked(context, row, () => {
      const write = (matched: boolean): boolean | Promise<boolean> => {
        const mutations = matched ? whenTrue : whenFalse;
        return mutations.length === 0 ? matched : this.#writeRow(row, mutations).then(() => matched);
      };
      const matched = this.#reads.hasCells(context, row, predicate);
      return matched instanceof Promise ? matched.then(write) : write(matched);
    });
  }

  /**
   * The new cells are reserved before they are made, and must fit the answer; else RESOURCE_EXHAUSTED, with nothing
   * written.
   */
  readModifyWriteRow(
    context: RequestContext,
    row: ByteString,
    rules: readonly ReadModifyWriteRule[],
    maxAnswerBytes = Number.POSITIVE_INFINITY,
  ): Promise<readonly Cell[]> {
    return this.#withRowLocked(context, row, () => {
      const { env, options, time } = this.#context;
      const schema = this.#context.schema();
      const hold = this.#reads.hold(new LayerNeed(rangeOfRow(row), row));
      const write = (newest: ReadonlyMap<ColumnKey, Cell>): Promise<readonly Cell[]> => {
        const givenMicros = time.next();
        let bytes = 0;
        const reserve = (needed: number): void => {
          if (needed > maxAnswerBytes) throw tooLargeAnswer(needed, maxAnswerBytes);
          // the row is locked: no call waits for memory here
          if (!context.reservation.tryGrow(needed)) throw noSpaceForCells(needed);
          assert(bytes === 0, 'new cells are reserved once');
          bytes = needed;
        };
        const { mutations, cells } = readModifyWrite(
          rules,
          newest,
          cutToGranularity(givenMicros, schema.granularity),
          options.limits.valueBytes,
          reserve,
        );
        return this.#writeRow(row, mutations, givenMicros).then(() => {
          context.reservation.shrink(bytes);
          return cells;
        });
      };
      let newest: ReturnType<typeof newestCells> | undefined;
      try {
        const families = ReadFamilies.of(schema, env.clock);
        const { credits } = this.#context.layers;
        newest = newestCells(context, env.clock, hold.layers, row, rules, families, schema, credits);
        return newest instanceof Promise ? newest.finally(() => hold.release()).then(write) : write(newest);
      } finally {
        if (!(newest instanceof Promise)) hold.release();
      }
    });
  }

  async dropRows(context: RequestContext, range: RowRange): Promise<void> {
    await this.#locks.lockTablet();
    try {
      this.#context.serving.check(context);
      await this.#writer.dropRows({ kind: 'dropRows', range });
    } finally {
      this.#locks.unlockTablet();
    }
  }

  async #withRowLocked<T>(context: RequestContext, row: ByteString, work: () => T | Promise<T>): Promise<T> {
    const wait = this.#locks.lockExclusive(row);
    if (wait !== undefined) await wait;
    try {
      this.#checkRow(context, row);
      return await work();
    } finally {
      this.#locks.unlockExclusive(row);
    }
  }

  #checkRow(context: RequestContext, row: ByteString): void {
    this.#checkInside(row);
    this.#context.serving.check(context);
  }

  #checkInside(row: ByteString): void {
    assert(rangeContains(this.#context.range, row), 'a row reached a tablet that it does not belong to');
  }

  /** `lock` holds these rows; this releases it. */
  #writeShared(context: RequestContext, changes: readonly RowMutations[], lock: SharedLock): Promise<void> {
    try {
      this.#context.serving.check(context);
      for (const { row } of changes) this.#checkInside(row);
      return this.#writer.write(storedChanges(this.#context.schema(), changes), lock);
    } catch (error) {
      this.#locks.unlockShared(lock);
      throw error;
    }
  }

  /** The row is locked exclusively. */
  #writeRow(row: ByteString, mutations: Mutations, givenMicros?: number): Promise<void> {
    return this.#writer.write(storedChanges(this.#context.schema(), [{ row, mutations }]), undefined, givenMicros);
  }
}

function tooLargeAnswer(answerBytes: number, maxBytes: number): BigtableError {
  const message = `the answer takes ${answerBytes} bytes, and its caller has space for ${maxBytes}: nothing was written`;
  return new BigtableError(Code.RESOURCE_EXHAUSTED, message, { details: { answerBytes } });
}

function noSpaceForCells(bytes: number): BigtableError {
  return new BigtableError(
    Code.RESOURCE_EXHAUSTED,
    `new cells of ${bytes} bytes have no space next to the other requests: nothing was written`,
  );
}
