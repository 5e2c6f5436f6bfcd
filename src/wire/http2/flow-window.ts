/**
 * Flow control (RFC 9113, section 5.2): the bytes that may still be sent, and those that the peer may still send us.
 *
 * Invariant: neither ever exceeds 2^31-1. A window to send is negative after the peer has made its first size smaller.
 */
import { assert } from '../../base/index.ts';
import { ErrorCode, Http2Error } from './frames.ts';

const MAX_BYTES = 0x7fffffff;

/** The bytes that we may send: of a stream, or of the connection. */
export class SendWindow {
  bytes: number;

  constructor(bytes: number) {
    this.bytes = bytes;
  }

  /** A WINDOW_UPDATE, or a change of the first size. Throws Http2Error of that stream (0: of the connection). */
  grow(bytes: number, streamId: number): void {
    if (this.bytes + bytes > MAX_BYTES)
      throw new Http2Error(
        ErrorCode.FLOW_CONTROL_ERROR,
        `a window of ${this.bytes + bytes} bytes; the limit is 2^31-1`,
        streamId,
      );
    this.bytes += bytes;
    assert(this.bytes >= -MAX_BYTES, 'a window to send is not below its minimum');
  }
}

/** The bytes that the peer may send us. Grants go to it in large steps, to save frames. */
export class ReceiveWindow {
  readonly #stepBytes: number;
  /** Bytes that the peer may still send, as far as it knows. */
  #leftBytes: number;
  /** Bytes granted in addition, not yet sent to the peer. */
  #pendingBytes = 0;

  /** `stepBytes`: grants are gathered until there are this many. */
  constructor(bytes: number, stepBytes: number) {
    this.#leftBytes = bytes;
    this.#stepBytes = stepBytes;
  }

  get leftBytes(): number {
    return this.#leftBytes;
  }

  /** Bytes that it may send in all. */
  get grantedBytes(): number {
    return this.#leftBytes + this.#pendingBytes;
  }

  /** Counts bytes that came. Throws Http2Error where the peer had less left. */
  take(bytes: number, streamId: number): void {
    if (bytes > this.#leftBytes) {
      throw new Http2Error(
        ErrorCode.FLOW_CONTROL_ERROR,
        `${bytes} bytes were sent into a window of ${this.#leftBytes}`,
        streamId,
      );
    }
    this.#leftBytes -= bytes;
  }

  /** Grants more. Returns the step to send to the peer now, 0 for none yet. `immediately`: however small it is. */
  grant(bytes: number, immediately = false): number {
    this.#pendingBytes += bytes;
    if (this.#pendingBytes < this.#stepBytes && !immediately) return 0;
    const step = Math.min(this.#pendingBytes, MAX_BYTES - this.#leftBytes);
    this.#pendingBytes -= step;
    this.#leftBytes += step;
    assert(step >= 0 && this.#leftBytes <= MAX_BYTES, 'a window to receive is not above its limit');
    return step;
  }
}
