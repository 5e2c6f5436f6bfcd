/**
 * The writer of a log in a directory: frames into segments, one append in flight. Format: docs/formats/log-file.md.
 *
 * Invariants:
 * - No append resolves before its durable write has returned.
 * - Once an append may or may not be there, no other is written behind it.
 * - A segment is begun only when every frame of the one before it is durable, and its base is where that one ended; segments
 *   are removed from the lowest up. So a reader knows of every hole.
 */
import { join } from 'node:path';
import { assert, BigtableError, Code, unavailable } from '../base/index.ts';
import type { Checksum, Logger, LogPosition, LogWriter } from '../env/index.ts';
import type { Directories } from './posix-directories.ts';
import { errnoOf, isOutOfSpace, systemCall } from './posix-errors.ts';
import {
  checksumOf, encodeFrameEnd, encodeFrameHeader, encodeSegmentHeader, frameBytes, MOST_APPEND_BYTES, SEGMENT_HEADER_BYTES, type SegmentHeader, segmentName,
} from './posix-log-format.ts';
import { LogSegment } from './posix-log-segment.ts';
import type { Syscalls } from './posix-syscalls.ts';

/** What the logs of a directory share. */
export interface LogSetting {
  readonly syscalls: Syscalls;
  readonly directories: Directories;
  readonly checksum: Checksum;
  readonly logger: Logger;
  /** Size at which a segment ends. */
  readonly segmentBytes: number;
  /** Lets other work have its turn. */
  readonly pause: () => Promise<void>;
}

interface SealedSegment {
  readonly base: number;
  readonly end: number;
  readonly sizeBytes: number;
}

export class PosixLogWriter implements LogWriter {
  readonly path: string;
  readonly #setting: LogSetting;
  readonly #directory: string;
  readonly #nonce: Buffer;
  readonly #sealed: SealedSegment[] = [];
  #segment: LogSegment;
  #base = 0;
  #inFlight: Promise<LogPosition> | undefined;
  #trimming: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;
  /** Why no append can be made any more. */
  #ended: string | undefined;
  #outcomeUnknown = false;

  private constructor(setting: LogSetting, path: string, nonce: Buffer, segment: LogSegment) {
    this.#setting = setting;
    this.path = path;
    this.#directory = setting.directories.logPath(path);
    this.#nonce = nonce;
    this.#segment = segment;
  }

  /** Makes the log's first segment in `directory`, from where the caller moves it to its place. */
  static async create(setting: LogSetting, path: string, directory: string, nonce: Buffer): Promise<PosixLogWriter> {
    const segment = await createSegment(setting, join(directory, segmentName(0)), { nonce, base: 0 }, 0, 0);
    return new PosixLogWriter(setting, path, nonce, segment);
  }

  /** Behind the last acknowledged append; undefined where an append of unknown outcome may follow it. */
  get end(): LogPosition | undefined {
    return this.#outcomeUnknown ? undefined : this.#position();
  }

  async append(parts: readonly Uint8Array[]): Promise<LogPosition> {
    assert(!this.#inFlight, `${this.path}: two appends at once`);
    if (this.#ended !== undefined) throw new BigtableError(Code.FAILED_PRECONDITION, `${this.path}: nothing can be appended: ${this.#ended}`);
    this.#inFlight = this.#append(parts);
    try {
      return await this.#inFlight;
    } finally {
      this.#inFlight = undefined;
    }
  }

  trimBefore(position: LogPosition): Promise<void> {
    this.#trimming = this.#trimming.then(() => this.#trim(position));
    const trimmed = this.#trimming;
    this.#trimming = trimmed.catch(() => undefined);
    return trimmed;
  }

  sizeBytes(): number {
    return this.#sealed.reduce((sum, segment) => sum + segment.sizeBytes, this.#segment.sizeBytes);
  }

  /** Makes every later append fail for that reason; resolves when the one in flight has ended. */
  async endWith(reason: string): Promise<void> {
    this.#ended ??= reason;
    await this.#inFlight?.catch(() => undefined);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.endWith('the log is closed');
    await this.#trimming;
    await systemCall(this.path, this.#segment.close());
  }

  #position(): LogPosition {
    return this.#base + this.#segment.usedBytes - SEGMENT_HEADER_BYTES;
  }

  async #append(parts: readonly Uint8Array[]): Promise<LogPosition> {
    let payloadBytes = 0;
    for (const part of parts) payloadBytes += part.length;
    if (payloadBytes > MOST_APPEND_BYTES) {
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, `${this.path}: an append of ${payloadBytes} bytes, the limit is ${MOST_APPEND_BYTES}`, { retry: false });
    }
    const size = frameBytes(payloadBytes);
    await this.#makeRoom(size);
    const { checksum, pause } = this.#setting;
    const position = this.#position();
    const payloadChecksum = await checksumOf(parts, checksum, pause);
    const header = encodeFrameHeader({ payloadBytes, position, payloadChecksum }, this.#nonce, checksum);
    try {
      await this.#segment.write([header, ...parts, encodeFrameEnd(payloadBytes)], size);
    } catch (error) {
      throw this.#segment.isBroken ? this.#giveUp(error, 'the write failed') : this.#noRoom(size, error);
    }
    return position;
  }

  async #makeRoom(size: number): Promise<void> {
    try {
      if (!this.#segment.takes(size)) await this.#rotate(size);
      await this.#segment.makeRoom(size);
    } catch (error) {
      if (!isOutOfSpace(error)) throw this.#giveUp(error, 'no room could be made');
      throw this.#noRoom(size, error);
    }
  }

  #noRoom(size: number, cause: unknown): BigtableError {
    return new BigtableError(Code.RESOURCE_EXHAUSTED, `${this.path}: the disk has no room for ${size} bytes: nothing was written`, { cause });
  }

  async #rotate(size: number): Promise<void> {
    const { directories } = this.#setting;
    const base = this.#position();
    const path = join(this.#directory, segmentName(base));
    const temporary = directories.temporaryPath();
    const next = await createSegment(this.#setting, temporary, { nonce: this.#nonce, base }, size, this.#segment.meanFrameBytes);
    try {
      await directories.place(temporary, path);
    } catch (error) {
      await next.close().catch(() => undefined);
      throw error;
    }
    const full = this.#segment;
    try {
      await directories.sync(this.#directory);
      await full.close();
    } catch (error) {
      // whatever the system said: the name is there, so this is no refusal that left nothing behind
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
      await systemCall(`${this.path}: removing ${name}`, this.#setting.syscalls.unlink(path).catch(unlessGone));
      // one after another: were a later one gone and an earlier one left after a crash, the log would seem to have a hole
      await systemCall(this.path, this.#setting.directories.sync(this.#directory));
      this.#sealed.shift();
    }
  }

  #giveUp(error: unknown, what: string): BigtableError {
    this.#outcomeUnknown = true;
    this.#ended ??= 'an earlier append failed and may or may not be there';
    this.#setting.logger.error('the commit log failed', { log: this.path, error: String(error) });
    return unavailable(`${this.path}: ${what}, the outcome of the append is unknown`, error);
  }
}

/** An earlier try may have removed it and failed after that. */
function unlessGone(error: unknown): void {
  if (errnoOf(error) !== 'ENOENT') throw error;
}

function createSegment(setting: LogSetting, path: string, header: SegmentHeader, firstFrameBytes: number, meanFrameBytes: number): Promise<LogSegment> {
  const { syscalls, logger, checksum, segmentBytes } = setting;
  return LogSegment.create({ syscalls, logger, path, header: encodeSegmentHeader(header, checksum), firstFrameBytes, meanFrameBytes, limitBytes: segmentBytes });
}
