/**
 * Where the lock service is in etcd (docs/formats/etcd.md): under the cluster's prefix a key for each file, each held
 * lock and each session.
 *
 * Invariant: keys of files are in the order of their paths as JavaScript compares them, by UTF-16 units. So the units
 * of a character above U+FFFF are encoded one by one (CESU-8); all other text is UTF-8.
 */
import { toBytes, prefixEnd, type ByteString, fromBytes, assert } from '../../base/index.ts';

/** The half-open range of the keys that begin with something. */
export interface KeyRange {
  readonly from: ByteString;
  readonly to: ByteString;
}

/** What a key stands for. */
export type KeyMeaning =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'lock'; readonly path: string }
  | { readonly kind: 'session'; readonly sessionId: string };

const FILES = 'files/';
const LOCKS = 'locks/';
const SESSIONS = 'sessions/';
const REMOVALS = 'removals/';

export class KeyLayout {
  readonly #root: string;

  /** `prefix`: printable ASCII without "/". */
  constructor(prefix: string) {
    assert(prefix !== '' && !prefix.includes('/'), 'the prefix is one part');
    this.#root = `${prefix}/`;
  }

  /** The key that tells the version of this layout. */
  get format(): Buffer {
    return toBytes(`${this.#root}format`);
  }

  /** All keys of the cluster. */
  get all(): KeyRange {
    return rangeOf(this.#root);
  }

  file(path: string): Buffer {
    return toBytes(this.#root + FILES + encodePath(path));
  }

  lock(path: string): Buffer {
    return toBytes(this.#root + LOCKS + encodePath(path));
  }

  /** The locks whose path starts with `prefix`. */
  locks(prefix: string): KeyRange {
    return rangeOf(this.#root + LOCKS + encodePath(prefix));
  }

  /** The key that each removal of a lasting file of the directory writes anew. */
  removals(directory: string): Buffer {
    return toBytes(this.#root + REMOVALS + encodePath(directory));
  }

  session(sessionId: string): Buffer {
    return toBytes(this.#root + SESSIONS + encodePath(sessionId));
  }

  /** The files whose path starts with `prefix` and is above `after`; undefined where there can be none. */
  files(prefix: string, after: string): KeyRange | undefined {
    const root = this.#root + FILES;
    const all = rangeOf(root + encodePath(prefix));
    const next = `${root}${encodePath(after)}\0`;
    const from = next > all.from ? next : all.from;
    return from < all.to ? { from, to: all.to } : undefined;
  }

  /** Undefined for a key of no kind that this version knows. */
  meaningOf(key: Uint8Array): KeyMeaning | undefined {
    const text = fromBytes(key);
    const rest = (part: string): string | undefined => {
      const start = this.#root + part;
      return text.startsWith(start) ? decodePath(text.slice(start.length)) : undefined;
    };
    const file = rest(FILES);
    if (file !== undefined) return { kind: 'file', path: file };
    const lock = rest(LOCKS);
    if (lock !== undefined) return { kind: 'lock', path: lock };
    const sessionId = rest(SESSIONS);
    return sessionId === undefined ? undefined : { kind: 'session', sessionId };
  }
}

function rangeOf(start: ByteString): KeyRange {
  const to = prefixEnd(start);
  assert(to !== undefined, 'keys begin with text');
  return { from: start, to };
}

function encodePath(path: string): ByteString {
  let out = '';
  for (let i = 0; i < path.length; i++) {
    const unit = path.charCodeAt(i);
    if (unit < 0x80) out += path[i];
    else if (unit < 0x800) out += String.fromCharCode(0xc0 | (unit >> 6), 0x80 | (unit & 0x3f));
    else out += String.fromCharCode(0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f));
  }
  return out;
}

function decodePath(bytes: ByteString): string {
  let out = '';
  for (let i = 0; i < bytes.length; ) {
    const first = bytes.charCodeAt(i++);
    const more = first < 0x80 ? 0 : first < 0xe0 ? 1 : 2;
    let unit = more === 0 ? first : first & (more === 1 ? 0x1f : 0x0f);
    for (let n = 0; n < more; n++) unit = (unit << 6) | (bytes.charCodeAt(i++) & 0x3f);
    out += String.fromCharCode(unit);
  }
  return out;
}
