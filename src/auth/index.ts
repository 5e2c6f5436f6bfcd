/**
 * auth: who asks. Bearer tokens of a file that holds their hashes, tokens that an issuer has signed (JWT), and clients'
 * certificates, each to a principal; nothing about what a principal may do.
 */
export { Authenticator } from './authenticator.ts';
export { JwtVerifier } from './jwt-verifier.ts';
export { addToken, readTokens, removeTokens, writeToken } from './token-file.ts';
export type { TokenEntry } from './token-list.ts';
