/**
 * The SSTable file being written: gathers small parts, adds trailers, and counts the offset. The file is created with
 * the first bytes that are written. Format of a trailer: docs/formats/sstable.md.
 *
 * Invariant: the offset is the number of bytes handed to the file and of those in the buffer.
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

/** Bytes by which the buffer may exceed a slice before it is flushed. */
const SPARE_BYTES = 128 * 1024;
/** The buffer begins with this and doubles, to a slice and what it may exceed it by: most files are small. */
const FIRST_BYTES = (SLICE_BYTES + SPARE_BYTES) / 64;

export class FileOutput {
  readonly #target: FileTarget;
  readonly #pacer: Pacer;
  readonly #buffer = new ByteWriter(FIRST_BYTES);
  /** Offset of the buffer's first byte in the file. */
  #bufferOffset = 0;
  #writer: FileWriter | undefined;
  #writtenBytes = 0;
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

  /** Copies a part of up to about a block, with its trailer, into the buffer. Fills in the checksums of the cuts. */
  putSmall(bytes: Uint8Array, codec: number = CODEC_NONE, cuts: readonly PageCut[] = NO_CUTS): Extent {
    const { checksum } = this.#target.codecs;
    const { offset } = this;
    const start = this.#buffer.length;
    this.raw(bytes);
    this.#buffer.byte(codec);
    let from = start;
    let crc = 0;
    for (const cut of cuts) {
      assert(start + cut.at > from && cut.at < bytes.length, 'pages ascend within their block');
      crc = checksum(this.#buffer.bytes.subarray(from, start + cut.at), crc);
      cut.crc = crc;
      from = start + cut.at;
    }
    this.#buffer.uint32(checksum(this.#buffer.bytes.subarray(from, this.#buffer.length), crc));
    assert(this.offset === offset + bytes.length + TRAILER_BYTES, 'a part is written with its trailer');
    return { offset, lengthBytes: bytes.length };
  }

  /** Writes a part of any size, with its trailer, slice by slice and uncompressed. */
  async putParts(pieces: readonly Uint8Array[]): Promise<Extent> {
    assert(!this.#ended, 'a file that has ended takes no more parts');
    const { checksum } = this.#target.codecs;
    const { offset } = this;
    let crc = 0;
    let lengthBytes = 0;
    for (const piece of pieces) {
      lengthBytes += piece.length;
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
    assert(this.offset === offset + lengthBytes + TRAILER_BYTES, 'a part is written with its trailer');
    return { offset, lengthBytes };
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
    assert(!this.#ended, 'a file is closed once');
    assert(this.#writtenBytes === this.offset, 'all bytes that were counted are written');
    this.#ended = true;
    await this.#writer.close();
  }

  /** Deletes the unfinished file after a failure, which matters more than a failure to delete. */
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
    this.#writtenBytes += bytes.length;
    assert(this.#writtenBytes === this.#bufferOffset + bytes.length, 'bytes are written in order, each once');
    // the append need not have waited: check the clock immediately
    if (this.#pacer.due(Number.POSITIVE_INFINITY)) await this.#pacer.pause();
  }
}
