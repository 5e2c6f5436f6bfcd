/**
 * JSON web tokens (RFC 7519) of one issuer, as OpenID Connect providers, cloud platforms and clusters give them out:
 * signature, issuer, audience and times are checked, by `jose`; `sub` is who asks.
 *
 * Invariant: a token that was checked is taken without a second look for CACHE_MS at the most and never beyond its end;
 * what is kept of it is a hash. So a call with a known token costs a hash, and a key that is withdrawn is of no use
 * after that time.
 */
import { createHash } from 'node:crypto';
import { createLocalJWKSet, createRemoteJWKSet, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { BigtableError, Code, invalidArgument } from '../base/index.ts';
import type { Clock } from '../env/index.ts';
import { isSubject } from './principal.ts';

export interface JwtSettings {
  /** What `iss` must be, exactly. */
  readonly issuer: string;
  /** What `aud` must be or hold: without it a token that was given out for another service would do here. */
  readonly audience: string;
  /**
   * Where the issuer's keys are: an URL (https, or this machine), asked when they are needed, or the text of a key set
   * (RFC 7517).
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
/** By how much the issuer's clock and ours may differ. */
const SKEW_SECONDS = 30;
const CACHE_MS = 300_000;
const MAX_CACHED = 10_000;
const FETCH_MS = 5000;
/** A URL's keys are fetched again after this time, and for an unknown key at most this often. */
const KEYS_MS = 600_000;
const UNKNOWN_KEY_MS = 30_000;

interface Known {
  readonly principal: string;
  /** The token's end, on the wall clock. */
  readonly endMicros: number;
  /** On the monotonic clock, which nobody sets back. */
  readonly keptUntilMs: number;
}

export class JwtVerifier {
  readonly #settings: JwtSettings;
  readonly #clock: Clock;
  #keys: JWTVerifyGetKey;
  readonly #known = new Map<string, Known>();

  /** INVALID_ARGUMENT for keys that are none. */
  constructor(settings: JwtSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
    this.#keys = keysOf(settings.keys);
  }

  /**
   * Other keys from now on: what was checked with the old ones is checked again. INVALID_ARGUMENT, and no change, for
   * keys that are none.
   */
  replaceKeys(keys: JwtSettings['keys']): void {
    this.#keys = keysOf(keys);
    this.#known.clear();
  }

  /**
   * Who asks with the token. Fails with UNAUTHENTICATED where it is not good, UNAVAILABLE where the keys cannot be had.
   */
  principalOf(token: string): string | Promise<string> {
    const hash = createHash('sha256').update(token).digest('base64');
    const known = this.#known.get(hash);
    if (known && this.#clock.monotonicMs() < known.keptUntilMs && this.#clock.nowMicros() < known.endMicros)
      return known.principal;
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
      throw refusal(error);
    }
    // whatever the issuer has signed: jose does not look at it
    const subject: unknown = payload.sub;
    if (!isSubject(subject)) throw refused('its claim "sub" is not a text of 1 to 255 visible ASCII characters');
    const principal = `jwt:${subject}`;
    // keys may have been replaced meanwhile
    if (keys === this.#keys) this.#remember(hash, principal, payload.exp! * 1e6);
    return principal;
  }

  #remember(hash: string, principal: string, endMicros: number): void {
    if (this.#known.size >= MAX_CACHED) {
      for (const oldest of this.#known.keys()) {
        this.#known.delete(oldest);
        break;
      }
    }
    this.#known.delete(hash);
    this.#known.set(hash, { principal, endMicros, keptUntilMs: this.#clock.monotonicMs() + CACHE_MS });
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
      `${keys.file} is no JSON web key set: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}

/** Whoever can change the keys on their way decides who everybody is. */
function checkedUrl(text: string): URL {
  if (!URL.canParse(text)) throw invalidArgument(`${JSON.stringify(text)} is no URL of a key set`);
  const url = new URL(text);
  const isHere = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isHere))
    throw invalidArgument(`the key set's URL ${text} must be https, or on this machine`);
  return url;
}

function refusal(error: unknown): BigtableError {
  if (error instanceof errors.JWTExpired) return refused('it has expired');
  if (error instanceof errors.JWTClaimValidationFailed)
    return refused(
      `its claim "${error.claim}" ${error.reason === 'missing' ? 'is missing' : 'is not what is asked for here'}`,
    );
  if (error instanceof errors.JWKSNoMatchingKey) return refused('the issuer has no such key');
  if (error instanceof errors.JWSSignatureVerificationFailed) return refused('its signature is wrong');
  if (error instanceof errors.JOSEAlgNotAllowed || error instanceof errors.JOSENotSupported)
    return refused('its algorithm is not taken here');
  if (
    error instanceof errors.JWTInvalid ||
    error instanceof errors.JWSInvalid ||
    error instanceof errors.JWKSMultipleMatchingKeys
  )
    return refused('it is malformed');
  const why = error instanceof Error ? error.message : String(error);
  return new BigtableError(Code.UNAVAILABLE, `the keys of the tokens' issuer cannot be had: ${why}`, { cause: error });
}

function refused(why: string): BigtableError {
  return new BigtableError(Code.UNAUTHENTICATED, `the bearer token is not accepted: ${why}`);
}
