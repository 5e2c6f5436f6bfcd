/**
 * Internal calls as bytes: what a transport between processes carries (docs/formats/internal-calls.md).
 *
 * A message that cannot be read is refused with INVALID_ARGUMENT before its call begins. An answer that cannot be read
 * fails its call with INTERNAL: the call was carried out.
 */
import { asBuffer, assert, BigtableError, Code, toBigtableError } from '../../base/index.ts';
import { type CallHandler, fromPlainThrown, PullStream, pullStreamOf, toPlainThrown } from '../../env/index.ts';
import type { MessageCodec } from '../../protobuf/index.ts';
import { CALL_MESSAGES, STREAM_MESSAGES, thrownError } from './call-messages.ts';

/** A method's messages in one direction and the other. An answer is that of a call, or one item of a stream. */
interface MethodCodecs {
  readonly message: MessageCodec<unknown>;
  readonly answer: MessageCodec<unknown>;
}

/** The bytes of messages, by method. UNIMPLEMENTED for a method that is not known. */
export interface CallCodec {
  /** The names of all calls, and of all streams. */
  readonly calls: readonly string[];
  readonly streams: readonly string[];
  encodeMessage(method: string, message: unknown): Buffer;
  decodeMessage(method: string, bytes: Buffer): unknown;
  encodeAnswer(method: string, answer: unknown): Buffer;
  decodeAnswer(method: string, bytes: Buffer): unknown;
}

class MessagesCodec implements CallCodec {
  readonly calls = Object.keys(CALL_MESSAGES);
  readonly streams = Object.keys(STREAM_MESSAGES);
  readonly #methods = new Map<string, MethodCodecs>([
    ...Object.entries(CALL_MESSAGES),
    ...Object.entries(STREAM_MESSAGES).map(([name, { message, item }]) => [name, { message, answer: item }] as const),
  ]);

  encodeMessage(method: string, value: unknown): Buffer {
    return this.#codecs(method).message.encode(value);
  }

  decodeMessage(method: string, bytes: Buffer): unknown {
    const codecs = this.#codecs(method);
    try {
      return codecs.message.decode(bytes);
    } catch (thrown) {
      throw unreadable(Code.INVALID_ARGUMENT, `the message of the internal call ${method}`, thrown);
    }
  }

  encodeAnswer(method: string, value: unknown): Buffer {
    return this.#codecs(method).answer.encode(value);
  }

  decodeAnswer(method: string, bytes: Buffer): unknown {
    const codecs = this.#codecs(method);
    try {
      return codecs.answer.decode(bytes);
    } catch (thrown) {
      throw unreadable(Code.INTERNAL, `the answer to the internal call ${method}`, thrown);
    }
  }

  #codecs(method: string): MethodCodecs {
    const codecs = this.#methods.get(method);
    if (codecs === undefined) throw new BigtableError(Code.UNIMPLEMENTED, `no internal call is named ${method}`);
    return codecs;
  }
}

/** The messages of masters and tablet servers. */
export const CALL_CODEC: CallCodec = new MessagesCodec();

function unreadable(code: Code, what: string, cause: unknown): BigtableError {
  return new BigtableError(code, `${what} cannot be read: ${toBigtableError(cause).message}`, { cause });
}

/** What a transport of bytes has brought. */
function bytesOf(value: unknown): Buffer {
  assert(value instanceof Uint8Array, 'calls between processes are bytes');
  return asBuffer(value);
}

/** A handler that takes bytes and answers with bytes. */
export function encodedHandler(handler: CallHandler, codec: CallCodec): CallHandler {
  return {
    async call(method, bytes, context) {
      const answer = await handler.call(method, codec.decodeMessage(method, bytesOf(bytes)), context);
      return codec.encodeAnswer(method, answer);
    },
    stream(method, bytes, context) {
      const items = handler.stream(method, codec.decodeMessage(method, bytesOf(bytes)), context);
      return new ChangedStream(pullStreamOf(items), (item) => codec.encodeAnswer(method, item));
    },
  };
}

/** Sends a call over a transport of bytes. */
export async function encodedCall(
  codec: CallCodec,
  method: string,
  message: unknown,
  send: (bytes: Buffer) => Promise<unknown>,
): Promise<unknown> {
  return codec.decodeAnswer(method, bytesOf(await send(codec.encodeMessage(method, message))));
}

/** Sends a stream over a transport of bytes. */
export function encodedStream(
  codec: CallCodec,
  method: string,
  message: unknown,
  open: (bytes: Buffer) => AsyncIterable<unknown>,
): PullStream<unknown> {
  const items = pullStreamOf(open(codec.encodeMessage(method, message)));
  return new ChangedStream(items, (item) => codec.decodeAnswer(method, bytesOf(item)));
}

/** Another stream, each item changed. It ends where an item cannot be changed. */
class ChangedStream extends PullStream<unknown> {
  readonly #items: PullStream<unknown>;
  readonly #change: (item: unknown) => unknown;

  constructor(items: PullStream<unknown>, change: (item: unknown) => unknown) {
    super();
    this.#items = items;
    this.#change = change;
  }

  pull(): unknown {
    const item = this.#items.pull();
    return item instanceof Promise ? item.then((value) => this.#changed(value)) : this.#changed(item);
  }

  end(): void | Promise<void> {
    return this.#items.end();
  }

  #changed(item: unknown): unknown {
    if (item === undefined) return undefined;
    try {
      return this.#change(item);
    } catch (error) {
      // no caller waits for the clean-up
      const ending = this.end();
      if (ending instanceof Promise) ending.catch(() => {});
      throw error;
    }
  }
}

/** A stack is cut to this, and an error that is still longer has no details: they cross in the header of an answer. */
const MAX_STACK_CHARS = 2000;
const MAX_MESSAGE_CHARS = 2000;
const MAX_THROWN_BYTES = 8192;

/** What a call threw, as at most MAX_THROWN_BYTES. */
export function encodeThrown(thrown: unknown): Buffer {
  const plain = toPlainThrown(thrown);
  const short = {
    ...plain,
    message: plain.message.slice(0, MAX_MESSAGE_CHARS),
    stack: plain.stack.slice(0, MAX_STACK_CHARS),
  };
  for (const error of [short, { ...short, stack: '' }]) {
    const bytes = thrownError.encode(error);
    if (bytes.length <= MAX_THROWN_BYTES) return bytes;
  }
  return thrownError.encode({ ...short, stack: '', details: {} });
}

/** The error of those bytes. INTERNAL where they cannot be read. */
export function decodeThrown(bytes: Buffer): BigtableError {
  try {
    return fromPlainThrown(thrownError.decode(bytes));
  } catch (thrown) {
    return unreadable(Code.INTERNAL, 'the error of an internal call', thrown);
  }
}
