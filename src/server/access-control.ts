/**
 * Authenticates the caller of each call. Rights are not checked yet. Those that concern calls will be checked here,
 * those that concern tables and families by the service; both have the principal.
 *
 * The health check is open to all callers, so that balancers and supervisors without a token can see that the server
 * serves. All other calls need a principal, reflection and unknown calls included.
 */
import { Authenticator, JwtVerifier, readTokens } from '../auth/index.ts';
import { readInput } from '../boot/index.ts';
import type { Authenticate, ApiEnv } from '../wire/index.ts';
import { watchFiles } from './watch-files.ts';

export interface AccessOptions {
  /** A file of tokens, made by `edubba token add`. Reloaded when it changes. */
  readonly tokensFile?: string | undefined;
  /** Tokens that an issuer signs. */
  readonly jwt?: JwtOptions | undefined;
}

export interface JwtOptions {
  /** The required `iss` and `aud` of a token. */
  readonly issuer: string;
  readonly audience: string;
  /** The issuer's key set (JWKS): an https URL, or the path of a file, reloaded when it changes. */
  readonly keys: string;
}

const OPEN_CALLS = new Set(['/grpc.health.v1.Health/Check']);
const ANONYMOUS = 'anonymous';

export interface AccessControl {
  readonly authenticate: Authenticate;
  /** Stops watching the files. */
  close(): void;
}

/**
 * Fails with INVALID_ARGUMENT or NOT_FOUND where a file is invalid or missing. `certificates`: true where TLS requests
 * one of clients.
 */
export async function openAccessControl(
  access: AccessOptions,
  certificates: boolean,
  env: Pick<ApiEnv, 'clock' | 'logger'>,
): Promise<AccessControl> {
  const { tokensFile, jwt } = access;
  const tokens = tokensFile === undefined ? undefined : await readTokens(tokensFile);
  const verifier =
    jwt && new JwtVerifier({ issuer: jwt.issuer, audience: jwt.audience, keys: await keysOf(jwt.keys) }, env.clock);
  const authenticator = new Authenticator({ tokens, jwt: verifier, certificates });
  const stops: (() => void)[] = [];
  if (tokensFile !== undefined) {
    stops.push(
      watchFiles('tokens', [tokensFile], env, async () => {
        authenticator.tokens = await readTokens(tokensFile);
      }),
    );
  }
  if (jwt && verifier && !isUrl(jwt.keys))
    stops.push(watchFiles('keys', [jwt.keys], env, async () => verifier.replaceKeys(await keysOf(jwt.keys))));
  return {
    authenticate: (credentials) =>
      OPEN_CALLS.has(credentials.path) ? ANONYMOUS : authenticator.principalOf(credentials),
    close: () => {
      for (const stop of stops) stop();
    },
  };
}

async function keysOf(where: string): Promise<{ url: string } | { text: string; file: string }> {
  return isUrl(where) ? { url: where } : { text: String(await readInput(where)), file: where };
}

function isUrl(where: string): boolean {
  return where.includes('://');
}
