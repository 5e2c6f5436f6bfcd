/**
 * The secret that all processes of a cluster share. A process shows that it knows the secret by a proof (HMAC-SHA256)
 * over what both sides have said, and never sends it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { BigtableError, Code, invalidArgument } from '../base/index.ts';

/** Shorter ones can be found by trying. */
const MIN_BYTES = 32;
/** A file that is longer is surely another one. */
const MAX_BYTES = 4096;
const NAME = 'the cluster secret';

export class ClusterSecret {
  readonly #key: Buffer;

  private constructor(key: Buffer) {
    this.#key = key;
  }

  /**
   * The secret that a file or a variable of the environment holds: text without spaces at its ends. INVALID_ARGUMENT,
   * without a part of it, if it has fewer than 32 bytes or more than 4096. `source`: where it came from, for the error.
   */
  static parse(text: string, source: string): ClusterSecret {
    const key = Buffer.from(text.trim(), 'utf8');
    if (key.length < MIN_BYTES || key.length > MAX_BYTES)
      throw invalidArgument(
        `${NAME} of ${source} has ${key.length} bytes: it needs ${MIN_BYTES} to ${MAX_BYTES}, such as "openssl rand -hex 32" makes`,
      );
    return new ClusterSecret(key);
  }

  /** The proof that `side` gives. `transcript`: what was said so far, with fresh numbers of both sides. */
  prove(side: 'client' | 'server', transcript: Buffer): Buffer {
    return createHmac('sha256', this.#key).update(`edubba ${side}\0`).update(transcript).digest();
  }

  /** UNAUTHENTICATED unless it is the proof of `side`. Takes as long for each wrong one. */
  check(side: 'client' | 'server', transcript: Buffer, proof: Uint8Array | undefined): void {
    const expected = this.prove(side, transcript);
    if (proof?.length === expected.length && timingSafeEqual(proof, expected)) return;
    const why = proof === undefined ? `does not show that it knows ${NAME}` : `has another cluster secret`;
    throw new BigtableError(Code.UNAUTHENTICATED, `the ${side} ${why}`);
  }

  /** Never the secret itself: errors and logs show what they hold. */
  toJSON(): string {
    return '[cluster secret]';
  }
}
