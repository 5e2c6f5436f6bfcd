/**
 * The bytes of a log's segment file: a header, then frames, then zeros. Format: docs/formats/log-file.md.
 *
 * Invariants:
 * - A frame begins at a multiple of FRAME_ALIGN, so that its header lies in one sector and is written whole or not at
 *   all.
 * - A frame contains its log (nonce), its position and its length under a checksum of its own: no other bytes in a
 *   file, not even a copy of a frame in a value, can be mistaken for a frame.
 */
import { BigtableError, Code, CorruptionError } from '../../base/index.ts';
import type { Checksum } from '../../env/index.ts';

export const SEGMENT_HEADER_BYTES = 64;
export const FRAME_HEADER_BYTES = 32;
export const FRAME_ALIGN = 32;
export const NONCE_BYTES = 8;
/** The offset of the nonce in a frame's header. */
export const FRAME_NONCE_OFFSET = 16;
/** The unit that a device writes whole or not at all. */
export const SECTOR_BYTES = 512;
/** Most bytes of one append. */
export const MAX_APPEND_BYTES = 1 << 30;

const SEGMENT_MAGIC = Buffer.from('EDUBBLOG', 'latin1');
const SEGMENT_VERSION = 1;
const FRAME_MAGIC = Buffer.from('FRAM', 'latin1');
const END_MARK = Buffer.from('DONE', 'latin1');
const SEGMENT_NAME = /^(\d{16})\.segment$/;

/** Name of a log's file that stops its writer. */
export const FENCE_NAME = 'FENCE';

export interface SegmentHeader {
  /** The log's nonce, the same in all its segments. */
  readonly nonce: Buffer;
  /** Position of the first frame. */
  readonly base: number;
  /** Frames before this position are surely written; 0 where the header does not say. */
  readonly written?: number;
}

/** The name of a segment. Names sort in the order of the segments. */
export function segmentName(base: number): string {
  return `${String(base).padStart(16, '0')}.segment`;
}

/** The base in a segment's name; undefined where it is not a segment's name. */
export function segmentBase(name: string): number | undefined {
  const digits = SEGMENT_NAME.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

export function encodeSegmentHeader(header: SegmentHeader, checksum: Checksum): Buffer {
  const bytes = Buffer.alloc(SEGMENT_HEADER_BYTES);
  SEGMENT_MAGIC.copy(bytes, 0);
  bytes.writeUInt16LE(SEGMENT_VERSION, 8);
  bytes.writeUInt16LE(SEGMENT_HEADER_BYTES, 10);
  bytes.writeUInt32LE(0, 12);
  header.nonce.copy(bytes, 16);
  bytes.writeBigUInt64LE(BigInt(header.base), 24);
  bytes.writeBigUInt64LE(BigInt(header.written ?? 0), 32);
  bytes.writeUInt32LE(checksum(bytes.subarray(0, 60)), 60);
  return bytes;
}

/** CorruptionError where the bytes are damaged, FAILED_PRECONDITION where a later version wrote them. */
export function decodeSegmentHeader(bytes: Buffer, file: string, checksum: Checksum): Required<SegmentHeader> {
  if (bytes.length < SEGMENT_HEADER_BYTES)
    throw new CorruptionError(file, bytes.length, `a segment begins with ${SEGMENT_HEADER_BYTES} bytes of header`);
  if (!bytes.subarray(0, 8).equals(SEGMENT_MAGIC)) throw new CorruptionError(file, 0, 'not a segment of a log');
  if (bytes.readUInt32LE(60) !== checksum(bytes.subarray(0, 60)))
    throw new CorruptionError(file, 60, 'the checksum of the segment header is wrong');
  const version = bytes.readUInt16LE(8);
  const features = bytes.readUInt32LE(12);
  if (version !== SEGMENT_VERSION || features !== 0) {
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `${file}: a log of version ${version} with required features 0x${features.toString(16)}; this Edubba reads version ${SEGMENT_VERSION} and no features`,
    );
  }
  return {
    nonce: Buffer.from(bytes.subarray(16, 24)),
    base: Number(bytes.readBigUInt64LE(24)),
    written: Number(bytes.readBigUInt64LE(32)),
  };
}

/** Bytes that an append of `payloadBytes` takes in a segment. */
export function frameBytes(payloadBytes: number): number {
  return Math.ceil((FRAME_HEADER_BYTES + payloadBytes + END_MARK.length) / FRAME_ALIGN) * FRAME_ALIGN;
}

export interface FrameHeader {
  readonly payloadBytes: number;
  readonly position: number;
  readonly payloadChecksum: number;
}

export function encodeFrameHeader(frame: FrameHeader, nonce: Buffer, checksum: Checksum): Buffer {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES);
  FRAME_MAGIC.copy(bytes, 0);
  bytes.writeUInt32LE(frame.payloadBytes, 4);
  bytes.writeBigUInt64LE(BigInt(frame.position), 8);
  nonce.copy(bytes, FRAME_NONCE_OFFSET);
  bytes.writeUInt32LE(frame.payloadChecksum, 24);
  bytes.writeUInt32LE(checksum(bytes.subarray(0, 28)), 28);
  return bytes;
}

/** The bytes after the payload: zeros up to the alignment, the end mark last. */
export function encodeFrameEnd(payloadBytes: number): Buffer {
  const bytes = Buffer.alloc(frameBytes(payloadBytes) - FRAME_HEADER_BYTES - payloadBytes);
  END_MARK.copy(bytes, bytes.length - END_MARK.length);
  return bytes;
}

/** The header of the frame at `position` of the log; undefined where the bytes are not one. */
export function decodeFrameHeader(
  bytes: Buffer,
  position: number,
  nonce: Buffer,
  checksum: Checksum,
): FrameHeader | undefined {
  if (!bytes.subarray(0, 4).equals(FRAME_MAGIC)) return undefined;
  if (!bytes.subarray(FRAME_NONCE_OFFSET, FRAME_NONCE_OFFSET + NONCE_BYTES).equals(nonce)) return undefined;
  if (bytes.readBigUInt64LE(8) !== BigInt(position)) return undefined;
  if (bytes.readUInt32LE(28) !== checksum(bytes.subarray(0, 28))) return undefined;
  return { payloadBytes: bytes.readUInt32LE(4), position, payloadChecksum: bytes.readUInt32LE(24) };
}

const ZEROS = Buffer.alloc(64 << 10);

export function isZero(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at += ZEROS.length) {
    const part = bytes.subarray(at, at + ZEROS.length);
    if (!part.equals(ZEROS.subarray(0, part.length))) return false;
  }
  return true;
}

/**
 * True when a crash in the middle of the write can have left the frame so: some sector of it, all zero before, was not
 * written. `offset`: where in the file the frame begins.
 */
export function mayBeTorn(frame: Buffer, offset: number): boolean {
  for (let at = 0; at < frame.length; ) {
    const end = Math.min(frame.length, at + SECTOR_BYTES - ((offset + at) % SECTOR_BYTES));
    if (isZero(frame.subarray(at, end))) return true;
    at = end;
  }
  return false;
}
