/**
 * What every call of the service, the tablet and the transport carries beside its message: until when it matters, whether it
 * was given up, who asks, and the bytes it holds of the process's budget.
 */
import { BigtableError, Code } from '../base/index.ts';
import type { ByteBudget, Reservation } from './budget.ts';
import type { Clock } from './clock.ts';

export type Priority = 'high' | 'medium' | 'low';

export interface RequestContext {
  /** On the monotonic clock, ms; Infinity where there is none. */
  readonly deadlineMs: number;
  /** Aborts when the caller has gone or has given up. */
  readonly signal: AbortSignal | undefined;
  /** Who asks; 'anonymous' until there is authentication. */
  readonly principal: string;
  readonly appProfile: string;
  readonly priority: Priority;
  /** Trace id for logs; empty where the caller sent none. */
  readonly trace: string;
  /** The bytes this request holds: what arrived, and what is made and not yet sent. Released by whoever made the context. */
  readonly reservation: Reservation;
}

export interface ContextOptions {
  readonly budget: ByteBudget;
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal | undefined;
  readonly principal?: string;
  readonly appProfile?: string;
  readonly priority?: Priority;
  readonly trace?: string;
}

/** A context with defaults filled in: no deadline, anonymous, medium priority. */
export function requestContext(options: ContextOptions): RequestContext {
  return {
    deadlineMs: options.deadlineMs ?? Number.POSITIVE_INFINITY,
    signal: options.signal,
    principal: options.principal ?? 'anonymous',
    appProfile: options.appProfile ?? '',
    priority: options.priority ?? 'medium',
    trace: options.trace ?? '',
    reservation: options.budget.reservation(),
  };
}

/** Throws CANCELLED when the caller has given up, DEADLINE_EXCEEDED when its time is over. */
export function checkContext(context: RequestContext, clock: Clock): void {
  if (context.signal?.aborted) throw new BigtableError(Code.CANCELLED, 'the caller gave the call up');
  if (context.deadlineMs !== Number.POSITIVE_INFINITY && clock.monotonicMs() >= context.deadlineMs) {
    throw new BigtableError(Code.DEADLINE_EXCEEDED, 'the deadline of the call is over');
  }
}
