/**
 * The context that every call of the service, the tablet and the transport carries next to its message: its deadline,
 * its cancellation, its principal, and the bytes it holds of the process's budget.
 */
import type { BigtableError } from '../../base/index.ts';
import type { ByteBudget, Reservation } from '../budget/budget.ts';
import { callCancelled, deadlineExceeded } from './call-errors.ts';
import type { CallNotes } from './call-notes.ts';
import type { Clock } from '../seams/clock.ts';
import type { Owner } from '../budget/turn-queue.ts';

export type Priority = 'high' | 'medium' | 'low';

/** How long the writes of a call were held back: the longest of the waits for memory or compactions, at any server. */
export class WriteWait {
  longestMs = 0;

  add(waitMs: number): void {
    this.longestMs = Math.max(this.longestMs, waitMs);
  }
}

export interface RequestContext {
  /** On the monotonic clock, ms; Infinity where there is none. */
  readonly deadlineMs: number;
  /** Aborts when the caller has gone or has cancelled. */
  readonly signal: AbortSignal | undefined;
  /** The authenticated caller; 'anonymous' until there is authentication. */
  readonly principal: string;
  readonly appProfile: string;
  /** The authorized view through which the call reads and changes its table; '' or undefined = the table itself. */
  readonly authorizedView?: string;
  readonly priority: Priority;
  /** Trace id for logs; empty where the caller sent none. */
  readonly trace: string;
  /**
   * The bytes this request holds: the received request, and answers not yet sent. Released by the code that made the
   * context.
   */
  readonly reservation: Reservation;
  /** Undefined where no log reports the call. */
  readonly notes?: CallNotes | undefined;
  /** Undefined where no caller asks how long the writes of the call are held back. */
  readonly writeWait?: WriteWait | undefined;
}

export interface ContextOptions {
  readonly budget: ByteBudget;
  /** The owner of the budget's share that it counts to. */
  readonly owner?: Owner | undefined;
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal | undefined;
  readonly principal?: string;
  readonly appProfile?: string;
  readonly priority?: Priority;
  readonly trace?: string;
  readonly notes?: CallNotes | undefined;
}

/**
 * A class, because V8 may allocate a literal's objects in the old generation
 * (docs/decisions/0017-what-outlives-a-call.md), with all they refer to.
 */
class PlainContext implements RequestContext {
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
  readonly principal: string;
  readonly appProfile: string;
  readonly priority: Priority;
  readonly trace: string;
  readonly reservation: Reservation;
  readonly notes: CallNotes | undefined;

  constructor(options: ContextOptions) {
    this.deadlineMs = options.deadlineMs ?? Number.POSITIVE_INFINITY;
    this.signal = options.signal;
    this.principal = options.principal ?? 'anonymous';
    this.appProfile = options.appProfile ?? '';
    this.priority = options.priority ?? 'high';
    this.trace = options.trace ?? '';
    this.reservation = options.budget.reservation(options.owner);
    this.notes = options.notes;
  }
}

/** A context with defaults filled in: no deadline, anonymous, the highest priority. */
export function requestContext(options: ContextOptions): RequestContext {
  return new PlainContext(options);
}

/** Notified when a call is cancelled. */
export interface Interruptible {
  interrupt(error: BigtableError): void;
}

/**
 * The context of a call that came over a wire. Its maker calls `interrupt` when the caller cancels and when the
 * deadline is over, so that no code below needs a timer. The signal is made on first use: making one and listening to
 * it costs as much as reading a row.
 */
export class CallContext implements RequestContext {
  readonly deadlineMs: number;
  readonly principal: string;
  /** Known once the request is decoded: the decoder fills it in. */
  appProfile = '';
  /** The same: once the view is found. */
  authorizedView = '';
  /** A call from another process has it in a header: the transport fills it in. */
  priority: Priority;
  readonly trace: string;
  readonly reservation: Reservation;
  readonly notes: CallNotes | undefined;
  /** The code that carries out the call sets it. */
  writeWait: WriteWait | undefined = undefined;
  #interruption: BigtableError | undefined;
  #abort: AbortController | undefined;
  #listener: Interruptible | undefined;
  #others: Set<Interruptible> | undefined;

  constructor(options: Omit<ContextOptions, 'signal' | 'appProfile'>) {
    this.deadlineMs = options.deadlineMs ?? Number.POSITIVE_INFINITY;
    this.principal = options.principal ?? 'anonymous';
    this.priority = options.priority ?? 'high';
    this.trace = options.trace ?? '';
    this.reservation = options.budget.reservation(options.owner);
    this.notes = options.notes;
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#interruption) this.#abort.abort(this.#interruption);
    }
    return this.#abort.signal;
  }

  /** The reason of the cancellation, where the call was cancelled. */
  get interruption(): BigtableError | undefined {
    return this.#interruption;
  }

  /** Notifies all listeners, once, that the caller no longer waits for the answer: CANCELLED, or DEADLINE_EXCEEDED. */
  interrupt(error: BigtableError): void {
    if (this.#interruption) return;
    this.#interruption = error;
    this.#abort?.abort(error);
    this.#listener?.interrupt(error);
    for (const other of this.#others ?? []) other.interrupt(error);
  }

  /** Notifies `listener` of a later interruption. */
  listen(listener: Interruptible): void {
    if (this.#listener === undefined) this.#listener = listener;
    else (this.#others ??= new Set()).add(listener);
  }

  unlisten(listener: Interruptible): void {
    if (this.#listener === listener) this.#listener = undefined;
    else this.#others?.delete(listener);
  }
}

/** Throws CANCELLED when the caller has cancelled, DEADLINE_EXCEEDED when its time is over. */
export function checkContext(context: RequestContext, clock: Clock): void {
  if (context instanceof CallContext) {
    if (context.interruption) throw context.interruption;
    return;
  }
  if (context.signal?.aborted) throw callCancelled();
  if (context.deadlineMs !== Number.POSITIVE_INFINITY && clock.monotonicMs() >= context.deadlineMs) {
    throw deadlineExceeded();
  }
}
