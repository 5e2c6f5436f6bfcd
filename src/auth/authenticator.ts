/**
 * Finds the principal of a call by its credentials. Where tokens are configured (a list of our own, or an issuer's)
 * each call needs one, even from a client with a certificate. Otherwise the certificate names the principal. Where
 * neither is configured, all callers are anonymous.
 *
 * A principal begins with the kind of its credentials (`token:`, `jwt:`, `cert:`), so that no issuer can issue the
 * names of another kind.
 */
import { BigtableError, Code } from '../base/index.ts';
import type { JwtVerifier } from './jwt-verifier.ts';
import { isDistinguishedName } from './principal.ts';
import { isOwnToken, type TokenList } from './token-list.ts';

/** The credentials of a call. */
export interface CallCredentials {
  /** A header of the request by its lower-case name. */
  header(name: string): string | undefined;
  /** The subject of the client's certificate, which an authority of ours has signed. */
  readonly certificate: string | undefined;
}

const ANONYMOUS = 'anonymous';
const BEARER = /^bearer +(\S+)$/i;
/** Longer headers are refused without a hash. */
const MAX_CHARS = 16_384;

export class Authenticator {
  /** The list of tokens; it may be replaced at any time. */
  tokens: TokenList | undefined;
  readonly #jwt: JwtVerifier | undefined;
  readonly #certificates: boolean;

  /** `certificates`: true where clients must have one. */
  constructor(options: {
    readonly tokens?: TokenList | undefined;
    readonly jwt?: JwtVerifier | undefined;
    readonly certificates: boolean;
  }) {
    this.tokens = options.tokens;
    this.#jwt = options.jwt;
    this.#certificates = options.certificates;
  }

  /** Throws or rejects with UNAUTHENTICATED; UNAVAILABLE where the issuer's keys cannot be read now. */
  principalOf(credentials: CallCredentials): string | Promise<string> {
    if (this.#takesTokens) return this.#principalOfToken(credentials.header('authorization'));
    if (!this.#certificates) return ANONYMOUS;
    if (credentials.certificate === undefined) throw refused('the client has no certificate');
    if (!isDistinguishedName(credentials.certificate))
      throw refused(
        'the subject of the client’s certificate is empty, longer than 1024 characters, or holds invisible ones',
      );
    return `cert:${credentials.certificate}`;
  }

  get #takesTokens(): boolean {
    return this.tokens !== undefined || this.#jwt !== undefined;
  }

  #principalOfToken(authorization: string | undefined): string | Promise<string> {
    if (authorization === undefined)
      throw refused('the call has no bearer token: send the header "authorization: Bearer TOKEN"');
    const token = authorization.length <= MAX_CHARS ? BEARER.exec(authorization)?.[1] : undefined;
    if (token === undefined) throw refused('invalid header "authorization": expected "Bearer TOKEN"');
    if (isOwnToken(token) || !this.#jwt) {
      const principal = this.tokens?.principalOf(token);
      if (principal === undefined) throw refused('unknown bearer token');
      return `token:${principal}`;
    }
    return this.#jwt.principalOf(token);
  }
}

function refused(message: string): BigtableError {
  return new BigtableError(Code.UNAUTHENTICATED, message);
}
