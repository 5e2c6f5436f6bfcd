/**
 * Requests to one bucket: signed, sent, and their answers judged. Reasons: docs/decisions/0085-s3.md.
 *
 * Invariant: an error of UNAVAILABLE or DEADLINE_EXCEEDED leaves the outcome unknown; every other one is an answer, and
 * this attempt had no effect.
 */
import { createHash } from 'node:crypto';
import { toBigtableError, unavailable } from '../../base/index.ts';
import { type Clock, isOutcomeUnknown, type Random, sleep } from '../../env/index.ts';
import type { S3Address } from './s3-address.ts';
import { isMissing, s3Error } from './s3-errors.ts';
import { type HttpAnswer, HttpEndpoint } from './s3-http.ts';
import type { S3Signer } from './s3-signer.ts';

export interface S3ClientOptions {
  readonly address: S3Address;
  readonly clock: Clock;
  readonly random: Random;
  readonly signer: S3Signer;
  /** How long a request that is not answered, or refused for now, is sent again, ms. Default: 30,000. */
  readonly retryForMs?: number;
  /** How long one attempt without a large body may take, ms. Default: 5000. */
  readonly attemptMs?: number;
}

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** '' for the bucket. Of characters that need no escape, and "/". */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: readonly Uint8Array[];
  /** Answers that the caller wants to see; all others are thrown. Of 404 those that mean a missing object. */
  readonly answers: readonly number[];
  /** Most bytes of the answer's body. Default: 8 MiB, which is more than any list or error takes. */
  readonly maxBytes?: number;
}

const MAX_ANSWER_BYTES = 8 << 20;
const FIRST_DELAY_MS = 50;
const MAX_DELAY_MS = 5000;
/** What one attempt may take longer for each MiB that is sent or received. */
const MS_PER_MIB = 1000;
/** A hash of more bytes than this pauses in between. */
const HASH_SLICE_BYTES = 1 << 20;

export class S3Client {
  readonly address: S3Address;
  readonly clock: Clock;
  readonly random: Random;
  readonly #endpoint: HttpEndpoint;
  readonly #signer: S3Signer;
  readonly #retryForMs: number;
  readonly #attemptMs: number;

  constructor({ address, clock, random, signer, retryForMs = 30_000, attemptMs = 5000 }: S3ClientOptions) {
    this.address = address;
    this.clock = clock;
    this.random = random;
    this.#endpoint = new HttpEndpoint(address.endpoint, clock);
    this.#signer = signer;
    this.#retryForMs = retryForMs;
    this.#attemptMs = attemptMs;
  }

  /** One attempt. */
  async send(request: S3Request): Promise<HttpAnswer> {
    const { method, key, query = {}, body = [], answers, maxBytes = MAX_ANSWER_BYTES } = request;
    const { endpoint, root } = this.address;
    const bodyBytes = body.reduce((sum, { length }) => sum + length, 0);
    const headers: Record<string, string> = {
      ...request.headers,
      host: endpoint.host,
      'x-amz-content-sha256': await this.#hashOf(body),
    };
    if (method === 'PUT' || method === 'POST') headers['content-length'] = String(bodyBytes);
    const path = `${root}/${key}`;
    const signingDate = new Date(this.clock.nowMicros() / 1000);
    const signed = await this.#signer({ method, path, query, headers }, signingDate);
    const pairs = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    const answer = await this.#endpoint.send({
      method,
      path: pairs.length === 0 ? path : `${path}?${pairs.join('&')}`,
      headers: signed,
      body,
      maxBytes: Math.max(maxBytes, 1 << 16),
      timeoutMs: this.#attemptMs + (MS_PER_MIB * (bodyBytes + (request.maxBytes ?? 0))) / (1 << 20),
    });
    const { status } = answer;
    const isWanted = answers.includes(status);
    if (isWanted && status !== 404) return answer;
    const text = answer.body.toString('utf8');
    if (isWanted && isMissing(status, text)) return answer;
    throw s3Error(this.address, `${method} ${key || 'the bucket'}`, status, text);
  }

  /** Makes the call until its outcome is known, for a limited time, after delays that are drawn. */
  async retried<T>(call: () => Promise<T>): Promise<T> {
    const endMs = this.clock.monotonicMs() + this.#retryForMs;
    for (let mostMs = FIRST_DELAY_MS; ; mostMs = Math.min(2 * mostMs, MAX_DELAY_MS)) {
      try {
        return await call();
      } catch (thrown) {
        const error = toBigtableError(thrown);
        if (!isOutcomeUnknown(error)) throw error;
        const delayMs = mostMs * (0.5 + this.random.float() / 2);
        if (this.clock.monotonicMs() + delayMs > endMs) throw unavailable(error.message, error);
        await sleep(this.clock, delayMs);
      }
    }
  }

  /** The key of a path in the store. */
  keyOf(path: string): string {
    return this.address.prefix === '' ? path : `${this.address.prefix}/${path}`;
  }

  close(): void {
    this.#endpoint.close();
  }

  async #hashOf(body: readonly Uint8Array[]): Promise<string> {
    const hash = createHash('sha256');
    let sincePause = 0;
    for (const part of body) {
      for (let at = 0; at < part.length; at += HASH_SLICE_BYTES) {
        const slice = part.subarray(at, at + HASH_SLICE_BYTES);
        hash.update(slice);
        sincePause += slice.length;
        if (sincePause < HASH_SLICE_BYTES) continue;
        sincePause = 0;
        await this.clock.yield();
      }
    }
    return hash.digest('hex');
  }
}
