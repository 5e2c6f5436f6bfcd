/**
 * The segment of a log that is written to: a file that is larger than what is written, so that after the frames it
 * reads as zeros. While frames are small it is filled with zeros ahead of them: an append is then one durable write of
 * bytes into space that is allocated already, and not of metadata. Large frames go into the hole, and nothing is
 * written twice. Format: docs/formats/log-file.md.
 *
 * Invariants:
 * - A frame is written only where the file's size before it is durable, and what it is written over reads as zeros
 *   after any crash; space for one more frame header stays after it: so a file that ends sooner was damaged, never
 *   torn.
 * - No zeros are written where a frame is written, or was: a frame that would meet the filling waits for it.
 * - The space is extended through a descriptor of its own: the system reports a failed write-back once to each
 *   descriptor, so that the filling cannot consume an error that belongs to an append, nor the other way round.
 */
import { constants } from 'node:fs';
import { assert } from '../../base/index.ts';
import type { Logger } from '../../env/index.ts';
import type { DurableWrites } from './posix-durable-writes.ts';
import { isLackOfResources, isOutOfSpace } from './posix-errors.ts';
import { FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES } from './posix-log-format.ts';
import type { Syscalls } from './posix-syscalls.ts';

const PAGE_BYTES = 4096;
/** The first piece of space, and the least that is added. */
const MIN_STEP_BYTES = 1 << 20;
const MAX_STEP_BYTES = 16 << 20;
const ZEROS = Buffer.alloc(1 << 20);
/**
 * Frames of this average size and more are written into the hole: for them a second write of their bytes costs more
 * than one of metadata.
 */
const LARGE_FRAME_BYTES = 64 << 10;
/** About the number of frames in the average. */
const AVERAGED_FRAMES = 4;
/**
 * Written after every frame: it allocates space where the next one begins, so that a frame that found no space can be
 * taken back.
 */
const NEXT_HEADER = Buffer.alloc(FRAME_HEADER_BYTES);

export interface SegmentOptions {
  readonly syscalls: Syscalls;
  readonly durableWrites: DurableWrites;
  readonly logger: Logger;
  /** The path at which the file is made; it may be moved afterwards. */
  readonly path: string;
  /** The header's bytes, when that number of bytes of frames is surely written. */
  readonly headerFor: (frameBytes: number) => Buffer;
  /** The first frame's bytes. */
  readonly firstFrameBytes: number;
  /** The average size of earlier frames. */
  readonly meanFrameBytes: number;
  /** Bytes of frames for which space is allocated from the beginning. */
  readonly allocatedBytes: number;
  /** Most bytes of the file, but for one frame that is larger. */
  readonly limitBytes: number;
}

export class LogSegment {
  readonly #syscalls: Syscalls;
  readonly #durableWrites: DurableWrites;
  readonly #logger: Logger;
  readonly #limitBytes: number;
  readonly #headerFor: SegmentOptions['headerFor'];
  readonly #fillFd: number;
  readonly #writeFd: number;
  #usedBytes = SEGMENT_HEADER_BYTES;
  /** The file's size. */
  #sizeBytes: number;
  /** The end of allocated space: zeros or frames were written up to it. */
  #filledBytes: number;
  #meanFrameBytes: number;
  #filling: Promise<void> | undefined;
  /** True when no space could be allocated ahead; it is tried again when an append needs it. */
  #aheadStopped = false;
  #broken: unknown;

  private constructor(
    options: SegmentOptions,
    fillFd: number,
    writeFd: number,
    sizeBytes: number,
    filledBytes: number,
  ) {
    this.#syscalls = options.syscalls;
    this.#durableWrites = options.durableWrites;
    this.#logger = options.logger;
    this.#limitBytes = options.limitBytes;
    this.#headerFor = options.headerFor;
    this.#fillFd = fillFd;
    this.#writeFd = writeFd;
    this.#sizeBytes = sizeBytes;
    this.#filledBytes = filledBytes;
    this.#meanFrameBytes = options.meanFrameBytes;
  }

  /**
   * Makes the file, durable but for its name, with less space ahead where the disk has too little. Leaves no file where
   * it fails.
   */
  static async create(options: SegmentOptions): Promise<LogSegment> {
    const least = pages(SEGMENT_HEADER_BYTES + options.firstFrameBytes + FRAME_HEADER_BYTES);
    const size = Math.max(least, Math.min(MIN_STEP_BYTES, options.limitBytes));
    return LogSegment.#create(options, size).catch((error: unknown) => {
      if (!isOutOfSpace(error) || size === least) throw error;
      return LogSegment.#create(options, least);
    });
  }

  static async #create(options: SegmentOptions, size: number): Promise<LogSegment> {
    const { syscalls, path, headerFor } = options;
    const header = headerFor(0);
    assert(header.length === SEGMENT_HEADER_BYTES, 'a segment header has its length');
    const fillFd = await syscalls.open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL);
    let writeFd: number | undefined;
    try {
      await syscalls.write(fillFd, [header], 0);
      const filledBytes = isLarge(options.meanFrameBytes) ? header.length + FRAME_HEADER_BYTES : size;
      await fill(syscalls, fillFd, header.length, filledBytes);
      if (size > filledBytes) await syscalls.truncate(fillFd, size);
      await syscalls.sync(fillFd);
      writeFd = await syscalls.openDurable(path);
      const segment = new LogSegment(options, fillFd, writeFd, size, filledBytes);
      await segment.allocate(options.allocatedBytes);
      return segment;
    } catch (error) {
      await syscalls.close(fillFd).catch(() => undefined);
      if (writeFd !== undefined) await syscalls.close(writeFd).catch(() => undefined);
      await syscalls.unlink(path).catch(() => undefined);
      throw error;
    }
  }

  /** The offset in the file of the next frame. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Moving average of recent frame sizes. */
  get meanFrameBytes(): number {
    return this.#meanFrameBytes;
  }

  /** The file's size. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** True when a frame of that size belongs in this segment, and not in a new one. */
  takes(frameBytes: number): boolean {
    return (
      this.#usedBytes === SEGMENT_HEADER_BYTES || this.#usedBytes + frameBytes + FRAME_HEADER_BYTES <= this.#limitBytes
    );
  }

  /**
   * Makes the file large enough for a frame of that size; fails without effect as the system does, with ENOSPC when the
   * disk is full.
   */
  async ensureSpace(frameBytes: number): Promise<void> {
    const neededBytes = this.#usedBytes + frameBytes + FRAME_HEADER_BYTES;
    while (!this.#broken && neededBytes > this.#filledBytes) {
      if (this.#filling) await this.#filling;
      else if (neededBytes > this.#sizeBytes)
        await this.#extend(() => this.#resize(Math.max(pages(neededBytes), this.#nextSize(this.#sizeBytes))));
      else break;
      this.#aheadStopped = false;
    }
    if (this.#broken) throw this.#broken;
  }

  /**
   * Allocates space for frames of `bytes` in all: a full disk cannot refuse them afterwards. The zeros that take it are
   * not synced: a file system assigns space when it is written to, and the frames replace most of the zeros before
   * those reach the disk.
   */
  async allocate(bytes: number): Promise<void> {
    await this.ensureSpace(bytes);
    await this.#filling;
    if (this.#broken) throw this.#broken;
    const toBytes = Math.min(this.#sizeBytes, pages(this.#usedBytes + bytes + FRAME_HEADER_BYTES));
    if (toBytes <= this.#filledBytes) return;
    await this.#extend(() => fill(this.#syscalls, this.#fillFd, this.#filledBytes, toBytes));
    this.#filledBytes = toBytes;
  }

  /**
   * Writes the frame durably. ENOSPC where the disk was full in the hole, and nothing was written. After another
   * failure the outcome is unknown, and the segment must not be written any more.
   */
  async write(parts: readonly Uint8Array[], frameBytes: number): Promise<void> {
    const end = this.#usedBytes + frameBytes;
    const spaceEnd = end + FRAME_HEADER_BYTES;
    assert(spaceEnd <= this.#sizeBytes, 'a frame has space in the file');
    assert(
      this.#filling === undefined || spaceEnd <= this.#filledBytes,
      'a frame lies where no zeros are being written',
    );
    try {
      const bytes = frameBytes + FRAME_HEADER_BYTES;
      await this.#durableWrites.write(this.#writeFd, [...parts, NEXT_HEADER], bytes, this.#usedBytes);
    } catch (error) {
      // the disk cannot be full in allocated space: the meaning is unknown
      if (!isOutOfSpace(error) || spaceEnd <= this.#filledBytes) this.#broken = error;
      else await this.#unwrite();
      throw error;
    }
    if (this.#broken) throw this.#broken;
    this.#usedBytes = end;
    this.#filledBytes = Math.max(this.#filledBytes, spaceEnd);
    this.#meanFrameBytes += (frameBytes - this.#meanFrameBytes) / AVERAGED_FRAMES;
    this.#fillAhead();
  }

  /** True when the segment can be written no more. */
  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  /**
   * Ends the segment. Frees the space after the last frame, but for that of a header, unless the end of that frame is
   * unknown. `isLast`: no segment follows whose base would state the end of this one, so its header does.
   */
  async close(isLast = false): Promise<void> {
    await this.#filling;
    const sizeBytes = pages(this.#usedBytes + FRAME_HEADER_BYTES);
    if (!this.#broken && isLast)
      await this.#mark().then(
        () => this.#syscalls.datasync(this.#fillFd),
        () => undefined,
      );
    if (!this.#broken && sizeBytes < this.#sizeBytes) {
      const isCut = await this.#syscalls.truncate(this.#fillFd, sizeBytes).then(
        () => true,
        () => false,
      );
      if (isCut) this.#sizeBytes = sizeBytes;
    }
    await this.#syscalls.close(this.#fillFd);
    await this.#syscalls.close(this.#writeFd);
  }

  #nextSize(from: number): number {
    return Math.min(this.#limitBytes, from + this.#growthBytes());
  }

  #growthBytes(): number {
    return Math.min(MAX_STEP_BYTES, Math.max(MIN_STEP_BYTES, this.#filledBytes));
  }

  /** Begins to write more zeros while appends still have some ahead. */
  #fillAhead(): void {
    if (this.#filling || this.#aheadStopped || this.#filledBytes >= this.#limitBytes || isLarge(this.#meanFrameBytes))
      return;
    if (this.#filledBytes - this.#usedBytes >= this.#growthBytes() / 2) return;
    this.#filling = this.#extend(() => this.#fill(this.#nextSize(this.#filledBytes)))
      .catch((error: unknown) => {
        this.#aheadStopped = true;
        if (isLackOfResources(error)) this.#logger.warn('no space ahead in the commit log', { error: String(error) });
      })
      .finally(() => {
        this.#filling = undefined;
      });
  }

  async #extend(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!isLackOfResources(error)) this.#broken = error;
      throw error;
    }
  }

  async #resize(sizeBytes: number): Promise<void> {
    await this.#syscalls.truncate(this.#fillFd, sizeBytes);
    await this.#mark();
    await this.#syscalls.datasync(this.#fillFd);
    this.#sizeBytes = sizeBytes;
  }

  /**
   * Writes the end of the written frames into the header; the sync that follows anyway makes it durable. The first page
   * is allocated, so the disk cannot be full.
   */
  async #mark(): Promise<void> {
    await this.#syscalls.write(this.#fillFd, [this.#headerFor(this.#usedBytes - SEGMENT_HEADER_BYTES)], 0);
  }

  async #fill(toBytes: number): Promise<void> {
    await fill(this.#syscalls, this.#fillFd, this.#filledBytes, toBytes);
    await this.#mark();
    await this.#syscalls.datasync(this.#fillFd);
    this.#filledBytes = toBytes;
    this.#sizeBytes = Math.max(this.#sizeBytes, toBytes);
  }

  /**
   * Takes back a frame for which the disk had no space: first its header, then the rest, so that a crash between the
   * two leaves no half of it.
   */
  async #unwrite(): Promise<void> {
    const end = this.#usedBytes + FRAME_HEADER_BYTES;
    try {
      await this.#syscalls.write(this.#fillFd, [NEXT_HEADER], this.#usedBytes);
      await this.#syscalls.datasync(this.#fillFd);
      await this.#resize(end);
      this.#filledBytes = end;
    } catch (error) {
      this.#broken = error;
    }
  }
}

function isLarge(meanFrameBytes: number): boolean {
  return meanFrameBytes >= LARGE_FRAME_BYTES;
}

function pages(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES;
}

/** Writes zeros over [from, to). */
async function fill(syscalls: Syscalls, fd: number, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += ZEROS.length) {
    await syscalls.write(fd, [ZEROS.subarray(0, Math.min(ZEROS.length, to - at))], at);
  }
}
