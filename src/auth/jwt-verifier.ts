/**
 * JSON web tokens (RFC 7519) of one issuer, as OpenID Connect providers, cloud platforms and clusters issue them.
 * `jose` checks signature, issuer, audience and times; `sub` names the caller.
 *
 * Invariant: a token that was verified is accepted without another check for at most CACHE_MS and never beyond its end;
 * only its hash is kept. So a call with a cached token costs a hash, and a withdrawn key is of no use after that time.
 */
import { createHash } from 'node:crypto';
import { createLocalJWKSet, createRemoteJWKSet, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { BigtableError, Code, invalidArgument } from '../base/index.ts';
import type { Clock } from '../env/index.ts';
import { isSubject } from './principal.ts';

export interface JwtSettings {
  /** The required value of `iss`, exactly. */
  readonly issuer: string;
  /**
   * The value that `aud` must equal or contain. Without it a token issued for another service would be accepted here.
   */
  readonly audience: string;
  /**
   * The issuer's keys: a URL (https, or this machine), fetched when they are needed, or the text of a key set (RFC
   * 7517).
   */
  readonly keys: { readonly url: string } | { readonly text: string; readonly file: string };
}

/** Signatures whose key the issuer alone has. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
/** Accepted difference between the issuer's clock and ours. */
const SKEW_SECONDS = 30;
const CACHE_MS = 300_000;
const MAX_CACHED = 10_000;
const FETCH_MS = 5000;
/** A URL's keys are fetched again after this time, and for an unknown key at most this often. */
const KEYS_MS = 600_000;
const UNKNOWN_KEY_MS = 30_000;

interface CachedToken {
  readonly principal: string;
  /** The token's end, on the wall clock. */
  readonly endMicros: number;
  /** On the monotonic clock, which is never set back. */
  readonly keptUntilMs: number;
}

export class JwtVerifier {
  readonly #settings: JwtSettings;
  readonly #clock: Clock;
  #keys: JWTVerifyGetKey;
  readonly #cache = new Map<string, CachedToken>();

  /** Throws INVALID_ARGUMENT for invalid keys. */
  constructor(settings: JwtSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
    this.#keys = keysOf(settings.keys);
  }

  /**
   * Replaces the keys; tokens that the old ones verified are verified again. INVALID_ARGUMENT, and no change, for
   * invalid keys.
   */
  replaceKeys(keys: JwtSettings['keys']): void {
    this.#keys = keysOf(keys);
    this.#cache.clear();
  }

  /**
   * The principal of the token. Fails with UNAUTHENTICATED for an invalid token, UNAVAILABLE where the keys cannot be
   * read.
   */
  principalOf(token: string): string | Promise<string> {
    const hash = createHash('sha256').update(token).digest('base64');
    const cached = this.#cache.get(hash);
    if (cached && this.#clock.monotonicMs() < cached.keptUntilMs && this.#clock.nowMicros() < cached.endMicros)
      return cached.principal;
    return this.#verify(token, hash);
  }

  async #verify(token: string, hash: string): Promise<string> {
    const { issuer, audience } = this.#settings;
    const keys = this.#keys;
    let payload: JWTPayload;
    try {
      ({ payload } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        clockTolerance: SKEW_SECONDS,
        requiredClaims: ['exp', 'sub'],
      }));
    } catch (error) {
      throw errorOf(error);
    }
    // jose does not check the value of `sub`
    const subject: unknown = payload.sub;
    if (!isSubject(subject)) throw refused('its claim "sub" is not a text of 1 to 255 visible ASCII characters');
    const principal = `jwt:${subject}`;
    // keys may have been replaced meanwhile
    if (keys === this.#keys) this.#cacheToken(hash, principal, payload.exp! * 1e6);
    return principal;
  }

  #cacheToken(hash: string, principal: string, endMicros: number): void {
    if (this.#cache.size >= MAX_CACHED) {
      for (const oldest of this.#cache.keys()) {
        this.#cache.delete(oldest);
        break;
      }
    }
    this.#cache.delete(hash);
    this.#cache.set(hash, { principal, endMicros, keptUntilMs: this.#clock.monotonicMs() + CACHE_MS });
  }
}

function keysOf(keys: JwtSettings['keys']): JWTVerifyGetKey {
  if ('url' in keys)
    return createRemoteJWKSet(checkedUrl(keys.url), {
      timeoutDuration: FETCH_MS,
      cooldownDuration: UNKNOWN_KEY_MS,
      cacheMaxAge: KEYS_MS,
    });
  try {
    return createLocalJWKSet(JSON.parse(keys.text));
  } catch (cause) {
    throw new BigtableError(
      Code.INVALID_ARGUMENT,
      `${keys.file} is not a JSON web key set: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}

/**
 * A party that can change the keys on their way can pass for any principal, so they come over TLS or from this machine.
 */
function checkedUrl(text: string): URL {
  if (!URL.canParse(text))
    throw invalidArgument(`invalid URL of a key set ${JSON.stringify(text)}: expected https://...`);
  const url = new URL(text);
  const isHere = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isHere))
    throw invalidArgument(`the key set's URL ${text} must be https, or on this machine`);
  return url;
}

function errorOf(error: unknown): BigtableError {
  if (error instanceof errors.JWTExpired) return refused('it has expired');
  if (error instanceof errors.JWTClaimValidationFailed)
    return refused(
      `its claim "${error.claim}" ${error.reason === 'missing' ? 'is missing' : 'is not the required one'}`,
    );
  if (error instanceof errors.JWKSNoMatchingKey) return refused('the issuer has no such key');
  if (error instanceof errors.JWSSignatureVerificationFailed) return refused('its signature is wrong');
  if (error instanceof errors.JOSEAlgNotAllowed || error instanceof errors.JOSENotSupported)
    return refused('its algorithm is not accepted here');
  if (
    error instanceof errors.JWTInvalid ||
    error instanceof errors.JWSInvalid ||
    error instanceof errors.JWKSMultipleMatchingKeys
  )
    return refused('it is malformed');
  const why = error instanceof Error ? error.message : String(error);
  return new BigtableError(Code.UNAVAILABLE, `the keys of the tokens' issuer cannot be read: ${why}`, { cause: error });
}

function refused(why: string): BigtableError {
  return new BigtableError(Code.UNAUTHENTICATED, `the bearer token is not accepted: ${why}`);
}
