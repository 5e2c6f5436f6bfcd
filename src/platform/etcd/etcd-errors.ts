/**
 * What etcd's errors mean for a call: whether it may have happened, and whether it may be sent again. etcd has few
 * codes, so the text decides about some errors: etcd's own clients rely on it too.
 */
import { BigtableError, Code } from '../../base/index.ts';
import type { RpcStatus } from '../../wire/index.ts';

export type Consequence =
  /** The call has failed for good, and did nothing. */
  | 'refused'
  /** It did nothing and may succeed at another member, or later. */
  | 'not done'
  /** It may have happened, or may happen yet. */
  | 'unknown'
  /** It did nothing: the token is no longer good. */
  | 'signed out';

/** Errors with codes that say less than their text: the code for our callers, and the way out. */
const REFUSALS: readonly (readonly [RegExp, Code, string])[] = [
  [/user name is empty/, Code.UNAUTHENTICATED, 'it needs a user and a password, or a certificate'],
  [/invalid user ID or password/, Code.UNAUTHENTICATED, 'check user and password'],
  [/revision in header is old/, Code.UNAUTHENTICATED, 'its users are being changed'],
  [/permission denied/, Code.PERMISSION_DENIED, 'its user needs to read and write the keys of the prefix'],
  [/lease already exists/, Code.ALREADY_EXISTS, 'leases are numbered by chance'],
  [/authentication is not enabled/, Code.FAILED_PRECONDITION, 'leave out user and password'],
  [/request is too large/, Code.INVALID_ARGUMENT, 'its --max-request-bytes must be 1.5 MiB at least, the default'],
  [/database space exceeded/, Code.RESOURCE_EXHAUSTED, 'compact and defragment it, then disarm its alarm NOSPACE'],
];

const SIGNED_OUT = /invalid auth token|auth: revision in header is old/;
const TOO_MANY = /too many requests/;

/** The error for a status that a member has answered. `path`: of the call. */
export function errorOfStatus(address: string, { code, message }: RpcStatus): BigtableError {
  const [, known = code, hint] = REFUSALS.find(([form]) => form.test(message)) ?? [];
  // what a proxy, or a member that ends, says in place of etcd
  const isVague = code === Code.INTERNAL || code === Code.CANCELLED || code === Code.UNKNOWN;
  return new BigtableError(
    isVague ? Code.UNAVAILABLE : known,
    `etcd at ${address}: ${message}${hint === undefined ? '' : `: ${hint}`}`,
  );
}

/** The error for a call that ended without a status. */
export function errorOfBreach(address: string, { code, message, details }: BigtableError): BigtableError {
  const known = code === Code.RESOURCE_EXHAUSTED ? code : Code.UNAVAILABLE;
  return new BigtableError(known, `etcd at ${address}: ${message}`, { details });
}

export function consequenceOf({ code, message, details }: BigtableError): Consequence {
  if (details['notReached'] === true || TOO_MANY.test(message)) return 'not done';
  if (SIGNED_OUT.test(message)) return 'signed out';
  return code === Code.UNAVAILABLE || code === Code.DEADLINE_EXCEEDED ? 'unknown' : 'refused';
}
