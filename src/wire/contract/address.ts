/**
 * Addresses as users write them: HOST:PORT, [IPV6]:PORT; which of them are this machine alone; and which network a
 * peer's address is of.
 */
import { isIP } from 'node:net';

export interface Address {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

/** An IPv4 address that is written as IPv6. */
const MAPPED = '::ffff:';

/** A name of the DNS has at most 253 characters; letters of any alphabet are in names of users. */
const ADDRESS = /^(?:\[([0-9a-fA-F:.]{2,45})\]|([\p{L}\p{M}\p{N}._-]{1,253})):(\d{1,5})$/u;

/** Undefined for an invalid address. */
export function parseAddress(text: string): Address | undefined {
  const match = ADDRESS.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

/** HOST:PORT, with an IPv6 host in brackets. */
export function addressText(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * True when only programs of this machine can be at that host, or listen on the way to it. Only forms that mean the
 * same to every resolver: "localhost", 127.0.0.0/8 in four decimal parts, also where that is mapped into IPv6, and ::1.
 */
export function isLoopback(host: string): boolean {
  const text = host.toLowerCase();
  const ipv4 = text.startsWith(MAPPED) ? text.slice(MAPPED.length) : text;
  return (
    text === 'localhost' ||
    text === '::1' ||
    text === '0:0:0:0:0:0:0:1' ||
    (isIP(ipv4) === 4 && ipv4.startsWith('127.'))
  );
}

/**
 * The network that a limit by address counts: an IPv4 address, also where it is written as IPv6 (::ffff:192.0.2.1), or
 * the first 64 bits of an IPv6 address, since the owner of one of those usually has all 2^64.
 */
export function networkOf(address: string): string {
  if (address.startsWith(MAPPED) && address.includes('.')) return address.slice(MAPPED.length);
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? [];
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...new Array<string>(Math.max(0, zeros)).fill('0'), ...after].slice(0, 4).join(':');
}
