/**
 * The SSTable file being written: gathers small parts, puts trailers, and knows the offset. The file is created with the first bytes that
 * leave. Format of a trailer: docs/formats/sstable.md.
 */
import { assert } from '../../base/index.ts';
import type { Codecs, FileSystem, FileWriter, Pacer } from '../../env/index.ts';
import { ByteWriter } from '../format/byte-writer.ts';
import { SLICE_BYTES } from '../format/checked-file.ts';
import { CODEC_NONE, type Extent, TRAILER_BYTES } from '../format/format.ts';
import { NO_CUTS, type PageCut } from '../format/page-index.ts';

export interface FileTarget {
  readonly fileSystem: FileSystem;
  readonly path: string;
  readonly codecs: Codecs;
}

/** What the buffer may grow by behind a full slice before it is flushed. */
const SPARE_BYTES = 128 * 1024;

export class FileOutput {
  readonly #target: FileTarget;
  readonly #pacer: Pacer;
  readonly #buffer = new ByteWriter(SLICE_BYTES + SPARE_BYTES);
  /** Offset of the buffer's first byte in the file. */
  #bufferOffset = 0;
  #writer: FileWriter | undefined;
  #ended = false;

  constructor(target: FileTarget, pacer: Pacer) {
    this.#target = target;
    this.#pacer = pacer;
  }

  get offset(): number {
    return this.#bufferOffset + this.#buffer.length;
  }

  get isFull(): boolean {
    return this.#buffer.length >= SLICE_BYTES;
  }

  raw(bytes: Uint8Array): void {
    this.#buffer.raw(bytes);
  }

  /** A part of up to about a block, with its trailer, into the buffer: its bytes have been copied when this returns. The cuts' checksums are filled in. */
  putSmall(bytes: Uint8Array, codec: number = CODEC_NONE, cuts: readonly PageCut[] = NO_CUTS): Extent {
    const { checksum } = this.#target.codecs;
    const { offset } = this;
    const start = this.#buffer.length;
    this.raw(bytes);
    this.#buffer.byte(codec);
    let from = start;
    let crc = 0;
    for (const cut of cuts) {
      crc = checksum(this.#buffer.bytes.subarray(from, start + cut.at), crc);
      cut.crc = crc;
      from = start + cut.at;
    }
    this.#buffer.uint32(checksum(this.#buffer.bytes.subarray(from, this.#buffer.length), crc));
    return { offset, lengthBytes: this.offset - offset - TRAILER_BYTES };
  }

  /** A part of any size, with its trailer, slice by slice. Stored as it is. */
  async putParts(pieces: readonly Uint8Array[]): Promise<Extent> {
    const { checksum } = this.#target.codecs;
    const { offset } = this;
    let crc = 0;
    for (const piece of pieces) {
      for (let at = 0; at < piece.length; at += SLICE_BYTES) {
        const slice = piece.subarray(at, at + SLICE_BYTES);
        crc = checksum(slice, crc);
        await this.#put(slice);
      }
    }
    const trailer = new ByteWriter(TRAILER_BYTES);
    trailer.byte(CODEC_NONE);
    trailer.uint32(checksum(trailer.written(), crc));
    this.raw(trailer.written());
    return { offset, lengthBytes: this.offset - offset - TRAILER_BYTES };
  }

  async flush(): Promise<void> {
    if (this.#buffer.length === 0) return;
    const bytes = this.#buffer.written();
    await this.#append(bytes);
    this.#bufferOffset += bytes.length;
    this.#buffer.clear();
  }

  async close(): Promise<void> {
    await this.flush();
    assert(this.#writer, 'a footer was written');
    this.#ended = true;
    await this.#writer.close();
  }

  /** After a failure: the file is given up, and the failure matters more than one of giving up. */
  async abort(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.#writer?.abort().catch(() => {});
  }

  async #put(slice: Uint8Array): Promise<void> {
    if (slice.length < SLICE_BYTES) {
      this.raw(slice);
      if (this.isFull) await this.flush();
      return;
    }
    await this.flush();
    await this.#append(slice);
    this.#bufferOffset += slice.length;
  }

  async #append(bytes: Uint8Array): Promise<void> {
    this.#writer ??= await this.#target.fileSystem.create(this.#target.path);
    await this.#writer.append(bytes);
    // the append need not have waited: the clock is asked at once
    if (this.#pacer.due(Number.POSITIVE_INFINITY)) await this.#pacer.pause();
  }
}
