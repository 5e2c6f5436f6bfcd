/**
 * Limits the rate of what costs a peer little and us more: resets, pings, updates of windows, frames without use.
 * Limits: limits.ts.
 */
import type { Clock } from '../../env/index.ts';
import { ErrorCode, Http2Error } from './frames.ts';
import { type Http2Limits, PINGS_PER_FRAME, RateLimit, UPDATES_PER_FRAME } from './limits.ts';

/** Each method counts one, and throws Http2Error ENHANCE_YOUR_CALM, for the connection, where it is one too many. */
export class PeerRates {
  readonly #clock: Clock;
  readonly #resets: RateLimit;
  readonly #pings: RateLimit;
  readonly #windowUpdates: RateLimit;
  readonly #idleFrames: RateLimit;
  readonly #sentFrames: () => number;
  /** Frames sent that allow the peer its pings and updates. */
  #earnedFrames = 0;

  /** `sentFrames`: the number of frames of DATA that went out. */
  constructor(clock: Clock, limits: Http2Limits, sentFrames: () => number) {
    const nowMs = clock.monotonicMs();
    this.#clock = clock;
    this.#resets = new RateLimit(limits.resets, nowMs);
    this.#pings = new RateLimit(limits.pings, nowMs);
    this.#windowUpdates = new RateLimit(limits.windowUpdates, nowMs);
    this.#idleFrames = new RateLimit(limits.idleFrames, nowMs);
    this.#sentFrames = sentFrames;
  }

  reset(): void {
    this.#count(this.#resets, 'streams are reset');
  }

  /** A stream that ended in good order allows another reset: a peer that cancels some of its calls costs no more. */
  completed(): void {
    this.#resets.earn(1);
  }

  /** A stream that ended because of an error of the peer's. */
  failedStream(error: Http2Error): void {
    this.#count(this.#resets, 'streams end in errors', error.message);
  }

  /** PING and SETTINGS. */
  ping(): void {
    this.#earn();
    this.#count(this.#pings, 'PING and SETTINGS come');
  }

  windowUpdate(): void {
    this.#earn();
    this.#count(this.#windowUpdates, 'WINDOW_UPDATE come');
  }

  idleFrame(): void {
    this.#count(this.#idleFrames, 'frames without use come');
  }

  #count(limit: RateLimit, what: string, why?: string): void {
    if (limit.take(this.#clock.monotonicMs())) return;
    throw new Http2Error(ErrorCode.ENHANCE_YOUR_CALM, `too many ${what}${why === undefined ? '' : ` (${why})`}`);
  }

  /** Frames sent since the last time allow the peer more PINGs and WINDOW_UPDATEs. */
  #earn(): void {
    const frames = this.#sentFrames() - this.#earnedFrames;
    if (frames === 0) return;
    this.#earnedFrames += frames;
    this.#pings.earn(frames * PINGS_PER_FRAME);
    this.#windowUpdates.earn(frames * UPDATES_PER_FRAME);
  }
}
