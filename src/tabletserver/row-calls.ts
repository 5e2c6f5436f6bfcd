/**
 * The calls about rows that a tablet server answers: finds the tablet, has the change checked against the table's
 * schema, waits for space in memory and files, and hands the change to the tablet, which adds the server's time.
 *
 * Invariant: a call changes and returns rows only if this server serves all of them; else it answers "not serving", and
 * the caller reads METADATA again.
 *
 * Hot path: `mutateRow` is written twice. A small write that may begin now makes no closure and no promise of its own
 * (docs/decisions/0048-reads.md).
 */
import { assert, BigtableError, type ByteString, Code, invalidArgument, toBigtableError } from '../base/index.ts';
import {
  type Clock,
  inSlices,
  Pacer,
  type PlainError,
  type RequestContext,
  toPlainError,
  within,
} from '../env/index.ts';
import { METADATA_TABLE_ID, type MetadataCommit } from '../metadata/index.ts';
import {
  type Cell,
  type Idempotency,
  type Mutations,
  rangeContains,
  type ReadBatch,
  type RowMutations,
  type RowRange,
  sliceMutations,
  type TableSchema,
  TOKEN_MS,
} from '../model/index.ts';
import {
  type BatchAnswer,
  type CheckAndMutateMessage,
  type CommitOutcome,
  notServing,
  type ReadMessage,
  type TabletServerCalls,
} from '../protocol/index.ts';
import type { Admission, TabletRead } from '../tablet/index.ts';
import { checkMutations, checkRules, effectiveMutations } from '../service/index.ts';
import type { CompactionSchedule } from './compaction-schedule.ts';
import type { MemtableBudget } from './memtable-budget.ts';
import { MetadataCommits } from './metadata-commits.ts';
import type { Quotas } from './quotas.ts';
import type { ServedTablet, TabletMap } from './tablet-map.ts';
import type { Traffic } from './traffic.ts';

/** A change with more mutations is checked over several slices of the event loop. */
const MAX_IN_ONE_SLICE = 1000;

const FIRST_CELLS = {
  kind: 'chain',
  filters: [{ kind: 'cellsPerRowLimit', cells: 1 }, { kind: 'stripValue' }],
} as const;
const DELETION = { kind: 'deleteFromRow' } as const;

export interface RowCallsOptions {
  readonly clock: Clock;
  readonly tablets: TabletMap;
  readonly budget: MemtableBudget;
  readonly compactions: CompactionSchedule;
  readonly traffic: Traffic;
  readonly quotas: Quotas;
  /** The schema of a table by its id, if it is known here. */
  readonly schemaOf: (tableId: string) => TableSchema | undefined;
  /** The reason why the tablet of that row could not be loaded, if its files are damaged. */
  readonly damageOver: (tableId: string, row: ByteString) => BigtableError | undefined;
  /** Called with each row whose tablet is not served here. */
  readonly onMissed: (tableId: string, row: ByteString) => void;
}

/** By entry of a batch: undefined = done, or not known yet. */
type Outcomes = (PlainError | undefined)[];

/** Entries of a batch, those before the index `end`, that are written together. */
interface BatchSlice {
  /** Undefined if there is nothing to write. */
  readonly served: ServedTablet | undefined;
  readonly changes: readonly RowMutations[];
  readonly indexes: readonly number[];
  readonly end: number;
}

export class RowCalls {
  readonly #options: RowCallsOptions;
  readonly #commits = new MetadataCommits();

  constructor(options: RowCallsOptions) {
    this.#options = options;
  }

  /** The tablet that holds the row. METADATA's rows are changed by commits alone. */
  serving(tableId: string, row: ByteString): ServedTablet {
    const served = this.#found(tableId, row);
    if (tableId === METADATA_TABLE_ID) throw invalidArgument('METADATA is changed by conditional commits alone');
    return served;
  }

  #found(tableId: string, row: ByteString): ServedTablet {
    const served = this.#options.tablets.find(tableId, row);
    if (served === undefined) throw this.#options.damageOver(tableId, row) ?? this.#missed(tableId, row);
    return served;
  }

  #missed(tableId: string, row: ByteString): BigtableError {
    this.#options.onMissed(tableId, row);
    return notServing(tableId, row);
  }

  /** The tablet of a row that a client's call is about: the call is counted. */
  #called(tableId: string, row: ByteString): ServedTablet {
    const served = this.serving(tableId, row);
    served.requests++;
    return served;
  }

  /** The tablet of exactly that range: a caller that names another does not know of a split or a merge. */
  servingAll(tableId: string, { start, end }: RowRange): ServedTablet {
    const served = this.serving(tableId, start);
    if (served.range.start !== start || served.range.end !== end) throw notServing(tableId, start);
    return served;
  }

  #schemaOf({ tableId }: ServedTablet, row: ByteString): TableSchema {
    const schema = this.#options.schemaOf(tableId);
    if (schema === undefined) throw notServing(tableId, row);
    return schema;
  }

  /** True when a write may begin now. */
  #hasSpace(served: ServedTablet): boolean {
    return this.#options.budget.open && !this.#options.compactions.isBehind(served);
  }

  /** The same for a write that adds something. */
  #mayWrite(served: ServedTablet, schema: TableSchema): boolean {
    return this.#hasSpace(served) && this.#options.quotas.isReady(schema);
  }

  /** Begins the write synchronously if it may begin now. */
  #whenMayWrite<T>(
    served: ServedTablet,
    schema: TableSchema,
    row: ByteString,
    context: RequestContext,
    write: () => Promise<T>,
  ): Promise<T> {
    if (!this.#options.quotas.isReady(schema))
      return this.#learnUsage(schema, context).then(() => this.#withSpace(served, row, context, write));
    return this.#withSpace(served, row, context, write);
  }

  #withSpace<T>(served: ServedTablet, row: ByteString, context: RequestContext, write: () => Promise<T>): Promise<T> {
    return this.#hasSpace(served) ? write() : this.#waitForSpace(served, row, context).then(write);
  }

  /** The first write to a table with a quota waits until this server knows what its tablets take. */
  #learnUsage(schema: TableSchema, context: RequestContext): Promise<void> {
    const { quotas, clock } = this.#options;
    return within(quotas.learn(schema), context, clock);
  }

  /** Writes wait here, bounded in number by the budget of requests, while flushes or compactions fall behind. */
  async #waitForSpace(served: ServedTablet, row: ByteString, context: RequestContext): Promise<void> {
    const startMs = this.#options.clock.monotonicMs();
    if (!this.#options.budget.open) await this.#options.budget.wait(context);
    if (this.#options.compactions.isBehind(served)) await this.#options.compactions.wait(served, context);
    if (context.notes !== undefined) context.notes.writeWaitMs += this.#options.clock.monotonicMs() - startMs;
    if (!this.#options.tablets.has(served)) throw notServing(served.tableId, row);
  }

  mutateRow(entry: RowMutations & { readonly tableId: string }, context: RequestContext): Promise<undefined> {
    const { tableId, row, mutations, idempotency } = entry;
    const served = this.#called(tableId, row);
    const schema = this.#schemaOf(served, row);
    if (mutations.length > MAX_IN_ONE_SLICE || !this.#mayWrite(served, schema))
      return this.#mutateRowLater(served, schema, entry, context);
    const effective = checkedMutations(schema, mutations);
    this.#options.traffic.of(tableId).writes++;
    if (effective.length === 0) return Promise.resolve(undefined);
    if (idempotency !== undefined) this.#checkInTime(idempotency);
    this.#admit(schema, row, effective);
    return served.tablet.mutateRow(context, row, effective, idempotency) as Promise<undefined>;
  }

  /** A write that may be sent again is refused once the token of its first attempt may be forgotten. */
  #checkInTime({ startMs }: Idempotency): void {
    if (startMs === undefined) return;
    const agoMs = this.#options.clock.nowMicros() / 1000 - startMs;
    if (agoMs <= TOKEN_MS) return;
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `the first attempt of this write was sent ${Math.round(agoMs / 1000)} s ago, and its idempotency token is known ` +
        `for ${TOKEN_MS / 1000} s: it may have been made. Nothing was written now`,
    );
  }

  /** The write goes to its tablet, and counts, if no quota forbids it. */
  #admit(schema: TableSchema, row: ByteString, mutations: Mutations): void {
    const { quotas, traffic } = this.#options;
    quotas.admit(schema, row, mutations);
    traffic.of(schema.id).written(row, mutations);
  }

  /** A change that is checked in slices, or that waits. */
  async #mutateRowLater(
    served: ServedTablet,
    schema: TableSchema,
    { row, mutations, idempotency }: RowMutations,
    context: RequestContext,
  ): Promise<undefined> {
    const checking = inSlices(this.#options.clock, mutations.length, (from, to) =>
      checkMutations(schema, sliceMutations(mutations, from, to)),
    );
    if (checking !== undefined) await checking;
    const effective = effectiveMutations(mutations);
    this.#options.traffic.of(schema.id).writes++;
    if (effective.length === 0) return undefined;
    if (idempotency !== undefined) this.#checkInTime(idempotency);
    if (!this.#options.quotas.isReady(schema)) await this.#learnUsage(schema, context);
    if (!this.#hasSpace(served)) await this.#waitForSpace(served, row, context);
    this.#admit(schema, row, effective);
    await served.tablet.mutateRow(context, row, effective, idempotency);
    return undefined;
  }

  checkAndMutateRow(
    { tableId, row, predicate, whenTrue, whenFalse }: CheckAndMutateMessage,
    context: RequestContext,
  ): Promise<boolean> {
    const served = this.#called(tableId, row);
    const schema = this.#schemaOf(served, row);
    const [ifTrue, ifFalse] = [checkedMutations(schema, whenTrue), checkedMutations(schema, whenFalse)];
    this.#options.traffic.of(tableId).writes++;
    const admit: Admission = (mutations) => this.#admit(schema, row, mutations);
    return this.#whenMayWrite(served, schema, row, context, () =>
      served.tablet.checkAndMutateRow(context, row, predicate, ifTrue, ifFalse, admit),
    );
  }

  readModifyWriteRow(
    { tableId, row, rules, maxAnswerBytes }: TabletServerCalls['readModifyWriteRow']['message'],
    context: RequestContext,
  ): Promise<readonly Cell[]> {
    const served = this.#called(tableId, row);
    const schema = this.#schemaOf(served, row);
    checkRules(schema, rules);
    this.#options.traffic.of(tableId).writes++;
    const admit: Admission = (mutations) => this.#admit(schema, row, mutations);
    return this.#whenMayWrite(served, schema, row, context, () =>
      served.tablet.readModifyWriteRow(context, row, rules, maxAnswerBytes, admit),
    );
  }

  async dropRows(
    { tableId, range }: { readonly tableId: string; readonly range: RowRange },
    context: RequestContext,
  ): Promise<undefined> {
    const served = this.serving(tableId, range.start);
    if (!isWithin(range.end, served.range.end)) throw notServing(tableId, served.range.end!);
    if (!this.#hasSpace(served)) await this.#waitForSpace(served, range.start, context);
    if (this.#options.schemaOf(tableId)?.changeStream === undefined) await served.tablet.dropRows(context, range);
    else await this.#deleteRows(served, range, context);
    return undefined;
  }

  /** Deletes the rows one by one: a change stream tells of each. Rows that are written meanwhile may stay. */
  async #deleteRows(served: ServedTablet, range: RowRange, context: RequestContext): Promise<void> {
    const request = { ranges: [range], filter: FIRST_CELLS, rowsLimit: 0, reversed: false };
    for await (const { fragments } of served.tablet.read(context, request)) {
      const rows = fragments.filter(({ last }) => last).map(({ row }) => ({ row, mutations: [DELETION] }));
      if (rows.length === 0) continue;
      if (!this.#hasSpace(served)) await this.#waitForSpace(served, range.start, context);
      const failure = (await served.tablet.mutateRows(context, rows)).find((outcome) => outcome !== undefined);
      if (failure !== undefined) throw failure;
    }
  }

  /** METADATA's tablets never wait for memory: the flushes that free it commit to them. */
  async commit(commits: readonly MetadataCommit[], context: RequestContext): Promise<CommitOutcome[]> {
    const keys = commits.flatMap(({ rows }) => rows.map(({ key }) => key));
    const first = keys[0];
    if (first === undefined) return [];
    const served = this.#options.tablets.find(METADATA_TABLE_ID, first);
    const other = keys.find((key) => this.#options.tablets.find(METADATA_TABLE_ID, key) !== served);
    if (served === undefined) throw this.#missed(METADATA_TABLE_ID, first);
    if (other !== undefined) throw notServing(METADATA_TABLE_ID, other);
    return this.#commits.commit(served.tablet, commits, context);
  }

  async mutateRows(
    { tableId, entries, asksWait }: TabletServerCalls['mutateRows']['message'],
    context: RequestContext,
  ): Promise<BatchAnswer> {
    const outcomes: Outcomes = new Array(entries.length).fill(undefined);
    const pacer = new Pacer(this.#options.clock);
    const writes: Promise<void>[] = [];
    let waitedMs = 0;
    const { quotas, schemaOf, traffic } = this.#options;
    const schema = schemaOf(tableId);
    if (schema !== undefined && !quotas.isReady(schema)) await this.#learnUsage(schema, context);
    if (schema !== undefined) traffic.of(tableId).writes++;
    for (let next = 0; next < entries.length; ) {
      const slice = this.#checkSlice(tableId, entries, next, pacer, outcomes);
      assert(slice.end > next, 'each slice of a batch of rows checks at least one');
      next = slice.end;
      const { served, changes, indexes } = slice;
      if (served !== undefined) {
        try {
          const isHeldBack = !this.#hasSpace(served);
          const startMs = isHeldBack && asksWait ? this.#options.clock.monotonicMs() : undefined;
          if (isHeldBack) await this.#waitForSpace(served, changes[0]!.row, context);
          if (startMs !== undefined) waitedMs += this.#options.clock.monotonicMs() - startMs;
          writes.push(writeSlice(served, changes, indexes, context, outcomes));
        } catch (thrown) {
          failAll(outcomes, indexes, thrown);
        }
      }
      if (next < entries.length) await pacer.pause();
    }
    await Promise.all(writes);
    return waitedMs === 0 ? { outcomes } : { outcomes, waitedMs };
  }

  /**
   * Checks entries from `start` on: as many as one slice of the event loop takes, and rows of one tablet only. All rows
   * of a message are of one tablet, unless it was split meanwhile.
   */
  #checkSlice(
    tableId: string,
    entries: readonly RowMutations[],
    start: number,
    pacer: Pacer,
    outcomes: Outcomes,
  ): BatchSlice {
    const changes: RowMutations[] = [];
    const indexes: number[] = [];
    let served: ServedTablet | undefined;
    let end = start;
    for (let isDue = false; end < entries.length && !isDue; end++) {
      const entry = entries[end]!;
      const { row, mutations, idempotency } = entry;
      try {
        const its = served !== undefined && rangeContains(served.range, row) ? served : this.#called(tableId, row);
        if (served !== undefined && its !== served) break;
        const schema = this.#schemaOf(its, row);
        const effective = checkedMutations(schema, mutations);
        if (effective.length > 0) {
          if (idempotency !== undefined) this.#checkInTime(idempotency);
          this.#admit(schema, row, effective);
          served = its;
          changes.push(effective === mutations ? entry : { row, mutations: effective, idempotency });
          indexes.push(end);
        }
      } catch (thrown) {
        outcomes[end] = toPlainError(toBigtableError(thrown));
      }
      isDue = pacer.due(1 + (mutations.length >> 2));
    }
    return { served, changes, indexes, end };
  }

  read(asked: ReadMessage, context: RequestContext): AsyncIterable<ReadBatch> {
    const { tableId, ranges } = asked;
    const start = ranges[0]?.start;
    if (start === undefined) throw invalidArgument('a read of a tablet names at least one range');
    const served = this.#found(tableId, start);
    served.requests++;
    const message = this.#counted(asked);
    if (!isWithin(ranges.at(-1)?.end, served.range.end)) throw notServing(tableId, served.range.end!);
    this.#schemaOf(served, start);
    return served.tablet.read(context, message);
  }

  /** Reads of METADATA are those of servers, and are not counted. */
  #counted(message: ReadMessage): TabletRead {
    const { tableId, ranges, filter, rowsLimit, reversed } = message;
    if (tableId === METADATA_TABLE_ID) return message;
    const count = this.#options.traffic.of(tableId);
    count.reads++;
    return { ranges, filter, rowsLimit, reversed, count };
  }
}

async function writeSlice(
  { tablet }: ServedTablet,
  changes: readonly RowMutations[],
  indexes: readonly number[],
  context: RequestContext,
  outcomes: Outcomes,
): Promise<void> {
  try {
    const errors = await tablet.mutateRows(context, changes);
    assert(errors.length === indexes.length, 'each row that was to be written has an outcome');
    for (let i = 0; i < errors.length; i++) {
      const error = errors[i];
      if (error !== undefined) outcomes[indexes[i]!] = toPlainError(error);
    }
  } catch (thrown) {
    failAll(outcomes, indexes, thrown);
  }
}

function failAll(outcomes: Outcomes, indexes: readonly number[], thrown: unknown): void {
  const error = toPlainError(toBigtableError(thrown));
  for (const index of indexes) outcomes[index] = error;
}

function isWithin(end: ByteString | undefined, limit: ByteString | undefined): boolean {
  return limit === undefined || (end !== undefined && end <= limit);
}

/**
 * Checks the conditions that depend on the schema, and leaves out mutations without effect: the result may be empty.
 */
function checkedMutations<M extends Mutations>(schema: TableSchema, mutations: M): M {
  checkMutations(schema, mutations);
  return effectiveMutations(mutations);
}
