/**
 * Reads a file from front to back, the next chunk while the last one is processed, so that a caller with work to do
 * does not wait for the disk. At most two chunks are in memory, next to those that callers keep.
 *
 * Invariant: returned memory is not written to again.
 */
import { assert } from '../../base/index.ts';
import type { Syscalls } from './posix-syscalls.ts';

export interface ReadAheadOptions {
  readonly syscalls: Pick<Syscalls, 'read'>;
  readonly fd: number;
  /** The file's size: nothing is read after it. */
  readonly sizeBytes: number;
  readonly chunkBytes: number;
  /** The error to throw where the file turns out to end at `offset`, before its size. */
  readonly tooShort: (offset: number) => Error;
}

interface Chunk {
  readonly offset: number;
  readonly bytes: Buffer;
}

interface ChunkUnderWay {
  readonly offset: number;
  readonly read: Promise<Chunk>;
}

const EMPTY_CHUNK: Chunk = { offset: 0, bytes: Buffer.alloc(0) };

export class ReadAhead {
  readonly #options: ReadAheadOptions;
  #chunk = EMPTY_CHUNK;
  #next: ChunkUnderWay | undefined;

  /** Begins to read the file's first chunk. */
  constructor(options: ReadAheadOptions) {
    this.#options = options;
    this.#next = this.#begin(0);
  }

  /**
   * The bytes, which must lie within the file. They are copied only where they cross from one chunk into the next. A
   * read backwards, or over more than a chunk, waits for the disk.
   */
  async bytes(offset: number, length: number): Promise<Buffer> {
    assert(offset + length <= this.#options.sizeBytes, 'a read lies within the file');
    if (offset < this.#chunk.offset || offset >= this.#end) await this.#advanceTo(offset);
    const at = offset - this.#chunk.offset;
    const there = this.#chunk.bytes.subarray(at, at + length);
    if (there.length === length) return there;
    const whole = Buffer.allocUnsafeSlow(length);
    for (let got = there.copy(whole); got < length; ) {
      await this.#advanceTo(offset + got);
      got += this.#chunk.bytes.copy(whole, got, 0, length - got);
    }
    return whole;
  }

  /** Resolves, never rejects, when nothing is under way any more: before that the file must not be closed. */
  async stop(): Promise<void> {
    const next = this.#next;
    this.#next = undefined;
    await next?.read.catch(() => {});
  }

  get #end(): number {
    return this.#chunk.offset + this.#chunk.bytes.length;
  }

  /** Makes the chunk with the byte the current one, and begins to read the one after it. */
  async #advanceTo(offset: number): Promise<void> {
    let next = this.#next;
    if (next === undefined || offset < next.offset || offset >= next.offset + this.#options.chunkBytes) {
      await this.stop();
      next = this.#begin(offset);
    }
    this.#next = undefined;
    this.#chunk = await next.read;
    this.#next = this.#end < this.#options.sizeBytes ? this.#begin(this.#end) : undefined;
  }

  #begin(offset: number): ChunkUnderWay {
    const read = this.#read(offset);
    // the error is thrown when the chunk is used
    read.catch(() => {});
    return { offset, read };
  }

  async #read(offset: number): Promise<Chunk> {
    const { syscalls, fd, sizeBytes, chunkBytes, tooShort } = this.#options;
    const bytes = Buffer.allocUnsafeSlow(Math.min(chunkBytes, sizeBytes - offset));
    for (let got = 0; got < bytes.length; ) {
      const n = await syscalls.read(fd, bytes, got, bytes.length - got, offset + got);
      if (n === 0) throw tooShort(offset + got);
      got += n;
    }
    return { offset, bytes };
  }
}
