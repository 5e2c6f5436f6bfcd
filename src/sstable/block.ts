/**
 * A block in memory: its bytes before compression, and where its restart points are. Immutable, shared by cursors and cache; only
 * how often it was searched changes, and what makes that quick. Format: docs/formats/sstable.md.
 */
import { CorruptionError } from '../base/index.ts';
import type { RowDigests } from './row-digests.ts';

const NUMBER_BYTES = 4;
/** What searching it takes a restart point, in memory. */
const SEARCH_BYTES = 9;

/** Made by a cursor that searches the block for the second time. */
export interface BlockSearch {
  /** Of the rows at the restart points. */
  readonly digests: RowDigests;
  /** By restart point: 1 = no entry stands between it and the next. */
  readonly isAlone: Uint8Array;
}

export class Block {
  readonly file: string;
  /** In the file. */
  readonly offset: number;
  readonly bytes: Buffer;
  /** Of the bytes: their memory and where in it they begin. Every value read asks for it, and a Buffer answers slowly. */
  readonly memory: ArrayBufferLike;
  readonly memoryAt: number;
  /** Entries are the bytes before this. */
  readonly entriesEnd: number;
  readonly restarts: number;
  search: BlockSearch | undefined;
  searches = 0;

  constructor(file: string, offset: number, bytes: Buffer) {
    this.file = file;
    this.offset = offset;
    this.bytes = bytes;
    this.memory = bytes.buffer;
    this.memoryAt = bytes.byteOffset;
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
    return this.bytes.readUInt32BE(this.entriesEnd + number * NUMBER_BYTES);
  }
}
