/**
 * A block in memory: its bytes before compression, and where its restart points are. Immutable, shared by cursors and cache; only
 * how often it was searched changes, and what makes that quick. A page of a block is a block of its own here. Format: docs/formats/sstable.md.
 */
import { CorruptionError } from '../../base/index.ts';
import type { RowDigests } from '../format/row-digests.ts';

/** A restart point, and their number. */
export const NUMBER_BYTES = 4;
/** What searching it takes a restart point, in memory. */
const SEARCH_BYTES = 8;

const NO_PAGE = -1;

export class Block {
  readonly file: string;
  /** In the file. */
  readonly offset: number;
  readonly bytes: Buffer;
  /** The bytes' memory and their offset in it. Every value read asks for these, and a Buffer answers slowly. */
  readonly memory: ArrayBufferLike;
  readonly memoryAt: number;
  /** Entries are the bytes before this. */
  readonly entriesEnd: number;
  readonly restarts: number;
  /** Digests of the rows at the restart points, made by the second cursor that searches the block. Marked: no entry stands between it and the next. */
  search: RowDigests | undefined;
  readonly #isPage: boolean = false;
  searches = 0;

  /** `pageEnd`: of a page of a block, which has entries up to there and its first as its one restart point. */
  constructor(file: string, offset: number, bytes: Buffer, pageEnd = NO_PAGE) {
    this.file = file;
    this.offset = offset;
    this.bytes = bytes;
    this.memory = bytes.buffer;
    this.memoryAt = bytes.byteOffset;
    if (pageEnd !== NO_PAGE) {
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

  /** Where in the block the restart point's entry begins. */
  restart(number: number): number {
    if (this.#isPage) return 0;
    const { bytes } = this;
    const at = this.entriesEnd + number * NUMBER_BYTES;
    return (
      (((bytes[at] as number) << 24) |
        ((bytes[at + 1] as number) << 16) |
        ((bytes[at + 2] as number) << 8) |
        (bytes[at + 3] as number)) >>>
      0
    );
  }

  /** The same in memory of its own. */
  copy(): Block {
    return new Block(this.file, this.offset, Buffer.from(this.bytes), this.#isPage ? this.entriesEnd : NO_PAGE);
  }
}
