/**
 * A call and a stream that were sent to another thread (port-peer.ts), on the caller's side: their answers, and their
 * end when the caller's context is interrupted.
 *
 * Invariant: each ends once, by an answer, a failure, or by a cancellation, and notifies the peer that keeps it by its
 * number.
 */
import { type BigtableError, toBigtableError } from '../../base/index.ts';
import {
  callCancelled,
  checkContext,
  type Clock,
  ContextWait,
  fromPlainThrown,
  type Interruptible,
  isEndless,
  type PlainThrown,
  PullStream,
  type RequestContext,
} from '../../env/index.ts';

/** Items of a stream that may be in flight. Each is a batch of a read: some hundred kilobytes at most. */
export const WINDOW = 4;
export const Frame = { call: 0, stream: 1, cancel: 2, more: 3, answer: 4, failure: 5, item: 6, end: 7 } as const;
export type FrameKind = (typeof Frame)[keyof typeof Frame];

/** The receiver of the frames of a call. */
export interface Receiver {
  receive(frame: FrameKind, value: unknown): void;
}

interface CallEnds {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: BigtableError) => void;
  /** Called when the caller does not wait any longer. */
  readonly cancel: (error: BigtableError) => void;
}

export class SentCall implements Receiver, Interruptible {
  readonly #ends: CallEnds;
  readonly #wait: ContextWait | undefined;

  constructor(context: RequestContext, clock: Clock, ends: CallEnds) {
    this.#ends = ends;
    this.#wait = isEndless(context) ? undefined : new ContextWait(context, clock, this);
  }

  receive(frame: FrameKind, value: unknown): void {
    this.#wait?.stop();
    if (frame === Frame.answer) this.#ends.resolve(value);
    else this.#ends.reject(fromPlainThrown(value as PlainThrown));
  }

  interrupt(error: BigtableError): void {
    this.#wait?.stop();
    this.#ends.cancel(error);
    this.#ends.reject(error);
  }
}

interface StreamEnds {
  readonly begin: (stream: SentStream) => void;
  readonly more: (count: number) => void;
  readonly over: () => void;
  readonly cancel: (error: BigtableError) => void;
}

/**
 * Begins with the first pull. Between two pulls the context is not watched: it is checked when the next one comes.
 */
export class SentStream extends PullStream<unknown> implements Receiver, Interruptible {
  readonly #context: RequestContext;
  readonly #clock: Clock;
  readonly #ends: StreamEnds;
  readonly #items: unknown[] = [];
  #state: 'new' | 'open' | 'ended' | 'over' = 'new';
  #failure: BigtableError | undefined;
  #taken = 0;
  #waiting:
    | {
        readonly resolve: (item: unknown) => void;
        readonly reject: (error: BigtableError) => void;
        readonly wait: ContextWait | undefined;
      }
    | undefined;

  constructor(context: RequestContext, clock: Clock, ends: StreamEnds) {
    super();
    this.#context = context;
    this.#clock = clock;
    this.#ends = ends;
  }

  pull(): unknown {
    if (this.#state === 'over') return undefined;
    try {
      checkContext(this.#context, this.#clock);
      if (this.#state === 'new') {
        this.#state = 'open';
        this.#ends.begin(this);
      }
    } catch (thrown) {
      this.end();
      throw toBigtableError(thrown);
    }
    if (this.#items.length > 0) return this.#take();
    if (this.#state === 'ended') return this.#finish();
    return new Promise((resolve, reject) => {
      const wait = isEndless(this.#context) ? undefined : new ContextWait(this.#context, this.#clock, this);
      this.#waiting = { resolve, reject, wait };
    });
  }

  end(): void {
    const { wait, resolve } = this.#waiting ?? {};
    if (this.#state === 'open') this.#ends.cancel(callCancelled());
    this.#state = 'over';
    this.#items.length = 0;
    this.#waiting = undefined;
    wait?.stop();
    resolve?.(undefined);
  }

  receive(frame: FrameKind, value: unknown): void {
    if (frame === Frame.item) {
      this.#items.push(value);
    } else {
      this.#ends.over();
      this.#state = 'ended';
      if (frame === Frame.failure) this.#failure = fromPlainThrown(value as PlainThrown);
    }
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#waiting = undefined;
    waiting.wait?.stop();
    if (this.#items.length > 0) return waiting.resolve(this.#take());
    try {
      waiting.resolve(this.#finish());
    } catch (error) {
      waiting.reject(error as BigtableError);
    }
  }

  interrupt(error: BigtableError): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.end();
    waiting?.wait?.stop();
    waiting?.reject(error);
  }

  /** Takes the next item. After each half window the other side is granted more. */
  #take(): unknown {
    this.#taken++;
    if (this.#state === 'open' && this.#taken >= WINDOW / 2) {
      this.#ends.more(this.#taken);
      this.#taken = 0;
    }
    return this.#items.shift();
  }

  #finish(): undefined {
    this.#state = 'over';
    if (this.#failure) throw this.#failure;
    return undefined;
  }
}
