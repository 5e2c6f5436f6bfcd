/**
 * "Not serving": the refusal of a call for rows that a server does not serve. Nothing was done, so the caller drops the
 * location it used, climbs, and sends the same call again.
 *
 * Invariant: a handler that passes on the refusal of a call that it has made does not refuse its own call by it
 * (env/calls/call-errors.ts).
 */
import { BigtableError, type ByteString, Code, quote } from '../base/index.ts';
import { asRefusal, callRefused } from '../env/index.ts';
import type { Addressed } from './messages.ts';

/** Thrown by a handler that has done nothing. */
export function notServing(tableId: string, row: ByteString): BigtableError {
  return asRefusal(notLocated(tableId, row));
}

/** The same at the caller's side: no server of the row is known. */
export function notLocated(tableId: string, row: ByteString): BigtableError {
  return new BigtableError(Code.UNAVAILABLE, `row ${quote(row)} of table ${tableId} is not served here now`, {
    details: { notServing: true },
  });
}

/** UNAVAILABLE, not reached, if the call is meant for another incarnation than `name`. */
export function checkAddressed({ to }: Addressed, name: string): void {
  if (to !== undefined && to !== name) throw callRefused(`the call is meant for ${to}, and reached ${name}`);
}

/**
 * True when the call was surely not carried out because it came to the wrong server: it may be sent again to the right
 * one.
 */
export function isNotServing(error: {
  readonly code: Code;
  readonly details: Readonly<Record<string, unknown>>;
}): boolean {
  return error.details.notServing === true || error.details.notReached === true;
}
