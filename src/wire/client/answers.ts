/** The two kinds of readers of a call's answer: one message as a promise, and many as an iteration. */
import { BigtableError, Code, toBigtableError } from '../../base/index.ts';
import { PullStream } from '../../env/index.ts';
import { claimedBytes, inflate } from '../grpc/gzip.ts';
import type { AnswerReader, ClientCall } from './client-call.ts';

interface Message {
  readonly bytes: Buffer;
  readonly compressed: boolean;
}

/** The one message of a unary call. */
export class SingleAnswer implements AnswerReader {
  readonly #resolve: (message: Buffer | Promise<Buffer>) => void;
  readonly #reject: (error: BigtableError) => void;
  readonly #maxMessageBytes: number;
  #message: Message | undefined;
  #count = 0;

  constructor(
    maxMessageBytes: number,
    resolve: (message: Buffer | Promise<Buffer>) => void,
    reject: (error: BigtableError) => void,
  ) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  onMessage(bytes: Buffer, compressed: boolean): void {
    this.#count++;
    this.#message = { bytes, compressed };
  }

  onDone(error: BigtableError | undefined): void {
    if (error) this.#reject(error);
    else if (this.#count !== 1)
      this.#reject(new BigtableError(Code.INTERNAL, `the server answered a unary call with ${this.#count} messages`));
    else this.#resolve(plain(this.#message!, this.#maxMessageBytes));
  }
}

/** The messages of a stream, one after another. The call is started by the first pull. */
export class AnswerQueue extends PullStream<Buffer> implements AnswerReader {
  readonly #maxMessageBytes: number;
  readonly #makeCall: (reader: AnswerReader) => ClientCall;
  #call: ClientCall | undefined;
  #messages: Message[] = [];
  #first = 0;
  #isDone = false;
  #error: BigtableError | undefined;
  /** Continues the pull that waits. */
  #wake: (() => void) | undefined;

  constructor(maxMessageBytes: number, makeCall: (reader: AnswerReader) => ClientCall) {
    super();
    this.#maxMessageBytes = maxMessageBytes;
    this.#makeCall = makeCall;
  }

  pull(): Buffer | undefined | Promise<Buffer | undefined> {
    if (!this.#call && !this.#isDone) {
      this.#call = this.#makeCall(this);
      this.#call.start();
    }
    const message = this.#messages[this.#first];
    if (message) return this.#take(message);
    const error = this.#error;
    this.#error = undefined;
    if (error) throw error;
    if (this.#isDone) return undefined;
    return new Promise<void>((resolve) => (this.#wake = resolve)).then(() => this.pull());
  }

  end(): void {
    this.#cancel();
  }

  onMessage(bytes: Buffer, compressed: boolean): void {
    this.#messages.push({ bytes, compressed });
    this.#wakeUp();
  }

  onDone(error: BigtableError | undefined): void {
    this.#isDone = true;
    this.#error = error;
    this.#wakeUp();
  }

  #take(message: Message): Buffer | Promise<Buffer> {
    this.#first++;
    if (this.#first === this.#messages.length) {
      this.#messages = [];
      this.#first = 0;
    }
    this.#call?.wasRead(message.bytes.length);
    const bytes = plain(message, this.#maxMessageBytes);
    if (!(bytes instanceof Promise)) return bytes;
    return bytes.catch((error: unknown) => {
      this.#cancel();
      throw toBigtableError(error);
    });
  }

  #cancel(): void {
    this.#isDone = true;
    this.#messages = [];
    this.#first = 0;
    this.#call?.cancel();
    this.#error = undefined;
    this.#wakeUp();
  }

  #wakeUp(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

function plain({ bytes, compressed }: Message, maxMessageBytes: number): Buffer | Promise<Buffer> {
  if (!compressed) return bytes;
  const claimed = claimedBytes(bytes);
  if (claimed > maxMessageBytes)
    return Promise.reject(
      new BigtableError(Code.RESOURCE_EXHAUSTED, `a message of ${claimed} bytes; the limit is ${maxMessageBytes}`),
    );
  return inflate(bytes, claimed);
}
