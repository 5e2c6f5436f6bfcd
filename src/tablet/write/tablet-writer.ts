/**
 * The write path of one tablet: changes get the time of the server, are logged, and are applied to the active memtable
 * once their records are durable. The records of one append are applied in one slice, in log order, and acknowledged by
 * one promise that all their calls share.
 *
 * Invariants:
 * - A change is in the memtable only once its record is durable (buffered: handed to the log, which has reserved space
 *   for it), and in log order. It is acknowledged only if the lease surely held after that.
 * - A shared lock is released when the change has been applied, or has failed. So is an exclusive one, except by a
 *   transaction whose change is pending meanwhile (pending-rows.ts).
 * - A change that depends on pending ones is logged only while their append has not failed.
 * - A durable record is applied even if others of its append fail.
 * - After a broken invariant nothing more is logged, applied or acknowledged.
 *
 * Hot path: small changes are logged and applied synchronously. Large ones, which take several slices, and buffered
 * ones, which may wait for space, have functions of their own.
 */
import { assert, type ByteString, checksInvariants, fromBytes, unavailable } from '../../base/index.ts';
import {
  encodeRows,
  isAfter,
  type NewRecord,
  Origin,
  type RecordBody,
  type RedoPoint,
  type RedoRecord,
  type ServerLog,
} from '../../commitlog/index.ts';
import { inSlices, Pacer } from '../../env/index.ts';
import type { AggregateOf } from '../../memtable/index.ts';
import {
  isCellRun,
  type Mutation,
  type Mutations,
  needsServerTime,
  rangeContains,
  resolveTimestamps,
  type RowMutations,
  type RowRange,
  sliceMutations,
  type TableSchema,
} from '../../model/index.ts';
import { ReadFamilies } from '../read/read-families.ts';
import { type PendingBatch, PendingRows } from './pending-rows.ts';
import type { RowLocks } from './row-locks.ts';
import type { TabletContext } from '../layers/tablet-context.ts';
import type { SharedLock } from './shared-locks.ts';

/** A change with more mutations is applied in several slices of the event loop. */
const MAX_MUTATIONS_PER_SLICE = 2000;
/** Mutations that are applied between two checks of the clock. */
const MUTATIONS_PER_CHECK = 64;

/**
 * A change as it is logged: every cell has a timestamp. A cell that has the time of the server has the time of the
 * commit.
 */
type TimedChange = Pick<NewRecord, 'body' | 'commitMicros' | 'encodedRows' | 'token'>;

/** The part of a record that changes the memtable. */
type AppliedChange = Pick<RedoRecord, 'body' | 'commitMicros' | 'token'>;

interface LoggedRecord {
  readonly change: TimedChange;
  readonly sequence: number;
  /** Released when the change is applied. */
  readonly lock: SharedLock | undefined;
  /** The row that is hot until the change is applied. */
  readonly hotRow: ByteString | undefined;
  /** Resolves when it is applied, if that takes several slices. */
  applying: Promise<void> | undefined;
}

/** Records of one append. */
interface LoggedBatch extends PendingBatch {
  readonly records: LoggedRecord[];
  done: Promise<void>;
}

export class TabletWriter {
  readonly #context: TabletContext;
  readonly #locks: RowLocks;
  readonly #log: ServerLog;
  readonly #buffered: boolean;
  readonly #tableId: string;
  readonly #range: RowRange;
  readonly #epoch: number;
  #applied: RedoPoint;
  /** The batch of the append that is gathering. */
  #batch: LoggedBatch | undefined;
  /** Writes that have begun and not ended. */
  #writes = 0;
  /** Calls that wait until there are none. */
  readonly #drained: (() => void)[] = [];
  /** Settles with the append of the newest buffered change. */
  #newestBuffered: Promise<unknown> | undefined;
  /** Changes that are being applied in slices. */
  readonly #applying = new Set<Promise<void>>();
  /** Changes of hot rows. */
  readonly pending = new PendingRows(() => this.#aggregateOf());
  #aggregates: { readonly schema: TableSchema; readonly aggregateOf: AggregateOf } | undefined;

  constructor(context: TabletContext, locks: RowLocks) {
    const { tableId, range, epoch, redo } = context.state;
    assert(redo.epoch <= epoch, 'the records in the files of a tablet are of earlier owners, or its own');
    this.#range = range;
    this.#context = context;
    this.#locks = locks;
    this.#log = context.options.log;
    this.#buffered = context.options.buffered ?? false;
    this.#tableId = tableId;
    this.#epoch = epoch;
    this.#applied = redo;
  }

  /** The last record applied. */
  get applied(): RedoPoint {
    return this.#applied;
  }

  /** Applies a record of an earlier owner. Returns undefined if it is applied already. */
  replay(record: RedoRecord): Promise<void> | undefined {
    assert(this.#context.serving.phase === 'loading', 'records of earlier owners are applied before the first write');
    const { epoch, sequence } = record;
    this.#context.time.replayed(record, this.#context.schema().granularity);
    return this.#apply(record, { epoch, sequence });
  }

  /**
   * Logs and applies changes of rows as one record, atomically. Resolves when they may be acknowledged. The caller
   * keeps the rows locked until then; this releases `lock`, unless the call throws. Cells without a timestamp get the
   * time of the server, unless `givenMicros` says that they have it already. `seen`: the newest append that the changes
   * depend on.
   */
  write(rows: readonly RowMutations[], lock?: SharedLock, givenMicros?: number, seen?: PendingBatch): Promise<void> {
    if (isLarge(rows)) return this.#writeLarge(rows, lock, givenMicros, seen);
    if (this.#buffered) return this.#writeBuffered(() => this.#timed(rows, givenMicros), lock);
    checkSeen(seen);
    return this.#append(this.#timed(rows, givenMicros), lock).done;
  }

  /** The same for a change of one row, which is locked exclusively, that leaves a token there. */
  writeOnce(change: RowMutations, token: Uint8Array, seen: PendingBatch | undefined): Promise<void> {
    const rows: LargeRows = [change];
    if (isLarge(rows)) return this.#writeLarge(rows, undefined, undefined, seen, token);
    const timed = (): TimedChange => ({ ...this.#timed(rows, undefined), token });
    if (this.#buffered) return this.#writeBuffered(timed, undefined);
    checkSeen(seen);
    return this.#append(timed(), undefined).done;
  }

  /** True if a change of a row must be applied before the exclusive lock is released: it cannot be pending. */
  staysLocked(mutations: Mutations): boolean {
    return this.#buffered || isLargeChange(mutations);
  }

  /**
   * The same as `write` for a row that is locked exclusively. The lock may be released when this returns: the change is
   * pending until it is applied. `isTransaction`: the row is hot until then.
   */
  writePending(
    change: RowMutations,
    isTransaction: boolean,
    givenMicros: number | undefined,
    seen: PendingBatch | undefined,
  ): Promise<void> {
    const { row, mutations } = change;
    assert(!this.staysLocked(mutations), 'a change that is pending is applied in one slice');
    checkSeen(seen);
    const batch = this.#append(this.#timed([change], givenMicros), undefined, isTransaction ? row : undefined);
    const { body } = batch.records.at(-1)!.change;
    assert(body.kind === 'rows' && body.rows.length === 1, 'a change of a row stays one');
    if (isTransaction) this.#locks.logged(row);
    this.pending.add(batch, row, body.rows[0]!.mutations);
    return batch.done;
  }

  /** The same for a range of rows that is dropped. */
  dropRows(body: Extract<RecordBody, { kind: 'dropRows' }>): Promise<void> {
    const change = (): TimedChange => ({ body, commitMicros: this.#context.env.clock.nowMicros() });
    return this.#buffered ? this.#writeBuffered(change, undefined) : this.#append(change(), undefined).done;
  }

  /**
   * Logs deletions that garbage collection makes, for change streams. They are not applied, because the compaction that
   * is committed next makes them; a replay applies them, in case it never was. Resolves when they are durable.
   */
  logCollected(rows: readonly RowMutations[]): Promise<unknown> {
    const { env, time } = this.#context;
    const commitMicros = Math.max(env.clock.nowMicros(), time.lastMicros);
    const record = this.#record({ body: { kind: 'rows', rows }, commitMicros });
    return this.#log.append({ ...record, origin: Origin.garbageCollection }).append.durable;
  }

  /** Resolves when no write is under way. */
  async drain(): Promise<void> {
    while (this.#writes > 0) await new Promise<void>((resolve) => this.#drained.push(resolve));
    assert(this.pending.isEmpty, 'no change is pending while no write is under way');
  }

  /** Resolves when every record up to `applied` is durable; undefined: it is. Rejects when one never will be. */
  allDurable(): Promise<unknown> | undefined {
    return this.#newestBuffered;
  }

  /** Resolves when every record up to `applied` is in the memtable whole. */
  async allApplied(): Promise<void> {
    while (this.#applying.size > 0) await Promise.allSettled(this.#applying);
  }

  /**
   * Runs in the slice in which the change is logged: no other time is given between the two, so times ascend in the
   * log.
   */
  #timed(rows: readonly RowMutations[], givenMicros: number | undefined): TimedChange {
    const { env, time } = this.#context;
    if (givenMicros !== undefined) return { body: { kind: 'rows', rows }, commitMicros: givenMicros };
    if (!rows.some(({ mutations }) => needsServerTime(mutations)))
      return { body: { kind: 'rows', rows }, commitMicros: env.clock.nowMicros() };
    const commitMicros = time.next();
    const { granularity } = this.#context.schema();
    const timed = rows.map(
      ({ row, mutations }): RowMutations => ({
        row,
        mutations: resolveTimestamps(mutations, commitMicros, granularity),
      }),
    );
    return { body: { kind: 'rows', rows: timed }, commitMicros };
  }

  /**
   * The same for a change that is too large for one slice. Its row is locked exclusively, so no later time is given in
   * it.
   */
  async #timedInSlices(rows: LargeRows, givenMicros: number | undefined): Promise<TimedChange> {
    const { env, time } = this.#context;
    const [{ row, mutations }] = rows;
    if (isCellRun(mutations) || givenMicros !== undefined || !needsServerTime(mutations))
      return this.#timed(rows, givenMicros);
    const commitMicros = time.next();
    const { granularity } = this.#context.schema();
    const timed: Mutation[] = [];
    await inSlices(env.clock, mutations.length, (from, to) => {
      for (const mutation of resolveTimestamps(mutations.slice(from, to), commitMicros, granularity))
        timed.push(mutation);
    });
    return { body: { kind: 'rows', rows: [{ row, mutations: timed }] }, commitMicros };
  }

  #append(change: TimedChange, lock: SharedLock | undefined, hotRow?: ByteString): LoggedBatch {
    const { sequence, append } = this.#log.append(this.#record(change));
    let batch = this.#batch;
    if (batch === undefined || batch.append !== append) {
      batch = { append, records: [], done: Promise.resolve() };
      batch.done = this.#finish(batch);
      // every call gets the failure; without a call it must not end the process
      batch.done.catch(() => {});
      this.#batch = batch;
    }
    const last = batch.records.at(-1);
    assert(last === undefined || last.sequence < sequence, 'changes of one append are in the order of the log');
    batch.records.push({ change, sequence, lock, hotRow, applying: undefined });
    this.#writes++;
    return batch;
  }

  #record({ body, commitMicros, encodedRows, token }: TimedChange): NewRecord {
    const { serving } = this.#context;
    if (serving.failure) throw serving.notServingError();
    return { tableId: this.#tableId, epoch: this.#epoch, commitMicros, origin: Origin.user, token, body, encodedRows };
  }

  /** Applies the records of one append in their order. */
  async #finish(batch: LoggedBatch): Promise<void> {
    const { layers, host } = this.#context;
    try {
      const position = await batch.append.durable;
      this.#checkNotFailed();
      assert(batch.records.length > 0, 'an append makes changes durable');
      assert((layers.active.firstPosition ?? position) <= position, 'positions of the log ascend');
      layers.active.firstPosition ??= position;
      this.#applyAll(batch.records);
      this.#checkLease();
    } catch (error) {
      this.#context.noteError(error);
      throw error;
    } finally {
      if (this.#batch === batch) this.#batch = undefined;
      // in the slice in which the records are applied: a transaction sees each change in one layer
      this.pending.remove(batch);
      for (const { lock, hotRow } of batch.records) {
        if (hotRow !== undefined) this.#locks.applied(hotRow);
        this.#end(lock);
      }
      host.written();
    }
  }

  #applyAll(records: readonly LoggedRecord[]): void {
    let failure: { readonly error: unknown } | undefined;
    for (const record of records) {
      try {
        record.applying = this.#apply(record.change, { epoch: this.#epoch, sequence: record.sequence });
      } catch (error) {
        failure ??= { error };
      }
    }
    if (failure) throw failure.error;
  }

  /** Writes a change of one row that is too large for one slice. The row is locked exclusively. */
  async #writeLarge(
    rows: LargeRows,
    lock: SharedLock | undefined,
    givenMicros: number | undefined,
    seen: PendingBatch | undefined,
    token?: Uint8Array,
  ): Promise<void> {
    const { env, host } = this.#context;
    this.#writes++;
    try {
      const { body, commitMicros } = await this.#timedInSlices(rows, givenMicros);
      assert(body.kind === 'rows', 'a change of rows stays one');
      const encoded: TimedChange = {
        body,
        commitMicros,
        encodedRows: await encodeRows(body.rows, new Pacer(env.clock)),
        token,
      };
      if (this.#buffered) return await this.#writeBuffered(() => encoded, undefined);
      checkSeen(seen);
      const batch = this.#append(encoded, undefined);
      const record = batch.records.at(-1)!;
      // the row stays locked until the last slice, even if the batch fails
      await batch.done.finally(() => record.applying);
      this.#checkNotFailed();
      this.#checkLease();
    } catch (error) {
      this.#context.noteError(error);
      throw error;
    } finally {
      this.#end(lock);
      host.written();
    }
  }

  /** `timed` is called when the log has space for the change. */
  async #writeBuffered(timed: () => TimedChange, lock: SharedLock | undefined): Promise<void> {
    const { layers, host } = this.#context;
    const log = this.#log;
    this.#writes++;
    try {
      let change = timed();
      let appended = log.appendReserved(this.#record(change));
      // the wait comes before the append: no other record may be applied between the append and the application
      while (appended instanceof Promise) {
        await appended;
        change = timed();
        appended = log.appendReserved(this.#record(change));
      }
      const { sequence, append } = appended;
      this.#newestBuffered = append.durable;
      // the newest durable append precedes this record: the log is kept from there on
      layers.active.firstPosition ??= log.newestPosition;
      const applying = this.#apply(change, { epoch: this.#epoch, sequence });
      if (applying !== undefined) await applying;
      this.#checkNotFailed();
      this.#checkLease();
    } catch (error) {
      this.#context.noteError(error);
      throw error;
    } finally {
      this.#end(lock);
      host.written();
    }
  }

  #end(lock: SharedLock | undefined): void {
    if (lock !== undefined) this.#locks.unlockShared(lock);
    this.#writes--;
    assert(this.#writes >= 0, 'a write ends once');
    if (this.#writes === 0) for (const wake of this.#drained.splice(0)) wake();
  }

  #checkNotFailed(): void {
    const { failure } = this.#context.serving;
    if (failure)
      throw unavailable('an invariant of the tablet broke during the write: its outcome is unknown', failure);
  }

  #checkLease(): void {
    if (!this.#context.host.leaseHeld())
      throw unavailable('the lease of the tablet server may have lapsed during the write: its outcome is unknown');
  }

  /** Returns undefined if it is applied already. */
  #apply({ body, token, commitMicros }: AppliedChange, at: RedoPoint): Promise<void> | undefined {
    const { layers } = this.#context;
    const { active } = layers;
    assert(isAfter(at, this.#applied), 'records are applied once, in order');
    this.#applied = at;
    if (checksInvariants && body.kind === 'rows') this.#assertInside(body.rows);
    if (body.kind === 'dropRows') {
      active.memtable.dropRows(body.range);
      return undefined;
    }
    if (token !== undefined) {
      assert(body.rows.length === 1, 'a token is of one row');
      layers.addToken(body.rows[0]!.row, fromBytes(token), commitMicros);
    }
    const aggregateOf = this.#aggregateOf();
    for (const { mutations } of body.rows) active.rangeDeletions ||= deletesRanges(mutations);
    if (isLarge(body.rows)) {
      const [{ row, mutations }] = body.rows;
      const applying = this.#applyInSlices(row, mutations, aggregateOf).finally(() => this.#applying.delete(applying));
      this.#applying.add(applying);
      return applying;
    }
    for (const { row, mutations } of body.rows) active.memtable.apply(row, mutations, aggregateOf);
    return undefined;
  }

  #assertInside(rows: readonly RowMutations[]): void {
    for (const { row } of rows)
      assert(rangeContains(this.#range, row), 'a change of a row lies in the range of its tablet');
  }

  /** The row stays locked, and a flush waits, so the memtable is not frozen. Readers see all of it or nothing. */
  async #applyInSlices(row: ByteString, mutations: Mutations, aggregateOf: AggregateOf): Promise<void> {
    const edit = this.#context.layers.active.memtable.edit(row, aggregateOf);
    const pacer = new Pacer(this.#context.env.clock);
    for (let from = 0; from < mutations.length; from += MUTATIONS_PER_CHECK) {
      edit.add(sliceMutations(mutations, from, from + MUTATIONS_PER_CHECK));
      if (pacer.due(MUTATIONS_PER_CHECK)) await pacer.pauseForGc();
    }
    assert(!this.#context.layers.active.memtable.isFrozen, 'a flush waits for a change that is applied in slices');
    edit.commit();
  }

  #aggregateOf(): AggregateOf {
    const schema = this.#context.schema();
    if (this.#aggregates?.schema !== schema) {
      const families = new ReadFamilies(schema, 0);
      this.#aggregates = { schema, aggregateOf: (stored) => families.get(stored)?.aggregate };
    }
    return this.#aggregates.aggregateOf;
  }
}

/** A change of one row. */
type LargeRows = readonly [RowMutations];

/** True for a change that is applied in several slices, so that its row must be locked exclusively. */
export function isLargeChange(mutations: Mutations): boolean {
  return mutations.length > MAX_MUTATIONS_PER_SLICE;
}

/** A change that depends on records that were not written is not written either. */
function checkSeen(seen: PendingBatch | undefined): void {
  if (seen?.append.failure !== undefined) throw seen.append.failure;
}

function isLarge(rows: readonly RowMutations[]): rows is LargeRows {
  const [first] = rows;
  return first !== undefined && rows.length === 1 && isLargeChange(first.mutations);
}

function deletesRanges(mutations: Mutations): boolean {
  return (
    !isCellRun(mutations) &&
    mutations.some((mutation) => mutation.kind === 'deleteFromColumn' && mutation.range !== undefined)
  );
}
