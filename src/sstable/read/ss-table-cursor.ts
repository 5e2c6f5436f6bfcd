/**
 * The LayerCursor of an SSTable: finds the block by the index, then the entry in the block. It enters a block in memory
 * immediately; for any other it needs a load, and until then stays at the entry where it was last ready: a move made
 * meanwhile starts from there.
 *
 * A cursor that moves from block to block, in either direction, reads ahead, twice as much each time up to 1 MiB; one
 * that jumps reads one block. Going backwards from row to row, it notes once where the rows of a block begin. A cursor
 * of one row ends after that row, and never requests a block that has nothing of it.
 *
 * Moves throw a CorruptionError if a block passed its checksum and is malformed. A failed load may be retried.
 */
import { assert, type ByteString, type Int64 } from '../../base/index.ts';
import { type ColumnKey, CursorState, type EntryKind, type LayerCursor } from '../../model/index.ts';
import type { Block } from './block.ts';
import { BlockCursor, giveBlockCursor, takeBlockCursor } from './block-cursor.ts';
import type { BlockIndex } from '../format/block-index.ts';
import { blockOf, isAfterRestart, NO_POSITION, restartOf, type RowPosition } from './row-positions.ts';
import { SeekTarget } from '../format/seek-target.ts';

/** Where a cursor gets its blocks: its SSTable. */
export interface BlockSource {
  /** Undefined while it is not in memory. It stays there while a cursor is open. */
  readonly index: BlockIndex | undefined;
  /** Reads the index. */
  loadIndex(): Promise<void>;
  /** The most that a cursor may read ahead: less while there are many cursors. */
  readAheadLimitBytes(): number;
  /** The block, if it is in memory. */
  cached(block: number): Block | undefined;
  /** The block, if it can be read synchronously. */
  readNow(block: number): Block | undefined;
  /** The block, or the page that holds all that the block has of the row, if in memory or readable synchronously. */
  ofRow(block: number, row: ByteString): Block | undefined;
  /**
   * Reads the block, and with the same read those after it (before it, if `backwards`) that fit into `readAheadBytes`
   * together.
   */
  load(block: number, readAheadBytes: number, backwards: boolean): Promise<Block>;
  /** Where the row surely lies if the file has it, or probably; NO_POSITION if that is not known. */
  positionOf(row: ByteString): RowPosition;
  /** Like `ofRow`, with an awaited read. */
  loadOfRow(block: number, row: ByteString): Promise<Block>;
  /** Called when a cursor of one row has found it: its first entry begins at `entryAt` of the block. */
  rowFound(row: ByteString, number: number, block: Block, entryAt: number): void;
  /** Called when a cursor of one row has found nothing. */
  rowMissed(): void;
  /** Called when the cursor is closed. `isScan`: it is not one of a single row. */
  closed(isScan: boolean): void;
}

/** What to do in a block that the cursor enters: go to its first entry, to the target, or below the target's row. */
type Arrival = 'first' | 'target' | 'rowBelowTarget';

const FIRST_READ_AHEAD_BYTES = 128 * 1024;
/** Entries that a seek in a row walks before it uses index and restart points: most such seeks are short. */
const SHORT_WALK = 8;
const NO_BLOCK = -2;
/** Wanted in place of a block: the index. */
const THE_INDEX = -3;
/** Replaces the block cursor of a closed cursor. It never has a block. */
const CLOSED = new BlockCursor();

export class SsTableCursor implements LayerCursor {
  state: CursorState = CursorState.done;
  readonly #source: BlockSource;
  /** Undefined until it is loaded; the first move waits for it. */
  #index: BlockIndex | undefined;
  #at = takeBlockCursor();
  readonly #target = new SeekTarget();
  /** The block that `#at` has open. */
  #block: Block | undefined;
  #blockNumber = NO_BLOCK;
  #readAheadBytes = 0;
  #nextReadAheadBytes = 0;
  #readsBackwards = false;
  /** The row of a cursor over one row. */
  readonly #only: ByteString | undefined;
  #outcome: 'unknown' | 'found' | 'missed' = 'unknown';
  /**
   * For going backwards: offsets in `#rowStartsIn` at which the rows below `#rowStartsBelow` begin. The last one is
   * next.
   */
  #rowStarts: number[] = [];
  #rowStartsIn: Block | undefined;
  #rowStartsBelow: ByteString = '';
  #isReversing = false;
  /**
   * Going backwards: the block that was open before. A reader that looks past the end of a block's last row returns to
   * it: no request to the cache, which would take it for a use by another scan.
   */
  #leftBlock: Block | undefined;
  #leftNumber = NO_BLOCK;
  /** While a load is needed: the block, and what to do in it. */
  #wanted = NO_BLOCK;
  #arrival: Arrival = 'first';
  /** While the index is needed: the move that is made then. */
  #moveToMake: (() => void) | undefined;
  /** While it is not ready: the entry at which it last was. */
  #readyBlock: Block | undefined;
  #readyNumber = NO_BLOCK;
  #readyEntryAt = 0;
  /** Grows with each move: a load that ends after a later move has no effect. */
  #moves = 0;

  constructor(source: BlockSource, only?: ByteString) {
    this.#source = source;
    this.#index = source.index;
    this.#only = only;
  }

  get row(): ByteString {
    return this.#at.row;
  }

  expectRow(row: ByteString): void {
    this.#at.expectRow(row);
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
    this.#beginMove();
    if (this.#index === undefined) return this.#wantIndex(() => this.seekRow(row));
    this.#isReversing = false;
    if (this.#only !== undefined) return this.#seekOnlyRow(row <= this.#only);
    this.#target.set(row);
    this.#seekTarget(0);
  }

  seekRowBefore(row: ByteString | undefined): void {
    this.#beginMove();
    if (this.#index === undefined) return this.#wantIndex(() => this.seekRowBefore(row));
    if (this.#only !== undefined) return this.#seekOnlyRow(row === undefined || this.#only < row);
    if (this.#isReversing && row !== undefined && this.#stepBack(row)) return;
    this.#isReversing = true;
    const index = this.#index;
    if (row === undefined) {
      if (index.length === 0) return this.#end();
      this.#target.set(index.lastRow(index.length - 1));
      return this.#seekTarget(0);
    }
    // the index alone tells the last row below `row`, unless that block has rows at or above `row`, too
    this.#target.set(row);
    const block = index.lastBefore(this.#target);
    if (block < 0) return this.#end();
    if (index.compareLastRow(block, row) >= 0) return this.#enter(block, 'rowBelowTarget');
    this.#target.set(index.lastRow(block));
    this.#seekTarget(0);
  }

  seekColumn(column: ColumnKey, timestamp?: Int64): void {
    if (!this.#backToReady()) return;
    const at = this.#at;
    this.#target.set(at.row, column, timestamp);
    if (!at.isBefore(this.#target)) return;
    this.#beginMove();
    for (let walked = 0; walked < SHORT_WALK; walked++) {
      if (!at.next()) return this.#seekTarget(this.#blockNumber + 1);
      if (!at.isBefore(this.#target)) return this.#onEntry();
    }
    this.#seekTarget(this.#blockNumber);
  }

  next(): void {
    if (this.state !== CursorState.ready && !this.#backToReady()) return;
    const { rowChanges } = this.#at;
    if (this.#at.next()) {
      if (this.#only !== undefined && this.#at.rowChanges !== rowChanges) this.#onEntry();
      return;
    }
    this.#beginMove();
    this.#enter(this.#blockNumber + 1, 'first');
  }

  async load(): Promise<void> {
    if (this.state !== CursorState.needsLoad) return;
    assert(this.#at !== CLOSED, 'the cursor is open');
    const moves = this.#moves;
    if (this.#wanted === THE_INDEX) {
      await this.#source.loadIndex();
      if (moves !== this.#moves) return;
      this.#index = this.#source.index;
      assert(this.#index !== undefined, 'an index stays in memory while a cursor is open');
      return this.#moveToMake!();
    }
    const only = this.#only;
    const loading =
      only === undefined
        ? this.#source.load(this.#wanted, this.#readAheadBytes, this.#readsBackwards)
        : this.#source.loadOfRow(this.#wanted, only);
    const block = await loading;
    if (moves === this.#moves) this.#onBlock(this.#wanted, block, this.#arrival);
  }

  close(): void {
    this.#moves++;
    this.state = CursorState.done;
    this.#readyBlock = undefined;
    this.#block = undefined;
    this.#blockNumber = NO_BLOCK;
    this.#leftBlock = undefined;
    this.#leftNumber = NO_BLOCK;
    this.#rowStarts = [];
    this.#rowStartsIn = undefined;
    this.#moveToMake = undefined;
    if (this.#at === CLOSED) return;
    giveBlockCursor(this.#at);
    this.#at = CLOSED;
    this.#source.closed(this.#only === undefined);
  }

  #wantIndex(move: () => void): void {
    this.#moveToMake = move;
    this.#wanted = THE_INDEX;
    this.state = CursorState.needsLoad;
  }

  /** To the beginning of the only row, if it lies in the direction of the seek. */
  #seekOnlyRow(isAhead: boolean): void {
    if (!isAhead) return this.#end();
    const only = this.#only!;
    if (this.#seekPosition(only, this.#source.positionOf(only))) return;
    this.#target.set(only);
    this.#seekTarget(0);
  }

  /** To the only row, if it lies at that position in a block in memory. */
  #seekPosition(only: ByteString, position: RowPosition): boolean {
    if (position === NO_POSITION) return false;
    const number = blockOf(position);
    const block = this.#source.ofRow(number, only);
    if (block === undefined) return false;
    this.#open(number, block);
    if (!this.#at.seekRowAt(only, restartOf(position), isAfterRestart(position))) return false;
    this.#onEntry();
    return true;
  }

  /** One row back in the open block. False, and to be searched for, if the row may begin or lie in another block. */
  #stepBack(row: ByteString): boolean {
    const block = this.#block;
    if (!block) return false;
    const at = this.#at;
    if (this.#rowStartsIn !== block || this.#rowStartsBelow !== row) {
      const { starts, isLimited } = at.rowsBelow(row);
      const next = this.#blockNumber + 1;
      // all rows of this block are below `row`: those of the next may be, too
      if (!isLimited && next < this.#index!.length && this.#index!.compareFirstRow(next, row) < 0) return false;
      this.#rowStarts = starts;
      this.#rowStartsIn = block;
    }
    const entryAt = this.#rowStarts.pop();
    if (entryAt === undefined) return false;
    at.seekEntry(entryAt);
    this.#rowStartsBelow = at.row;
    // the first row of a block may begin in the block before it
    if (
      this.#rowStarts.length === 0 &&
      this.#blockNumber > 0 &&
      this.#index!.compareLastRow(this.#blockNumber - 1, at.row) === 0
    )
      return false;
    this.state = CursorState.ready;
    return true;
  }

  /** The cursor has reached an entry; for a cursor of one row it may be one after the row. */
  #onEntry(): void {
    assert(this.#block !== undefined, 'an entry lies in a block');
    this.state = CursorState.ready;
    const only = this.#only;
    if (only === undefined) return;
    if (!this.#at.isIn(only)) return this.#end();
    if (this.#outcome !== 'unknown') return;
    this.#outcome = 'found';
    this.#source.rowFound(only, this.#blockNumber, this.#block, this.#at.entryAt);
  }

  /** Called before every move: notes the entry at which the cursor was ready. */
  #beginMove(): void {
    assert(this.#at !== CLOSED, 'the cursor is open');
    this.#moves++;
    if (this.state !== CursorState.ready) return;
    this.#readyBlock = this.#block;
    this.#readyNumber = this.#blockNumber;
    this.#readyEntryAt = this.#at.entryAt;
  }

  /** If a load is needed, returns to the entry at which the cursor was ready. False if the cursor is done. */
  #backToReady(): boolean {
    if (this.state === CursorState.ready) return true;
    if (this.state === CursorState.done) return false;
    assert(this.#readyBlock, 'a move from entry to entry needs an entry to start from: load first');
    assert(this.#readyNumber !== NO_BLOCK, 'the entry lies in a block of the file');
    this.#moves++;
    this.#open(this.#readyNumber, this.#readyBlock);
    this.#at.seekEntry(this.#readyEntryAt);
    this.state = CursorState.ready;
    return true;
  }

  #end(): void {
    this.#moves++;
    this.state = CursorState.done;
    this.#readyBlock = undefined;
    if (this.#only === undefined || this.#outcome !== 'unknown') return;
    this.#outcome = 'missed';
    this.#source.rowMissed();
  }

  /** To the first entry that is not before the target. It is not in a block before `from`. */
  #seekTarget(from: number): void {
    assert(from >= 0, 'a search begins at a block');
    const index = this.#index!;
    const block = index.lastBefore(this.#target, from);
    if (block < from || index.compareLastRow(block, this.#target.row) < 0) this.#enter(block + 1, 'first');
    else this.#enter(block, 'target');
  }

  #enter(number: number, arrival: Arrival): void {
    assert(number >= 0, 'a cursor enters blocks of the file');
    const index = this.#index!;
    if (number >= index.length) return this.#end();
    if (this.#only !== undefined && index.compareFirstRow(number, this.#only) > 0) return this.#end();
    if (number === this.#blockNumber && this.#block) return this.#onBlock(number, this.#block, arrival);
    if (number === this.#leftNumber && this.#leftBlock) return this.#onBlock(number, this.#leftBlock, arrival);
    const source = this.#source;
    const only = this.#only;
    if (only === undefined) this.#planReadAhead(number);
    const block =
      only === undefined
        ? (source.cached(number) ?? (this.#readAheadBytes === 0 ? source.readNow(number) : undefined))
        : source.ofRow(number, only);
    if (block) return this.#onBlock(number, block, arrival);
    this.#wanted = number;
    this.#arrival = arrival;
    this.state = CursorState.needsLoad;
  }

  /** A cursor reads ahead if it moves to the next block in the direction of its scan. */
  #planReadAhead(number: number): void {
    const forwards = number === this.#blockNumber + 1;
    const backwards = number === this.#blockNumber - 1;
    const isSequential = this.#isReversing ? backwards : forwards;
    this.#readAheadBytes = isSequential ? this.#nextReadAheadBytes : 0;
    this.#readsBackwards = backwards;
    if (isSequential)
      this.#nextReadAheadBytes = Math.min(this.#nextReadAheadBytes * 2, this.#source.readAheadLimitBytes());
    // a step forwards while going backwards looks past a row's end, into the block that the cursor came from
    else if (!forwards) this.#nextReadAheadBytes = Math.min(FIRST_READ_AHEAD_BYTES, this.#source.readAheadLimitBytes());
  }

  /** The block is in memory: completes the move. */
  #onBlock(number: number, block: Block, arrival: Arrival): void {
    const at = this.#at;
    assert(at !== CLOSED, 'a closed cursor enters no block');
    this.#open(number, block);
    if (arrival === 'first') {
      at.next();
    } else if (arrival === 'rowBelowTarget') {
      this.#target.set(at.lastRowBelow(this.#target.row));
      return this.#seekTarget(0);
    } else if (!at.seek(this.#target)) {
      return this.#enter(number + 1, 'first');
    }
    this.#onEntry();
  }

  #open(number: number, block: Block): void {
    if (this.#isReversing && number !== this.#blockNumber) {
      this.#leftBlock = this.#block;
      this.#leftNumber = this.#blockNumber;
    }
    this.#at.open(block);
    this.#block = block;
    this.#blockNumber = number;
  }
}
