/**
 * A read over all tablets that its ranges touch, in key order or against it: one read a tablet, the rest of the limit
 * carried over. When a tablet moves, the read continues after the last row it returned.
 *
 * A read of no row at all reads no tablet. It is checked like any other: table, form, and filter.
 *
 * Invariant: every row is returned once and whole. A read that is cut short inside a row cannot continue, since the row
 * may have changed: it fails with UNAVAILABLE.
 */
import { assert, type ByteString, notFound, quote, successor, unavailable } from '../base/index.ts';
import {
  type Clock,
  PullStream,
  pullStreamOf,
  type Random,
  type RequestContext,
  type Transport,
} from '../env/index.ts';
import { compileFilter, namedFamilies, type RowFilter } from '../filter/index.ts';
import type { AssignedTablet, Locator } from '../locator/index.ts';
import {
  ALL_ROWS,
  familyOfTable,
  intersectRanges,
  isEmptyRange,
  type Limits,
  type ReadBatch,
  type RowRange,
  type TableSchema,
} from '../model/index.ts';
import { type ReadMessage, readTablet } from '../protocol/index.ts';
import { canReadOn, checkReadRows, type ReadRequest } from '../service/index.ts';
import type { RetryPolicy, Router } from './router.ts';
import { orderedRanges } from './row-ranges.ts';

/**
 * Limits of one message to a tablet, ranges and bytes of their keys: the part sent, and examined there, in one slice.
 */
const MESSAGE_RANGES = 2048;
const MESSAGE_KEY_BYTES = 1024 * 1024;
const NO_FAMILIES: readonly string[] = [];
/** Hot path: an assert takes a constant. */
const TABLET_IS_READ = 'a read goes to a tablet that has a part of its ranges';

export interface ReadRowsParts {
  readonly router: Router;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: Limits;
}

export function readRows(parts: ReadRowsParts, context: RequestContext, request: ReadRequest): PullStream<ReadBatch> {
  return new RowsStream(parts, context, request);
}

/** One read of a tablet after another. While locations are known and blocks are in memory no promise is made here. */
class RowsStream extends PullStream<ReadBatch> {
  readonly #parts: ReadRowsParts;
  readonly #context: RequestContext;
  readonly #request: ReadRequest;
  /** Families that the filter needs. */
  readonly #families: readonly string[];
  #position: ReadPosition | undefined;
  #retries: RetryPolicy | undefined;
  #tablet: AssignedTablet | undefined;
  /** The part of the ranges that the tablet was requested to read. */
  #part: RowRange = ALL_ROWS;
  /** Set while very many ranges are put in order. */
  #beginning: Promise<ReadPosition> | undefined;
  /** The tablet's stream; undefined between two tablets. */
  #batches: PullStream<ReadBatch> | undefined;
  #ended = false;
  /** True when the request is for no row at all, and no tablet's server has checked it. */
  #needsNoRow = false;

  constructor(parts: ReadRowsParts, context: RequestContext, request: ReadRequest) {
    super();
    this.#parts = parts;
    this.#context = context;
    this.#request = request;
    this.#families = request.filter === undefined ? NO_FAMILIES : namedFamilies(request.filter);
  }

  pull(): ReadBatch | undefined | Promise<ReadBatch | undefined> {
    for (;;) {
      if (this.#ended) return undefined;
      let pulled: ReadBatch | undefined | Promise<ReadBatch | undefined>;
      try {
        const batches = this.#batches ?? this.#nextTablet();
        if (batches === undefined) return this.#ended ? undefined : this.#search();
        pulled = batches.pull();
      } catch (error) {
        return this.#recover(error);
      }
      if (pulled instanceof Promise) return this.#awaitBatch(pulled);
      if (this.#onBatch(pulled)) return pulled;
    }
  }

  end(): void | Promise<void> {
    this.#ended = true;
    const batches = this.#batches;
    this.#batches = undefined;
    return batches?.end();
  }

  /**
   * The read of the next tablet; undefined if there is none (then the stream is at its end), or if its location is not
   * known without a wait.
   */
  #nextTablet(): PullStream<ReadBatch> | undefined {
    const { router } = this.#parts;
    if (this.#position === undefined) {
      const position = this.#begin();
      if (position instanceof Promise) {
        this.#beginning = position;
        return undefined;
      }
      this.#startAt(position);
    }
    const position = this.#position!;
    if (position.isDone()) {
      this.#ended = !this.#needsNoRow;
      return undefined;
    }
    const schema = router.known(this.#request.table);
    if (schema !== undefined && this.#missingFamily(schema) !== undefined) return undefined;
    const tablet = schema && position.cached(router, schema.id);
    return schema && tablet && this.#open(schema, tablet);
  }

  /** Returns a promise if the ranges take several slices. */
  #begin(): ReadPosition | Promise<ReadPosition> {
    const { limits, clock } = this.#parts;
    checkReadRows(this.#request, limits);
    const { ranges } = this.#request;
    const ordered = orderedRanges(ranges && ranges.length > 0 ? ranges : [ALL_ROWS], limits, clock, this.#context);
    if (ordered instanceof Promise) return ordered.then((all) => new ReadPosition(this.#request, all));
    return new ReadPosition(this.#request, ordered);
  }

  #startAt(position: ReadPosition): void {
    this.#position = position;
    this.#needsNoRow = position.isDone();
  }

  #open({ id }: TableSchema, tablet: AssignedTablet): PullStream<ReadBatch> {
    const position = this.#position!;
    const { filter, reversed } = this.#request;
    const ranges = position.rangesIn(tablet.range);
    const { router } = this.#parts;
    const message = new TabletReadMessage(
      id,
      ranges,
      filter,
      position.rowsLeft,
      reversed === true,
      router.schemaVersion(id),
    );
    this.#tablet = tablet;
    this.#part = position.partOf(tablet.range, ranges);
    this.#batches = pullStreamOf(readTablet(this.#parts.transport, tablet.server.address, message, this.#context));
    return this.#batches;
  }

  /** Takes a batch into account; false if it was the end of a tablet. */
  #onBatch(batch: ReadBatch | undefined): boolean {
    const position = this.#position!;
    if (batch === undefined) {
      position.finish(this.#part);
      this.#batches = undefined;
      return false;
    }
    position.advance(batch);
    this.#retries = undefined;
    return true;
  }

  async #awaitBatch(pulled: Promise<ReadBatch | undefined>): Promise<ReadBatch | undefined> {
    let batch: ReadBatch | undefined;
    try {
      batch = await pulled;
    } catch (error) {
      return this.#recover(error);
    }
    if (this.#ended) return undefined;
    return this.#onBatch(batch) ? batch : this.pull();
  }

  /** Finds the next tablet by calls to others, after the ranges are in order. */
  async #search(): Promise<ReadBatch | undefined> {
    const { router, limits, random } = this.#parts;
    const { table, filter } = this.#request;
    try {
      if (this.#position === undefined) {
        this.#startAt(await this.#beginning!);
        return this.pull();
      }
      const schema = await this.#schema();
      if (this.#needsNoRow) {
        compileFilter(filter, { limits, random });
        this.#ended = true;
        return undefined;
      }
      this.#open(
        schema,
        await router.locate(table, schema, this.#context, (locator) =>
          this.#position!.locate(locator, schema.id, this.#context),
        ),
      );
    } catch (error) {
      return this.#recover(error);
    }
    return this.pull();
  }

  /**
   * The table's schema. NOT_FOUND where there is no table, or surely no family that the filter names; INVALID_ARGUMENT
   * where that filter is wrong.
   */
  async #schema(): Promise<TableSchema> {
    const { router } = this.#parts;
    const { table } = this.#request;
    const known = await router.table(table, this.#context);
    if (this.#missingFamily(known) === undefined) return known;
    await router.refresh(table, this.#context);
    const schema = await router.table(table, this.#context);
    const family = this.#missingFamily(schema);
    if (family !== undefined) {
      const { limits, random } = this.#parts;
      compileFilter(this.#request.filter, { limits, random });
      throw notFound(`table ${table} has no column family ${quote(family)}, which the filter names`);
    }
    return schema;
  }

  #missingFamily(schema: TableSchema): string | undefined {
    if (this.#families.length === 0) return undefined;
    return this.#families.find((family) => familyOfTable(schema, family) === undefined);
  }

  /** Continues if the tablet was moved, else fails. */
  async #recover(error: unknown): Promise<ReadBatch | undefined> {
    const { router } = this.#parts;
    const [tablet, batches] = [this.#tablet, this.#batches];
    this.#tablet = undefined;
    this.#batches = undefined;
    try {
      await batches?.end();
      if (!canReadOn(error)) throw error;
      if (this.#position?.insideRow) throw unavailable('the tablet moved in the midst of a row: read again', error);
      if (tablet) router.drop(tablet);
      this.#retries ??= router.retryPolicy(this.#context);
      await this.#retries.wait(error);
      await router.refresh(this.#request.table, this.#context);
    } catch (final) {
      this.#ended = true;
      throw final;
    }
    return this.pull();
  }
}

/** A class for the same reason as PlainContext in `env`: it refers to objects that would outlive the read with it. */
class TabletReadMessage implements ReadMessage {
  readonly tableId: string;
  readonly ranges: readonly RowRange[];
  readonly filter: RowFilter | undefined;
  readonly rowsLimit: number;
  readonly reversed: boolean;
  readonly schemaVersion: number | undefined;

  constructor(
    tableId: string,
    ranges: readonly RowRange[],
    filter: RowFilter | undefined,
    rowsLimit: number,
    reversed: boolean,
    schemaVersion: number | undefined,
  ) {
    this.tableId = tableId;
    this.ranges = ranges;
    this.filter = filter;
    this.rowsLimit = rowsLimit;
    this.reversed = reversed;
    this.schemaVersion = schemaVersion;
  }
}

/** The part of the read that is left. */
class ReadPosition {
  readonly #reversed: boolean;
  readonly #limited: boolean;
  /** Ranges left, those read next at the end of the list when reversed, else from `#first` on. */
  readonly #ranges: RowRange[];
  #first = 0;
  #rowsLeft: number;
  /** The last row returned whole, while the ranges left do not yet reflect it. */
  #passed: ByteString | undefined;
  insideRow = false;

  /** `ranges`: sorted, disjoint; owned by the position from now on. */
  constructor({ rowsLimit, reversed }: ReadRequest, ranges: RowRange[]) {
    this.#reversed = reversed === true;
    this.#rowsLeft = rowsLimit ?? 0;
    this.#limited = this.#rowsLeft > 0;
    this.#ranges = ranges;
  }

  /** True when nothing is left after the last row that was returned. */
  isDone(): boolean {
    this.#passRow();
    return this.#first >= this.#ranges.length || (this.#limited && this.#rowsLeft === 0);
  }

  /** 0 = no limit. */
  get rowsLeft(): number {
    return this.#rowsLeft;
  }

  /** The tablet to read next, if it is cached. Like `locate` and `rangesIn`, called only while the read is not done. */
  cached(router: Router, tableId: string): AssignedTablet | undefined {
    return this.#reversed ? undefined : router.cached(tableId, this.#ranges[this.#first]!.start);
  }

  /** The tablet to read next. */
  locate(locator: Locator, tableId: string, context: RequestContext): Promise<AssignedTablet> {
    if (this.#reversed) return locator.locateBefore(tableId, this.#ranges.at(-1)?.end, context);
    return locator.locate(tableId, this.#ranges[this.#first]!.start, context);
  }

  /** The ranges left, as far as they lie in the tablet, up to the limits of one message. */
  rangesIn(tablet: RowRange): RowRange[] {
    if (this.#first === this.#ranges.length - 1) {
      const common = intersectRanges(this.#ranges[this.#first]!, tablet);
      assert(!isEmptyRange(common), TABLET_IS_READ);
      return [common];
    }
    const found: RowRange[] = [];
    const step = this.#reversed ? -1 : 1;
    let bytes = 0;
    for (
      let i = this.#reversed ? this.#ranges.length - 1 : this.#first;
      i >= this.#first && i < this.#ranges.length;
      i += step
    ) {
      const common = intersectRanges(this.#ranges[i]!, tablet);
      if (isEmptyRange(common)) break;
      found.push(common);
      bytes += common.start.length + (common.end?.length ?? 0);
      if (found.length >= MESSAGE_RANGES || bytes >= MESSAGE_KEY_BYTES) break;
    }
    assert(found.length > 0, TABLET_IS_READ);
    return this.#reversed ? found.reverse() : found;
  }

  /**
   * The part of the tablet that a read of these ranges covers: all of it, or up to where the ranges for a next message
   * begin.
   */
  partOf(tablet: RowRange, ranges: readonly RowRange[]): RowRange {
    const next = this.#reversed
      ? this.#ranges[this.#ranges.length - 1 - ranges.length]
      : this.#ranges[this.#first + ranges.length];
    if (next === undefined) return tablet;
    if (this.#reversed)
      return next.end !== undefined && next.end > tablet.start ? { start: next.end, end: tablet.end } : tablet;
    return tablet.end === undefined || next.start < tablet.end ? { start: tablet.start, end: next.start } : tablet;
  }

  /** Rows of the batch are returned. */
  advance({ fragments }: ReadBatch): void {
    const last = fragments.at(-1);
    if (last === undefined) return;
    this.insideRow = !last.last;
    if (this.#limited) for (const fragment of fragments) if (fragment.last) this.#rowsLeft--;
    const whole = last.last ? last : fragments.findLast((fragment) => fragment.last);
    if (whole) this.#passed = whole.row;
  }

  /** The whole tablet is read. */
  finish(tablet: RowRange): void {
    this.#passed = undefined;
    if (this.#reversed) this.#cutEnd(tablet.start);
    else if (tablet.end === undefined) this.#first = this.#ranges.length;
    else this.#cutStart(tablet.end);
  }

  /** Leaves only rows after the last one: used if the read of a tablet was cut short, since the part says more. */
  #passRow(): void {
    const row = this.#passed;
    if (row === undefined) return;
    this.#passed = undefined;
    if (this.#reversed) this.#cutEnd(row);
    else this.#cutStart(successor(row));
  }

  /** Leaves only rows from `start` on. */
  #cutStart(start: ByteString): void {
    this.#first = this.#firstWhere(({ end }) => end === undefined || end > start);
    const range = this.#ranges[this.#first];
    if (range !== undefined && range.start < start) this.#ranges[this.#first] = { start, end: range.end };
  }

  /** Leaves only rows below `end`. */
  #cutEnd(end: ByteString): void {
    this.#ranges.length = this.#firstWhere(({ start }) => start >= end);
    const range = this.#ranges.at(-1);
    if (range !== undefined && (range.end === undefined || range.end > end))
      this.#ranges[this.#ranges.length - 1] = { start: range.start, end };
  }

  /**
   * Index of the first remaining range for which it holds, as it does for all later ones; their number if there is
   * none.
   */
  #firstWhere(holds: (range: RowRange) => boolean): number {
    let [low, high] = [this.#first, this.#ranges.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (holds(this.#ranges[middle]!)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
