/**
 * A block in memory: its bytes as they were stored, and where its restart points are. Immutable, shared by cursors and cache.
 * Format: docs/formats/sstable.md.
 */
import { CorruptionError } from '../base/index.ts';

const NUMBER_BYTES = 4;

export class Block {
  readonly file: string;
  /** In the file. */
  readonly offset: number;
  readonly bytes: Buffer;
  /** Entries are the bytes before this. */
  readonly entriesEnd: number;
  readonly restarts: number;

  constructor(file: string, offset: number, bytes: Buffer) {
    this.file = file;
    this.offset = offset;
    this.bytes = bytes;
    const countAt = bytes.length - NUMBER_BYTES;
    this.restarts = countAt < 0 ? 0 : bytes.readUInt32BE(countAt);
    this.entriesEnd = countAt - this.restarts * NUMBER_BYTES;
    if (this.restarts === 0 || this.entriesEnd <= 0) {
      throw new CorruptionError(file, offset, `a block of ${bytes.length} bytes with ${this.restarts} restart points`);
    }
  }

  /** Where in the block the restart point's entry begins. */
  restart(number: number): number {
    return this.bytes.readUInt32BE(this.entriesEnd + number * NUMBER_BYTES);
  }
}
