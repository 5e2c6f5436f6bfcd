/**
 * Ids of sessions: the id of the lease in hexadecimal. Leases of one etcd are numbered by chance, with 60 bits: an id
 * is not reused.
 */
import type { Int64 } from '../../base/index.ts';
import type { Random } from '../../env/index.ts';

const DIGITS = 15;
const FORM = /^[0-9a-f]{15}$/;

export function drawSessionId(random: Random): string {
  for (;;) {
    const id = random.uniqueName().slice(0, DIGITS);
    if (leaseOfSession(id) !== undefined) return id;
  }
}

/** Undefined where there never was such a session. */
export function leaseOfSession(sessionId: string): bigint | undefined {
  const lease = FORM.test(sessionId) ? BigInt(`0x${sessionId}`) : 0n;
  return lease === 0n ? undefined : lease;
}

/** Undefined for no lease. */
export function sessionOfLease(lease: Int64): string | undefined {
  return BigInt(lease) === 0n ? undefined : BigInt.asUintN(64, BigInt(lease)).toString(16).padStart(DIGITS, '0');
}
