/**
 * A block in memory: its uncompressed bytes and its restart points. Immutable, shared by cursors and cache; only the
 * search state changes. A page of a block is a Block, too. Format: docs/formats/sstable.md.
 */
import { assert, CorruptionError } from '../../base/index.ts';
import type { RowDigests } from '../format/row-digests.ts';

/** Length of a restart point, and of the number of restart points. */
export const NUMBER_BYTES = 4;
/** Memory of the search digest of a restart point. */
const SEARCH_BYTES = 8;

const NOT_A_PAGE = -1;

export class Block {
  readonly file: string;
  /** Offset in the file. */
  readonly offset: number;
  readonly bytes: Buffer;
  /** The memory of `bytes` and their offset in it. Hot path: a Buffer's own properties are slow. */
  readonly memory: ArrayBufferLike;
  readonly memoryAt: number;
  /** The entries are the bytes before this offset. */
  readonly entriesEnd: number;
  readonly restarts: number;
  /**
   * Digests of the rows at the restart points, made at the second search. Marked: no entry lies between this one and
   * the next.
   */
  search: RowDigests | undefined;
  readonly #isPage: boolean = false;
  /** How often the block was searched. */
  searches = 0;
  /** How often a row was searched for and found here, up to 2. */
  rowsFound = 0;

  /** `pageEnd`: makes a page, whose entries end there and whose first entry is its only restart point. */
  constructor(file: string, offset: number, bytes: Buffer, pageEnd = NOT_A_PAGE) {
    assert(pageEnd <= bytes.length, 'the entries of a page lie in its bytes');
    this.file = file;
    this.offset = offset;
    this.bytes = bytes;
    this.memory = bytes.buffer;
    this.memoryAt = bytes.byteOffset;
    if (pageEnd !== NOT_A_PAGE) {
      this.restarts = 1;
      this.entriesEnd = pageEnd;
      this.#isPage = true;
      return;
    }
    const countAt = bytes.length - NUMBER_BYTES;
    this.restarts = countAt < 0 ? 0 : bytes.readUInt32BE(countAt);
    this.entriesEnd = countAt - this.restarts * NUMBER_BYTES;
    if (this.restarts === 0 || this.entriesEnd <= 0) {
      throw new CorruptionError(file, offset, `a block of ${bytes.length} bytes with ${this.restarts} restart points`);
    }
  }

  get memoryBytes(): number {
    return this.bytes.length + this.restarts * SEARCH_BYTES;
  }

  /** Offset of the restart point's entry in the block. */
  restart(number: number): number {
    if (this.#isPage) return 0;
    const { bytes } = this;
    const at = this.entriesEnd + number * NUMBER_BYTES;
    return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
  }

  /** A copy in memory of its own. */
  copy(): Block {
    // not of Node's pool, which gives small copies a part of 8 KiB that others keep, too
    const bytes = Buffer.allocUnsafeSlow(this.bytes.length);
    bytes.set(this.bytes);
    return new Block(this.file, this.offset, bytes, this.#isPage ? this.entriesEnd : NOT_A_PAGE);
  }
}
