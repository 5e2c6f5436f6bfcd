/**
 * Who asks, by what a call brings along. Where tokens are set up (a list of our own, or an issuer's) each call needs one, also from a client with a
 * certificate; where none are, the certificate says it; where neither is, everybody is anonymous.
 *
 * A principal begins with how it was known (`token:`, `jwt:`, `cert:`), so that no issuer can give out another way's names.
 */
import { BigtableError, Code } from '../base/index.ts';
import type { JwtVerifier } from './jwt-verifier.ts';
import { isDistinguishedName } from './principal.ts';
import { isOwnToken, type TokenList } from './token-list.ts';

/** What is known of a call before it is let in. */
export interface Applicant {
  /** A header of the request by its lower-case name. */
  header(name: string): string | undefined;
  /** The subject of the client's certificate, which an authority of ours has signed. */
  readonly certificate: string | undefined;
}

const ANONYMOUS = 'anonymous';
const BEARER = /^bearer +(\S+)$/i;
/** Hashing more would be work for nothing. */
const MAX_CHARS = 16_384;

export class Authenticator {
  /** May be replaced at any time. */
  tokens: TokenList | undefined;
  readonly #jwt: JwtVerifier | undefined;
  readonly #certificates: boolean;

  /** `certificates`: whether clients have to show one. */
  constructor(options: {
    readonly tokens?: TokenList | undefined;
    readonly jwt?: JwtVerifier | undefined;
    readonly certificates: boolean;
  }) {
    this.tokens = options.tokens;
    this.#jwt = options.jwt;
    this.#certificates = options.certificates;
  }

  /** Throws, or rejects with, UNAUTHENTICATED; UNAVAILABLE where it cannot be found out now. */
  principalOf(applicant: Applicant): string | Promise<string> {
    if (this.#takesTokens) return this.#principalOfToken(applicant.header('authorization'));
    if (!this.#certificates) return ANONYMOUS;
    if (applicant.certificate === undefined) throw refused('the client showed no certificate');
    if (!isDistinguishedName(applicant.certificate))
      throw refused(
        'the subject of the client’s certificate is empty, longer than 1024 characters, or holds some that cannot be seen',
      );
    return `cert:${applicant.certificate}`;
  }

  get #takesTokens(): boolean {
    return this.tokens !== undefined || this.#jwt !== undefined;
  }

  #principalOfToken(authorization: string | undefined): string | Promise<string> {
    if (authorization === undefined)
      throw refused('the call has no bearer token: send the header "authorization: Bearer TOKEN"');
    const token = authorization.length <= MAX_CHARS ? BEARER.exec(authorization)?.[1] : undefined;
    if (token === undefined) throw refused('the header "authorization" is no "Bearer TOKEN"');
    if (isOwnToken(token) || !this.#jwt) {
      const principal = this.tokens?.principalOf(token);
      if (principal === undefined) throw refused('the bearer token is not known here');
      return `token:${principal}`;
    }
    return this.#jwt.principalOf(token);
  }
}

function refused(message: string): BigtableError {
  return new BigtableError(Code.UNAUTHENTICATED, message);
}
