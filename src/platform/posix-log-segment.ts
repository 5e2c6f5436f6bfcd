/**
 * The segment of a log that is written to: a file filled with zeros ahead of what is written, so that an append is one durable
 * write of bytes into space that is allocated already, and not of metadata. Format: docs/formats/log-file.md.
 *
 * Invariants:
 * - A frame is written only where the zeros before it are durable, and room for one more frame header stays behind it: so a
 *   file that ends sooner was damaged, never torn.
 * - The room is extended through a descriptor of its own: the system reports a failed write-back once to each, so that no error
 *   that belongs to an append can be taken by the filling, or the other way round.
 */
import { constants } from 'node:fs';
import { assert } from '../base/index.ts';
import type { Logger } from '../env/index.ts';
import { isOutOfSpace } from './posix-errors.ts';
import { FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES } from './posix-log-format.ts';
import type { Syscalls } from './posix-syscalls.ts';

const PAGE_BYTES = 4096;
/** The first piece of room, and the least that is added. */
const LEAST_STEP_BYTES = 1 << 20;
const MOST_STEP_BYTES = 16 << 20;
const ZEROS = Buffer.alloc(1 << 20);

export interface SegmentOptions {
  readonly syscalls: Syscalls;
  readonly logger: Logger;
  /** Where the file is made; it may be moved afterwards. */
  readonly path: string;
  readonly header: Buffer;
  /** The first frame's bytes. */
  readonly firstFrameBytes: number;
  /** Most bytes of the file, but for one frame that is larger. */
  readonly limitBytes: number;
}

export class LogSegment {
  readonly #syscalls: Syscalls;
  readonly #logger: Logger;
  readonly #limitBytes: number;
  readonly #fillFd: number;
  readonly #writeFd: number;
  #usedBytes = SEGMENT_HEADER_BYTES;
  #allocatedBytes: number;
  #filling: Promise<void> | undefined;
  /** Why no room was made ahead; it is tried again when an append needs it. */
  #aheadStopped = false;
  #broken: unknown;

  private constructor(options: SegmentOptions, fillFd: number, writeFd: number, allocatedBytes: number) {
    this.#syscalls = options.syscalls;
    this.#logger = options.logger;
    this.#limitBytes = options.limitBytes;
    this.#fillFd = fillFd;
    this.#writeFd = writeFd;
    this.#allocatedBytes = allocatedBytes;
  }

  /** Makes the file, durable but for its name. Leaves nothing behind where it fails. */
  static async create(options: SegmentOptions): Promise<LogSegment> {
    const { syscalls, path, header } = options;
    assert(header.length === SEGMENT_HEADER_BYTES, 'a segment header of another length');
    const least = pages(SEGMENT_HEADER_BYTES + options.firstFrameBytes + FRAME_HEADER_BYTES);
    const size = Math.max(least, Math.min(LEAST_STEP_BYTES, options.limitBytes));
    const fillFd = await syscalls.open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL);
    try {
      await syscalls.write(fillFd, [header], 0);
      await fill(syscalls, fillFd, header.length, size);
      await syscalls.sync(fillFd);
      return new LogSegment(options, fillFd, await syscalls.openDurable(path), size);
    } catch (error) {
      await syscalls.close(fillFd).catch(() => undefined);
      await syscalls.unlink(path).catch(() => undefined);
      throw error;
    }
  }

  /** Where in the file the next frame begins. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** The file's size. */
  get allocatedBytes(): number {
    return this.#allocatedBytes;
  }

  /** Whether a frame of that size belongs into this segment, and not into a new one. */
  takes(frameBytes: number): boolean {
    return this.#usedBytes === SEGMENT_HEADER_BYTES || this.#usedBytes + frameBytes + FRAME_HEADER_BYTES <= this.#limitBytes;
  }

  /** Makes sure that a frame of that size can be written; fails as the system does, ENOSPC when the disk is full, and nothing has happened. */
  async makeRoom(frameBytes: number): Promise<void> {
    const neededBytes = this.#usedBytes + frameBytes + FRAME_HEADER_BYTES;
    while (!this.#broken && this.#allocatedBytes < neededBytes) {
      if (this.#filling) await this.#filling;
      else await this.#extend(Math.max(pages(neededBytes), this.#nextSize()));
      this.#aheadStopped = false;
    }
    if (this.#broken) throw this.#broken;
  }

  /** Writes the frame durably. Once it has failed nobody can tell what of it is there, and the segment must not be written any more. */
  async write(parts: readonly Uint8Array[], frameBytes: number): Promise<void> {
    assert(this.#usedBytes + frameBytes + FRAME_HEADER_BYTES <= this.#allocatedBytes, 'a frame without room');
    await this.#syscalls.writeDurable(this.#writeFd, parts, this.#usedBytes);
    if (this.#broken) throw this.#broken;
    this.#usedBytes += frameBytes;
    this.#fillAhead();
  }

  async close(): Promise<void> {
    await this.#filling;
    await this.#syscalls.close(this.#fillFd);
    await this.#syscalls.close(this.#writeFd);
  }

  #nextSize(): number {
    return Math.min(this.#limitBytes, this.#allocatedBytes + this.#step());
  }

  #step(): number {
    return Math.min(MOST_STEP_BYTES, Math.max(LEAST_STEP_BYTES, this.#allocatedBytes));
  }

  /** Begins to make more room while appends still have some. */
  #fillAhead(): void {
    if (this.#filling || this.#aheadStopped || this.#allocatedBytes >= this.#limitBytes) return;
    if (this.#allocatedBytes - this.#usedBytes >= this.#step() / 2) return;
    this.#filling = this.#extend(this.#nextSize())
      .catch((error: unknown) => {
        this.#aheadStopped = true;
        if (isOutOfSpace(error)) this.#logger.warn('no room ahead in the commit log', { error: String(error) });
        else this.#broken = error;
      })
      .finally(() => {
        this.#filling = undefined;
      });
  }

  async #extend(sizeBytes: number): Promise<void> {
    try {
      await fill(this.#syscalls, this.#fillFd, this.#allocatedBytes, sizeBytes);
      await this.#syscalls.datasync(this.#fillFd);
    } catch (error) {
      if (!isOutOfSpace(error)) this.#broken = error;
      throw error;
    }
    this.#allocatedBytes = sizeBytes;
  }
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
