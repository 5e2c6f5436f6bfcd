/**
 * Flow control (RFC 9113, section 5.2): how much may still be sent, and how much the peer may still send us.
 *
 * Invariant: neither ever exceeds 2^31-1. A window to send may be negative, after the peer made its first size smaller.
 */
import { assert } from '../../base/index.ts';
import { ErrorCode, Http2Error } from './frames.ts';

const MAX_BYTES = 0x7fffffff;

/** What we may send: of a stream, or of the connection. */
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
  }
}

/** What the peer may send us. It is told of more in large steps, to save frames. */
export class ReceiveWindow {
  readonly #stepBytes: number;
  /** What the peer may still send, as far as it knows. */
  #leftBytes: number;
  /** What it may send beside that and was not told yet. */
  #grantedBytes = 0;

  /** `stepBytes`: grants are gathered until there are this many. */
  constructor(bytes: number, stepBytes: number) {
    this.#leftBytes = bytes;
    this.#stepBytes = stepBytes;
  }

  get leftBytes(): number {
    return this.#leftBytes;
  }

  /** Something came. Throws Http2Error where the peer had not so much left. */
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

  /** Grants more; answers by how much the peer must be told now to grow its window, 0 for not yet. `atOnce`: however little it is. */
  grant(bytes: number, atOnce = false): number {
    this.#grantedBytes += bytes;
    if (this.#grantedBytes < this.#stepBytes && !atOnce) return 0;
    const step = Math.min(this.#grantedBytes, MAX_BYTES - this.#leftBytes);
    this.#grantedBytes -= step;
    this.#leftBytes += step;
    assert(step >= 0 && this.#leftBytes <= MAX_BYTES, 'a window to receive is above its limit');
    return step;
  }
}
