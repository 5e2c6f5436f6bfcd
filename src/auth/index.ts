/**
 * auth: authentication of callers. Maps bearer tokens of a file that holds their hashes, tokens that an issuer has
 * signed (JWT), and clients' certificates to principals. The rights of principals are not its concern.
 */
export { Authenticator } from './authenticator.ts';
export { JwtVerifier } from './jwt-verifier.ts';
export { addToken, readTokens, removeTokens, writeToken } from './token-file.ts';
export type { TokenEntry } from './token-list.ts';
