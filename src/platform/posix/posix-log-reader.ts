/**
 * Reads a log's segments: yields its appends, distinguishes a torn tail from damage. Format and reasons:
 * docs/formats/log-file.md.
 *
 * The rule: the bytes after the last whole frame are a torn tail only where one unfinished write can have left them so:
 * the header is zero, or valid with a sector of its frame still zero; nothing valid follows; it is the last segment;
 * its header does not say that frames reach further; and the file continues after them, as the space allocated ahead
 * must. Everything else is a CorruptionError.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { CorruptionError } from '../../base/index.ts';
import { checksumOf, type LogAppend, type LogPosition } from '../../env/index.ts';
import { errnoOf } from './posix-errors.ts';
import {
  decodeFrameHeader,
  decodeSegmentHeader,
  FENCE_NAME,
  FRAME_ALIGN,
  FRAME_HEADER_BYTES,
  FRAME_NONCE_OFFSET,
  type FrameHeader,
  frameBytes,
  isZero,
  mayBeTorn,
  SEGMENT_HEADER_BYTES,
  segmentBase,
  segmentName,
} from './posix-log-format.ts';
import type { LogSetting } from './posix-log-writer.ts';
import { ReadAhead } from './posix-read-ahead.ts';

/**
 * A segment is read in chunks of this size, one chunk ahead: a turn of the event loop each. Chunks begin at multiples
 * of FRAME_ALIGN.
 */
const CHUNK_BYTES = 4 << 20;
/** The same for a reading that is one of many, and stands still for as long as its reader likes: 1 MiB, not 16. */
export const SMALL_CHUNK_BYTES = 256 << 10;
/** Payloads below this size are copied out of their window, so that a kept payload does not keep the window. */
const MAX_COPIED_BYTES = 16 << 10;
/** Bytes searched in one slice for frames after the end. */
const SEARCH_BYTES = 1 << 20;

/**
 * The appends at `from` and above. `end` returns the known end of the log now; nothing before it may be torn. After a
 * trim meanwhile the reading continues with the segments that are left.
 */
export async function* readLogSegments(
  setting: LogSetting,
  path: string,
  from: LogPosition,
  end: () => LogPosition | undefined,
  chunkBytes = CHUNK_BYTES,
): AsyncIterable<LogAppend> {
  let extents = await extentsOf(setting, path, from, end);
  let nonce: Buffer | undefined;
  let afterTrim = false;
  let next = open(setting, extents[0], chunkBytes);
  try {
    for (let i = 0; i < extents.length; i++) {
      const { file, base } = extents[i]!;
      let reader: SegmentReader;
      try {
        reader = (await next)!;
      } catch (error) {
        if (errnoOf(error) !== 'ENOENT') throw error;
        const left = await extentsOf(setting, path, base, end);
        // a trim removes the lowest segments: where a lower one is left, or none at all, this was not a trim
        if (left[0] === undefined || left[0].base <= base) throw error;
        extents = left;
        i = -1;
        afterTrim = true;
        next = open(setting, extents[0], chunkBytes);
        continue;
      }
      // opened, and its first chunk read, while this one is processed
      next = open(setting, extents[i + 1], chunkBytes);
      try {
        if (nonce && !nonce.equals(reader.nonce))
          throw new CorruptionError(file, FRAME_NONCE_OFFSET, 'the segment belongs to another log');
        nonce = reader.nonce;
        await reader.skipTo(from);
        for (let append = await reader.next(); append; append = await reader.next()) {
          if (append.position < from) continue;
          yield afterTrim ? { ...append, afterTrim } : append;
          afterTrim = false;
        }
      } finally {
        await reader.close();
      }
    }
  } finally {
    // the reading ended early; an error of a segment that was not reached does not matter
    await next?.then(
      (reader) => reader.close(),
      () => {},
    );
  }
}

/** As `FileSystem.logTail`. The last segment may have no append yet. */
export async function findLogTail(setting: LogSetting, path: string): Promise<LogPosition> {
  const bases = await segmentsOf(setting, path);
  return bases.length > 2 ? bases.at(-2)! : 0;
}

/** The segments that hold appends at `from` and above, ascending. */
async function extentsOf(
  setting: LogSetting,
  path: string,
  from: LogPosition,
  endOf: () => LogPosition | undefined,
): Promise<SegmentExtent[]> {
  const end = endOf();
  const bases = await segmentsOf(setting, path);
  const extents: SegmentExtent[] = [];
  for (const [i, base] of bases.entries()) {
    const next = bases[i + 1];
    // without segments that were begun after the end was requested
    if ((next === undefined || next > from) && (end === undefined || base <= end)) {
      extents.push({ file: join('logs', path, segmentName(base)), base, end: next ?? end, isLast: next === undefined });
    }
  }
  return extents;
}

interface SegmentExtent {
  readonly file: string;
  readonly base: LogPosition;
  /** The position where its frames surely end; undefined in the last segment of a log without a writer. */
  readonly end: LogPosition | undefined;
  /** True when no later segment begins at that end. */
  readonly isLast: boolean;
}

function open(
  setting: LogSetting,
  extent: SegmentExtent | undefined,
  chunkBytes: number,
): Promise<SegmentReader> | undefined {
  const opening = extent && SegmentReader.open(setting, extent, chunkBytes);
  // the error is thrown when the segment is reached
  opening?.catch(() => {});
  return opening;
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
    else if (name !== FENCE_NAME && !isDirectory)
      throw new CorruptionError(join('logs', path, name), 0, 'not a file of a log');
  }
  return bases.sort((a, b) => a - b);
}

class SegmentReader {
  readonly nonce: Buffer;
  readonly #setting: LogSetting;
  readonly #fd: number;
  readonly #extent: SegmentExtent;
  readonly #sizeBytes: number;
  /** The offset in the file where the last frame surely ends. */
  readonly #endOffset: number | undefined;
  /** The position in its header: frames before it are written. */
  readonly #written: LogPosition;
  readonly #ahead: ReadAhead;
  #offset = SEGMENT_HEADER_BYTES;

  private constructor(
    setting: LogSetting,
    extent: SegmentExtent,
    fd: number,
    sizeBytes: number,
    header: { readonly nonce: Buffer; readonly written: LogPosition },
    ahead: ReadAhead,
  ) {
    const { base, end } = extent;
    this.#setting = setting;
    this.#extent = extent;
    this.#fd = fd;
    this.#sizeBytes = sizeBytes;
    this.nonce = header.nonce;
    this.#written = header.written;
    this.#endOffset = end === undefined ? undefined : end - base + SEGMENT_HEADER_BYTES;
    this.#ahead = ahead;
  }

  static async open(setting: LogSetting, extent: SegmentExtent, chunkBytes: number): Promise<SegmentReader> {
    const { syscalls, directories, checksum } = setting;
    const { file, base } = extent;
    const fd = await syscalls.open(join(directories.root, file), constants.O_RDONLY);
    let ahead: ReadAhead | undefined;
    try {
      const sizeBytes = await syscalls.fileSize(fd);
      const tooShort = (offset: number): Error =>
        new CorruptionError(file, offset, 'the file became shorter while it was read');
      ahead = new ReadAhead({ syscalls, fd, sizeBytes, chunkBytes, tooShort });
      const header = decodeSegmentHeader(
        await ahead.bytes(0, Math.min(SEGMENT_HEADER_BYTES, sizeBytes)),
        file,
        checksum,
      );
      if (header.base !== base)
        throw new CorruptionError(file, 24, `the segment begins at position ${header.base}, not where its name says`);
      return new SegmentReader(setting, extent, fd, sizeBytes, header, ahead);
    } catch (error) {
      await ahead?.stop();
      await syscalls.close(fd);
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#ahead.stop();
    await this.#setting.syscalls.close(this.#fd);
  }

  /** Skips to `position`, where a frame begins there; else begins at the segment's first frame. */
  async skipTo(position: LogPosition): Promise<void> {
    const offset = position - this.#extent.base + SEGMENT_HEADER_BYTES;
    if (offset <= this.#offset || offset % FRAME_ALIGN !== 0 || offset + FRAME_HEADER_BYTES > this.#sizeBytes) return;
    if (this.#frameAt(await this.#ahead.bytes(offset, FRAME_HEADER_BYTES), offset)) this.#offset = offset;
  }

  /** The next append, or undefined at the clean end of the segment. */
  async next(): Promise<LogAppend | undefined> {
    const offset = this.#offset;
    if (offset === this.#endOffset) return undefined;
    if (this.#endOffset !== undefined && offset > this.#endOffset)
      throw this.#corrupt(offset, 'a frame reaches into the next segment');
    if (offset + FRAME_HEADER_BYTES > this.#sizeBytes)
      throw this.#corrupt(offset, 'the file ends where space for a frame must be');
    const bytes = await this.#ahead.bytes(offset, FRAME_HEADER_BYTES);
    const header = this.#frameAt(bytes, offset);
    if (!header) return this.#noFrame(offset, isZero(bytes));
    const size = frameBytes(header.payloadBytes);
    if (offset + size > this.#sizeBytes) throw this.#corrupt(offset, `the file ends within a frame of ${size} bytes`);
    const frame = await this.#ahead.bytes(offset, size);
    const payload = frame.subarray(FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + header.payloadBytes);
    const { checksum, pause } = this.#setting;
    if ((await checksumOf([payload], checksum, pause)) !== header.payloadChecksum) {
      if (!mayBeTorn(frame, offset))
        throw this.#corrupt(offset, 'the checksum of an append that was written whole is wrong');
      return this.#noFrame(offset, true);
    }
    this.#offset = offset + size;
    return { position: header.position, bytes: payload.length < MAX_COPIED_BYTES ? Buffer.from(payload) : payload };
  }

  /** No valid frame at `offset`: the end of the log, or damage. */
  async #noFrame(offset: number, unwritten: boolean): Promise<undefined> {
    if (!unwritten) throw this.#corrupt(offset, 'neither a frame nor space for one');
    if (this.#endOffset !== undefined) {
      const end = this.#endOffset - SEGMENT_HEADER_BYTES + this.#extent.base;
      throw this.#corrupt(
        offset,
        this.#extent.isLast ? 'an acknowledged append is missing' : `appends up to position ${end} are missing`,
      );
    }
    const later = await this.#search(offset + FRAME_ALIGN);
    if (later !== undefined) throw this.#corrupt(offset, `no append here, but a valid one follows at byte ${later}`);
    if (offset - SEGMENT_HEADER_BYTES + this.#extent.base < this.#written)
      throw this.#corrupt(offset, `appends up to position ${this.#written} are missing`);
    return undefined;
  }

  /** The offset of the first valid frame at or after `offset`. */
  async #search(offset: number): Promise<number | undefined> {
    // windows overlap by a header, so that a header at the end of the first lies whole in the second
    for (
      let start = offset;
      start + FRAME_HEADER_BYTES <= this.#sizeBytes;
      start += SEARCH_BYTES - FRAME_HEADER_BYTES
    ) {
      const got = await this.#ahead.bytes(start, Math.min(SEARCH_BYTES, this.#sizeBytes - start));
      for (let at = got.indexOf(this.nonce); at >= 0; at = got.indexOf(this.nonce, at + 1)) {
        const begin = at - FRAME_NONCE_OFFSET;
        if (begin < 0 || begin + FRAME_HEADER_BYTES > got.length || (start + begin) % FRAME_ALIGN !== 0) continue;
        if (this.#frameAt(got.subarray(begin, begin + FRAME_HEADER_BYTES), start + begin)) return start + begin;
      }
    }
    return undefined;
  }

  #frameAt(bytes: Buffer, offset: number): FrameHeader | undefined {
    return decodeFrameHeader(
      bytes,
      this.#extent.base + offset - SEGMENT_HEADER_BYTES,
      this.nonce,
      this.#setting.checksum,
    );
  }

  #corrupt(offset: number, what: string): CorruptionError {
    return new CorruptionError(this.#extent.file, offset, what);
  }
}
