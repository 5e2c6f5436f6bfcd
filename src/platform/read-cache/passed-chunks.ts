/**
 * Remembers chunks that scans have passed without keeping them, so that the second one keeps them. A table
 * of 4 bytes a slot: a later chunk overwrites an earlier one with the same place.
 */
import { hashOfChunk } from './chunk-index.ts';
import type { FileKey } from './index-record.ts';

export class PassedChunks {
  readonly #tags: Uint32Array;

  /** `chunks`: how many are remembered, about. */
  constructor(chunks: number) {
    this.#tags = new Uint32Array(2 ** Math.ceil(Math.log2(chunks)));
  }

  /** Notes the chunk. True when it was noted before. */
  note(file: FileKey, chunk: number): boolean {
    const at = hashOfChunk(file, chunk) & (this.#tags.length - 1);
    const tag = (file[1]! ^ Math.imul(chunk, 0x85ebca6b)) >>> 0;
    const isKnown = this.#tags[at] === tag;
    this.#tags[at] = tag;
    return isKnown;
  }
}
