/**
 * Reads a log's segments: yields its appends, tells a torn tail from damage. Format and reasons:
 * docs/formats/log-file.md.
 *
 * The rule: the bytes after the last whole frame are a torn tail only where one write that did not end can have left
 * them so: the header is zero, or valid with a sector of its frame still zero; nothing valid follows; it is the last
 * segment; its header does not tell that frames reach further; and the file goes on after them, as the room made ahead
 * must. Everything else is a CorruptionError.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { CorruptionError } from '../../base/index.ts';
import type { LogAppend, LogPosition } from '../../env/index.ts';
import { errnoOf } from './posix-errors.ts';
import {
  checksumOf,
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
/** Payloads below this size are copied out of their window, so that what is kept of one does not keep the window. */
const COPIED_BYTES = 16 << 10;
/** Bytes searched in one slice for frames after the end. */
const SEARCH_BYTES = 1 << 20;

/**
 * The appends at `from` and above. `end` answers where the log is known to end now, so that nothing before it may be
 * torn. A log that is trimmed meanwhile is read on after what was removed.
 */
export async function* readLogSegments(
  setting: LogSetting,
  path: string,
  from: LogPosition,
  end: () => LogPosition | undefined,
  chunkBytes = CHUNK_BYTES,
): AsyncIterable<LogAppend> {
  let places = await placesOf(setting, path, from, end);
  let nonce: Buffer | undefined;
  let afterTrim = false;
  let next = open(setting, places[0], chunkBytes);
  try {
    for (let i = 0; i < places.length; i++) {
      const { file, base } = places[i]!;
      let reader: SegmentReader;
      try {
        reader = (await next)!;
      } catch (error) {
        if (errnoOf(error) !== 'ENOENT') throw error;
        const left = await placesOf(setting, path, base, end);
        // a trim removes the lowest segments: where a lower one is left, or none at all, this was none
        if (left[0] === undefined || left[0].base <= base) throw error;
        places = left;
        i = -1;
        afterTrim = true;
        next = open(setting, places[0], chunkBytes);
        continue;
      }
      // opened, and its first chunk read, while this one is worked on
      next = open(setting, places[i + 1], chunkBytes);
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
    // where the reading ended early; an error of a segment that was not reached does not matter
    await next?.then(
      (reader) => reader.close(),
      () => {},
    );
  }
}

/** The segments that hold appends at `from` and above, ascending. */
async function placesOf(
  setting: LogSetting,
  path: string,
  from: LogPosition,
  endOf: () => LogPosition | undefined,
): Promise<SegmentPlace[]> {
  const end = endOf();
  const bases = await segmentsOf(setting, path);
  const places: SegmentPlace[] = [];
  for (const [i, base] of bases.entries()) {
    const next = bases[i + 1];
    // and not a segment that was begun after the end was requested
    if ((next === undefined || next > from) && (end === undefined || base <= end)) {
      places.push({ file: join('logs', path, segmentName(base)), base, end: next ?? end, isLast: next === undefined });
    }
  }
  return places;
}

interface SegmentPlace {
  readonly file: string;
  readonly base: LogPosition;
  /** Where its frames surely end; undefined in the last segment of a log without a writer. */
  readonly end: LogPosition | undefined;
  /** True when no later segment begins at that end. */
  readonly isLast: boolean;
}

function open(
  setting: LogSetting,
  place: SegmentPlace | undefined,
  chunkBytes: number,
): Promise<SegmentReader> | undefined {
  const opening = place && SegmentReader.open(setting, place, chunkBytes);
  // who comes to the segment hears of it
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
  readonly #place: SegmentPlace;
  readonly #sizeBytes: number;
  /** Where in the file the last frame surely ends. */
  readonly #endOffset: number | undefined;
  /** What its header tells: frames before this position are there. */
  readonly #written: LogPosition;
  readonly #ahead: ReadAhead;
  #offset = SEGMENT_HEADER_BYTES;

  private constructor(
    setting: LogSetting,
    place: SegmentPlace,
    fd: number,
    sizeBytes: number,
    header: { readonly nonce: Buffer; readonly written: LogPosition },
    ahead: ReadAhead,
  ) {
    const { base, end } = place;
    this.#setting = setting;
    this.#place = place;
    this.#fd = fd;
    this.#sizeBytes = sizeBytes;
    this.nonce = header.nonce;
    this.#written = header.written;
    this.#endOffset = end === undefined ? undefined : end - base + SEGMENT_HEADER_BYTES;
    this.#ahead = ahead;
  }

  static async open(setting: LogSetting, place: SegmentPlace, chunkBytes: number): Promise<SegmentReader> {
    const { syscalls, directories, checksum } = setting;
    const { file, base } = place;
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
      return new SegmentReader(setting, place, fd, sizeBytes, header, ahead);
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

  /** Passes over what lies before `position`, where a frame begins there; else begins at the segment's first frame. */
  async skipTo(position: LogPosition): Promise<void> {
    const offset = position - this.#place.base + SEGMENT_HEADER_BYTES;
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
      throw this.#corrupt(offset, 'the file ends where room for a frame must be');
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
    return { position: header.position, bytes: payload.length < COPIED_BYTES ? Buffer.from(payload) : payload };
  }

  /** No valid frame at `offset`: the end of the log, or damage. */
  async #noFrame(offset: number, unwritten: boolean): Promise<undefined> {
    if (!unwritten) throw this.#corrupt(offset, 'neither a frame nor room for one');
    if (this.#endOffset !== undefined) {
      const end = this.#endOffset - SEGMENT_HEADER_BYTES + this.#place.base;
      throw this.#corrupt(
        offset,
        this.#place.isLast ? 'an acknowledged append is missing' : `appends up to position ${end} are missing`,
      );
    }
    const later = await this.#search(offset + FRAME_ALIGN);
    if (later !== undefined) throw this.#corrupt(offset, `no append here, but a valid one follows at byte ${later}`);
    if (offset - SEGMENT_HEADER_BYTES + this.#place.base < this.#written)
      throw this.#corrupt(offset, `appends up to position ${this.#written} are missing`);
    return undefined;
  }

  /** Where the first valid frame at or after `offset` begins. */
  async #search(offset: number): Promise<number | undefined> {
    // windows overlap by a header, so that one that is cut by the end of the first lies whole in the second
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
      this.#place.base + offset - SEGMENT_HEADER_BYTES,
      this.nonce,
      this.#setting.checksum,
    );
  }

  #corrupt(offset: number, what: string): CorruptionError {
    return new CorruptionError(this.#place.file, offset, what);
  }
}
