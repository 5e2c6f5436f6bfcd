/**
 * One read of one tablet: walks the merged view of the layers over the given ranges, applies garbage collection and the
 * filter, and returns batches of row fragments.
 *
 * The walk is synchronous between loads of blocks: it stops for a load, for a full batch, or at the end of its slice of
 * the event loop (search.ts). It never builds a row: cells leave in fragments, and it seeks past what the filter, the
 * columns or the GC rule exclude (docs/ARCHITECTURE.md, "A write and a read, end to end"). Hot path: fields instead of
 * objects, no generator.
 */
import {
  assert,
  BigtableError,
  type ByteString,
  Code,
  INT64_MIN,
  type Int64,
  successor,
  toBigInt,
} from '../../base/index.ts';
import { type CallNotes, type Clock, checkContext, type Counter, Pacer, type RequestContext } from '../../env/index.ts';
import { type ColumnSpan, type FilterProgram, type FilterRun, Hint } from '../../filter/index.ts';
import {
  type AggregateKind,
  type Cell,
  type ColumnKey,
  CursorState,
  familyEnd,
  familyOf,
  type Layer,
  type ReadBatch,
  type RowFragment,
  rangeContains,
  rowOfRange,
  type RowRange,
} from '../../model/index.ts';
import { KeptVersions } from './kept-versions.ts';
import type { ReadCredits } from '../layers/read-credits.ts';
import { layersForRow } from '../layers/layer-set.ts';
import type { RowsCursor } from './merge-cursor.ts';
import { cursorOver } from './one-row-cursor.ts';
import type { ReadFamilies, ReadFamily } from './read-families.ts';
import type { Search } from './search.ts';

const DEFAULT_BATCH_BYTES = 256 * 1024;
/** A batch is full when it has this many cells, or the bytes of `batchBytes`. */
const BATCH_CELLS = 4096;
/** The number of entries to step over before a seek is cheaper. */
const STEPS_BEFORE_SEEK = 4;

/** Units of a filter's work that count as one item for the pacer. */
const UNITS_PER_ITEM = 16;
/** Items that a slice of a busy filter counts as: the pacer checks the clock after each. */
const BUSY_ITEMS = 64;

const Stop = { load: 0, batch: 1, pause: 2, done: 3 } as const;
type Stop = (typeof Stop)[keyof typeof Stop];

/** The call of the filter that has not ended; the walk waits for it. */
const Busy = { no: 0, startingRow: 1, pushing: 2, endingRow: 3 } as const;
type Busy = (typeof Busy)[keyof typeof Busy];

export interface RowReaderOptions {
  readonly layers: readonly Layer[];
  /** Sorted, disjoint. */
  readonly ranges: readonly RowRange[];
  /** The only row of the ranges, if they hold only one. */
  readonly row: ByteString | undefined;
  readonly reversed: boolean;
  /** 0 = none. */
  readonly rowsLimit: number;
  readonly families: ReadFamilies;
  readonly program: FilterProgram;
  readonly clock: Clock;
  readonly context: RequestContext;
  readonly credits: ReadCredits;
  /**
   * Counters of blocks found in memory, and not found, by all reads of the server: what this read adds within a slice
   * is its own.
   */
  readonly blockHits: Counter;
  readonly blockMisses: Counter;
  /** Most bytes of values that a filter may hold back inside a row. */
  readonly heldBytesLimit: number;
  /** A batch is full when its values reach this. Default: 256 KiB. */
  readonly batchBytes?: number | undefined;
}

export class RowReader implements Search {
  #cursor: RowsCursor;
  #layers: readonly Layer[];
  /** The cursor sees one row, in only those layers that may have it. */
  #isAtRow = false;
  readonly #aggregateOf: (stored: string) => AggregateKind | undefined;
  readonly #credits: ReadCredits;
  readonly #ranges: readonly RowRange[];
  readonly #onlyRow: ByteString | undefined;
  readonly #reversed: boolean;
  readonly #versions: KeptVersions;
  readonly #spans: readonly ColumnSpan[] | undefined;
  readonly #newestEnd: Int64 | undefined;
  readonly #oldest: Int64 | undefined;
  readonly #run: FilterRun;
  readonly #clock: Clock;
  readonly #context: RequestContext;
  readonly #notes: CallNotes | undefined;
  readonly #blockHits: Counter;
  readonly #blockMisses: Counter;
  /** Not in `#notes` yet. */
  #rowsScanned = 0;
  readonly #pacer: Pacer;
  readonly #heldBytesLimit: number;
  readonly #fullBytes: number;
  readonly #itemsPerCell: number;
  readonly #work: { readonly units: number };
  /** Units of `#work` that the pacer has counted. */
  #workSeen: number;
  /** Most bytes that a filter may make of one row by copying its cells. */
  readonly #copiedBytesLimit: number;
  #rowsLeft: number;

  #ended = false;
  /** True once the cursor is closed. */
  #isReleased = false;
  /** True if a pause comes before the walk continues. */
  #yielding = false;
  #rangeIndex = 0;
  #range: RowRange | undefined;

  #inRow = false;
  #row: ByteString = '';
  #rowGaveCells = false;
  #column: ColumnKey | undefined;
  #qualifier: ByteString = '';
  #span = 0;

  #busy: Busy = Busy.no;
  /**
   * Cells of the row that are not in a fragment yet. A push may return more than a batch; cells from `#counted` on wait
   * for the next one.
   */
  #cells: Cell[] = [];
  #counted = 0;
  /** Bytes of the row returned so far. */
  #rowBytes = 0;
  #fragments: RowFragment[] = [];
  #batchBytes = 0;
  #batchCells = 0;
  #scannedTo: ByteString | undefined;
  /** The last row that was read to its end. */
  #scanned: ByteString | undefined;

  constructor(options: RowReaderOptions) {
    this.#aggregateOf = options.families.aggregateOf;
    this.#pacer = new Pacer(options.clock);
    this.#credits = options.credits;
    this.#ranges = options.ranges;
    this.#onlyRow = options.row;
    this.#layers = options.layers;
    this.#cursor = this.#cursorOver(options.layers, options.row);
    this.#reversed = options.reversed;
    this.#rowsLeft = options.rowsLimit === 0 ? Number.POSITIVE_INFINITY : options.rowsLimit;
    this.#versions = new KeptVersions(options.families);
    this.#spans = options.program.columnSpans && options.families.storedSpans(options.program.columnSpans);
    this.#newestEnd = options.program.timestamps?.end;
    this.#oldest = options.program.timestamps?.start;
    this.#run = options.program.run();
    this.#clock = options.clock;
    this.#context = options.context;
    this.#notes = options.context.notes;
    this.#blockHits = options.blockHits;
    this.#blockMisses = options.blockMisses;
    this.#heldBytesLimit = options.heldBytesLimit;
    this.#fullBytes = options.batchBytes ?? DEFAULT_BATCH_BYTES;
    this.#itemsPerCell = 1 + Math.floor(options.program.unitsPerCell / UNITS_PER_ITEM);
    this.#work = options.program.work;
    this.#workSeen = this.#work.units;
    this.#copiedBytesLimit = options.program.copies ? options.heldBytesLimit : Number.POSITIVE_INFINITY;
  }

  /** Walks to the end of the next batch, or of the read: `takeBatch` returns it. */
  advance(): boolean {
    if (this.#ended || this.#yielding) return this.#ended;
    const stop = this.#walk();
    if (stop === Stop.load) return false;
    if (stop === Stop.done) this.close();
    // a pause comes after the batch that is ready
    else this.#yielding = stop === Stop.pause;
    assert(stop !== Stop.batch || this.#hasBatch, 'a batch that is full has rows');
    return this.#ended || this.#hasBatch;
  }

  async load(): Promise<void> {
    if (this.#yielding) await this.#pacer.pause();
    else await this.#load();
    this.#yielding = false;
    if (!this.#ended) checkContext(this.#context, this.#clock);
  }

  /** Closes the cursor. */
  close(): void {
    this.#ended = true;
    if (!this.#isReleased) this.#cursor.close();
    this.#isReleased = true;
  }

  /** True once the last batch was returned. */
  get ended(): boolean {
    return this.#ended;
  }

  /** True between rows: the layers may be released, and others taken. */
  get isBetweenRows(): boolean {
    return !this.#inRow;
  }

  /** Releases the layers, between two rows and two pulls. */
  releaseLayers(): void {
    assert(!this.#inRow && !this.#isReleased, 'a read leaves its layers between rows, once');
    this.#cursor.close();
    this.#isReleased = true;
  }

  /** Continues after the last row over newer layers. Called after `releaseLayers`. */
  takeLayers(layers: readonly Layer[]): void {
    assert(this.#isReleased && !this.#ended, 'a read takes layers when it has none');
    this.#layers = layers;
    this.#cursor = this.#cursorOver(layers, this.#onlyRow);
    this.#isAtRow = false;
    this.#isReleased = false;
    const range = this.#range;
    const last = this.#scanned;
    if (range === undefined) return;
    const from = last !== undefined && rangeContains(range, last) ? last : undefined;
    if (this.#reversed) this.#cursor.seekRowBefore(from ?? range.end);
    else this.#cursor.seekRow(from === undefined ? range.start : successor(from));
  }

  async #load(): Promise<void> {
    const notes = this.#notes;
    if (notes === undefined) return this.#cursor.load();
    const startMs = this.#clock.monotonicMs();
    await this.#cursor.load();
    notes.loads++;
    notes.loadMs += this.#clock.monotonicMs() - startMs;
  }

  /** Walks on for one slice and notes its counters: within a slice no other read requests blocks. */
  #walk(): Stop {
    const notes = this.#notes;
    const hits = this.#blockHits;
    const misses = this.#blockMisses;
    const hitsBefore = hits.value;
    const missesBefore = misses.value;
    if (this.#rangeIndex === 0) this.#nextRange();
    const stop = this.#advance();
    if (notes === undefined) return stop;
    notes.blockHits += hits.value - hitsBefore;
    notes.blockMisses += misses.value - missesBefore;
    notes.rowsScanned += this.#rowsScanned;
    this.#rowsScanned = 0;
    return stop;
  }

  #cursorOver(layers: readonly Layer[], row: ByteString | undefined): RowsCursor {
    return cursorOver(layers, row, this.#aggregateOf, this.#pacer, this.#credits);
  }

  get #hasBatch(): boolean {
    return this.#fragments.length > 0 || this.#scannedTo !== undefined;
  }

  /** The batch, after `advance` has returned true; undefined at the end. */
  takeBatch(): ReadBatch | undefined {
    if (!this.#hasBatch) return undefined;
    const batch: ReadBatch =
      this.#scannedTo === undefined
        ? { fragments: this.#fragments }
        : { fragments: this.#fragments, scannedTo: this.#scannedTo };
    this.#fragments = [];
    this.#scannedTo = undefined;
    this.#batchBytes = 0;
    this.#batchCells = 0;
    return batch;
  }

  #nextRange(): boolean {
    const at = this.#reversed ? this.#ranges.length - 1 - this.#rangeIndex : this.#rangeIndex;
    this.#range = this.#ranges[at];
    this.#rangeIndex++;
    if (this.#range === undefined) return false;
    if (this.#ranges.length > 1) this.#chooseCursor(this.#range);
    if (this.#reversed) this.#cursor.seekRowBefore(this.#range.end);
    else this.#cursor.seekRow(this.#range.start);
    return true;
  }

  /**
   * With several ranges, each range of one row is read by a cursor of its own. Layers then say whether they have that
   * row (files by their Bloom filters), and nothing after the row is read.
   */
  #chooseCursor(range: RowRange): void {
    const row = rowOfRange(range);
    if (row === undefined && !this.#isAtRow) return;
    this.#cursor.close();
    this.#isAtRow = row !== undefined;
    this.#cursor = this.#cursorOver(
      row === undefined ? this.#layers : layersForRow(this.#layers, row, this.#spans),
      row,
    );
  }

  /** Walks on until there is a reason to stop. */
  #advance(): Stop {
    for (;;) {
      if (this.#counted < this.#cells.length && this.#fillsBatch()) return Stop.batch;
      if (this.#busy !== Busy.no) {
        this.#resumeFilter();
        if (this.#fillsBatch()) return Stop.batch;
        if (this.#pacer.due(BUSY_ITEMS)) return Stop.pause;
        continue;
      }
      // another range may have another cursor
      const cursor = this.#cursor;
      if (!this.#inRow && (this.#range === undefined || this.#rowsLeft <= 0)) return Stop.done;
      if (cursor.state === CursorState.needsLoad) return Stop.load;
      if (!this.#inRow) {
        if (cursor.state === CursorState.done || this.#isOutside(cursor.row)) {
          if (!this.#nextRange()) return Stop.done;
          if (this.#pacer.due()) return Stop.pause;
          continue;
        }
        this.#startRow();
        if (!this.#inRow || this.#busy !== Busy.no) {
          if (this.#isDue()) return Stop.pause;
          continue;
        }
      }
      if (cursor.state === CursorState.done || cursor.row !== this.#row) this.#endRow();
      else this.#visitCell();
      if (this.#fillsBatch()) return Stop.batch;
      if (this.#isDue()) return Stop.pause;
    }
  }

  /** True if a pause is due, after a cell or a row. */
  #isDue(): boolean {
    const units = this.#work.units;
    if (units === this.#workSeen) return this.#pacer.due(this.#itemsPerCell);
    const items = this.#itemsPerCell + Math.ceil((units - this.#workSeen) / UNITS_PER_ITEM);
    this.#workSeen = units;
    return this.#pacer.due(items);
  }

  #isOutside(row: ByteString): boolean {
    const range = this.#range!;
    return this.#reversed ? row < range.start : range.end !== undefined && row >= range.end;
  }

  /** Begins a row, unless the filter refuses it by its key. */
  #startRow(): void {
    assert(this.#counted === this.#cells.length, 'a row begins when the one before is in a fragment');
    this.#inRow = true;
    this.#rowsScanned++;
    this.#row = this.#cursor.row;
    this.#rowGaveCells = false;
    this.#rowBytes = 0;
    this.#column = undefined;
    this.#span = 0;
    this.#onHint(Busy.startingRow, this.#run.startRow(this.#row));
  }

  #endRow(): void {
    this.#onHint(Busy.endingRow, this.#run.endRow(this.#cells));
  }

  /** Resumes the call that the filter did not end in one slice. */
  #resumeFilter(): void {
    this.#onHint(this.#busy, this.#run.resume(this.#cells));
  }

  /** Acts on the result of a call of the filter, or of its rest. */
  #onHint(call: Busy, hint: Hint): void {
    if (this.#run.heldBytes > this.#heldBytesLimit) {
      throw new BigtableError(
        Code.RESOURCE_EXHAUSTED,
        `the filter holds back more than ${this.#heldBytesLimit} bytes of one row`,
      );
    }
    if (hint === Hint.busy) {
      this.#busy = call;
      return;
    }
    this.#busy = Busy.no;
    if (call === Busy.pushing) this.#afterCell(hint);
    else if (call === Busy.endingRow) this.#rowEnded();
    else if (hint === Hint.skipRow) this.#refuseRow();
  }

  #refuseRow(): void {
    this.#inRow = false;
    this.#scannedTo = this.#row;
    this.#scanned = this.#row;
    this.#cursor.skipRow();
  }

  #rowEnded(): void {
    this.#countCells();
    if (this.#counted < this.#cells.length) {
      // more than the batch takes: the row ends in a later one
      this.#busy = Busy.endingRow;
      return;
    }
    this.#inRow = false;
    this.#scannedTo = this.#row;
    this.#scanned = this.#row;
    if (this.#cells.length > 0 || this.#rowGaveCells) {
      this.#takeFragment(true);
      this.#rowsLeft--;
      assert(this.#rowsLeft >= 0, 'a read returns no more rows than it may');
    }
  }

  /** Moves the counted cells to a fragment. */
  #takeFragment(last: boolean): void {
    if (!last && this.#counted === 0) return;
    const cells = this.#cells;
    this.#cells = cells.length > this.#counted ? cells.splice(this.#counted) : [];
    this.#counted = 0;
    this.#fragments.push({ row: this.#row, cells, last });
    this.#rowGaveCells = true;
  }

  get #isFull(): boolean {
    return this.#batchBytes >= this.#fullBytes || this.#batchCells >= BATCH_CELLS;
  }

  /** True if the batch is full with the present cells; those of the present row that it takes are in it then. */
  #fillsBatch(): boolean {
    if (this.#counted < this.#cells.length) this.#countCells();
    if (!this.#isFull) return false;
    if (this.#inRow) this.#takeFragment(false);
    return true;
  }

  /** Counts cells for the batch until it is full. */
  #countCells(): void {
    for (; this.#counted < this.#cells.length && !this.#isFull; this.#counted++) {
      const cell = this.#cells[this.#counted]!;
      const bytes = cell.value.length + cell.qualifier.length + 16;
      this.#batchBytes += bytes;
      this.#rowBytes += bytes;
      this.#batchCells++;
    }
    if (this.#rowBytes > this.#copiedBytesLimit) {
      throw new BigtableError(
        Code.RESOURCE_EXHAUSTED,
        `the filter makes more than ${this.#copiedBytesLimit} bytes of one row, by copies of its cells`,
      );
    }
  }

  #visitCell(): void {
    const cursor = this.#cursor;
    assert(this.#busy === Busy.no, 'a filter that is busy takes no cell');
    const column = cursor.column;
    if (column !== this.#column && !this.#enterColumn(column)) return;
    const family = this.#versions.family!;
    const timestamp = cursor.timestamp;
    if (!this.#versions.keeps(timestamp)) return this.#skipColumn(column);
    if (this.#newestEnd !== undefined && timestamp >= this.#newestEnd)
      return this.#skipNewer(column, family, this.#newestEnd);
    if (this.#oldest !== undefined && timestamp < this.#oldest) return this.#skipColumn(column);
    const hint = this.#run.push(
      { family: family.name, qualifier: this.#qualifier, timestamp, value: cursor.value() },
      this.#cells,
    );
    this.#onHint(Busy.pushing, hint);
  }

  /** Continues from the cell that the filter has received. */
  #afterCell(hint: Hint): void {
    if (hint === Hint.next) this.#cursor.next();
    else if (hint === Hint.skipColumn) this.#skipColumn(this.#column!);
    else this.#cursor.skipRow();
  }

  /** Enters a new column; returns false after seeking past it. */
  #enterColumn(column: ColumnKey): boolean {
    if (this.#spans !== undefined && !this.#insideSpans(column, this.#spans)) return false;
    const stored = familyOf(column);
    if (!this.#versions.enterColumn(stored)) {
      // a family that was dropped: its bytes wait for a compaction
      this.#cursor.seekColumn(familyEnd(stored));
      return false;
    }
    this.#column = column;
    this.#qualifier = column.slice(stored.length + 1);
    return true;
  }

  #insideSpans(column: ColumnKey, spans: readonly ColumnSpan[]): boolean {
    let span = spans[this.#span];
    while (span !== undefined && span.end !== undefined && column >= span.end) span = spans[++this.#span];
    if (span === undefined) {
      this.#cursor.skipRow();
      return false;
    }
    if (column < span.start) {
      this.#cursor.seekColumn(span.start);
      return false;
    }
    return true;
  }

  /** Skips versions that are newer than the range of the filter. */
  #skipNewer(column: ColumnKey, family: ReadFamily, end: Int64): void {
    // a rule that counts versions must see each of them; no rule keeps more than it counts
    if (family.countsVersions || end === INT64_MIN) this.#cursor.next();
    else this.#cursor.seekColumn(column, typeof end === 'number' ? end - 1 : toBigInt(end) - 1n);
  }

  #skipColumn(column: ColumnKey): void {
    const cursor = this.#cursor;
    for (let i = 0; i < STEPS_BEFORE_SEEK; i++) {
      cursor.next();
      if (cursor.state !== CursorState.ready || cursor.column !== column || cursor.row !== this.#row) return;
    }
    cursor.seekColumn(`${column}\0`);
  }
}
