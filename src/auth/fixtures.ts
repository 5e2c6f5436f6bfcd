/** An issuer of signed tokens with keys of its own, for the tests of this room. */
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { ManualClock } from '../env/index.ts';

export const ISSUER = 'https://issuer.example';
export const AUDIENCE = 'edubba';

export class Issuer {
  readonly keyId: string;
  readonly publicKey: JWK;
  readonly #privateKey: CryptoKey;

  private constructor(keyId: string, publicKey: JWK, privateKey: CryptoKey) {
    this.keyId = keyId;
    this.publicKey = publicKey;
    this.#privateKey = privateKey;
  }

  static async make(keyId: string): Promise<Issuer> {
    const { publicKey, privateKey } = await generateKeyPair('ES256');
    return new Issuer(keyId, { ...(await exportJWK(publicKey)), kid: keyId, alg: 'ES256' }, privateKey);
  }

  /** The text of its key set. */
  get keys(): string {
    return JSON.stringify({ keys: [this.publicKey] });
  }

  /** A token of `seconds` to live, with `claims` over good ones; a claim of undefined is left out. */
  sign(claims: Readonly<Record<string, unknown>> = {}, seconds = 600): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    const payload = Object.fromEntries(
      Object.entries({ iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: now + seconds, ...claims }).filter(
        ([, value]) => value !== undefined,
      ),
    );
    return new SignJWT(payload).setProtectedHeader({ alg: 'ES256', kid: this.keyId }).sign(this.#privateKey);
  }
}

/** A clock that stands at the present time until it is moved. */
export function clockOfToday(): ManualClock {
  return new ManualClock(Date.now() * 1000);
}
