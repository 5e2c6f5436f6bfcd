/**
 * gRPC's messages within a stream's bytes (PROTOCOL-HTTP2.md, "Length-Prefixed-Message"):
 *
 *   compressed (1 byte: 0 or 1) | length (4 bytes, big-endian) | message
 *
 * Invariant: a message that lies in one frame is handed on as a view, unless it would keep a much larger buffer in
 * memory. One that does not is copied into a buffer that grows with what has come, up to EAGER_BYTES, and only then has
 * its full size. So the length that a peer claims costs nothing by itself, and neither does the number of frames in
 * which it sends.
 */
import { BigtableError, Code } from '../../base/index.ts';
import { MESSAGE_BUFFER_BYTES, takeMessageBuffer } from '../http2/message-buffers.ts';

export const PREFIX_BYTES = 5;
const EAGER_BYTES = 256 * 1024;
const FIRST_BYTES = 4 * 1024;
/**
 * Factor by which the buffer grows: after one full frame a message of up to 256 KiB has its whole buffer, and is copied
 * once. Pages that were not written are not resident.
 */
const GROWTH = 16;
/** A view may keep this many times its own size. */
const MAX_KEPT = 4;
/** A view may always keep this many bytes. */
const MAX_KEPT_BYTES = 8 * 1024;

export interface MessageReaderOptions {
  readonly maxMessageBytes: number;
  readonly onMessage: (bytes: Buffer, compressed: boolean) => void;
  /** Called with each message's length before any of it is kept. */
  readonly onLength?: (bytes: number) => void;
  /** Messages that are copied, and fit, are in buffers of `takeMessageBuffer`. Default: false. */
  readonly usesMessageBuffers?: boolean;
}

export class MessageReader {
  readonly #options: MessageReaderOptions;
  readonly #prefix = Buffer.allocUnsafe(PREFIX_BYTES);
  #prefixBytes = 0;
  #compressed = false;
  /** Length of the message under way; -1 between messages. */
  #length = -1;
  /** The bytes of it that have come, in a buffer that may be larger. */
  #gathered: Buffer | undefined;
  #haveBytes = 0;

  constructor(options: MessageReaderOptions) {
    this.#options = options;
  }

  /** True when a message has begun and not ended. */
  get isInside(): boolean {
    return this.#prefixBytes > 0 || this.#length >= 0;
  }

  /** Throws RESOURCE_EXHAUSTED for a message above the limit, INTERNAL for an invalid prefix. */
  push(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length || this.#length === 0) {
      if (this.#length < 0) {
        at = this.#readPrefix(bytes, at);
        if (this.#length < 0) return;
      }
      at = this.#readMessage(bytes, at);
      if (this.#length >= 0) return;
    }
  }

  #readPrefix(bytes: Buffer, from: number): number {
    const at = from + bytes.copy(this.#prefix, this.#prefixBytes, from, from + PREFIX_BYTES - this.#prefixBytes);
    this.#prefixBytes += at - from;
    if (this.#prefixBytes < PREFIX_BYTES) return at;
    const flag = this.#prefix[0]!;
    if (flag > 1)
      throw new BigtableError(Code.INTERNAL, `a message begins with byte ${flag}, which is neither 0 nor 1`);
    const length = this.#prefix.readUInt32BE(1);
    const { maxMessageBytes, onLength } = this.#options;
    if (length > maxMessageBytes)
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, `a message of ${length} bytes; the limit is ${maxMessageBytes}`);
    this.#compressed = flag === 1;
    this.#prefixBytes = 0;
    this.#length = length;
    onLength?.(length);
    return at;
  }

  #readMessage(bytes: Buffer, from: number): number {
    const to = Math.min(bytes.length, from + this.#length - this.#haveBytes);
    const piece = bytes.subarray(from, to);
    if (this.#haveBytes === 0 && piece.length === this.#length) {
      this.#emit(keepable(piece));
      return to;
    }
    const haveBytes = this.#haveBytes + piece.length;
    const gathered = this.#spaceFor(haveBytes);
    piece.copy(gathered, this.#haveBytes);
    this.#haveBytes = haveBytes;
    if (haveBytes === this.#length) this.#emit(gathered);
    return to;
  }

  #spaceFor(bytes: number): Buffer {
    const before = this.#gathered;
    if (before !== undefined && before.length >= bytes) return before;
    const size = bytes > EAGER_BYTES ? this.#length : Math.min(this.#length, Math.max(FIRST_BYTES, bytes * GROWTH));
    const larger = this.#allocate(size);
    before?.copy(larger, 0, 0, this.#haveBytes);
    this.#gathered = larger;
    return larger;
  }

  #allocate(bytes: number): Buffer {
    const isForPool = bytes === this.#length && bytes <= MESSAGE_BUFFER_BYTES && bytes * 2 >= MESSAGE_BUFFER_BYTES;
    if (!isForPool || this.#options.usesMessageBuffers !== true) return Buffer.allocUnsafe(bytes);
    return takeMessageBuffer().subarray(0, bytes);
  }

  #emit(message: Buffer): void {
    this.#length = -1;
    this.#haveBytes = 0;
    this.#gathered = undefined;
    this.#options.onMessage(message, this.#compressed);
  }
}

/**
 * The bytes themselves, or a copy, among others in a pool, where they would keep much more than themselves in memory.
 */
export function keepable(view: Buffer): Buffer {
  const keptBytes = view.buffer.byteLength;
  return keptBytes > MAX_KEPT_BYTES && view.length * MAX_KEPT < keptBytes ? Buffer.from(view) : view;
}

/** Bytes of a message in one buffer or several. */
export function lengthOf(message: Buffer | readonly Buffer[]): number {
  if (message instanceof Uint8Array) return message.length;
  let bytes = 0;
  for (const part of message) bytes += part.length;
  return bytes;
}

/** The prefix of a message of `lengthBytes`, in new bytes or in those of the caller. */
export function messagePrefix(
  lengthBytes: number,
  compressed: boolean,
  prefix = Buffer.allocUnsafe(PREFIX_BYTES),
): Buffer {
  prefix[0] = compressed ? 1 : 0;
  prefix[1] = lengthBytes >>> 24;
  prefix[2] = lengthBytes >>> 16;
  prefix[3] = lengthBytes >>> 8;
  prefix[4] = lengthBytes;
  return prefix;
}
