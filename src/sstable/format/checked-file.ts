/**
 * Reads parts of one SSTable and checks them against their trailers. The room reads files only through this class.
 *
 * Invariant: a part that is returned is what was written. Parts above a slice are read, copied and checked slice by
 * slice, so that a value of 100 MiB does not block the event loop.
 */
import { asBuffer, assert, BigtableError, Code, CorruptionError } from '../../base/index.ts';
import { type Clock, type Codecs, type Counter, type FileSystem, type Metrics, Pacer } from '../../env/index.ts';
import { CODEC_NONE, CRC_BYTES, type Extent, refusal, TRAILER_BYTES } from './format.ts';

/** A stored block or section, checked, without its trailer. */
export interface StoredPart {
  readonly bytes: Buffer;
  readonly codec: number;
}

/** Bytes that are read, copied or checksummed in one slice of the event loop. */
export const SLICE_BYTES = 1024 * 1024;
/** Most bytes of a synchronous read. */
const NOW_BYTES = 128 * 1024;

export interface FileComponents {
  readonly fileSystem: FileSystem;
  readonly codecs: Codecs;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

export class CheckedFile {
  readonly path: string;
  readonly #components: FileComponents;
  readonly #reads: Counter;
  readonly #readBytes: Counter;

  constructor(path: string, components: FileComponents) {
    this.path = path;
    this.#components = components;
    this.#reads = components.metrics.counter('sstable.reads');
    this.#readBytes = components.metrics.counter('sstable.readBytes');
  }

  size(): Promise<number> {
    return this.#components.fileSystem.size(this.path);
  }

  /** Reads exactly these bytes, unchecked. */
  async read(offset: number, lengthBytes: number): Promise<Buffer> {
    const { fileSystem } = this.#components;
    let bytes: Buffer;
    try {
      bytes = await fileSystem.read(this.path, offset, lengthBytes);
    } catch (error) {
      if (error instanceof BigtableError && error.code === Code.OUT_OF_RANGE)
        throw new CorruptionError(this.path, offset, 'the file ends too early', error);
      throw error;
    }
    assert(bytes.length === lengthBytes, 'a read returns as many bytes as were requested');
    this.#count(lengthBytes);
    return bytes;
  }

  /**
   * Reads a block synchronously and checks it. Undefined if that is not possible or the block is damaged: `readChecked`
   * then reports how.
   */
  readNow(extent: Extent): StoredPart | undefined {
    const { fileSystem, codecs } = this.#components;
    const total = extent.lengthBytes + TRAILER_BYTES;
    if (total > NOW_BYTES) return undefined;
    const bytes = fileSystem.readNow?.(this.path, extent.offset, total);
    if (
      bytes === undefined ||
      codecs.checksum(bytes.subarray(0, total - CRC_BYTES)) !== bytes.readUInt32BE(total - CRC_BYTES)
    )
      return undefined;
    this.#count(total);
    return { bytes: asBuffer(bytes.subarray(0, extent.lengthBytes)), codec: bytes[extent.lengthBytes]! };
  }

  /**
   * Reads the page into `into`, which has its length, synchronously. `crcBefore` is the checksum of the block before
   * the page, `crc` that of the block up to its end; for a block's last page, which is read with the trailer, `crc` is
   * undefined and the trailer has the checksum. False if that is not possible or the page is damaged.
   */
  readPageNow(offset: number, into: Buffer, crcBefore: number, crc: number | undefined): boolean {
    const total = into.length;
    if (total > NOW_BYTES || this.#components.fileSystem.readNow?.(this.path, offset, total, into) === undefined)
      return false;
    if (!this.isPage(into, crcBefore, crc)) return false;
    this.#count(total);
    return true;
  }

  /** True if the bytes have these checksums. */
  isPage(bytes: Buffer, crcBefore: number, crc: number | undefined): boolean {
    const { checksum } = this.#components.codecs;
    if (crc !== undefined) return checksum(bytes, crcBefore) === crc;
    const crcAt = bytes.length - CRC_BYTES;
    return checksum(bytes.subarray(0, crcAt), crcBefore) === bytes.readUInt32BE(crcAt);
  }

  /** Reads a block or section and checks it. */
  async readChecked(extent: Extent): Promise<StoredPart> {
    const total = extent.lengthBytes + TRAILER_BYTES;
    if (total <= SLICE_BYTES) {
      const bytes = await this.read(extent.offset, total);
      return { bytes: this.check(extent, bytes), codec: bytes[extent.lengthBytes]! };
    }
    const whole = Buffer.allocUnsafeSlow(total);
    const pacer = new Pacer(this.#components.clock, 1);
    for (let at = 0; at < total; at += SLICE_BYTES) {
      const slice = await this.read(extent.offset + at, Math.min(SLICE_BYTES, total - at));
      slice.copy(whole, at);
      if (pacer.due()) await pacer.pause();
    }
    return { bytes: await this.checkPaced(extent, whole), codec: whole[extent.lengthBytes]! };
  }

  /** Reads a section, which is always uncompressed. */
  async readSection(extent: Extent): Promise<Buffer> {
    const { bytes, codec } = await this.readChecked(extent);
    return this.uncompressed(extent, bytes, codec);
  }

  uncompressed(extent: Extent, bytes: Buffer, codec: number): Buffer {
    if (codec === CODEC_NONE) return bytes;
    throw refusal(
      `${this.path}: the part at byte ${extent.offset} is stored with codec ${codec}, which this version of Edubba does not know`,
    );
  }

  /** Checks the bytes of a part with its trailer in one slice and returns the part: for parts up to a slice or two. */
  check(extent: Extent, bytes: Buffer): Buffer {
    return this.#compare(extent, bytes, this.#components.codecs.checksum(bytes.subarray(0, bytes.length - CRC_BYTES)));
  }

  /** Like `check`, for parts of any size. */
  async checkPaced(extent: Extent, bytes: Buffer): Promise<Buffer> {
    const { codecs, clock } = this.#components;
    const pacer = new Pacer(clock, 1);
    const end = bytes.length - CRC_BYTES;
    let crc = 0;
    for (let at = 0; at < end; at += SLICE_BYTES) {
      crc = codecs.checksum(bytes.subarray(at, Math.min(at + SLICE_BYTES, end)), crc);
      if (pacer.due()) await pacer.pause();
    }
    return this.#compare(extent, bytes, crc);
  }

  #count(bytes: number): void {
    this.#reads.value++;
    this.#readBytes.value += bytes;
  }

  #compare(extent: Extent, bytes: Buffer, crc: number): Buffer {
    assert(
      bytes.length === extent.lengthBytes + TRAILER_BYTES,
      `${this.path}: ${bytes.length} bytes for ${extent.lengthBytes} and a trailer`,
    );
    if (crc !== bytes.readUInt32BE(bytes.length - CRC_BYTES)) {
      throw new CorruptionError(this.path, extent.offset, `the checksum of ${extent.lengthBytes} bytes is wrong`);
    }
    return asBuffer(bytes.subarray(0, extent.lengthBytes));
  }
}
