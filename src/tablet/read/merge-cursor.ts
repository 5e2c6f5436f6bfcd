/**
 * The merged read: the layers of a tablet, newest first, as one. Used like the cursor of a layer, with two differences.
 * It also walks backwards: after `seekRowBefore`, the row after the end of a row is the one before it; inside a row the
 * order is always forward. And `skipRow` leaves a row early.
 *
 * Returns either what is visible (the default: puts only, deletions applied, merge operands combined) or, with
 * `keepDeletions`, the entries of the one layer that neighbouring layers make when merged. A row is seen as of one
 * instant: SSTables never change, the cursor of a memtable holds its row, and the row ranges that the memtable hides
 * are taken in the same slice (MergeSource).
 *
 * A heap finds the next row. If only one layer has the row, which is the common case, its cursor is passed through.
 */
import { assert, type ByteString, checksInvariants, type Int64, successor } from '../../base/index.ts';
import type { Pacer } from '../../env/index.ts';
import {
  type AggregateKind,
  type ColumnKey,
  CursorState,
  EntryKind,
  type Layer,
  type LayerCursor,
} from '../../model/index.ts';
import type { ReadCredits } from '../layers/read-credits.ts';
import { type HidingCount, MergeSource, SourceHeap, isOnRow } from './merge-source.ts';
import { MergeOutcome, RowMerge } from './row-merge.ts';

/** The number of entries to step over before the pacer is called. */
export const STEPS_BEFORE_PAUSE = 256;
/** The number of entries to step over before `skipRow` seeks. */
const STEPS_BEFORE_SEEK = 4;

const EMPTY_SOURCES: readonly MergeSource[] = [];

const RowSource = { none: 0, oneLayer: 1, severalLayers: 2 } as const;
type RowSource = (typeof RowSource)[keyof typeof RowSource];

export interface MergeOptions {
  /** By the family name in columns; undefined = ordinary cells. */
  readonly aggregateOf: (family: string) => AggregateKind | undefined;
  /** Default false: only visible entries. */
  readonly keepDeletions?: boolean;
  /**
   * With a pacer, a move that steps over very many hidden entries ends in `needsLoad` when the slice of the event loop
   * is over, and `load` pauses. Without it a move has no such bound.
   */
  readonly pacer?: Pacer | undefined;
  /** The only row that will be read, if there is only one: layers then need not read what follows it. */
  readonly row?: ByteString | undefined;
  /** Counts the rows that several layers have. */
  readonly credits?: ReadCredits | undefined;
}

/** The part of a merged read that a read of rows uses. */
export type RowsCursor = Pick<
  MergeCursor,
  | 'state'
  | 'row'
  | 'column'
  | 'timestamp'
  | 'value'
  | 'seekRow'
  | 'seekRowBefore'
  | 'seekColumn'
  | 'next'
  | 'skipRow'
  | 'load'
  | 'close'
>;

export class MergeCursor implements LayerCursor {
  state: CursorState = CursorState.done;
  row: ByteString = '';
  column: ColumnKey = '';
  kind: EntryKind = EntryKind.put;
  timestamp: Int64 = 0;
  rangeEnd: Int64 | undefined;

  /** Newest first; index = age. */
  readonly #sources: readonly MergeSource[];
  readonly #hiding: HidingCount = { sources: 0 };
  readonly #heap = new SourceHeap();
  /** Sources whose next row is known after a load. */
  #pending: MergeSource[] = [];
  /** Taken for the first row that several layers have; most short reads meet none. */
  #merging: RowMerge | undefined;
  /** Undefined where the read is of one row: that look-up is counted already. */
  readonly #credits: ReadCredits | undefined;
  readonly #aggregateOf: MergeOptions['aggregateOf'];
  /** The cursor that is passed through inside a row of one layer. Its source is the top of the heap. */
  #only!: LayerCursor;
  #rowSource: RowSource = RowSource.none;
  #reversed = false;
  readonly #keepDeletions: boolean;
  readonly #pacer: Pacer | undefined;
  #yielding = false;
  #steps = 0;
  /** Only for the check of invariants: the row before, since the last seek. */
  #lastRow: ByteString | undefined;

  /** `layers`: newest first, at least one. */
  constructor(layers: readonly Layer[], options: MergeOptions) {
    assert(layers.length > 0, 'a merge has a layer at least');
    const sources = new Array<MergeSource>(layers.length);
    for (let age = 0; age < layers.length; age++)
      sources[age] = new MergeSource(layers[age]!, age, this.#hiding, options.row);
    this.#sources = sources;
    this.#keepDeletions = options.keepDeletions ?? false;
    this.#pacer = options.pacer;
    this.#aggregateOf = options.aggregateOf;
    this.#credits = options.row === undefined ? options.credits : undefined;
    if (options.row !== undefined) options.credits?.lookedUp(layers);
  }

  get #merge(): RowMerge {
    return this.#merging ?? this.#takeMerge();
  }

  #takeMerge(): RowMerge {
    return (this.#merging = RowMerge.take({
      aggregateOf: this.#aggregateOf,
      keepDeletions: this.#keepDeletions,
      budgetSpent: () => this.#budgetSpent(),
    }));
  }

  get valueLength(): number {
    return this.#rowSource === RowSource.oneLayer ? this.#only.valueLength : this.#merge.valueLength;
  }

  value(): Uint8Array {
    return this.#rowSource === RowSource.oneLayer ? this.#only.value() : this.#merge.value();
  }

  /** Moves to the first entry of the first row at or above `row`; from here on rows ascend. */
  seekRow(row: ByteString): void {
    this.#begin(false);
    for (const source of this.#sources) {
      source.seekRow(row);
      this.#enqueue(source);
    }
    this.#findRow();
  }

  /** Moves to the first entry of the last row below `row` (undefined: of all); from here on rows descend. */
  seekRowBefore(row: ByteString | undefined): void {
    this.#begin(true);
    for (const source of this.#sources) {
      source.seekRowBefore(row);
      this.#enqueue(source);
    }
    this.#findRow();
  }

  seekColumn(column: ColumnKey, timestamp?: Int64): void {
    this.#startMove();
    if (this.#rowSource === RowSource.oneLayer) {
      this.#only.seekColumn(column, timestamp);
      this.#resume();
    } else if (this.#rowSource === RowSource.severalLayers) {
      this.#merge.seekColumn(column, timestamp, this.state === CursorState.ready);
      this.#resume();
    }
  }

  next(): void {
    this.#startMove();
    if (this.#rowSource === RowSource.oneLayer) this.#only.next();
    else if (this.#rowSource === RowSource.severalLayers) this.#merge.next();
    this.#resume();
  }

  /** Moves from an entry to the next row in the present direction. */
  skipRow(): void {
    assert(this.state !== CursorState.needsLoad, 'a row is skipped by a cursor that is in it');
    this.#startMove();
    if (this.#rowSource === RowSource.oneLayer) {
      const cursor = this.#only;
      if (!this.#reversed) {
        for (let i = 0; i < STEPS_BEFORE_SEEK && isOnRow(cursor, this.row); i++) cursor.next();
        if (cursor.state === CursorState.needsLoad || isOnRow(cursor, this.row)) cursor.seekRow(successor(this.row));
      }
      this.#leaveOnlyLayer();
    } else if (this.#rowSource === RowSource.severalLayers) {
      this.#endMerge();
    }
    this.#findRow();
  }

  /** Loads everything that the present state waits for, concurrently, and continues. */
  async load(): Promise<void> {
    assert(this.state === CursorState.needsLoad, 'a cursor loads where it needs to');
    if (this.#yielding) {
      await this.#pacer?.pause();
    } else {
      const waiting = this.#rowSource === RowSource.severalLayers ? this.#merge.waitingFor() : [];
      const cursors = [...waiting, ...this.#pending].map(({ cursor }) => cursor);
      if (this.#rowSource === RowSource.oneLayer && this.#only.state === CursorState.needsLoad)
        cursors.push(this.#only);
      await Promise.all(cursors.map((cursor) => cursor.load()));
      const loaded = this.#pending;
      this.#pending = [];
      for (const source of loaded) this.#enqueue(source);
    }
    this.#startMove();
    this.#resume();
  }

  close(): void {
    for (const source of this.#sources) source.close();
    this.#merging?.release();
    this.#merging = undefined;
    this.#rowSource = RowSource.none;
    this.state = CursorState.done;
  }

  #begin(reversed: boolean): void {
    this.#reversed = reversed;
    this.#heap.reset(reversed);
    this.#lastRow = undefined;
    this.#pending = [];
    this.#rowSource = RowSource.none;
    this.#startMove();
  }

  #startMove(): void {
    this.#yielding = false;
    this.#steps = 0;
  }

  /** Continues after a move or a load. */
  #resume(): void {
    const given =
      this.#rowSource === RowSource.oneLayer
        ? this.#advanceOnly()
        : this.#rowSource === RowSource.severalLayers && this.#advanceMerge();
    if (!given) this.#findRow();
  }

  /** Moves to the first entry of the next row that has one. */
  #findRow(): void {
    for (;;) {
      if (this.#pending.length > 0) {
        this.state = CursorState.needsLoad;
        return;
      }
      const top = this.#heap.top;
      if (top === undefined) {
        this.state = CursorState.done;
        return;
      }
      if (top.parked) {
        this.#heap.pop();
        top.unpark(this.#reversed);
        this.#enqueue(top);
        continue;
      }
      if (this.#budgetSpent()) {
        this.#yield();
        return;
      }
      if (checksInvariants) this.#assertInOrder(top.row);
      this.row = top.row;
      const hiders =
        this.#hiding.sources === 0
          ? EMPTY_SOURCES
          : this.#sources.filter((source) => source.rangeOver(top.row) !== undefined);
      if (hiders.length === 0 && this.#heap.topIsOnly()) {
        this.#only = top.cursor;
        this.#rowSource = RowSource.oneLayer;
        if (this.#advanceOnly()) return;
      } else {
        this.#gather(hiders);
        if (this.#rowSource === RowSource.severalLayers && this.#advanceMerge()) return;
      }
    }
  }

  #assertInOrder(row: ByteString): void {
    const last = this.#lastRow;
    assert(last === undefined || (this.#reversed ? row < last : row > last), 'a merge returns each row once, in order');
    this.#lastRow = row;
  }

  /**
   * Takes the sources on the row out of the heap. Those that one of `hiders` hides seek past its whole range of rows.
   */
  #gather(hiders: readonly MergeSource[]): void {
    const { members } = this.#merge;
    members.length = 0;
    while (this.#heap.top?.row === this.row) {
      const source = this.#heap.pop();
      const range = hiders.find((hider) => hider.age < source.age && hider.speaksOf(source))?.rangeOver(this.row);
      if (range === undefined) {
        members.push(source);
      } else if (this.#reversed) {
        source.cursor.seekRowBefore(range.start);
        this.#enqueue(source);
      } else if (range.end !== undefined) {
        source.cursor.seekRow(range.end);
        this.#enqueue(source);
      }
    }
    if (members.length === 0) return;
    if (members.length > 1) this.#credits?.scanned(members);
    this.#rowSource = RowSource.severalLayers;
    this.#merge.start(this.row);
  }

  /** Called after the source was sent to another row, or loaded. */
  #enqueue(source: MergeSource): void {
    if (source.parked) {
      this.#heap.push(source);
      return;
    }
    if (source.cursor.state === CursorState.needsLoad) {
      this.#pending.push(source);
      return;
    }
    source.arrived();
    if (source.cursor.state === CursorState.ready) this.#heap.push(source);
  }

  /** Continues inside a row of one layer. Returns true once the state is set, false at the end of the row. */
  #advanceOnly(): boolean {
    const cursor = this.#only;
    for (;;) {
      if (cursor.state === CursorState.needsLoad) {
        this.state = CursorState.needsLoad;
        return true;
      }
      if (!isOnRow(cursor, this.row)) {
        this.#leaveOnlyLayer();
        return false;
      }
      const kind = cursor.kind;
      if (kind >= EntryKind.put || this.#keepDeletions) {
        this.column = cursor.column;
        this.kind = this.#keepDeletions ? kind : EntryKind.put;
        this.timestamp = cursor.timestamp;
        this.rangeEnd = cursor.rangeEnd;
        this.state = CursorState.ready;
        return true;
      }
      // before the move: it may reach the next row, which must be noticed in the same slice
      if (this.#budgetSpent()) {
        this.#yield();
        return true;
      }
      cursor.next();
    }
  }

  /** Moves the source at the top of the heap to its next row. Forward, its cursor is there already. */
  #leaveOnlyLayer(): void {
    const source = this.#heap.top;
    assert(
      source !== undefined && source.cursor === this.#only,
      'the layer that is passed through is the top of the heap',
    );
    this.#rowSource = RowSource.none;
    if (this.#reversed) source.cursor.seekRowBefore(this.row);
    if (source.cursor.state === CursorState.ready) {
      source.arrived();
      this.#heap.sinkTop();
    } else {
      this.#heap.pop();
      this.#enqueue(source);
    }
  }

  /** The same inside a row of several layers. */
  #advanceMerge(): boolean {
    const merge = this.#merge;
    switch (merge.advance()) {
      case MergeOutcome.ready:
        this.column = merge.column;
        this.kind = merge.kind;
        this.timestamp = merge.timestamp;
        this.rangeEnd = merge.rangeEnd;
        this.state = CursorState.ready;
        return true;
      case MergeOutcome.needsLoad:
        this.state = CursorState.needsLoad;
        return true;
      case MergeOutcome.yield:
        this.#yield();
        return true;
      case MergeOutcome.ended:
        this.#endMerge();
        return false;
    }
  }

  #endMerge(): void {
    this.#rowSource = RowSource.none;
    for (const source of this.#merge.members) {
      const cursor = source.cursor;
      if (this.#reversed) {
        cursor.seekRowBefore(this.row);
        this.#enqueue(source);
      } else if (cursor.state === CursorState.needsLoad || isOnRow(cursor, this.row)) {
        cursor.seekRow(successor(this.row));
        this.#enqueue(source);
      } else if (cursor.state === CursorState.ready) {
        // it came there in an earlier slice, and `arrived` was called in that one
        this.#heap.push(source);
      }
    }
  }

  /** True if very many entries were stepped over since the last move and the slice of the event loop is over. */
  #budgetSpent(): boolean {
    if (++this.#steps < STEPS_BEFORE_PAUSE) return false;
    this.#steps = 0;
    return this.#pacer?.due(STEPS_BEFORE_PAUSE) ?? false;
  }

  #yield(): void {
    this.#yielding = true;
    this.state = CursorState.needsLoad;
  }
}
