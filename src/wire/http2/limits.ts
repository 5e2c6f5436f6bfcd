/**
 * Limits on the work and memory that one peer may cause. The defaults let every known client work at full speed and
 * bound what a hostile one costs: memory by the windows, the streams and the header bytes; work by the rates.
 */

export interface Http2Limits {
  /** Concurrent streams of a connection, including those that were reset while their work goes on. */
  readonly maxStreams: number;
  /** Names and values of one request, each 32 bytes more (RFC 9113, 6.5.2). */
  readonly maxHeaderBytes: number;
  /** The same in its encoded form, in all its frames together. */
  readonly maxHeaderBlockBytes: number;
  readonly maxContinuations: number;
  readonly hpackTableBytes: number;
  /** Bytes of one request that may arrive before it has its reservation. */
  readonly streamWindowBytes: number;
  /** Bytes that may arrive on a connection and be held without a reservation. */
  readonly connectionWindowBytes: number;
  /** Streams that the peer resets, or makes us reset, by its errors. Each that ends in good order earns another one. */
  readonly resets: Rate;
  /**
   * PING and SETTINGS. Each frame that we send earns PINGS_PER_FRAME, since some clients ping with every answer that
   * they receive.
   */
  readonly pings: Rate;
  /**
   * WINDOW_UPDATE. Each frame that we send earns UPDATES_PER_FRAME: a client opens the windows of connection and stream
   * by what it has read.
   */
  readonly windowUpdates: Rate;
  /** Frames that carry nothing: empty DATA, PRIORITY, unknown types, updates of the windows of closed streams. */
  readonly idleFrames: Rate;
}

interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

export const DEFAULT_LIMITS: Http2Limits = {
  maxStreams: 1000,
  maxHeaderBytes: 64 * 1024,
  maxHeaderBlockBytes: 64 * 1024,
  maxContinuations: 16,
  hpackTableBytes: 4096,
  streamWindowBytes: 128 * 1024,
  connectionWindowBytes: 1024 * 1024,
  resets: { burst: 1000, perSecond: 200 },
  windowUpdates: { burst: 10_000, perSecond: 1000 },
  pings: { burst: 1000, perSecond: 100 },
  idleFrames: { burst: 10_000, perSecond: 1000 },
};

/**
 * PINGs and WINDOW_UPDATEs that a frame of ours earns its reader. A client that reads it in small parts updates both
 * windows for each.
 */
export const PINGS_PER_FRAME = 2;
export const UPDATES_PER_FRAME = 16;

/** A bucket of tokens. */
export class RateLimit {
  readonly #rate: Rate;
  #tokens: number;
  #atMs: number;

  constructor(rate: Rate, nowMs: number) {
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#atMs = nowMs;
  }

  /** True when one more is allowed. */
  take(nowMs: number): boolean {
    if (this.#tokens < 1) {
      this.#tokens = Math.min(this.#rate.burst, this.#tokens + ((nowMs - this.#atMs) * this.#rate.perSecond) / 1000);
      this.#atMs = nowMs;
    }
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  earn(tokens: number): void {
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + tokens);
  }
}
