/**
 * HTTP/2 frames (RFC 9113, sections 4, 6 and 7): their numbers, a reader that takes them out of a socket's chunks, and
 * their heads.
 *
 *   length (24 bits) | type (8) | flags (8) | reserved (1), stream id (31) | payload
 *
 * Invariant: a frame's payload that lies in one chunk is handed on as a view of it, uncopied; one that does not is
 * gathered in a buffer of its own, never above the largest frame allowed. The meaning of frames belongs to the
 * connections.
 */

export const FRAME_HEADER_BYTES = 9;
/** The largest payload that every peer takes, and that we take. */
export const DEFAULT_MAX_FRAME_BYTES = 16_384;
export const DEFAULT_WINDOW_BYTES = 65_535;
/** The first bytes of a client. */
export const CLIENT_PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** True for the first bytes of a peer that speaks TLS: an alert (0x15) or a handshake (0x16) of version 3.x. */
export function isTlsRecord(bytes: Buffer): boolean {
  return bytes.length >= 2 && (bytes[0] === 0x15 || bytes[0] === 0x16) && bytes[1] === 3;
}

export const FrameType = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const Flag = {
  /** In DATA and HEADERS. */
  END_STREAM: 0x1,
  /** In SETTINGS and PING. */
  ACK: 0x1,
  END_HEADERS: 0x4,
  PADDED: 0x8,
  PRIORITY: 0x20,
} as const;

export const ErrorCode = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  SETTINGS_TIMEOUT: 4,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 10,
  ENHANCE_YOUR_CALM: 11,
  INADEQUATE_SECURITY: 12,
  HTTP_1_1_REQUIRED: 13,
} as const;
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

export const Setting = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const;

const NAMES = Object.keys(ErrorCode);

export function errorCodeName(code: number): string {
  return NAMES[code] ?? `error ${code}`;
}

/** A breach of the protocol by the peer: ends the stream by RST_STREAM, or the connection (streamId 0) by GOAWAY. */
export class Http2Error extends Error {
  override readonly name = 'Http2Error';
  readonly code: ErrorCode;
  /** 0: the whole connection. */
  readonly streamId: number;

  constructor(code: ErrorCode, message: string, streamId = 0) {
    super(message);
    this.code = code;
    this.streamId = streamId;
  }
}

export type OnFrame = (type: number, flags: number, streamId: number, payload: Buffer) => void;

/** Frames passed on between two checks of `mustStop`. */
const FRAMES_PER_CHECK = 4;
const never = (): boolean => false;

/**
 * Takes frames out of chunks as they come. `push` throws what `onFrame` throws; the reader must not be used afterwards.
 */
export class FrameReader {
  readonly #maxFrameBytes: number;
  readonly #onFrame: OnFrame;
  /** A header that began in an earlier chunk. */
  readonly #header = Buffer.alloc(FRAME_HEADER_BYTES);
  #headerBytes = 0;
  /** A payload that began in an earlier chunk, and how much of it has come. */
  #payload: Buffer | undefined;
  #payloadBytes = 0;
  #framesUntilCheck = FRAMES_PER_CHECK;

  constructor(maxFrameBytes: number, onFrame: OnFrame) {
    this.#maxFrameBytes = maxFrameBytes;
    this.#onFrame = onFrame;
  }

  /**
   * Returns the number of bytes taken: all of them, or those up to the frame after which `mustStop` was true; it is
   * checked every few frames. The caller pushes the rest later. Throws Http2Error FRAME_SIZE_ERROR, for the connection,
   * at a frame that is too large.
   */
  push(chunk: Buffer, mustStop: () => boolean = never): number {
    let at = this.#headerBytes > 0 || this.#payload ? this.#finish(chunk) : 0;
    const { buffer, byteOffset, length: chunkBytes } = chunk;
    while (chunkBytes - at >= FRAME_HEADER_BYTES) {
      const length = this.#lengthAt(chunk, at);
      const from = at + FRAME_HEADER_BYTES;
      if (chunkBytes - from < length) break;
      at = from + length;
      this.#emit(chunk, from - FRAME_HEADER_BYTES, Buffer.from(buffer, byteOffset + from, length));
      if (--this.#framesUntilCheck > 0) continue;
      this.#framesUntilCheck = FRAMES_PER_CHECK;
      if (mustStop()) return at;
    }
    if (at < chunkBytes) this.#keep(chunk, at);
    return chunkBytes;
  }

  /** Continues the frame that was begun; returns where in the chunk it ends. */
  #finish(chunk: Buffer): number {
    let at = 0;
    if (!this.#payload) {
      at = chunk.copy(this.#header, this.#headerBytes, 0, FRAME_HEADER_BYTES - this.#headerBytes);
      this.#headerBytes += at;
      if (this.#headerBytes < FRAME_HEADER_BYTES) return at;
      const length = this.#lengthAt(this.#header, 0);
      if (chunk.length - at >= length) {
        this.#headerBytes = 0;
        this.#emit(this.#header, 0, chunk.subarray(at, at + length));
        return at + length;
      }
      this.#payload = Buffer.allocUnsafe(length);
      this.#payloadBytes = 0;
    }
    const payload = this.#payload;
    const taken = chunk.copy(payload, this.#payloadBytes, at);
    this.#payloadBytes += taken;
    if (this.#payloadBytes === payload.length) {
      this.#payload = undefined;
      this.#headerBytes = 0;
      this.#emit(this.#header, 0, payload);
    }
    return at + taken;
  }

  /** Keeps the beginning of a frame whose end is still to come. */
  #keep(chunk: Buffer, at: number): void {
    this.#headerBytes = chunk.copy(this.#header, 0, at, at + FRAME_HEADER_BYTES);
    if (this.#headerBytes < FRAME_HEADER_BYTES) return;
    this.#payload = Buffer.allocUnsafe(this.#lengthAt(this.#header, 0));
    this.#payloadBytes = chunk.copy(this.#payload, 0, at + FRAME_HEADER_BYTES);
  }

  #lengthAt(bytes: Buffer, at: number): number {
    const length = ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number);
    if (length > this.#maxFrameBytes) {
      throw new Http2Error(
        ErrorCode.FRAME_SIZE_ERROR,
        `a frame of ${length} bytes; the limit is ${this.#maxFrameBytes}`,
      );
    }
    return length;
  }

  #emit(header: Buffer, at: number, payload: Buffer): void {
    const streamId =
      (((header[at + 5] as number) & 0x7f) << 24) |
      ((header[at + 6] as number) << 16) |
      ((header[at + 7] as number) << 8) |
      (header[at + 8] as number);
    this.#onFrame(header[at + 3] as number, header[at + 4] as number, streamId, payload);
  }
}

/** Writes a frame's head into `target` and returns where its payload goes. */
export function writeFrameHeader(
  target: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): number {
  target[at] = length >>> 16;
  target[at + 1] = length >>> 8;
  target[at + 2] = length;
  target[at + 3] = type;
  target[at + 4] = flags;
  target[at + 5] = streamId >>> 24;
  target[at + 6] = streamId >>> 16;
  target[at + 7] = streamId >>> 8;
  target[at + 8] = streamId;
  return at + FRAME_HEADER_BYTES;
}

export function frameHeader(length: number, type: number, flags: number, streamId: number): Buffer {
  const header = Buffer.allocUnsafe(FRAME_HEADER_BYTES);
  writeFrameHeader(header, 0, length, type, flags, streamId);
  return header;
}

/** A whole small frame, copied together. */
export function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length);
  bytes.set(payload, writeFrameHeader(bytes, 0, payload.length, type, flags, streamId));
  return bytes;
}

export function rstStreamFrame(streamId: number, code: ErrorCode): Buffer {
  return frame(FrameType.RST_STREAM, 0, streamId, uint32(code));
}

export function windowUpdateFrame(streamId: number, bytes: number): Buffer {
  return frame(FrameType.WINDOW_UPDATE, 0, streamId, uint32(bytes));
}

export function goAwayFrame(lastStreamId: number, code: ErrorCode, why: string): Buffer {
  return frame(
    FrameType.GOAWAY,
    0,
    0,
    Buffer.concat([uint32(lastStreamId), uint32(code), Buffer.from(why.slice(0, 256), 'utf8')]),
  );
}

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.allocUnsafe(settings.length * 6);
  for (const [i, [id, value]] of settings.entries()) {
    payload.writeUInt16BE(id, i * 6);
    payload.writeUInt32BE(value, i * 6 + 2);
  }
  return frame(FrameType.SETTINGS, 0, 0, payload);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
