/**
 * The rules for the headers of a request (RFC 9113, sections 8.2 and 8.3), and the headers that the wire itself reads.
 *
 * A request that breaks a rule is malformed: PROTOCOL_ERROR of its stream.
 *
 * The requests of a connection are much alike: mostly only the timeout and, say, a trace differ from the request
 * before. What is the same is not checked again.
 */
import { ErrorCode, Http2Error } from './frames.ts';
import { HeaderPositions } from './header-positions.ts';

export interface RequestHeaders {
  /** name, value, name, value … with the pseudo-headers, which come first. */
  readonly list: readonly string[];
  /** Positions in `list`; the same object for requests with the same names at the same positions. */
  readonly positions: HeaderPositions;
  readonly method: string;
  readonly path: string;
  readonly contentType: string | undefined;
  /** Undefined where the request has none. */
  readonly contentLength: number | undefined;
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/**
 * Headers whose value has rules of its own, or decides more than itself: where one of them differs, all are checked
 * again.
 */
const WITH_RULES = new Set([':method', ':scheme', ':authority', 'content-type', 'content-length', 'te']);
const OF_CONNECTIONS = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']);
const PSEUDO = [':method', ':scheme', ':path', ':authority'];
/** The client's choice of names is its own; those that a connection remembers are few and short. */
const MAX_KNOWN_NAMES = 32;
const MAX_KNOWN_NAME_LENGTH = 64;

/** One for each connection. */
export class HeaderReader {
  #last: RequestHeaders | undefined;
  /** Names that were found well formed: the same few come with every request. */
  readonly #knownNames = new Set<string>();

  /** Checks the headers of a request. Throws an Http2Error of its stream. */
  read(list: readonly string[], streamId: number): RequestHeaders {
    const headers = (this.#last && asLast(list, this.#last, streamId)) ?? this.#readAll(list, streamId);
    this.#last = headers;
    return headers;
  }

  /** Checks the trailers of a request: no pseudo-headers. */
  checkTrailers(list: readonly string[], streamId: number): void {
    for (let i = 0; i < list.length; i += 2) this.#checkField(list[i]!, list[i + 1]!, streamId);
  }

  #readAll(list: readonly string[], streamId: number): RequestHeaders {
    const pseudo: (string | undefined)[] = [undefined, undefined, undefined, undefined];
    let first = 0;
    for (; first < list.length; first += 2) {
      const name = list[first]!;
      if (name.charCodeAt(0) !== 0x3a) break;
      const which = PSEUDO.indexOf(name);
      if (which < 0) throw malformed(streamId, `unknown pseudo-header ${name}`);
      if (pseudo[which] !== undefined) throw malformed(streamId, `${name} appears twice`);
      pseudo[which] = checkedValue(list[first + 1]!, name, streamId);
    }
    const [method, scheme, path] = pseudo;
    if (method === undefined) throw malformed(streamId, ':method is missing');
    if (method !== 'CONNECT' && (scheme === undefined || !path))
      throw malformed(streamId, ':scheme or :path is missing');
    let contentType: string | undefined;
    let contentLength: number | undefined;
    for (let i = first; i < list.length; i += 2) {
      const name = list[i]!;
      const value = list[i + 1]!;
      this.#checkField(name, value, streamId);
      if (name === 'content-type') contentType = value;
      else if (name === 'content-length') contentLength = length(value, contentLength, streamId);
    }
    return { list, positions: new HeaderPositions(), method, path: path ?? '', contentType, contentLength };
  }

  #checkField(name: string, value: string, streamId: number): void {
    if (!this.#knownNames.has(name)) {
      if (!NAME.test(name))
        throw malformed(streamId, `invalid or misplaced header name ${JSON.stringify(name.slice(0, 64))}`);
      if (OF_CONNECTIONS.has(name)) throw malformed(streamId, `${name} belongs to HTTP/1 connections`);
      if (this.#knownNames.size < MAX_KNOWN_NAMES && name.length < MAX_KNOWN_NAME_LENGTH) this.#knownNames.add(name);
    }
    checkedValue(value, name, streamId);
    if (name === 'te' && value !== 'trailers') throw malformed(streamId, 'te must be "trailers"');
  }
}

/** Undefined where more differs than plain values. */
function asLast(list: readonly string[], last: RequestHeaders, streamId: number): RequestHeaders | undefined {
  const { list: before, positions, method, contentType, contentLength } = last;
  let { path } = last;
  if (list.length !== before.length) return undefined;
  for (let i = 0; i < list.length; i += 2) {
    const name = list[i]!;
    if (name !== before[i]) return undefined;
    const value = list[i + 1]!;
    if (value === before[i + 1]) continue;
    if (WITH_RULES.has(name)) return undefined;
    checkedValue(value, name, streamId);
    if (name !== ':path') continue;
    if (value === '') return undefined;
    path = value;
  }
  return { list, positions, method, path, contentType, contentLength };
}

/** No value may hold NUL, CR or LF: they would split headers where a proxy passes them on as HTTP/1. */
function checkedValue(value: string, name: string, streamId: number): string {
  for (let i = 0; i < value.length; i++) {
    const char = value.charCodeAt(i);
    if (char <= 0x0d && (char === 0 || char === 0x0a || char === 0x0d))
      throw malformed(streamId, `the value of ${name} holds a forbidden byte`);
  }
  return value;
}

function length(value: string, before: number | undefined, streamId: number): number {
  const bytes = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
  if (Number.isNaN(bytes) || (before !== undefined && before !== bytes))
    throw malformed(streamId, 'invalid content-length: expected one whole number');
  return bytes;
}

function malformed(streamId: number, what: string): Http2Error {
  return new Http2Error(ErrorCode.PROTOCOL_ERROR, `malformed headers: ${what}`, streamId);
}
