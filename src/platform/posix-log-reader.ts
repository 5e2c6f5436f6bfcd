/**
 * Reads a log's segments: yields its appends, tells a torn tail from damage. Format and reasons: docs/formats/log-file.md.
 *
 * The rule: the bytes behind the last whole frame are a torn tail only where one write that did not end can have left them so: the
 * header is zero, or valid with a sector of its frame still zero; nothing valid follows; it is the last segment; and the file
 * goes on behind them, as the room made ahead must. Everything else is a CorruptionError.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { assert, CorruptionError } from '../base/index.ts';
import type { LogAppend, LogPosition } from '../env/index.ts';
import { errnoOf } from './posix-errors.ts';
import {
  checksumOf, decodeFrameHeader, decodeSegmentHeader, FENCE_NAME, FRAME_ALIGN, FRAME_HEADER_BYTES, FRAME_NONCE_OFFSET, type FrameHeader, frameBytes, isZero,
  mayBeTorn, SEGMENT_HEADER_BYTES, type SegmentHeader, segmentBase, segmentName,
} from './posix-log-format.ts';
import type { LogSetting } from './posix-log-writer.ts';

/** A segment is read so many bytes at a time: a turn of the event loop each. */
const WINDOW_BYTES = 1 << 20;
/** Payloads below this size are copied out of their window, so that what is kept of one does not keep the window. */
const COPIED_BYTES = 16 << 10;
/** So many bytes are searched at a time for frames behind the end. */
const SEARCH_BYTES = 1 << 20;

/** The appends at `from` and above. `end`: where the log is known to end, so that nothing before it may be torn. */
export async function* readLogSegments(setting: LogSetting, path: string, from: LogPosition, end: LogPosition | undefined): AsyncIterable<LogAppend> {
  const bases = await segmentsOf(setting, path);
  let nonce: Buffer | undefined;
  for (const [i, base] of bases.entries()) {
    const next = bases[i + 1];
    if (next !== undefined && next <= from) continue;
    // a segment that was begun after the end was asked for
    if (end !== undefined && base > end) return;
    const file = join('logs', path, segmentName(base));
    const fd = await setting.syscalls.open(join(setting.directories.root, file), constants.O_RDONLY);
    try {
      const reader = await SegmentReader.open(setting, fd, file, base, next ?? end, next === undefined);
      if (nonce && !nonce.equals(reader.nonce)) throw new CorruptionError(file, FRAME_NONCE_OFFSET, 'the segment belongs to another log');
      nonce = reader.nonce;
      await reader.skipTo(from);
      for (let append = await reader.next(); append; append = await reader.next()) if (append.position >= from) yield append;
    } finally {
      await setting.syscalls.close(fd);
    }
  }
}

/** Bases of the log's segments, ascending. */
async function segmentsOf(setting: LogSetting, path: string): Promise<number[]> {
  const entries = await setting.syscalls.readdir(setting.directories.logPath(path)).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return [];
    throw error;
  });
  const bases: number[] = [];
  for (const { name, isDirectory } of entries) {
    const base = segmentBase(name);
    if (base !== undefined) bases.push(base);
    else if (name !== FENCE_NAME && !isDirectory) throw new CorruptionError(join('logs', path, name), 0, 'not a file of a log');
  }
  return bases.sort((a, b) => a - b);
}

class SegmentReader {
  readonly nonce: Buffer;
  readonly #setting: LogSetting;
  readonly #fd: number;
  readonly #file: string;
  readonly #base: number;
  readonly #sizeBytes: number;
  /** Where in the file the last frame surely ends; undefined in the last segment of a log without a writer. */
  readonly #endOffset: number | undefined;
  /** Whether a later segment begins at that end. */
  readonly #isLast: boolean;
  #offset = SEGMENT_HEADER_BYTES;
  #window: Buffer = Buffer.alloc(0);
  #windowOffset = 0;

  private constructor(setting: LogSetting, fd: number, file: string, header: SegmentHeader, sizeBytes: number, end: LogPosition | undefined, isLast: boolean) {
    this.#setting = setting;
    this.#fd = fd;
    this.#file = file;
    this.nonce = header.nonce;
    this.#base = header.base;
    this.#sizeBytes = sizeBytes;
    this.#endOffset = end === undefined ? undefined : end - header.base + SEGMENT_HEADER_BYTES;
    this.#isLast = isLast;
  }

  static async open(
    setting: LogSetting, fd: number, file: string, base: number, end: LogPosition | undefined, isLast: boolean,
  ): Promise<SegmentReader> {
    const bytes = Buffer.alloc(SEGMENT_HEADER_BYTES);
    const got = await setting.syscalls.read(fd, bytes, 0, bytes.length, 0);
    const header = decodeSegmentHeader(bytes.subarray(0, got), file, setting.checksum);
    if (header.base !== base) throw new CorruptionError(file, 24, `the segment begins at position ${header.base}, not where its name says`);
    return new SegmentReader(setting, fd, file, header, await setting.syscalls.fileSize(fd), end, isLast);
  }

  /** Passes over what lies before `position`, where a frame begins there; else begins at the segment's first frame. */
  async skipTo(position: LogPosition): Promise<void> {
    const offset = position - this.#base + SEGMENT_HEADER_BYTES;
    if (offset <= this.#offset || offset % FRAME_ALIGN !== 0 || offset + FRAME_HEADER_BYTES > this.#sizeBytes) return;
    if (this.#frameAt(await this.#fetch(offset, FRAME_HEADER_BYTES), offset)) this.#offset = offset;
  }

  /** The next append, or undefined at the clean end of the segment. */
  async next(): Promise<LogAppend | undefined> {
    const offset = this.#offset;
    if (offset === this.#endOffset) return undefined;
    if (this.#endOffset !== undefined && offset > this.#endOffset) throw this.#corrupt(offset, 'a frame reaches into the next segment');
    if (offset + FRAME_HEADER_BYTES > this.#sizeBytes) throw this.#corrupt(offset, 'the file ends where room for a frame must be');
    const bytes = await this.#fetch(offset, FRAME_HEADER_BYTES);
    const header = this.#frameAt(bytes, offset);
    if (!header) return this.#noFrame(offset, isZero(bytes));
    const size = frameBytes(header.payloadBytes);
    if (offset + size > this.#sizeBytes) throw this.#corrupt(offset, `the file ends within a frame of ${size} bytes`);
    const frame = await this.#fetch(offset, size);
    const payload = frame.subarray(FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + header.payloadBytes);
    const { checksum, pause } = this.#setting;
    if ((await checksumOf([payload], checksum, pause)) !== header.payloadChecksum) {
      if (!mayBeTorn(frame, offset)) throw this.#corrupt(offset, 'the checksum of an append that was written whole is wrong');
      return this.#noFrame(offset, true);
    }
    this.#offset = offset + size;
    return { position: header.position, bytes: payload.length < COPIED_BYTES ? Buffer.from(payload) : payload };
  }

  /** No valid frame at `offset`: the end of the log, or damage. */
  async #noFrame(offset: number, unwritten: boolean): Promise<undefined> {
    if (!unwritten) throw this.#corrupt(offset, 'neither a frame nor room for one');
    if (this.#endOffset !== undefined) {
      const end = this.#endOffset - SEGMENT_HEADER_BYTES + this.#base;
      throw this.#corrupt(offset, this.#isLast ? 'an acknowledged append is missing' : `appends up to position ${end} are missing`);
    }
    const later = await this.#search(offset + FRAME_ALIGN);
    if (later !== undefined) throw this.#corrupt(offset, `no append here, but a valid one follows at byte ${later}`);
    return undefined;
  }

  /** Where the first valid frame at or behind `offset` begins. */
  async #search(offset: number): Promise<number | undefined> {
    const window = Buffer.allocUnsafe(Math.max(0, Math.min(SEARCH_BYTES, this.#sizeBytes - offset)));
    // windows overlap by a header, so that one that is cut by the end of the first lies whole in the second
    for (let start = offset; start + FRAME_HEADER_BYTES <= this.#sizeBytes; start += SEARCH_BYTES - FRAME_HEADER_BYTES) {
      const got = window.subarray(0, await this.#setting.syscalls.read(this.#fd, window, 0, window.length, start));
      for (let at = got.indexOf(this.nonce); at >= 0; at = got.indexOf(this.nonce, at + 1)) {
        const begin = at - FRAME_NONCE_OFFSET;
        if (begin < 0 || begin + FRAME_HEADER_BYTES > got.length || (start + begin) % FRAME_ALIGN !== 0) continue;
        if (this.#frameAt(got.subarray(begin, begin + FRAME_HEADER_BYTES), start + begin)) return start + begin;
      }
    }
    return undefined;
  }

  #frameAt(bytes: Buffer, offset: number): FrameHeader | undefined {
    return decodeFrameHeader(bytes, this.#base + offset - SEGMENT_HEADER_BYTES, this.nonce, this.#setting.checksum);
  }

  /** The bytes, in memory that is not written to again. They must lie within the file. What the last window has of them is not read anew. */
  async #fetch(offset: number, length: number): Promise<Buffer> {
    const at = offset - this.#windowOffset;
    const there = at < 0 ? 0 : Math.max(0, this.#window.length - at);
    if (there >= length) return this.#window.subarray(at, at + length);
    const wanted = Math.min(Math.max(length, WINDOW_BYTES), this.#sizeBytes - offset);
    assert(wanted >= length, `${this.#file}: a read behind its end`);
    const window = Buffer.allocUnsafeSlow(wanted);
    if (there > 0) this.#window.copy(window, 0, at);
    for (let got = there; got < wanted; ) {
      const n = await this.#setting.syscalls.read(this.#fd, window, got, wanted - got, offset + got);
      if (n === 0) throw this.#corrupt(offset + got, 'the file became shorter while it was read');
      got += n;
    }
    this.#window = window;
    this.#windowOffset = offset;
    return window.subarray(0, length);
  }

  #corrupt(offset: number, what: string): CorruptionError {
    return new CorruptionError(this.#file, offset, what);
  }
}
