/**
 * A hash table from the rows of a file to their positions: the block of a row's first entry, and its last restart point
 * at or before that entry. A look-up that finds its row here searches neither the index nor the block, and so touches
 * two cold cache lines: one here, one at the entry. The rows of a block are added when the block is searched for the
 * second time.
 *
 * A position is a hint: a slot has few bits of the row's hash, so the reader compares the row at the position, and
 * searches where that is another one.
 */
import { assert, type ByteString } from '../../base/index.ts';
import { BloomHash } from '../format/bloom-hash.ts';
import type { Block } from './block.ts';
import { giveBlockCursor, takeBlockCursor } from './block-cursor.ts';

const RESTART_BITS = 10;
const MAX_RESTARTS = 1 << RESTART_BITS;
/** With more, a slot has too few bits of the hash. */
const MAX_BLOCKS = 1 << 15;
const BYTES_PER_SLOT = 4;

/**
 * A position in one number: from the low bits on 1 if the row begins after the restart point, the restart point, the
 * block + 1.
 */
export type RowPosition = number;
/** The answer for a row that is not in the table. */
export const NO_POSITION = 0;

export function blockOf(position: RowPosition): number {
  return (position >>> (RESTART_BITS + 1)) - 1;
}

export function restartOf(position: RowPosition): number {
  return (position >>> 1) & (MAX_RESTARTS - 1);
}

/** True if the row is not that of the restart point. */
export function isAfterRestart(position: RowPosition): boolean {
  return (position & 1) === 1;
}

export class RowPositions {
  /** Each a position, with the high bits of a hash above it; 0 = empty. The length is a power of two. */
  readonly #slots: Int32Array;
  readonly #positionMask: number;
  readonly #hash = new BloomHash();
  readonly #rows: number;
  #count = 0;

  /** False if the file has too many blocks. */
  static canHold(blocks: number): boolean {
    return blocks < MAX_BLOCKS;
  }

  static bytesFor(rows: number): number {
    let slots = 16;
    while (slots * 3 < rows * 4) slots *= 2;
    return slots * BYTES_PER_SLOT;
  }

  constructor(rows: number, blocks: number) {
    assert(RowPositions.canHold(blocks), 'a slot has space for the number of a block');
    this.#rows = rows;
    this.#slots = new Int32Array(RowPositions.bytesFor(rows) / BYTES_PER_SLOT);
    const blockBits = 32 - Math.clz32(blocks);
    this.#positionMask = (1 << (blockBits + RESTART_BITS + 1)) - 1;
  }

  get sizeBytes(): number {
    return this.#slots.byteLength;
  }

  /** The position of a row with this hash. Hot path. */
  find({ first, second }: BloomHash): RowPosition {
    const slots = this.#slots;
    const mask = slots.length - 1;
    const positionMask = this.#positionMask;
    for (let at = first & mask; ; at = (at + 1) & mask) {
      const slot = slots[at]!;
      if (slot === 0) return NO_POSITION;
      if (((slot ^ second) & ~positionMask) === 0) return slot & positionMask;
    }
  }

  /** Adds the rows that begin in the block. `continues`: its first row begins in a block before it. */
  add(number: number, block: Block, continues: boolean): void {
    const cursor = takeBlockCursor();
    try {
      cursor.open(block);
      let restart = -1;
      let changes = -1;
      while (cursor.next()) {
        if (cursor.isRestart) restart++;
        if (cursor.rowChanges === changes) continue;
        const isFirst = changes === -1;
        changes = cursor.rowChanges;
        if (isFirst && continues) continue;
        if (restart < MAX_RESTARTS) this.#put(cursor.row, number, restart, !cursor.isRestart);
      }
    } finally {
      giveBlockCursor(cursor);
    }
  }

  #put(row: ByteString, block: number, restart: number, isAfter: boolean): void {
    this.#hash.row(row);
    const position = ((block + 1) << (RESTART_BITS + 1)) | (restart << 1) | Number(isAfter);
    assert((position & this.#positionMask) === position, 'a position has its bits in a slot');
    const slot = (this.#hash.second & ~this.#positionMask) | position;
    const slots = this.#slots;
    const mask = slots.length - 1;
    let at = this.#hash.first & mask;
    // a block that was read again is added again
    while (slots[at] !== 0) {
      if (slots[at] === slot) return;
      at = (at + 1) & mask;
    }
    slots[at] = slot;
    this.#count++;
    assert(this.#count <= this.#rows, 'a row begins in one block');
  }
}
