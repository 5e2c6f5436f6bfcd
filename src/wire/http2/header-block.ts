/**
 * Header blocks: HEADERS and the CONTINUATIONs that follow it, put together (RFC 9113, sections 6.2 and 6.10), and
 * padding taken off.
 *
 * Invariant: what is gathered stays below the limits in bytes and in frames; between the frames of a block no other
 * frame is allowed, which is the connection's to check (`isOpen`).
 */
import { ErrorCode, Flag, Http2Error } from './frames.ts';

const PRIORITY_BYTES = 5;

export interface HeaderBlockLimits {
  readonly maxHeaderBlockBytes: number;
  readonly maxContinuations: number;
}

export class HeaderBlock {
  readonly #limits: HeaderBlockLimits;
  #parts: Buffer[] = [];
  #bytes = 0;
  #continuations = 0;
  isOpen = false;
  streamId = 0;
  endStream = false;
  /** The stream was said to depend on itself: an error of the stream, reported after its headers were decoded. */
  dependsOnItself = false;

  constructor(limits: HeaderBlockLimits) {
    this.#limits = limits;
  }

  /** HEADERS. Returns the block if it is whole. */
  begin(flags: number, streamId: number, payload: Buffer): Buffer | undefined {
    let block = unpad(flags, payload);
    this.dependsOnItself = false;
    if (flags & Flag.PRIORITY) {
      if (block.length < PRIORITY_BYTES)
        throw new Http2Error(ErrorCode.FRAME_SIZE_ERROR, 'HEADERS too short for its priority');
      this.dependsOnItself = dependency(block) === streamId;
      block = block.subarray(PRIORITY_BYTES);
    }
    this.streamId = streamId;
    this.endStream = (flags & Flag.END_STREAM) !== 0;
    this.#checkSize(block.length);
    if (flags & Flag.END_HEADERS) return block;
    this.isOpen = true;
    this.#parts = [block];
    this.#bytes = block.length;
    this.#continuations = 0;
    return undefined;
  }

  /** CONTINUATION. Returns the block if it is whole. */
  continue(flags: number, streamId: number, payload: Buffer): Buffer | undefined {
    if (!this.isOpen || streamId !== this.streamId)
      throw new Http2Error(ErrorCode.PROTOCOL_ERROR, `CONTINUATION of stream ${streamId} without its HEADERS`);
    const { maxContinuations } = this.#limits;
    if (++this.#continuations > maxContinuations)
      throw new Http2Error(ErrorCode.ENHANCE_YOUR_CALM, `headers in more than ${maxContinuations} CONTINUATIONs`);
    this.#parts.push(payload);
    this.#bytes += payload.length;
    this.#checkSize(this.#bytes);
    if ((flags & Flag.END_HEADERS) === 0) return undefined;
    this.isOpen = false;
    const block = Buffer.concat(this.#parts, this.#bytes);
    this.#parts = [];
    return block;
  }

  #checkSize(bytes: number): void {
    const { maxHeaderBlockBytes } = this.#limits;
    if (bytes > maxHeaderBlockBytes)
      throw new Http2Error(ErrorCode.ENHANCE_YOUR_CALM, `a header block of more than ${maxHeaderBlockBytes} bytes`);
  }
}

/** The payload of DATA or HEADERS without its padding. */
export function unpad(flags: number, payload: Buffer): Buffer {
  if ((flags & Flag.PADDED) === 0) return payload;
  if (payload.length === 0) throw new Http2Error(ErrorCode.FRAME_SIZE_ERROR, 'a padded frame of no bytes');
  const padding = payload[0]!;
  if (padding >= payload.length)
    throw new Http2Error(ErrorCode.PROTOCOL_ERROR, `${padding} bytes of padding in a frame of ${payload.length}`);
  return payload.subarray(1, payload.length - padding);
}

/** The stream that a priority (of HEADERS, or of PRIORITY) names. */
export function dependency(payload: Buffer): number {
  return payload.readUInt32BE(0) & 0x7fffffff;
}
