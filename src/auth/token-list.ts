/**
 * Edubba's own bearer tokens, and the text of the file that lists them: docs/formats/tokens.md.
 *
 * A token is `edubba_ID_SECRET`; the list holds the SHA-256 of the secret alone. The secret is 256 random bits, so
 * there is nothing to guess: a slow hash (scrypt) would protect nothing and delay every call by milliseconds.
 *
 * Invariant: the time of a look-up reveals nothing of a hash: the ID, which is no secret, finds the one entry, and its
 * hash is compared in constant time.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { invalidArgument } from '../base/index.ts';
import { isTokenName } from './principal.ts';

export interface TokenEntry {
  /** Eight characters, the token's name in the list and the part of it that may be shown. */
  readonly id: string;
  /** Its principal. Several tokens may have the same one, so that they can be replaced without a pause. */
  readonly principal: string;
  /** SHA-256 of the secret, 32 bytes. */
  readonly hash: Buffer;
  /** ISO 8601. */
  readonly added: string;
}

const HEAD = 'edubba-tokens 1';
const TOKEN = /^edubba_([a-z0-9]{8})_([A-Za-z0-9_-]{43})$/;
const LINE = /^([a-z0-9]{8}) (\S+) sha256:([0-9a-f]{64}) (\S+)$/;

export class TokenList {
  readonly entries: readonly TokenEntry[];
  readonly #byId: ReadonlyMap<string, TokenEntry>;

  constructor(entries: readonly TokenEntry[]) {
    this.entries = entries;
    this.#byId = new Map(entries.map((entry) => [entry.id, entry]));
  }

  /** INVALID_ARGUMENT, with file and line, for a text that is not a list of tokens. */
  static parse(text: string, file: string): TokenList {
    const [head, ...lines] = text.split('\n');
    if (head?.trimEnd() !== HEAD)
      throw invalidArgument(
        `${file} is not a list of tokens: its first line is not "${HEAD}"; \`edubba token add ${file} NAME\` makes one`,
      );
    const entries: TokenEntry[] = [];
    for (const [index, raw] of lines.entries()) {
      const line = raw.trim();
      if (line === '' || line.startsWith('#')) continue;
      const [, id, principal, hash, added] = LINE.exec(line) ?? [];
      // the line itself is not quoted: a token may have been put there
      if (
        id === undefined ||
        principal === undefined ||
        hash === undefined ||
        added === undefined ||
        !isTokenName(principal)
      ) {
        throw invalidArgument(`${file}, line ${index + 2}: not "ID NAME sha256:HASH TIME"`);
      }
      if (entries.some((entry) => entry.id === id))
        throw invalidArgument(`${file}, line ${index + 2}: the id ${id} appears twice`);
      entries.push({ id, principal, hash: Buffer.from(hash, 'hex'), added });
    }
    return new TokenList(entries);
  }

  toString(): string {
    const lines = this.entries.map(
      ({ id, principal, hash, added }) => `${id} ${principal} sha256:${hash.toString('hex')} ${added}\n`,
    );
    return `${HEAD}\n${lines.join('')}`;
  }

  /** The principal of the token; undefined where it is not in the list. */
  principalOf(token: string): string | undefined {
    const [, id = '', secret = ''] = TOKEN.exec(token) ?? [];
    const entry = this.#byId.get(id);
    return entry && timingSafeEqual(entry.hash, hashOf(secret)) ? entry.principal : undefined;
  }
}

/** True for the form of our own tokens; others are an issuer's. */
export function isOwnToken(token: string): boolean {
  return token.startsWith('edubba_');
}

/** Makes a token and its entry. `randomness`: 40 bytes that cannot be guessed. INVALID_ARGUMENT for an invalid name. */
export function makeToken(principal: string, added: string, randomness: Buffer): { token: string; entry: TokenEntry } {
  if (!isTokenName(principal))
    throw invalidArgument(
      `invalid name for a token "${principal}": expected letters, digits and . _ @ + -, at most 128 of them, the first a letter or a digit`,
    );
  const id = randomness.readBigUInt64BE(0).toString(36).padStart(8, '0').slice(-8);
  const secret = randomness.subarray(8, 40).toString('base64url');
  return { token: `edubba_${id}_${secret}`, entry: { id, principal, hash: hashOf(secret), added } };
}

function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
