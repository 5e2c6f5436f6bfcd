/**
 * The end of a call before its answer: by its caller's signal, or by its timeout.
 *
 * Invariant: after `stop`, and after the end, no timer and no listener is left.
 */
import { BigtableError, Code, offAbort, onAbort } from '../../base/index.ts';
import { type ByteBudget, CallContext, type Clock, type Timer } from '../../env/index.ts';
import { type CallOptions, checkCallValues } from './call-options.ts';

/**
 * The caller's signal aborted (CANCELLED), or the call timed out (DEADLINE_EXCEEDED). Its name is `AbortError` or
 * `TimeoutError`, as in Node's own calls; its `cause` is the signal's reason.
 */
export class CallEndedError extends BigtableError {
  override readonly name: string;
  /** True when the call may have changed something: it was a write, and had begun. */
  readonly outcomeUnknown: boolean;

  constructor(
    code: typeof Code.CANCELLED | typeof Code.DEADLINE_EXCEEDED,
    message: string,
    options: { cause: unknown; outcomeUnknown: boolean },
  ) {
    super(code, message, {
      cause: options.cause,
      ...(options.outcomeUnknown && { details: { outcomeUnknown: true } }),
    });
    this.name = code === Code.CANCELLED ? 'AbortError' : 'TimeoutError';
    this.outcomeUnknown = options.outcomeUnknown;
  }
}

/** The kind of a call: a write that has begun may have changed something. */
export type CallKind = 'read' | 'write';

const BEGUN: Readonly<Record<CallKind, string>> = {
  read: '',
  write: '; it had begun, and what it writes may be applied or not',
};

export interface CallEndParts {
  readonly clock: Clock;
  readonly budget: ByteBudget;
  readonly kind: CallKind;
  readonly options: CallOptions;
}

/** One call that its caller may end. */
export class CallEnd {
  readonly context: CallContext;
  readonly #options: CallOptions;
  readonly #kind: CallKind;
  readonly #onAbort = (): void => this.#end(this.#aborted(true));
  #timer: Timer | undefined;
  /** Rejects the promise of the current waiter. */
  #reject: ((error: CallEndedError) => void) | undefined;
  /** Called at the end if there is no waiter. */
  onEnd: (() => void) | undefined;

  /** Throws if the call has ended before it begins. */
  constructor({ clock, budget, kind, options }: CallEndParts) {
    checkCallValues(options);
    const { signal, timeoutMs = Number.POSITIVE_INFINITY } = options;
    this.#options = options;
    this.#kind = kind;
    if (signal?.aborted) throw this.#aborted(false);
    if (timeoutMs <= 0) throw this.#timedOut(false);
    this.context = new CallContext({ budget, principal: 'embedded', deadlineMs: clock.monotonicMs() + timeoutMs });
    if (timeoutMs !== Number.POSITIVE_INFINITY)
      this.#timer = clock.timer(timeoutMs, () => this.#end(this.#timedOut(true)));
    onAbort(signal, this.#onAbort);
  }

  /** The reason of the end, if the call has ended. */
  get error(): BigtableError | undefined {
    return this.context.interruption;
  }

  /** Settles as the work does, or rejects when the call ends first. One work at a time. */
  race<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.error !== undefined) reject(this.error);
      this.#reject = reject;
      work.then(
        (value) => {
          this.#reject = undefined;
          resolve(value);
        },
        (error: unknown) => {
          this.#reject = undefined;
          reject(this.#errorOf(error));
        },
      );
    });
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    offAbort(this.#options.signal, this.#onAbort);
  }

  #end(error: CallEndedError): void {
    this.stop();
    this.context.interrupt(error);
    if (this.#reject !== undefined) this.#reject(error);
    else this.onEnd?.();
  }

  /** Those who know the deadline too may be the first to tell that it is over. */
  #errorOf(error: unknown): unknown {
    const isDue =
      error instanceof BigtableError && error.code === Code.DEADLINE_EXCEEDED && this.#options.timeoutMs !== undefined;
    return isDue && !(error instanceof CallEndedError) ? this.#timedOut(true, error) : error;
  }

  #aborted(begun: boolean): CallEndedError {
    const reason: unknown = this.#options.signal?.reason;
    const isTimeout = reason instanceof Error && reason.name === 'TimeoutError';
    return this.#errorFor(
      isTimeout ? Code.DEADLINE_EXCEEDED : Code.CANCELLED,
      `the call was given up: ${reasonText(reason)}`,
      begun,
      reason,
    );
  }

  #timedOut(begun: boolean, cause?: unknown): CallEndedError {
    const { timeoutMs } = this.#options;
    return this.#errorFor(
      Code.DEADLINE_EXCEEDED,
      `the call took longer than its timeoutMs of ${timeoutMs}`,
      begun,
      cause,
    );
  }

  #errorFor(
    code: typeof Code.CANCELLED | typeof Code.DEADLINE_EXCEEDED,
    message: string,
    begun: boolean,
    cause: unknown,
  ): CallEndedError {
    const kind = this.#kind;
    return new CallEndedError(code, `${message}${begun ? BEGUN[kind] : ''}`, {
      cause,
      outcomeUnknown: begun && kind === 'write',
    });
  }
}

function reasonText(reason: unknown): string {
  if (reason instanceof Error) return reason.message;
  return typeof reason === 'string' && reason !== '' ? reason : 'its signal aborted';
}
