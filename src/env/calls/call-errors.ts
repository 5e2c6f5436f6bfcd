/**
 * The errors of calls that end without an answer (cancelled, out of time, on their way), or are refused by the other
 * side or by storage.
 *
 * Invariant: what a caller sees as "not reached" did nothing. A handler calls others, and may have changed something
 * before one of them was not reached; so such an error of a nested call crosses as UNAVAILABLE alone. Only a handler
 * that refuses the call itself, with `callRefused` or `asRefusal`, tells its caller that nothing was done.
 */
import { BigtableError, Code } from '../../base/index.ts';

/** CANCELLED by the caller. `waitedFor`: what the call waited for, where that is known. */
export function callCancelled(waitedFor?: string, cause?: unknown): BigtableError {
  return new BigtableError(Code.CANCELLED, `the caller cancelled the call${during(waitedFor)}`, { cause });
}

/** DEADLINE_EXCEEDED. `waitedFor`: what the call waited for, where that is known. */
export function deadlineExceeded(waitedFor?: string): BigtableError {
  return new BigtableError(Code.DEADLINE_EXCEEDED, `the deadline of the call passed${during(waitedFor)}`);
}

/**
 * UNAVAILABLE, at the caller's side: surely nothing was done, so a caller that finds the right server may send the call
 * again.
 */
export function notReached(message: string): BigtableError {
  return new BigtableError(Code.UNAVAILABLE, message, { details: { notReached: true } });
}

/** Thrown by a handler that has done nothing: its caller gets "not reached". */
export function callRefused(message: string): BigtableError {
  return asRefusal(notReached(message));
}

/** The same error, thrown by a handler that has done nothing but to pass the whole call on, once. */
export function asRefusal({ code, message, retry, details, cause }: BigtableError): BigtableError {
  return new BigtableError(code, message, { retry, details: { ...details, refused: true }, cause });
}

type Details = Readonly<Record<string, unknown>>;

/** The details of a handler's error as its caller gets them. */
export function detailsForCaller(details: Details): Details {
  if (!saysNothingWasDone(details)) return details;
  const { refused, ...marks } = details;
  if (refused === true) return marks;
  const { notReached: _reached, notServing: _serving, ...rest } = marks;
  return rest;
}

/** A handler's error as its caller gets it. */
export function errorForCaller(error: BigtableError): BigtableError {
  const { code, message, retry, details } = error;
  if (!saysNothingWasDone(details)) return error;
  return new BigtableError(code, message, { retry, details: detailsForCaller(details), cause: error });
}

function saysNothingWasDone(details: Details): boolean {
  return details['notReached'] === true || details['notServing'] === true;
}

/** True for RESOURCE_EXHAUSTED, with which storage says that it surely wrote nothing and goes on. */
export function isStorageRefusal(error: unknown): error is BigtableError {
  return error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED;
}

function during(waitedFor: string | undefined): string {
  return waitedFor === undefined ? '' : ` while it waited for ${waitedFor}`;
}
