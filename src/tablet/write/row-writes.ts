/**
 * The calls that change rows of one tablet. A change that does not depend on the contents of its row locks it shared. A
 * transaction, which reads its row before it writes, locks it exclusively until its change has its place in the log:
 * the next one on the row sees the change as pending.
 *
 * Invariant: a transaction answers when all that it saw and wrote is durable, and the lease held after that; also if it
 * wrote nothing, and if it was refused because of what it saw (docs/decisions/0044-hot-rows.md).
 *
 * Hot path: a small change of a row that is not locked is logged synchronously, without the steps of a transaction.
 */
import { assert, BigtableError, type ByteString, Code, toBigtableError, toBytes } from '../../base/index.ts';
import { Pacer, type RequestContext } from '../../env/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import {
  type Cell,
  cutToGranularity,
  type Idempotency,
  type Mutation,
  type Mutations,
  rangeContains,
  rangeOfRow,
  type ReadModifyWriteRule,
  type RowMutations,
  type RowRange,
} from '../../model/index.ts';
import { LayerNeed } from '../layers/layer-set.ts';
import { NewestCells } from '../read/newest-cells.ts';
import { ReadFamilies } from '../read/read-families.ts';
import type { Search } from '../read/search.ts';
import { TokenSearch } from '../read/token-search.ts';
import { CellChanges } from './read-modify-write.ts';
import type { PendingBatch } from './pending-rows.ts';
import type { RowLocks } from './row-locks.ts';
import type { TabletContext } from '../layers/tablet-context.ts';
import { SharedLock } from './shared-locks.ts';
import { storedChanges, storedMutations } from './stored-mutations.ts';
import { TransactionReads } from './transaction-reads.ts';
import type { Admission, Decision } from '../contract/tablet-api.ts';
import { isLargeChange, type TabletWriter } from './tablet-writer.ts';
import { WriteBatch } from './write-batch.ts';

/** Turns of rows between two checks of the clock. */
const TURNS_PER_CHECK = 16;

export class RowWrites {
  readonly #context: TabletContext;
  readonly #locks: RowLocks;
  readonly #writer: TabletWriter;
  readonly #reads: TransactionReads;
  readonly #pacer: Pacer;

  constructor(context: TabletContext, locks: RowLocks, writer: TabletWriter) {
    this.#context = context;
    this.#locks = locks;
    this.#writer = writer;
    this.#reads = new TransactionReads(context, writer.pending);
    this.#pacer = new Pacer(context.env.clock, TURNS_PER_CHECK);
  }

  mutateRow(context: RequestContext, row: ByteString, mutations: Mutations, idempotency?: Idempotency): Promise<void> {
    if (idempotency !== undefined) return this.#mutateOnce(context, row, mutations, idempotency.token);
    const lock = new SharedLock();
    if (isLargeChange(mutations) || !this.#locks.tryLockShared(row, lock))
      return this.#inTurn(context, new RowTurn(row, false), readNothing, (turn) => this.#writeRow(turn, mutations));
    try {
      return this.#writeShared(context, [{ row, mutations }], lock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * The row is locked until the change is applied, so that an attempt which arrives meanwhile finds its token. A change
   * that was made by an earlier attempt is made.
   */
  #mutateOnce(context: RequestContext, row: ByteString, mutations: Mutations, token: ByteString): Promise<void> {
    const { layers, env } = this.#context;
    return this.#inTurn(
      context,
      new RowTurn(row, true),
      () => new TokenSearch(layers, row, token, env.clock.nowMicros()),
      (turn, { isFound }) => {
        if (isFound) return;
        const [change] = storedChanges(this.#context.schema(), [{ row, mutations }]);
        turn.applied = this.#writer.writeOnce(change!, toBytes(token), turn.seen);
      },
    );
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
      const { row, mutations, idempotency } = change;
      if (idempotency !== undefined || isLargeChange(mutations) || !this.#locks.tryLockShared(row, batch.lock))
        outcomeOf(this.mutateRow(context, row, mutations, idempotency), [i]);
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
      // changes that fail now are as if they had never been
      for (const row of held) await this.#writer.pending.newestOf(row)?.done.catch(() => {});
      for (const row of held) this.#checkRow(context, row);
      const seen = new Map<ByteString, readonly Cell[]>();
      for (const row of held) seen.set(row, await this.#reads.collectRow(context, row, filter));
      const decision = decide(seen);
      if (decision === undefined || decision.size === 0) return;
      const schema = this.#context.schema();
      const changes = [...decision].map(([row, mutations]) => ({ row, mutations: storedMutations(schema, mutations) }));
      for (const { row } of changes) assert(held.includes(row), 'a transaction changes the rows that it holds');
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
    admit?: Admission,
  ): Promise<boolean> {
    return this.#inTurn(
      context,
      new RowTurn(row, true),
      () => this.#reads.cellSearch(context, row, predicate),
      (turn, { isFound }) => {
        const mutations = isFound ? whenTrue : whenFalse;
        if (mutations.length > 0) {
          admit?.(mutations);
          this.#writeRow(turn, mutations);
        }
        return isFound;
      },
    );
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
    admit?: Admission,
  ): Promise<readonly Cell[]> {
    return this.#inTurn(
      context,
      new RowTurn(row, true),
      () => this.#newestCells(context, row, rules),
      (turn, { found }) => {
        const { env, options, time } = this.#context;
        const givenMicros = time.next();
        const now = cutToGranularity(givenMicros, this.#context.schema().granularity);
        const changes = new CellChanges(rules, found, now, options.limits.valueBytes);
        const { bytes } = changes;
        if (bytes > maxAnswerBytes) throw tooLargeAnswer(bytes, maxAnswerBytes);
        // the row is locked: no call waits for memory here
        if (!context.reservation.tryGrow(bytes)) throw noSpaceForCells(bytes);
        assert(turn.reservedBytes === 0, 'new cells are reserved once');
        turn.reservedBytes = bytes;
        const write = (): readonly Cell[] => {
          const { mutations, cells } = changes.result();
          admit?.(mutations);
          this.#writeRow(turn, mutations, givenMicros);
          return cells;
        };
        // the row is locked, so no later time is given in it meanwhile
        return changes.joinLarge(env.clock)?.then(write) ?? write();
      },
    );
  }

  #newestCells(context: RequestContext, row: ByteString, rules: readonly ReadModifyWriteRule[]): NewestCells {
    const { env, layers } = this.#context;
    const schema = this.#context.schema();
    const families = ReadFamilies.of(schema, env.clock);
    const hold = this.#reads.hold(new LayerNeed(rangeOfRow(row), row));
    return new NewestCells(context, env.clock, hold, row, rules, families, schema, layers.credits);
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

  /**
   * Locks the row exclusively, reads what `search` searches for, and calls `change`, which may write the row once
   * (`#writeRow`).
   */
  async #inTurn<S extends Search | undefined, T>(
    context: RequestContext,
    turn: RowTurn,
    search: () => S,
    change: (turn: RowTurn, found: S) => T | Promise<T>,
  ): Promise<T> {
    const { row } = turn;
    const wait = this.#locks.lockExclusive(row);
    if (wait !== undefined) {
      await wait;
      // the transactions of a hot row follow one another without a turn of the event loop
      if (this.#pacer.due()) await this.#pacer.pause();
    }
    try {
      try {
        this.#checkRow(context, row);
        if (turn.readsRow) turn.seen = this.#writer.pending.newestOf(row);
        const found = search();
        try {
          while (found !== undefined && !found.advance()) await found.load();
        } catch (error) {
          this.#context.serving.checkMissed(error, context);
          throw error;
        } finally {
          found?.close();
        }
        const changed = change(turn, found);
        const answer = changed instanceof Promise ? await changed : changed;
        if (turn.applied !== undefined) await turn.applied;
        return answer;
      } finally {
        this.#locks.unlockExclusive(row);
      }
    } finally {
      // its own record comes after all that it saw
      if (turn.written !== undefined) await turn.written;
      else if (turn.seen !== undefined) await turn.seen.done;
      context.reservation.shrink(turn.reservedBytes);
    }
  }

  #checkRow(context: RequestContext, row: ByteString): void {
    this.#checkInside(row);
    this.#context.serving.check(context);
  }

  #checkInside(row: ByteString): void {
    assert(rangeContains(this.#context.range, row), 'a row reaches the tablet that it belongs to');
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

  #writeRow(turn: RowTurn, mutations: Mutations, givenMicros?: number): void {
    const { row, readsRow, seen } = turn;
    assert(turn.written === undefined && turn.applied === undefined, 'a transaction writes its row once');
    const changes = storedChanges(this.#context.schema(), [{ row, mutations }]);
    if (this.#writer.staysLocked(mutations)) turn.applied = this.#writer.write(changes, undefined, givenMicros, seen);
    else turn.written = this.#writer.writePending(changes[0]!, readsRow, givenMicros, seen);
  }
}

/** The time in which a call has a row locked exclusively. */
class RowTurn {
  readonly row: ByteString;
  /** True for a transaction: what it does depends on the row. */
  readonly readsRow: boolean;
  /** The newest append that it depends on; undefined if none of them is pending. */
  seen: PendingBatch | undefined;
  /** Set once the change has its place in the log: resolves when it may be acknowledged. */
  written: Promise<void> | undefined;
  /** Set in place of `written` for a change after which the row stays locked until then. */
  applied: Promise<void> | undefined;
  /** Bytes of the request's reservation that are released with the answer. */
  reservedBytes = 0;

  constructor(row: ByteString, readsRow: boolean) {
    this.row = row;
    this.readsRow = readsRow;
  }
}

/** The search of a change that does not depend on its row. */
function readNothing(): undefined {}

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
