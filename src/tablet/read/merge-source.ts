/**
 * One layer in a merged read: its cursor, and the rows that it hides in older layers. And the heap that orders sources
 * by their row, newest layer first if rows are equal.
 */
import { assert, type ByteString, successor } from '../../base/index.ts';
import { CursorState, type Layer, type LayerCursor, type RowRangeDeletion } from '../../model/index.ts';

const EMPTY_DELETIONS: readonly RowRangeDeletion[] = [];

/** The number of sources of a merge that hide row ranges: mostly 0, and then no source is searched. */
export interface HidingCount {
  sources: number;
}

export class MergeSource {
  readonly layer: Layer;
  readonly #row: ByteString | undefined;
  #cursor: LayerCursor | undefined;
  /** 0 = the newest layer. */
  readonly age: number;
  /** The row at which the cursor last arrived; the row at which a parked source will arrive. */
  row: ByteString = '';
  /**
   * The layer never changes and its nearest row is known: the cursor seeks only when the merge comes to that row, so
   * that a short scan of many layers that do not overlap reads only those that it reaches.
   */
  parked = false;
  /**
   * Row ranges that this layer hides, as of the slice in which the cursor arrived. A memtable that drops rows changes
   * both in one slice: taken at different times they would show a row that never was (its old cells in older layers
   * only).
   */
  deletions: readonly RowRangeDeletion[] = EMPTY_DELETIONS;
  readonly #hiding: HidingCount;

  /** `row`: the only row that will be read, if there is only one. */
  constructor(layer: Layer, age: number, hiding: HidingCount, row?: ByteString) {
    this.layer = layer;
    this.#hiding = hiding;
    this.#row = row;
    this.age = age;
  }

  /** Made when it is first needed; never for a source that stays parked. */
  get cursor(): LayerCursor {
    return (this.#cursor ??= this.#open());
  }

  close(): void {
    this.#cursor?.close();
  }

  #open(): LayerCursor {
    const row = this.#row;
    return (row === undefined ? undefined : this.layer.rowCursor?.(row)) ?? this.layer.cursor();
  }

  /** Seeks the first row at or above `row`, or parks. */
  seekRow(row: ByteString): void {
    const { firstRow } = this.layer;
    this.parked = firstRow !== undefined && firstRow > row;
    if (firstRow !== undefined && this.parked) this.#park(firstRow);
    else this.cursor.seekRow(row);
  }

  /** Seeks the last row below `row` (undefined: of all), or parks. */
  seekRowBefore(row: ByteString | undefined): void {
    const { lastRow } = this.layer;
    this.parked = lastRow !== undefined && (row === undefined || lastRow < row);
    if (lastRow !== undefined && this.parked) this.#park(lastRow);
    else this.cursor.seekRowBefore(row);
  }

  /** Seeks the row that it was parked for. */
  unpark(reversed: boolean): void {
    assert(this.parked, 'a layer that is not parked is on a row');
    this.parked = false;
    if (reversed) this.cursor.seekRowBefore(successor(this.row));
    else this.cursor.seekRow(this.row);
  }

  #park(row: ByteString): void {
    this.row = row;
    this.#takeDeletions();
  }

  /** Called once, in the slice in which the cursor arrives at a row. */
  arrived(): void {
    if (this.cursor.state === CursorState.ready) this.row = this.cursor.row;
    this.#takeDeletions();
  }

  #takeDeletions(): void {
    const now = this.layer.rowRangeDeletions();
    if (now === this.deletions) return;
    this.#hiding.sources += Number(now.length > 0) - Number(this.deletions.length > 0);
    assert(this.#hiding.sources >= 0, 'no more layers hide rows than there are');
    this.deletions = now;
  }

  /**
   * True if the row deletions of this layer apply to that older one: those of a file do not apply to files of other
   * locality groups.
   */
  speaksOf(older: MergeSource): boolean {
    const { group } = this.layer;
    return group === undefined || group === older.layer.group;
  }

  /** The range of `deletions` that covers the row. */
  rangeOver(row: ByteString): RowRangeDeletion | undefined {
    const ranges = this.deletions;
    let low = 0;
    let high = ranges.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (ranges[middle]!.start <= row) low = middle + 1;
      else high = middle;
    }
    const range = ranges[low - 1];
    return range !== undefined && (range.end === undefined || row < range.end) ? range : undefined;
  }
}

/** True if the cursor is on an entry of the row. A cursor that needs a load may be on one as well. */
export function isOnRow(cursor: LayerCursor, row: ByteString): boolean {
  return cursor.state === CursorState.ready && cursor.row === row;
}

export class SourceHeap {
  readonly #items: MergeSource[] = [];
  #reversed = false;

  /** Empties the heap; from now on the largest row comes first if `reversed`. */
  reset(reversed: boolean): void {
    if (this.#items.length > 0) this.#items.length = 0;
    this.#reversed = reversed;
  }

  get top(): MergeSource | undefined {
    return this.#items[0];
  }

  /** True if no other source is on the row of the top. */
  topIsOnly(): boolean {
    const items = this.#items;
    if (items.length === 1) return true;
    const row = items[0]!.row;
    return items[1]!.row !== row && (items.length === 2 || items[2]!.row !== row);
  }

  push(source: MergeSource): void {
    const items = this.#items;
    let at = items.length;
    items.push(source);
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      const above = items[parent]!;
      if (!this.#before(source, above)) break;
      items[at] = above;
      at = parent;
    }
    items[at] = source;
  }

  pop(): MergeSource {
    const items = this.#items;
    const [top] = items;
    assert(top !== undefined, 'a heap that is empty has no top');
    const last = items.pop()!;
    if (items.length > 0) {
      items[0] = last;
      this.sinkTop();
    }
    return top;
  }

  /** Called after the row of the top changed: moves the top to its position. */
  sinkTop(): void {
    const items = this.#items;
    const length = items.length;
    const source = items[0]!;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= length) break;
      let child = items[below]!;
      if (below + 1 < length) {
        const other = items[below + 1]!;
        if (this.#before(other, child)) {
          child = other;
          below++;
        }
      }
      if (!this.#before(child, source)) break;
      items[at] = child;
      at = below;
    }
    items[at] = source;
  }

  #before(a: MergeSource, b: MergeSource): boolean {
    // parked ones first: every source with the row must arrive there before it is merged
    if (a.row === b.row) return a.parked === b.parked ? a.age < b.age : a.parked;
    return this.#reversed ? a.row > b.row : a.row < b.row;
  }
}
