/**
 * The answer to a read that another server has passed on: a sink for the writer of its messages, and a stream of parts
 * for the transport.
 *
 * Invariant: the writer waits while MAX_QUEUED parts are not taken. A read whose messages are ready costs no promise.
 */
import { callCancelled, PullStream } from '../../env/index.ts';
import type { ByteString } from '../../base/index.ts';
import type { ReadPart } from '../../service/index.ts';
import type { RpcSink } from '../../wire/index.ts';

/** Parts of about 64 KB that wait for the transport. */
const MAX_QUEUED = 2;

/** How far a read has come with its next message (`ReadPart`). */
export interface ReadProgress {
  rows: number;
  lastRow: ByteString | undefined;
  isInsideRow: boolean;
}

interface Waiter<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

export class PartStream extends PullStream<ReadPart> implements RpcSink {
  readonly progress: ReadProgress = { rows: 0, lastRow: undefined, isInsideRow: false };
  readonly #begin: (sink: PartStream) => Promise<void> | undefined;
  readonly #queue: ReadPart[] = [];
  #phase: 'new' | 'open' | 'written' | 'ended' = 'new';
  /** Thrown once all parts are taken. */
  #failure: { readonly error: unknown } | undefined;
  #reader: Waiter<ReadPart | undefined> | undefined;
  #writer: Waiter<void> | undefined;

  /** `begin` writes all messages; undefined when it has done so synchronously. Called by the first pull. */
  constructor(begin: (sink: PartStream) => Promise<void> | undefined) {
    super();
    this.#begin = begin;
  }

  pull(): ReadPart | undefined | Promise<ReadPart | undefined> {
    if (this.#phase === 'new') this.#start();
    const part = this.#queue.shift();
    if (part !== undefined) {
      this.#takeWriter()?.resolve();
      return part;
    }
    if (this.#phase === 'open') return new Promise((resolve, reject) => (this.#reader = { resolve, reject }));
    return this.#finish();
  }

  end(): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    this.#queue.length = 0;
    this.#failure = undefined;
    this.#takeWriter()?.reject(callCancelled());
    this.#takeReader()?.resolve(undefined);
  }

  send(message: Buffer | readonly Buffer[]): Promise<void> | undefined {
    if (this.#phase === 'ended') return Promise.reject(callCancelled());
    const { rows, lastRow, isInsideRow } = this.progress;
    const part = { message, rows, lastRow, isInsideRow };
    const reader = this.#takeReader();
    if (reader !== undefined) {
      reader.resolve(part);
      return undefined;
    }
    this.#queue.push(part);
    if (this.#queue.length < MAX_QUEUED) return undefined;
    return new Promise((resolve, reject) => (this.#writer = { resolve, reject }));
  }

  sendCopy(message: Buffer): Promise<void> | undefined {
    return this.send(Buffer.from(message));
  }

  #start(): void {
    this.#phase = 'open';
    let work: Promise<void> | undefined;
    try {
      work = this.#begin(this);
    } catch (error) {
      return this.#written({ error });
    }
    if (work === undefined) return this.#written(undefined);
    work.then(
      () => this.#written(undefined),
      (error: unknown) => this.#written({ error }),
    );
  }

  /** The last message was sent, or there are no more because of the failure. */
  #written(failure: { readonly error: unknown } | undefined): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'written';
    this.#failure = failure;
    const reader = this.#takeReader();
    if (reader === undefined) return;
    try {
      reader.resolve(this.#finish());
    } catch (error) {
      reader.reject(error);
    }
  }

  #finish(): undefined {
    const failure = this.#failure;
    this.#phase = 'ended';
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
    return undefined;
  }

  #takeReader(): Waiter<ReadPart | undefined> | undefined {
    const reader = this.#reader;
    this.#reader = undefined;
    return reader;
  }

  #takeWriter(): Waiter<void> | undefined {
    const writer = this.#writer;
    this.#writer = undefined;
    return writer;
  }
}
