/**
 * Change streams: the changes of a range's rows, from the server of its tablet (docs/decisions/0105-change-streams.md).
 *
 * Invariant: an event's token names a place up to which every change of the range was an event before.
 */
import { assert, BigtableError, Code, invalidArgument } from '../base/index.ts';
import type { Clock, RequestContext, Transport } from '../env/index.ts';
import type { AssignedTablet } from '../locator/index.ts';
import {
  ALL_ROWS,
  type ChangeBatch,
  intersectRanges,
  isEmptyRange,
  type Limits,
  type RowRange,
  type StreamProgress,
  type TableSchema,
} from '../model/index.ts';
import { streamFrom } from '../protocol/index.ts';
import {
  canReadOn,
  type ChangeService,
  type ChangeStreamRequest,
  checkRowRange,
  checkTableName,
  type StreamEvent,
  type StreamToken,
} from '../service/index.ts';
import { eachTablet } from './each-tablet.ts';
import type { RetryPolicy, Router } from './router.ts';
import { advanced, decodeTokens, encodeToken, progressOf } from './stream-token.ts';

const HEARTBEAT_MS = 5000;
const MIN_HEARTBEAT_MS = 100;

export interface ChangeStreamsParts {
  readonly router: Router;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly limits: Limits;
}

export class ChangeStreams implements ChangeService {
  readonly #parts: ChangeStreamsParts;

  constructor(parts: ChangeStreamsParts) {
    this.#parts = parts;
  }

  async changeStreamRanges(context: RequestContext, table: string): Promise<readonly RowRange[]> {
    const { router, limits } = this.#parts;
    checkTableName(table, limits);
    checkStream(await streamedTable(router, context, table));
    return tabletsOf(router, context, table, ALL_ROWS);
  }

  readChanges(context: RequestContext, request: ChangeStreamRequest): AsyncIterable<StreamEvent> {
    const { clock, limits } = this.#parts;
    const { table, range, tokens, startMicros, endMicros, heartbeatMs = HEARTBEAT_MS } = request;
    checkTableName(table, limits);
    checkRowRange(range, limits);
    if (isEmptyRange(range)) throw invalidArgument('the partition to be read has no rows');
    if (tokens !== undefined && startMicros !== undefined)
      throw invalidArgument('a change stream begins at a time, or at tokens, not at both');
    const nowMicros = clock.nowMicros();
    const fromMicros = startMicros ?? nowMicros;
    if (fromMicros > nowMicros) throw invalidArgument('a change stream cannot begin in the future');
    if (endMicros !== undefined && startMicros !== undefined && endMicros < startMicros)
      throw invalidArgument('a change stream cannot end before it begins');
    const progress = tokens === undefined ? [{ range, fromMicros }] : decodeTokens(tokens, range);
    const reading = new StreamReading(this.#parts, context, {
      table,
      range,
      endMicros,
      isFresh: tokens === undefined,
      heartbeatMs: Math.max(heartbeatMs, MIN_HEARTBEAT_MS),
    });
    return reading.read(progress);
  }
}

interface Wanted {
  readonly table: string;
  readonly range: RowRange;
  readonly endMicros: number | undefined;
  readonly heartbeatMs: number;
  /** It begins at a time. */
  readonly isFresh: boolean;
}

class StreamReading {
  readonly #parts: ChangeStreamsParts;
  readonly #context: RequestContext;
  readonly #wanted: Wanted;
  #progress: readonly StreamProgress[] = [];
  #retries: RetryPolicy | undefined;

  constructor(parts: ChangeStreamsParts, context: RequestContext, wanted: Wanted) {
    this.#parts = parts;
    this.#context = context;
    this.#wanted = wanted;
  }

  async *read(progress: readonly StreamProgress[]): AsyncGenerator<StreamEvent, void> {
    const { router } = this.#parts;
    const { table, range } = this.#wanted;
    this.#progress = progress;
    /** The tablet that the stream has been read from. */
    let before: RowRange | undefined;
    for (;;) {
      let tablet: AssignedTablet | undefined;
      try {
        const schema = await this.#schema();
        tablet = await router.locate(table, schema, this.#context, (locator) =>
          locator.locate(schema.id, range.start, this.#context),
        );
        if (isOtherwise(tablet.range, range, before)) return yield await this.#closed(tablet.range);
        before = tablet.range;
        for await (const batch of this.#batches(schema, tablet)) {
          this.#retries = undefined;
          yield* this.#events(batch);
          if (batch.isEnd) return;
        }
        throw new BigtableError(Code.UNAVAILABLE, 'the server of the tablet ended the stream');
      } catch (error) {
        if (!canReadOn(error)) throw error;
        if (tablet) router.drop(tablet);
        this.#retries ??= router.retryPolicy(this.#context);
        await this.#retries.wait(error);
        await router.refresh(table, this.#context);
      }
    }
  }

  async #schema(): Promise<TableSchema> {
    const { router, clock } = this.#parts;
    const { table, isFresh } = this.#wanted;
    const schema = await streamedTable(router, this.#context, table);
    const { retentionMicros } = checkStream(schema);
    const oldest = clock.nowMicros() - retentionMicros;
    if (isFresh && this.#progress.some(({ fromMicros, after }) => after === undefined && fromMicros < oldest))
      throw new BigtableError(
        Code.OUT_OF_RANGE,
        `the table keeps its changes for ${retentionMicros / 1e6} s: the stream cannot begin before that`,
      );
    return schema;
  }

  #batches({ id }: TableSchema, { server }: AssignedTablet): AsyncIterable<ChangeBatch> {
    const { transport, router } = this.#parts;
    const { range, endMicros, heartbeatMs } = this.#wanted;
    const schemaVersion = router.schemaVersion(id);
    const message = { tableId: id, range, progress: this.#progress, endMicros, heartbeatMs, schemaVersion };
    return streamFrom(transport, server.address, 'readChanges', message, this.#context);
  }

  *#events({ changes, position, watermarkMicros }: ChangeBatch): Generator<StreamEvent, void> {
    for (const { position: place, ...change } of changes) {
      this.#progress = advanced(this.#progress, place);
      const { commitMicros } = change;
      yield { kind: 'change', ...change, token: encodeToken(this.#progress), watermarkMicros: commitMicros };
    }
    if (position !== undefined) this.#progress = advanced(this.#progress, position);
    if (changes.length === 0) yield { kind: 'heartbeat', token: encodeToken(this.#progress), watermarkMicros };
  }

  /** The tablets of the range are others than the reader knows. */
  async #closed(tablet: RowRange): Promise<StreamEvent> {
    const { router } = this.#parts;
    const { table, range } = this.#wanted;
    const isWhole = isInside(range, tablet);
    const ranges = isWhole ? [tablet] : await tabletsOf(router, this.#context, table, range);
    const parts = isWhole ? [range] : ranges;
    const tokens = parts.map(
      (part): StreamToken => ({ range: part, token: encodeToken(progressOf(this.#progress, part)) }),
    );
    assert(tokens.length > 0, 'a range has tablets');
    return { kind: 'closed', tokens, ranges };
  }
}

/** True where the range is to be read otherwise: it is in several tablets now, or its tablet was merged meanwhile. */
function isOtherwise(tablet: RowRange, range: RowRange, before: RowRange | undefined): boolean {
  if (!isInside(range, tablet)) return true;
  return before !== undefined && (tablet.start !== before.start || tablet.end !== before.end);
}

function isInside(range: RowRange, tablet: RowRange): boolean {
  return intersectRanges(range, tablet) === range;
}

/** The table's schema. One without a change stream is read again: another door may have just changed it. */
async function streamedTable(router: Router, context: RequestContext, table: string): Promise<TableSchema> {
  const known = await router.table(table, context);
  if (known.changeStream !== undefined) return known;
  await router.refresh(table, context);
  return router.table(table, context);
}

function checkStream({ name, changeStream }: TableSchema): NonNullable<TableSchema['changeStream']> {
  if (changeStream === undefined)
    throw new BigtableError(Code.FAILED_PRECONDITION, `table ${name} has no change stream`);
  return changeStream;
}

/** The parts of the range that are in one tablet each, ascending, as they are known here. */
async function tabletsOf(
  router: Router,
  context: RequestContext,
  table: string,
  range: RowRange,
): Promise<readonly RowRange[]> {
  const found: RowRange[] = [];
  await eachTablet(router, context, table, range, async (_schema, _tablet, part) => void found.push(part));
  return found;
}
