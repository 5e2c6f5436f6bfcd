/**
 * A call whose caller is still being authenticated. Bytes of its request wait here, held as arriving, and keep their
 * part of the windows. After MAX_UNKNOWN_BYTES nothing more is read from the connection until the caller is
 * authenticated, so that an unknown caller cannot make the server hold more.
 */
import { type BigtableError, toBigtableError, unavailable } from '../../base/index.ts';
import type { Owner, Reservation } from '../../env/index.ts';
import type { ApiEnv } from '../contract/rpc-server.ts';
import { keepable } from '../grpc/message-framing.ts';
import { statusTrailers } from '../grpc/answer-blocks.ts';
import type { Connection } from '../http2/connection.ts';
import type { Stream, StreamOwner } from '../http2/stream.ts';
import type { CallServer } from './server-call.ts';
import { arrivingBytes } from './single-request.ts';
import type { SlowCall } from './slow-calls.ts';

/** The most that is read of a call whose caller is not authenticated. */
const MAX_UNKNOWN_BYTES = 16 * 1024;

export interface WaitingCallParts {
  readonly server: Pick<CallServer, 'slowCalls' | 'statusOf'> & { readonly env: Pick<ApiEnv, 'requestBudget'> };
  /** Reading from it can be paused. */
  readonly connection: Pick<Connection, 'pause' | 'resume'>;
  readonly stream: Stream;
  readonly caller: Promise<string>;
  /** The share of unknown callers on this connection. */
  readonly owner: Owner;
  /** Sets the stream's new owner. */
  readonly begin: (caller: string | BigtableError) => void;
}

export class WaitingCall implements StreamOwner, SlowCall {
  readonly reservation: Reservation;
  listIndex = -1;
  readonly #parts: WaitingCallParts;
  #payloads: Buffer[] = [];
  #bytes = 0;
  #isPaused = false;
  #hasEnded = false;
  #isGone = false;

  constructor(parts: WaitingCallParts) {
    const { server, stream, caller, owner } = parts;
    stream.owner = this;
    this.#parts = parts;
    this.reservation = server.env.requestBudget.reservation(owner);
    server.slowCalls.add(this);
    const decide = (principal: string | BigtableError): void => {
      if (this.#isGone) return;
      this.#release();
      parts.begin(principal);
      this.#handOver();
    };
    caller.then(decide, (error: unknown) => decide(toBigtableError(error)));
  }

  /** The server is slow here, not the client. */
  isTooSlow(): boolean {
    return false;
  }

  endEarly(error: BigtableError): void {
    const { server, stream } = this.#parts;
    this.#cancel();
    stream.end(statusTrailers(server.statusOf(error), true));
    stream.done();
  }

  onData(payload: Buffer): void {
    const { server, owner, stream, connection } = this.#parts;
    if (this.#isGone) return stream.credit(payload.length);
    while (!this.reservation.tryArrive(arrivingBytes(payload.length))) {
      if (!server.slowCalls.makeSpace(owner)) return this.endEarly(noSpace());
    }
    this.#payloads.push(keepable(payload));
    this.#bytes += payload.length;
    if (this.#bytes <= MAX_UNKNOWN_BYTES || this.#isPaused) return;
    this.#isPaused = true;
    connection.pause();
  }

  onEnd(): void {
    this.#hasEnded = true;
  }

  onReset(): void {
    this.#cancel();
    this.#parts.stream.done();
  }

  onSent(): void {}

  #cancel(): void {
    this.#isGone = true;
    this.#payloads = [];
    this.#release();
  }

  /** The new owner holds the bytes that came. */
  #release(): void {
    if (this.#isPaused) this.#parts.connection.resume();
    this.#isPaused = false;
    this.#parts.server.slowCalls.remove(this);
    this.reservation.release();
  }

  #handOver(): void {
    const { stream } = this.#parts;
    const { owner } = stream;
    for (const payload of this.#payloads) if (!stream.isReset) owner?.onData(payload);
    if (this.#hasEnded && !stream.isReset) owner?.onEnd();
  }
}

function noSpace(): BigtableError {
  return unavailable('no memory is left for requests whose callers are being authenticated: try again');
}
