/**
 * What travels next to a message in the headers of its request: the address it is meant for, and of its context the
 * principal, app profile and priority. Deadline, cancellation and trace are the wire's.
 *
 * The principal was authenticated by the process that took the call from its client. A peer believes it because the
 * connection is that of a process of the cluster.
 */
import { invalidArgument } from '../base/index.ts';
import type { Priority, RequestContext } from '../env/index.ts';

export const ADDRESS = 'edubba-address';
const PRINCIPAL = 'edubba-principal';
const APP_PROFILE = 'edubba-app-profile';
const PRIORITY = 'edubba-priority';

const DEFAULT_PRINCIPAL = 'anonymous';
const DEFAULT_PRIORITY = 'high';

/** Headers beyond a peer's limit would end its connection, and the calls of others with it. */
const MAX_CHARS = 8192;

/**
 * name, value, name, value … Those that have their defaults are left out. INVALID_ARGUMENT for a principal or an app
 * profile that has no UTF-8, or more than 8192 characters in encoded form.
 */
export function headersOf(address: string, { principal, appProfile, priority }: RequestContext): string[] {
  const headers: string[] = [ADDRESS, address];
  if (principal !== DEFAULT_PRINCIPAL) headers.push(PRINCIPAL, encoded(principal, 'principal'));
  if (appProfile !== '') headers.push(APP_PROFILE, encoded(appProfile, 'app profile'));
  if (priority !== DEFAULT_PRIORITY) headers.push(PRIORITY, priority);
  return headers;
}

function encoded(text: string, what: string): string {
  const header = text.length > MAX_CHARS ? text : encodeText(text, what);
  if (header.length <= MAX_CHARS) return header;
  throw invalidArgument(`invalid ${what}: ${header.length} characters in encoded form, the limit is ${MAX_CHARS}`);
}

function encodeText(text: string, what: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    throw invalidArgument(`invalid ${what}: it holds half of a character`);
  }
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
