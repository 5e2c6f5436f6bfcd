/**
 * The door: who is let in to which call. Here it is decided who asks; what a principal may do will be asked in `admit` as far as it is a matter of calls, and
 * by the service as far as it is one of tables and families: both have the principal.
 *
 * Open to everybody, so that balancers and supervisors without a token can see whether the server serves: the health check. It tells nothing else. All
 * other calls, reflection and those that do not exist among them, are for those who are known.
 */
import { Authenticator, JwtVerifier, readTokens } from '../auth/index.ts';
import type { Admit, ApiEnv } from '../wire/index.ts';
import { readInput, watchFiles } from './watch-files.ts';

export interface AccessOptions {
  /** A file of tokens, made by `edubba token add`. Read anew when it changes. */
  readonly tokensFile?: string | undefined;
  /** Tokens that an issuer signs. */
  readonly jwt?: JwtOptions | undefined;
}

export interface JwtOptions {
  /** What `iss` and `aud` in a token must be. */
  readonly issuer: string;
  readonly audience: string;
  /** The issuer's key set (JWKS): an https URL, or the path of a file, read anew when it changes. */
  readonly keys: string;
}

const OPEN = new Set(['/grpc.health.v1.Health/Check']);
const ANYBODY = 'anonymous';

export interface Door {
  readonly admit: Admit;
  /** Ends the looking after files. */
  close(): void;
}

/** Fails with INVALID_ARGUMENT or NOT_FOUND where a file is not what it should be. `certificates`: whether TLS asks clients for one. */
export async function openDoor(
  access: AccessOptions,
  certificates: boolean,
  env: Pick<ApiEnv, 'clock' | 'logger'>,
): Promise<Door> {
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
    admit: (applicant) => (OPEN.has(applicant.path) ? ANYBODY : authenticator.principalOf(applicant)),
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
