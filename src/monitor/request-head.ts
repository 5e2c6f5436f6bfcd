/**
 * The head of a request of HTTP/1.0 or 1.1, as far as a server that answers only GET and HEAD needs it.
 *
 * Invariant: a head that is ambiguous is invalid: no folded lines, no line ends but CRLF, one host.
 */

export interface RequestHead {
  readonly method: string;
  /** As it was sent, without scheme and host. */
  readonly target: string;
  /** A body follows. */
  readonly hasBody: boolean;
  /** The client sends no more requests on this connection. */
  readonly isLast: boolean;
}

const REQUEST_LINE = /^([!#$%&'*+.^_`|~\w-]+) ([!-~]+) HTTP\/1\.([01])$/;
const HEADER = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/;

/** `text`: everything before the empty line. Undefined for an invalid request. */
export function parseHead(text: string): RequestHead | undefined {
  const [first = '', ...lines] = text.split('\r\n');
  const [, method, given, minor] = REQUEST_LINE.exec(first) ?? [];
  if (method === undefined || given === undefined) return undefined;
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value = ''] = HEADER.exec(line) ?? [];
    if (name === undefined) return undefined;
    const key = name.toLowerCase();
    const before = headers.get(key);
    if (before !== undefined && key === 'host') return undefined;
    headers.set(key, before === undefined ? value.trimEnd() : `${before}, ${value.trimEnd()}`);
  }
  if (minor === '1' && !headers.has('host')) return undefined;
  const length = headers.get('content-length');
  const wishes = (headers.get('connection') ?? '')
    .toLowerCase()
    .split(',')
    .map((wish) => wish.trim());
  return {
    method,
    target: given.replace(/^https?:\/\/[^/?]*/i, '') || '/',
    hasBody: headers.has('transfer-encoding') || (length !== undefined && length !== '0'),
    isLast: minor === '1' ? wishes.includes('close') : !wishes.includes('keep-alive'),
  };
}
