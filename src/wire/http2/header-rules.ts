/**
 * What the headers of a request must be (RFC 9113, section 8.2 and 8.3), and those of them that the wire itself reads.
 *
 * Everything against the rules is a malformed request: PROTOCOL_ERROR of its stream.
 *
 * The requests of a connection are much alike: mostly only the timeout and, say, a trace differ from the request before. What is the same is not
 * checked again.
 */
import { ErrorCode, Http2Error } from './frames.ts';
import { HeaderPlaces } from './header-places.ts';

export interface RequestHeaders {
  /** name, value, name, value … with the pseudo-headers, which come first. */
  readonly list: readonly string[];
  /** Places in `list`; the same object for requests with the same names in the same places. */
  readonly places: HeaderPlaces;
  readonly method: string;
  readonly path: string;
  readonly contentType: string | undefined;
  /** Undefined where the request does not say it. */
  readonly contentLength: number | undefined;
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** Headers that say more than their value, or whose value has rules of its own: where one of these differs, all are looked at anew. */
const WITH_RULES = new Set([':method', ':scheme', ':authority', 'content-type', 'content-length', 'te']);
const OF_CONNECTIONS = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']);
const PSEUDO = [':method', ':scheme', ':path', ':authority'];
/** Names that were found well formed: the same few come with every request. */
const knownNames = new Set<string>();
const MAX_KNOWN = 256;

/** `last`: what the request before it was found to be. */
export function requestHeaders(headers: readonly string[], streamId: number, last?: RequestHeaders): RequestHeaders {
  return (last && asLast(headers, last, streamId)) ?? readHeaders(headers, streamId);
}

/** Undefined where more differs than plain values. */
function asLast(list: readonly string[], last: RequestHeaders, streamId: number): RequestHeaders | undefined {
  const { list: before, places, method, contentType, contentLength } = last;
  let { path } = last;
  if (list.length !== before.length) return undefined;
  for (let i = 0; i < list.length; i += 2) {
    const name = list[i] as string;
    if (name !== before[i]) return undefined;
    const value = list[i + 1] as string;
    if (value === before[i + 1]) continue;
    if (WITH_RULES.has(name)) return undefined;
    checkedValue(value, name, streamId);
    if (name !== ':path') continue;
    if (value === '') return undefined;
    path = value;
  }
  return { list, places, method, path, contentType, contentLength };
}

function readHeaders(list: readonly string[], streamId: number): RequestHeaders {
  const pseudo: (string | undefined)[] = [undefined, undefined, undefined, undefined];
  let first = 0;
  for (; first < list.length; first += 2) {
    const name = list[first] as string;
    if (name.charCodeAt(0) !== 0x3a) break;
    const which = PSEUDO.indexOf(name);
    if (which < 0) throw malformed(streamId, `${name} is no pseudo-header of requests`);
    if (pseudo[which] !== undefined) throw malformed(streamId, `${name} twice`);
    pseudo[which] = checkedValue(list[first + 1] as string, name, streamId);
  }
  const [method, scheme, path] = pseudo;
  if (method === undefined) throw malformed(streamId, ':method is missing');
  if (method !== 'CONNECT' && (scheme === undefined || !path)) throw malformed(streamId, ':scheme or :path is missing');
  let contentType: string | undefined;
  let contentLength: number | undefined;
  for (let i = first; i < list.length; i += 2) {
    const name = list[i] as string;
    const value = list[i + 1] as string;
    checkField(name, value, streamId);
    if (name === 'content-type') contentType = value;
    else if (name === 'content-length') contentLength = length(value, contentLength, streamId);
  }
  return { list, places: new HeaderPlaces(), method, path: path ?? '', contentType, contentLength };
}

/** Trailers of a request: no pseudo-headers. */
export function checkTrailers(headers: readonly string[], streamId: number): void {
  for (let i = 0; i < headers.length; i += 2) checkField(headers[i] as string, headers[i + 1] as string, streamId);
}

function checkField(name: string, value: string, streamId: number): void {
  if (!knownNames.has(name)) {
    if (!NAME.test(name))
      throw malformed(streamId, `${JSON.stringify(name.slice(0, 64))} is no header's name, or out of place`);
    if (OF_CONNECTIONS.has(name)) throw malformed(streamId, `${name} belongs to HTTP/1 connections`);
    if (knownNames.size < MAX_KNOWN && name.length < 64) knownNames.add(name);
  }
  checkedValue(value, name, streamId);
  if (name === 'te' && value !== 'trailers') throw malformed(streamId, 'te must be "trailers"');
}

/** No value may hold NUL, CR or LF: they would part headers where they are passed on as HTTP/1. */
function checkedValue(value: string, name: string, streamId: number): string {
  for (let i = 0; i < value.length; i++) {
    const char = value.charCodeAt(i);
    if (char <= 0x0d && (char === 0 || char === 0x0a || char === 0x0d))
      throw malformed(streamId, `the value of ${name} holds a byte that none may hold`);
  }
  return value;
}

function length(value: string, before: number | undefined, streamId: number): number {
  const bytes = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
  if (Number.isNaN(bytes) || (before !== undefined && before !== bytes))
    throw malformed(streamId, 'content-length is no length, or several');
  return bytes;
}

function malformed(streamId: number, what: string): Http2Error {
  return new Http2Error(ErrorCode.PROTOCOL_ERROR, `malformed headers: ${what}`, streamId);
}
