/**
 * RateLimitInfo in the answer of a batch of writes, for clients that limit their rate by it ("batch write flow
 * control"): MutateRowsResponse.rate_limit_info.
 */
import { type CallContext, type Clock, WriteWait } from '../../env/index.ts';

/** A client changes its rate once in this time: a flush that holds writes back takes about as long. */
const PERIOD_SECONDS = 5;
/** The official clients take a factor beyond these as these. */
const [MIN_FACTOR, MAX_FACTOR] = [0.7, 1.3];
/** The share of a call's time for which a client keeps its rate. With twice that share it slows down most. */
const KEPT_SHARE = 0.1;

/** One for each call; made when the call begins. */
export class RateLimiter {
  readonly #wait = new WriteWait();
  readonly #clock: Clock;
  readonly #startMs: number;

  constructor(context: CallContext, clock: Clock) {
    context.writeWait = this.#wait;
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
  }

  /** The field's bytes, when the writes are done. */
  field(): Buffer {
    const tookMs = Math.max(1, this.#clock.monotonicMs() - this.#startMs);
    return rateLimitField(Math.min(1, this.#wait.longestMs / tookMs));
  }
}

/** `waitedShare`: the share of the call's time, 0 to 1, in which writes were held back. */
export function rateLimitField(waitedShare: number): Buffer {
  const slope = (MAX_FACTOR - 1) / KEPT_SHARE;
  const factor = Math.max(MIN_FACTOR, MAX_FACTOR - slope * waitedShare);
  // field 3, of 13 bytes: `period`, a Duration of seconds, and `factor`, a double
  const bytes = Buffer.from([0x1a, 13, 0x0a, 2, 0x08, PERIOD_SECONDS, 0x11, 0, 0, 0, 0, 0, 0, 0, 0]);
  bytes.writeDoubleLE(factor, 7);
  return bytes;
}
