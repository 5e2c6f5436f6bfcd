/**
 * The characters of a principal, which goes to logs and, later, to lists of rights. So it is one line of visible
 * characters, of a bounded length; the same text never names two principals.
 */

/** A name in a list of tokens: Edubba issues these itself. */
const TOKEN_NAME = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$/;
/**
 * A JWT's subject: at most 255 ASCII characters (OpenID Connect Core, section 2, "sub"), here visible ones with single
 * spaces between them.
 */
const SUBJECT = /^(?=.{1,255}$)[\x21-\x7e]+(?: [\x21-\x7e]+)*$/;
/**
 * A certificate's subject: names of people and places in any script. No invisible characters, and none that turn the
 * direction of text.
 */
const DISTINGUISHED_NAME = /^[^\p{C}\p{Zl}\p{Zp}]{1,1024}$/u;

export function isTokenName(text: string): boolean {
  return TOKEN_NAME.test(text);
}

export function isSubject(claim: unknown): claim is string {
  return typeof claim === 'string' && SUBJECT.test(claim);
}

export function isDistinguishedName(text: string): boolean {
  return DISTINGUISHED_NAME.test(text);
}
