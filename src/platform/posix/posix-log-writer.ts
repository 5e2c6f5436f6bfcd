/**
 * The writer of a log in a directory: frames into segments, one append in flight. Format: docs/formats/log-file.md.
 *
 * Invariants:
 * - No append resolves before its durable write has returned.
 * - In the segment that is written to, space is allocated for all that is reserved: an append into it opens, names and
 *   extends nothing. So a segment is ended where a frame or a reservation would reach beyond its limit.
 * - After an append of unknown outcome no other is written.
 * - A segment is begun only when every frame of the one before it is durable, and its base is the end of that one;
 *   segments are removed from the lowest up. So a reader detects every hole.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { assert, BigtableError, Code, unavailable } from '../../base/index.ts';
import {
  APPEND_OVERHEAD_BYTES,
  type AppendOptions,
  type Checksum,
  checksumOf,
  type Logger,
  type LogPosition,
  type LogWriter,
} from '../../env/index.ts';
import type { Directories } from './posix-directories.ts';
import type { DurableWrites } from './posix-durable-writes.ts';
import { errnoOf, isLackOfResources, isOutOfSpace, systemCall } from './posix-errors.ts';
import {
  encodeFrameEnd,
  encodeFrameHeader,
  encodeSegmentHeader,
  frameBytes,
  MAX_APPEND_BYTES,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
  segmentName,
} from './posix-log-format.ts';
import { LogSegment, type SegmentOptions } from './posix-log-segment.ts';
import type { Syscalls } from './posix-syscalls.ts';

/** The part that the logs of a directory share. */
export interface LogSetting {
  readonly syscalls: Syscalls;
  readonly directories: Directories;
  readonly checksum: Checksum;
  readonly logger: Logger;
  /** Size at which a segment ends. */
  readonly segmentBytes: number;
  /** Yields to other work. */
  readonly pause: () => Promise<void>;
}

/** The same for the writers of these logs. */
export interface LogWriterSetting extends LogSetting {
  readonly durableWrites: DurableWrites;
}

interface SealedSegment {
  readonly base: number;
  readonly end: number;
  readonly sizeBytes: number;
}

export class PosixLogWriter implements LogWriter {
  readonly path: string;
  readonly #setting: LogWriterSetting;
  readonly #directory: string;
  readonly #nonce: Buffer;
  readonly #sealed: SealedSegment[] = [];
  /** The log's directory, kept open, so that making a new segment's name durable needs no new descriptor. */
  readonly #directoryFd: number;
  #segment: LogSegment;
  #base = 0;
  #isAppending = false;
  /** Appends and reservations take turns in the order of the calls. Never rejects. */
  #lastTurn: Promise<unknown> = Promise.resolve();
  /** Space that is allocated for later appends. */
  #reservedBytes = 0;
  #trimming: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;
  /** The reason why every append is refused; undefined while the log is open. */
  #ended: string | undefined;
  #outcomeUnknown = false;

  private constructor(
    setting: LogWriterSetting,
    path: string,
    nonce: Buffer,
    segment: LogSegment,
    directoryFd: number,
  ) {
    this.#setting = setting;
    this.path = path;
    this.#directory = setting.directories.logPath(path);
    this.#nonce = nonce;
    this.#segment = segment;
    this.#directoryFd = directoryFd;
  }

  /** Makes the log's first segment in `directory`, which the caller renames to the log's. */
  static async create(
    setting: LogWriterSetting,
    path: string,
    directory: string,
    nonce: Buffer,
  ): Promise<PosixLogWriter> {
    const directoryFd = await setting.syscalls.open(directory, constants.O_RDONLY);
    try {
      const segment = await createSegment(setting, { path: join(directory, segmentName(0)), nonce, base: 0 });
      return new PosixLogWriter(setting, path, nonce, segment, directoryFd);
    } catch (error) {
      await setting.syscalls.close(directoryFd).catch(() => undefined);
      throw error;
    }
  }

  /** The position after the last acknowledged append; undefined where an append of unknown outcome may follow it. */
  get end(): LogPosition | undefined {
    return this.#outcomeUnknown ? undefined : this.#position();
  }

  async append(parts: readonly Uint8Array[], { reserved = false }: AppendOptions = {}): Promise<LogPosition> {
    assert(!this.#isAppending, 'no two appends of a log run concurrently');
    this.#isAppending = true;
    try {
      return await this.#inTurn(() => this.#append(parts, reserved));
    } finally {
      this.#isAppending = false;
    }
  }

  reserve(bytes: number): Promise<void> {
    return this.#inTurn(async () => {
      await this.#allocate(bytes);
      this.#reservedBytes += bytes;
    });
  }

  async trimBefore(position: LogPosition): Promise<void> {
    if (this.#closing) return;
    this.#trimming = this.#trimming.then(() => this.#trim(position));
    const trimmed = this.#trimming;
    this.#trimming = trimmed.catch(() => undefined);
    await trimmed;
  }

  sizeBytes(from: LogPosition = 0): number {
    let bytes = this.#segment.sizeBytes;
    for (let i = this.#sealed.length - 1; i >= 0 && this.#sealed[i]!.end > from; i--)
      bytes += this.#sealed[i]!.sizeBytes;
    return bytes;
  }

  /** Makes every later append fail for that reason; resolves when the one in flight has ended. */
  async endWith(reason: string): Promise<void> {
    this.#ended ??= reason;
    await this.#lastTurn;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.endWith('the log is closed');
    await this.#trimming;
    await systemCall(this.path, this.#segment.close(true));
    await systemCall(this.path, this.#setting.syscalls.close(this.#directoryFd));
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#checkNotEnded();
    const turn = this.#lastTurn.then(() => {
      // an earlier append may have failed; a log that is fenced or closed meanwhile waits for this one
      if (this.#outcomeUnknown) this.#checkNotEnded();
      return work();
    });
    this.#lastTurn = turn.catch(() => undefined);
    return turn;
  }

  #checkNotEnded(): void {
    if (this.#ended !== undefined)
      throw new BigtableError(Code.FAILED_PRECONDITION, `${this.path}: nothing can be appended: ${this.#ended}`);
  }

  #position(): LogPosition {
    return this.#base + this.#segment.usedBytes - SEGMENT_HEADER_BYTES;
  }

  async #append(parts: readonly Uint8Array[], reserved: boolean): Promise<LogPosition> {
    let payloadBytes = 0;
    for (const part of parts) payloadBytes += part.length;
    if (payloadBytes > MAX_APPEND_BYTES) {
      throw new BigtableError(
        Code.RESOURCE_EXHAUSTED,
        `${this.path}: an append of ${payloadBytes} bytes, the limit is ${MAX_APPEND_BYTES}`,
        { retry: false },
      );
    }
    const size = frameBytes(payloadBytes);
    const takenBytes = payloadBytes + APPEND_OVERHEAD_BYTES;
    if (!reserved) await this.#ensureSpace(size);
    else
      assert(
        size <= takenBytes && takenBytes <= this.#reservedBytes,
        'an append takes no more bytes than are reserved',
      );
    const { checksum, pause } = this.#setting;
    const position = this.#position();
    const payloadChecksum = await checksumOf(parts, checksum, pause);
    const header = encodeFrameHeader({ payloadBytes, position, payloadChecksum }, this.#nonce, checksum);
    try {
      await this.#segment.write([header, ...parts, encodeFrameEnd(payloadBytes)], size);
    } catch (error) {
      throw this.#segment.isBroken ? this.#cancel(error, 'the write failed') : this.#noSpace(size, error);
    }
    if (reserved) this.#reservedBytes -= takenBytes;
    return position;
  }

  /** Makes space for a frame of that size, without using reserved space. */
  async #ensureSpace(size: number): Promise<void> {
    if (this.#reservedBytes > 0) return this.#allocate(size);
    try {
      if (!this.#segment.takes(size)) await this.#rotate(size, 0);
      await this.#segment.ensureSpace(size);
    } catch (error) {
      throw this.#spaceFailure(size, error);
    }
  }

  /** Allocates space for `bytes` of frames more than are reserved. */
  async #allocate(bytes: number): Promise<void> {
    const allBytes = this.#reservedBytes + bytes;
    try {
      if (this.#segment.takes(allBytes)) await this.#segment.allocate(allBytes);
      else await this.#rotate(allBytes, allBytes);
    } catch (error) {
      throw this.#spaceFailure(bytes, error);
    }
  }

  #spaceFailure(bytes: number, error: unknown): BigtableError {
    return isLackOfResources(error) ? this.#noSpace(bytes, error) : this.#cancel(error, 'no space could be allocated');
  }

  #noSpace(bytes: number, cause: unknown): BigtableError {
    const why = isOutOfSpace(cause) ? 'the disk has no space' : `no space can be allocated now (${errnoOf(cause)})`;
    return new BigtableError(Code.RESOURCE_EXHAUSTED, `${this.path}: ${why} for ${bytes} bytes: nothing was written`, {
      cause,
    });
  }

  /**
   * Begins a new segment, whose first frame will have up to `firstFrameBytes`, and in which space for `allocatedBytes`
   * of frames is allocated.
   */
  async #rotate(firstFrameBytes: number, allocatedBytes: number): Promise<void> {
    const { directories, syscalls } = this.#setting;
    const base = this.#position();
    const path = join(this.#directory, segmentName(base));
    const temporary = directories.temporaryPath();
    const { meanFrameBytes } = this.#segment;
    const next = await createSegment(this.#setting, {
      path: temporary,
      nonce: this.#nonce,
      base,
      firstFrameBytes,
      meanFrameBytes,
      allocatedBytes,
    });
    try {
      await directories.link(temporary, path);
    } catch (error) {
      await next.close().catch(() => undefined);
      throw error;
    }
    const full = this.#segment;
    try {
      await syscalls.sync(this.#directoryFd);
      await full.close();
    } catch (error) {
      // the name exists, so this failure has an effect, whatever its code
      throw unavailable(`${this.path}: segment ${base} could not be begun`, error);
    }
    this.#sealed.push({ base: this.#base, end: base, sizeBytes: full.sizeBytes });
    this.#segment = next;
    this.#base = base;
  }

  async #trim(position: LogPosition): Promise<void> {
    for (let first = this.#sealed[0]; first && first.end <= position; first = this.#sealed[0]) {
      const name = segmentName(first.base);
      const path = join(this.#directory, name);
      await systemCall(`${this.path}: removing ${name}`, this.#setting.syscalls.unlink(path).catch(ignoreMissing));
      // one after another: if a crash left an earlier one without a later one, the log would seem to have a hole
      await systemCall(this.path, this.#setting.syscalls.sync(this.#directoryFd));
      this.#sealed.shift();
    }
  }

  #cancel(error: unknown, what: string): BigtableError {
    this.#outcomeUnknown = true;
    this.#ended ??= 'an earlier append failed and may or may not be there';
    this.#setting.logger.error('the commit log failed', { log: this.path, error: String(error) });
    return unavailable(`${this.path}: ${what}, the outcome of the append is unknown`, error);
  }
}

/** An earlier attempt may have removed it and failed after that. */
function ignoreMissing(error: unknown): void {
  if (errnoOf(error) !== 'ENOENT') throw error;
}

interface NewSegment
  extends SegmentHeader,
    Partial<Pick<SegmentOptions, 'firstFrameBytes' | 'meanFrameBytes' | 'allocatedBytes'>> {
  readonly path: string;
}

function createSegment(setting: LogWriterSetting, segment: NewSegment): Promise<LogSegment> {
  const { syscalls, durableWrites, logger, checksum, segmentBytes: limitBytes } = setting;
  const { path, firstFrameBytes = 0, meanFrameBytes = 0, allocatedBytes = 0 } = segment;
  const headerFor = (bytes: number): Buffer =>
    encodeSegmentHeader(
      { nonce: segment.nonce, base: segment.base, written: bytes === 0 ? 0 : segment.base + bytes },
      checksum,
    );
  return LogSegment.create({
    syscalls,
    durableWrites,
    logger,
    path,
    headerFor,
    firstFrameBytes,
    meanFrameBytes,
    allocatedBytes,
    limitBytes,
  });
}
