/**
 * The secret that all processes of a cluster share. A process shows that it knows the secret by a proof (HMAC-SHA256)
 * over what both sides have said, and never sends it.
 */
import { isUtf8 } from 'node:buffer';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { BigtableError, Code, invalidArgument } from '../base/index.ts';

/** Shorter ones can be found by trying. */
const MIN_BYTES = 32;
/** A file that is longer is surely another one. */
const MAX_BYTES = 4096;
const NAME = 'the cluster secret';
const EXAMPLE = '"openssl rand -hex 32" makes a good one';

/** The variable of the environment that holds the secret. */
const VARIABLE = 'EDUBBA_CLUSTER_SECRET';

/**
 * The secret from `file`, or else from EDUBBA_CLUSTER_SECRET of the environment; undefined where neither is given. It
 * is no argument of a command, which every program of the machine can see. INVALID_ARGUMENT if both are given, if the
 * file cannot be read, or for a secret of a wrong length.
 */
export async function readClusterSecret(
  file: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<ClusterSecret | undefined> {
  const variable = environment[VARIABLE];
  if (file === undefined) return variable === undefined ? undefined : ClusterSecret.parse(variable, VARIABLE);
  if (variable !== undefined) throw invalidArgument(`${NAME} is both in ${file} and in ${VARIABLE}: give one of them`);
  const bytes = await readFile(file).catch((cause: Error) => {
    throw new BigtableError(Code.INVALID_ARGUMENT, `cannot read ${NAME}: ${cause.message}`, { cause });
  });
  // as text, all bytes that are not UTF-8 would be one character: such a secret can be guessed
  if (!isUtf8(bytes)) throw invalidArgument(`${NAME} of ${file} is no text: ${EXAMPLE}`);
  return ClusterSecret.parse(bytes.toString('utf8'), file);
}

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
        `${NAME} of ${source} has ${key.length} bytes: it needs ${MIN_BYTES} to ${MAX_BYTES}; ${EXAMPLE}`,
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
