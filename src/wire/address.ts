/** Addresses as users write them: HOST:PORT, [IPV6]:PORT; and which of them are this machine alone. */
import { isIP } from 'node:net';

export interface Address {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

/** Undefined where it is no address. */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

/** Whether nobody but this machine's own programs can be at that host, nor listen to what is said with it. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
