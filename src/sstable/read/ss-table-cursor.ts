/**
 * The LayerCursor of an SSTable: finds the block by the index, then the entry in the block. A block in the cache is entered at once; for
 * any other the cursor asks for a load and stands, until then, where it last was ready: a move made meanwhile starts from there.
 *
 * A cursor that goes on from block to block, in either direction, reads ahead, twice as much each time up to 1 MiB; one that jumps reads
 * one block. Going backwards from row to row it notes once where the rows of a block begin. A cursor of one row ends where the row does, and
 * never asks for a block that has nothing of it.
 * Moves may throw a CorruptionError where a block passed its checksum and makes no sense; a failed load may be tried again.
 */
import { assert, type ByteString, type Int64 } from '../../base/index.ts';
import { type ColumnKey, CursorState, type EntryKind, type LayerCursor } from '../../model/index.ts';
import type { Block } from './block.ts';
import { BlockCursor, giveBlockCursor, takeBlockCursor } from './block-cursor.ts';
import type { BlockIndex } from '../format/block-index.ts';
import { SeekTarget } from '../format/seek-target.ts';

/** What a cursor needs of its SSTable. */
export interface BlockSource {
  readonly index: BlockIndex;
  /** The most that a cursor may have read ahead of it. */
  readonly readAheadLimitBytes: number;
  /** The block, where it is in memory. */
  cached(block: number): Block | undefined;
  /** The block, read without a promise where that is quick. */
  readNow(block: number): Block | undefined;
  /** The block, or the page of it that holds all that it has of the row, in memory or read without a promise. */
  ofRow(block: number, row: ByteString): Block | undefined;
  /** Reads the block, and with the same read those behind it (before it, if `backwards`) that fit into `readAheadBytes` together. */
  load(block: number, readAheadBytes: number, backwards: boolean): Promise<Block>;
  /** The same, loaded. */
  loadOfRow(block: number, row: ByteString): Promise<Block>;
  /** A cursor of one row has come to it: entry `entryAt` of the block is the row's first. */
  rowFound(row: ByteString, number: number, block: Block, entryAt: number): void;
  /** A cursor of one row has found nothing. */
  rowMissed(): void;
  /** The cursor is closed. */
  closed(): void;
}

/** What is to be done in a block once it is there. */
type Arrival = 'first' | 'target' | 'rowBelowTarget';

const FIRST_READ_AHEAD_BYTES = 128 * 1024;
/** Entries that a seek inside a row walks before it uses index and restart points: most such seeks are short. */
const SHORT_WALK = 8;
const NOWHERE = -2;
/** Stands nowhere, for ever. */
const CLOSED = new BlockCursor();

export class SsTableCursor implements LayerCursor {
  state: CursorState = CursorState.done;
  readonly #source: BlockSource;
  #at = takeBlockCursor();
  readonly #target = new SeekTarget();
  /** The block that `#at` has open. */
  #block: Block | undefined;
  #blockNumber = NOWHERE;
  #readAheadBytes = 0;
  #nextReadAheadBytes = 0;
  #readsBackwards = false;
  /** The one row that there is for this cursor. */
  readonly #only: ByteString | undefined;
  #outcome: 'unknown' | 'found' | 'missed' = 'unknown';
  /** Where in a block the rows below some row begin, for going backwards: the last one is next. */
  #rowStarts: number[] = [];
  #rowStartsIn: Block | undefined;
  #rowStartsBelow: ByteString = '';
  #isReversing = false;
  /** While a load is needed: of which block, and for what. */
  #wanted = NOWHERE;
  #arrival: Arrival = 'first';
  /** Where it was last ready, while it is not. */
  #readyBlock: Block | undefined;
  #readyNumber = NOWHERE;
  #readyEntryAt = 0;
  /** Tells a load that the cursor has moved meanwhile. */
  #moves = 0;

  constructor(source: BlockSource, only?: ByteString) {
    this.#source = source;
    this.#only = only;
  }

  get row(): ByteString {
    return this.#at.row;
  }

  get column(): ColumnKey {
    return this.#at.column;
  }

  get kind(): EntryKind {
    return this.#at.kind;
  }

  get timestamp(): Int64 {
    return this.#at.timestamp;
  }

  get rangeEnd(): Int64 | undefined {
    return this.#at.rangeEnd;
  }

  get valueLength(): number {
    return this.#at.valueLength;
  }

  value(): Uint8Array {
    return this.#at.value();
  }

  seekRow(row: ByteString): void {
    this.#leave();
    this.#isReversing = false;
    if (this.#only !== undefined) return this.#seekOnly(row <= this.#only);
    this.#target.set(row);
    this.#seekTarget(0);
  }

  seekRowBefore(row: ByteString | undefined): void {
    this.#leave();
    if (this.#only !== undefined) return this.#seekOnly(row === undefined || this.#only < row);
    if (this.#isReversing && row !== undefined && this.#stepBack(row)) return;
    this.#isReversing = true;
    const { index } = this.#source;
    if (row === undefined) {
      if (index.length === 0) return this.#finish();
      this.#target.set(index.lastRow(index.length - 1));
      return this.#seekTarget(0);
    }
    // rows of a block below `row` follow from the index alone, unless the block goes on at or above it
    this.#target.set(row);
    const block = index.lastBefore(this.#target);
    if (block < 0) return this.#finish();
    if (index.compareLastRow(block, row) >= 0) return this.#enter(block, 'rowBelowTarget');
    this.#target.set(index.lastRow(block));
    this.#seekTarget(0);
  }

  seekColumn(column: ColumnKey, timestamp?: Int64): void {
    if (!this.#return()) return;
    const at = this.#at;
    this.#target.set(at.row, column, timestamp);
    if (!at.isBefore(this.#target)) return;
    this.#leave();
    for (let walked = 0; walked < SHORT_WALK; walked++) {
      if (!at.next()) return this.#seekTarget(this.#blockNumber + 1);
      if (!at.isBefore(this.#target)) return this.#land();
    }
    this.#seekTarget(this.#blockNumber);
  }

  next(): void {
    if (this.state !== CursorState.ready && !this.#return()) return;
    const { rowChanges } = this.#at;
    if (this.#at.next()) {
      if (this.#only !== undefined && this.#at.rowChanges !== rowChanges) this.#land();
      return;
    }
    this.#leave();
    this.#enter(this.#blockNumber + 1, 'first');
  }

  async load(): Promise<void> {
    if (this.state !== CursorState.needsLoad) return;
    assert(this.#at !== CLOSED, 'the cursor is open');
    const moves = this.#moves;
    const only = this.#only;
    const loading =
      only === undefined
        ? this.#source.load(this.#wanted, this.#readAheadBytes, this.#readsBackwards)
        : this.#source.loadOfRow(this.#wanted, only);
    const block = await loading;
    if (moves === this.#moves) this.#arrive(this.#wanted, block, this.#arrival);
  }

  close(): void {
    this.#moves++;
    this.state = CursorState.done;
    this.#readyBlock = undefined;
    this.#block = undefined;
    this.#blockNumber = NOWHERE;
    this.#rowStarts = [];
    this.#rowStartsIn = undefined;
    if (this.#at === CLOSED) return;
    giveBlockCursor(this.#at);
    this.#at = CLOSED;
    this.#source.closed();
  }

  /** To the beginning of the one row, if it lies in the direction of the seek. */
  #seekOnly(isThere: boolean): void {
    if (!isThere) return this.#finish();
    this.#target.set(this.#only as ByteString);
    this.#seekTarget(0);
  }

  /** One row back inside the block that is open, where that is sure to be right. */
  #stepBack(row: ByteString): boolean {
    const block = this.#block;
    if (!block) return false;
    const at = this.#at;
    if (this.#rowStartsIn !== block || this.#rowStartsBelow !== row) {
      const { starts, isLimited } = at.rowsBelow(row);
      const next = this.#blockNumber + 1;
      // the rows of this block are all below: those of the next may be, too
      if (!isLimited && next < this.#source.index.length && this.#source.index.compareFirstRow(next, row) < 0)
        return false;
      this.#rowStarts = starts;
      this.#rowStartsIn = block;
    }
    const entryAt = this.#rowStarts.pop();
    if (entryAt === undefined) return false;
    at.seekEntry(entryAt);
    this.#rowStartsBelow = at.row;
    // a block's first row may begin in the block before
    if (
      this.#rowStarts.length === 0 &&
      this.#blockNumber > 0 &&
      this.#source.index.compareLastRow(this.#blockNumber - 1, at.row) === 0
    )
      return false;
    this.state = CursorState.ready;
    return true;
  }

  /** Stands on an entry. For a cursor of one row that may be the end. */
  #land(): void {
    this.state = CursorState.ready;
    const only = this.#only;
    if (only === undefined) return;
    if (!this.#at.isIn(only)) return this.#finish();
    if (this.#outcome !== 'unknown') return;
    this.#outcome = 'found';
    this.#source.rowFound(only, this.#blockNumber, this.#block as Block, this.#at.entryAt);
  }

  /** Before every move: remembers where it was ready. */
  #leave(): void {
    this.#moves++;
    if (this.state !== CursorState.ready) return;
    this.#readyBlock = this.#block;
    this.#readyNumber = this.#blockNumber;
    this.#readyEntryAt = this.#at.entryAt;
  }

  /** Where a load is needed, goes back to where it was ready. False when there is nothing in this direction. */
  #return(): boolean {
    if (this.state === CursorState.ready) return true;
    if (this.state === CursorState.done) return false;
    assert(this.#readyBlock, 'a move from entry to entry needs an entry to start from: load first');
    this.#moves++;
    this.#open(this.#readyNumber, this.#readyBlock);
    this.#at.seekEntry(this.#readyEntryAt);
    this.state = CursorState.ready;
    return true;
  }

  #finish(): void {
    this.#moves++;
    this.state = CursorState.done;
    this.#readyBlock = undefined;
    if (this.#only === undefined || this.#outcome !== 'unknown') return;
    this.#outcome = 'missed';
    this.#source.rowMissed();
  }

  /** To the first entry that is not before the target; none in a block before `from` is one. */
  #seekTarget(from: number): void {
    const { index } = this.#source;
    const block = index.lastBefore(this.#target, from);
    if (block < from || index.compareLastRow(block, this.#target.row) < 0) this.#enter(block + 1, 'first');
    else this.#enter(block, 'target');
  }

  #enter(number: number, arrival: Arrival): void {
    const { index } = this.#source;
    if (number >= index.length) return this.#finish();
    if (this.#only !== undefined && index.compareFirstRow(number, this.#only) > 0) return this.#finish();
    if (number === this.#blockNumber && this.#block) return this.#arrive(number, this.#block, arrival);
    this.#planReadAhead(number);
    const source = this.#source;
    const only = this.#only;
    const block =
      only === undefined
        ? (source.cached(number) ?? (this.#readAheadBytes === 0 ? source.readNow(number) : undefined))
        : source.ofRow(number, only);
    if (block) return this.#arrive(number, block, arrival);
    this.#wanted = number;
    this.#arrival = arrival;
    this.state = CursorState.needsLoad;
  }

  /** Reading ahead pays where blocks follow one another in the direction of the scan. */
  #planReadAhead(number: number): void {
    const forwards = number === this.#blockNumber + 1;
    const backwards = number === this.#blockNumber - 1;
    const goesOn = this.#only === undefined && (this.#isReversing ? backwards : forwards);
    this.#readAheadBytes = goesOn ? this.#nextReadAheadBytes : 0;
    this.#readsBackwards = backwards;
    if (goesOn) this.#nextReadAheadBytes = Math.min(this.#nextReadAheadBytes * 2, this.#source.readAheadLimitBytes);
    // going backwards it looks behind each row's end, into the block it came from
    else if (!forwards) this.#nextReadAheadBytes = Math.min(FIRST_READ_AHEAD_BYTES, this.#source.readAheadLimitBytes);
  }

  #arrive(number: number, block: Block, arrival: Arrival): void {
    const at = this.#at;
    this.#open(number, block);
    if (arrival === 'first') {
      at.next();
    } else if (arrival === 'rowBelowTarget') {
      this.#target.set(at.lastRowBelow(this.#target.row));
      return this.#seekTarget(0);
    } else if (!at.seek(this.#target)) {
      return this.#enter(number + 1, 'first');
    }
    this.#land();
  }

  #open(number: number, block: Block): void {
    this.#at.open(block);
    this.#block = block;
    this.#blockNumber = number;
  }
}
