/**
 * A call of which it is not yet known who asks: what comes of its request waits here, in its stream's first window and with its place in the
 * connection's, so that nobody unknown makes the server hold more than these allow.
 */
import { type BigtableError, toBigtableError } from '../../base/index.ts';
import { keepable } from '../grpc/message-framing.ts';
import type { Stream, StreamOwner } from '../http2/stream.ts';

export class WaitingCall implements StreamOwner {
  readonly #stream: Stream;
  #payloads: Buffer[] = [];
  #hasEnded = false;
  #isGone = false;

  /** `admit` gives the stream its new owner. */
  constructor(stream: Stream, caller: Promise<string>, admit: (caller: string | BigtableError) => void) {
    stream.owner = this;
    this.#stream = stream;
    const decide = (known: string | BigtableError): void => {
      if (this.#isGone) return;
      admit(known);
      this.#handOver();
    };
    caller.then(decide, (error: unknown) => decide(toBigtableError(error)));
  }

  onData(payload: Buffer): void {
    this.#payloads.push(keepable(payload));
  }

  onEnd(): void {
    this.#hasEnded = true;
  }

  onReset(): void {
    this.#isGone = true;
    this.#payloads = [];
    this.#stream.done();
  }

  onSent(): void {}

  #handOver(): void {
    const { owner } = this.#stream;
    for (const payload of this.#payloads) if (!this.#stream.isReset) owner?.onData(payload);
    if (this.#hasEnded && !this.#stream.isReset) owner?.onEnd();
  }
}
