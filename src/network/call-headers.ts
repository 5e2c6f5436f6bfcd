/**
 * What travels next to a message in the headers of its request: the address it is meant for, and of its context the
 * principal, app profile and priority. Deadline, cancellation and trace are the wire's.
 *
 * The principal was authenticated by the process that took the call from its client. A peer believes it because the
 * connection is that of a process of the cluster.
 */
import type { Priority, RequestContext } from '../env/index.ts';

export const ADDRESS = 'edubba-address';
const PRINCIPAL = 'edubba-principal';
const APP_PROFILE = 'edubba-app-profile';
const PRIORITY = 'edubba-priority';

const DEFAULT_PRINCIPAL = 'anonymous';
const DEFAULT_PRIORITY = 'medium';

/** name, value, name, value … Those that have their defaults are left out. */
export function headersOf(address: string, { principal, appProfile, priority }: RequestContext): string[] {
  const headers: string[] = [ADDRESS, address];
  if (principal !== DEFAULT_PRINCIPAL) headers.push(PRINCIPAL, encodeURIComponent(principal));
  if (appProfile !== '') headers.push(APP_PROFILE, encodeURIComponent(appProfile));
  if (priority !== DEFAULT_PRIORITY) headers.push(PRIORITY, priority);
  return headers;
}

type HeaderOf = (name: string) => string | undefined;

export function principalOf(header: HeaderOf): string {
  return textOf(header(PRINCIPAL)) ?? DEFAULT_PRINCIPAL;
}

export function appProfileOf(header: HeaderOf): string {
  return textOf(header(APP_PROFILE)) ?? '';
}

export function priorityOf(header: HeaderOf): Priority {
  const priority = header(PRIORITY);
  return priority === 'high' || priority === 'low' ? priority : DEFAULT_PRIORITY;
}

/** INVALID_ARGUMENT is not worth it: a peer that encodes wrongly gets the text as it is. */
function textOf(header: string | undefined): string | undefined {
  if (header === undefined || !header.includes('%')) return header;
  try {
    return decodeURIComponent(header);
  } catch {
    return header;
  }
}
