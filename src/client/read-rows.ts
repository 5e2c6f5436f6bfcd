/**
 * A read over all tablets that its ranges touch, in key order or against it: one read a tablet, what is left of the limit carried over. When a
 * tablet moves, the read goes on behind the last row it gave out.
 *
 * Invariant: every row is given out once and whole. A read that breaks off inside a row cannot go on, since the row may have
 * changed: it fails with UNAVAILABLE.
 */
import { BigtableError, type ByteString, Code, successor, unavailable } from '../base/index.ts';
import type { RequestContext, Transport } from '../env/index.ts';
import type { AssignedTablet, Locator } from '../locator/index.ts';
import { ALL_ROWS, intersectRanges, isEmptyRange, type Limits, normalizeRanges, type ReadBatch, type RowRange } from '../model/index.ts';
import { readTablet } from '../protocol/index.ts';
import { checkReadRows, type ReadRequest } from '../service/index.ts';
import type { Patience, Router } from './router.ts';

export interface ReadRowsParts {
  readonly router: Router;
  readonly transport: Transport;
  readonly limits: Limits;
}

export async function* readRows(parts: ReadRowsParts, context: RequestContext, request: ReadRequest): AsyncGenerator<ReadBatch, void, void> {
  const { router, transport, limits } = parts;
  checkReadRows(request, limits);
  const position = new ReadPosition(request);
  let patience: Patience | undefined;
  while (!position.done) {
    let tablet: AssignedTablet | undefined;
    try {
      const schema = await router.table(request.table);
      tablet = await router.locate(request.table, schema, (locator) => position.locate(locator, schema.id, context));
      const message = {
        tableId: schema.id,
        ranges: position.rangesIn(tablet.range),
        filter: request.filter,
        rowsLimit: position.rowsLeft,
        reversed: request.reversed === true,
      };
      for await (const batch of readTablet(transport, tablet.server.address, message, context)) {
        position.advance(batch);
        patience = undefined;
        yield batch;
      }
      position.finish(tablet.range);
    } catch (error) {
      if (!(error instanceof BigtableError && error.code === Code.UNAVAILABLE && error.retry)) throw error;
      if (position.insideRow) throw unavailable('the tablet moved in the midst of a row: read again', error);
      if (tablet) router.drop(tablet);
      patience ??= router.patience(context);
      await patience.wait(error);
      await router.refresh(request.table);
    }
  }
}

/** What is left to read. */
class ReadPosition {
  readonly #reversed: boolean;
  readonly #limited: boolean;
  /** Ranges left, those read next at the end of the list when reversed, else from `#first` on. */
  readonly #ranges: RowRange[];
  #first = 0;
  #rowsLeft: number;
  insideRow = false;

  constructor({ ranges, rowsLimit, reversed }: ReadRequest) {
    this.#reversed = reversed === true;
    this.#rowsLeft = rowsLimit ?? 0;
    this.#limited = this.#rowsLeft > 0;
    this.#ranges = normalizeRanges(ranges && ranges.length > 0 ? ranges : [ALL_ROWS]);
  }

  get done(): boolean {
    return this.#first >= this.#ranges.length || (this.#limited && this.#rowsLeft === 0);
  }

  /** 0 = no limit. */
  get rowsLeft(): number {
    return this.#rowsLeft;
  }

  /** The tablet to read next. */
  locate(locator: Locator, tableId: string, context: RequestContext): Promise<AssignedTablet> {
    if (this.#reversed) return locator.locateBefore(tableId, this.#ranges.at(-1)?.end, context);
    return locator.locate(tableId, (this.#ranges[this.#first] as RowRange).start, context);
  }

  /** The ranges left, as far as they lie in the tablet. */
  rangesIn(tablet: RowRange): RowRange[] {
    const found: RowRange[] = [];
    if (this.#reversed) {
      for (let i = this.#ranges.length - 1; i >= this.#first; i--) {
        const common = intersectRanges(this.#ranges[i] as RowRange, tablet);
        if (isEmptyRange(common)) break;
        found.push(common);
      }
      return found.reverse();
    }
    for (let i = this.#first; i < this.#ranges.length; i++) {
      const common = intersectRanges(this.#ranges[i] as RowRange, tablet);
      if (isEmptyRange(common)) break;
      found.push(common);
    }
    return found;
  }

  /** Rows of the batch are given out. */
  advance({ fragments }: ReadBatch): void {
    const last = fragments.at(-1);
    if (last === undefined) return;
    this.insideRow = !last.last;
    if (this.#limited) for (const fragment of fragments) if (fragment.last) this.#rowsLeft--;
    const whole = last.last ? last : fragments.findLast((fragment) => fragment.last);
    if (whole) this.#passRow(whole.row);
  }

  /** The whole tablet is read. */
  finish(tablet: RowRange): void {
    if (this.#reversed) this.#cutEnd(tablet.start);
    else if (tablet.end === undefined) this.#first = this.#ranges.length;
    else this.#cutStart(tablet.end);
  }

  #passRow(row: ByteString): void {
    if (this.#reversed) this.#cutEnd(row);
    else this.#cutStart(successor(row));
  }

  /** Only rows from `start` on are left. */
  #cutStart(start: ByteString): void {
    for (; this.#first < this.#ranges.length; this.#first++) {
      const range = this.#ranges[this.#first] as RowRange;
      if (range.end !== undefined && range.end <= start) continue;
      if (range.start < start) this.#ranges[this.#first] = { start, end: range.end };
      return;
    }
  }

  /** Only rows below `end` are left. */
  #cutEnd(end: ByteString): void {
    for (let range = this.#ranges.at(-1); range; range = this.#ranges.at(-1)) {
      if (range.start < end) {
        if (range.end === undefined || range.end > end) this.#ranges[this.#ranges.length - 1] = { start: range.start, end };
        return;
      }
      this.#ranges.pop();
    }
  }
}
