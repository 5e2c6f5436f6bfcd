/**
 * Internal calls as bytes: what a transport between processes carries (docs/formats/internal-calls.md).
 *
 * A message that cannot be read is refused with INVALID_ARGUMENT before its call begins. An answer that cannot be read
 * fails its call with INTERNAL: the call was carried out.
 */
import { asBuffer, assert, BigtableError, Code, toBigtableError } from '../../base/index.ts';
import {
  type CallHandler,
  ChangedStream,
  type Clock,
  fromPlainThrown,
  Pacer,
  type PullStream,
  pullStreamOf,
  toPlainThrown,
} from '../../env/index.ts';
import { CALL_MESSAGES, STREAM_MESSAGES, thrownError } from './call-messages.ts';

/** The bytes of a message or of an answer. */
export interface MessageForm {
  encode(value: unknown): Buffer;
  /** As `encode`, but long byte arrays may be parts of the answer, and not copied. */
  encodeParts(value: unknown): Buffer | readonly Buffer[];
  decode(bytes: Buffer): unknown;
  /** True where steps are worthwhile: a message may have very many parts. */
  readonly isLong: boolean;
  encodeInSteps(value: unknown): Generator<void, Buffer>;
  decodeInSteps(bytes: Buffer): Generator<void, unknown>;
}

/** The forms of all calls and streams. An answer is that of a call, or one item of a stream. */
export interface CallCodec {
  readonly calls: readonly string[];
  readonly streams: readonly string[];
  /** UNIMPLEMENTED for a method that is not known. */
  messageOf(method: string): MessageForm;
  answerOf(method: string): MessageForm;
}

class MessagesCodec implements CallCodec {
  readonly calls = Object.keys(CALL_MESSAGES);
  readonly streams = Object.keys(STREAM_MESSAGES);
  readonly #messages = new Map<string, MessageForm>();
  readonly #answers = new Map<string, MessageForm>();

  constructor() {
    const add = (method: string, message: MessageForm, answer: MessageForm): void => {
      this.#messages.set(method, message);
      this.#answers.set(method, answer);
    };
    for (const [method, { message, answer }] of Object.entries(CALL_MESSAGES)) add(method, message, answer);
    for (const [method, { message, item }] of Object.entries(STREAM_MESSAGES)) add(method, message, item);
  }

  messageOf(method: string): MessageForm {
    return formOf(this.#messages, method);
  }

  answerOf(method: string): MessageForm {
    return formOf(this.#answers, method);
  }
}

function formOf(forms: ReadonlyMap<string, MessageForm>, method: string): MessageForm {
  const form = forms.get(method);
  if (form === undefined) throw new BigtableError(Code.UNIMPLEMENTED, `no internal call is named ${method}`);
  return form;
}

/** The messages of masters and tablet servers. */
export const CALL_CODEC: CallCodec = new MessagesCodec();

/** Encodes in slices of the event loop where the message is long. */
function encode(form: MessageForm, value: unknown, clock: Clock): Buffer | Promise<Buffer> {
  return form.isLong ? inSteps(form.encodeInSteps(value), clock) : form.encode(value);
}

function decode(form: MessageForm, bytes: Buffer, clock: Clock): unknown {
  return form.isLong && bytes.length > SHORT_BYTES ? inSteps(form.decodeInSteps(bytes), clock) : form.decode(bytes);
}

/** Shorter messages are decoded without steps. */
const SHORT_BYTES = 64 * 1024;

/** Runs the steps; without a promise where no pause is due. */
function inSteps<T>(steps: Generator<void, T>, clock: Clock): T | Promise<T> {
  // a step is many items already
  const pacer = new Pacer(clock, 1);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (pacer.due()) return pausing(steps, pacer);
  }
}

async function pausing<T>(steps: Generator<void, T>, pacer: Pacer): Promise<T> {
  for (;;) {
    await pacer.pause();
    for (;;) {
      const step = steps.next();
      if (step.done) return step.value;
      if (pacer.due()) break;
    }
  }
}

async function decodeMessage(codec: CallCodec, method: string, bytes: unknown, clock: Clock): Promise<unknown> {
  const form = codec.messageOf(method);
  try {
    return await decode(form, bytesOf(bytes), clock);
  } catch (thrown) {
    throw unreadable(Code.INVALID_ARGUMENT, `the message of the internal call ${method}`, thrown);
  }
}

function unreadableAnswer(method: string, thrown: unknown): BigtableError {
  return unreadable(Code.INTERNAL, `the answer to the internal call ${method}`, thrown);
}

function unreadable(code: Code, what: string, cause: unknown): BigtableError {
  return new BigtableError(code, `${what} cannot be read: ${toBigtableError(cause).message}`, { cause });
}

/** What a transport of bytes has brought, in one part or several. */
function bytesOf(value: unknown): Buffer {
  if (Array.isArray(value)) return Buffer.concat(value);
  assert(value instanceof Uint8Array, 'calls between processes are bytes');
  return asBuffer(value);
}

/** A handler that takes bytes and answers with bytes: an item of a stream has one part or several. */
export function encodedHandler(handler: CallHandler, codec: CallCodec, clock: Clock): CallHandler {
  return {
    async call(method, bytes, context) {
      const message = await decodeMessage(codec, method, bytes, clock);
      return encode(codec.answerOf(method), await handler.call(method, message, context), clock);
    },
    stream(method, bytes, context) {
      const form = codec.answerOf(method);
      let message: unknown;
      try {
        message = codec.messageOf(method).decode(bytesOf(bytes));
      } catch (thrown) {
        throw unreadable(Code.INVALID_ARGUMENT, `the message of the internal call ${method}`, thrown);
      }
      return new ChangedStream(pullStreamOf(handler.stream(method, message, context)), (item) =>
        form.encodeParts(item),
      );
    },
  };
}

/** Sends a call over a transport of bytes. */
export async function encodedCall(
  codec: CallCodec,
  clock: Clock,
  method: string,
  message: unknown,
  send: (bytes: Buffer) => Promise<unknown>,
): Promise<unknown> {
  const answer = bytesOf(await send(await encode(codec.messageOf(method), message, clock)));
  try {
    return await decode(codec.answerOf(method), answer, clock);
  } catch (thrown) {
    throw unreadableAnswer(method, thrown);
  }
}

/** Sends a stream over a transport of bytes. */
export function encodedStream(
  codec: CallCodec,
  method: string,
  message: unknown,
  open: (bytes: Buffer) => AsyncIterable<unknown>,
): PullStream<unknown> {
  const form = codec.answerOf(method);
  return new ChangedStream(pullStreamOf(open(codec.messageOf(method).encode(message))), (item) => {
    try {
      return form.decode(bytesOf(item));
    } catch (thrown) {
      throw unreadableAnswer(method, thrown);
    }
  });
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

/** The error of those bytes. UNAVAILABLE where they cannot be read: then nothing is known of the call. */
export function decodeThrown(bytes: Buffer): BigtableError {
  try {
    return fromPlainThrown(thrownError.decode(bytes));
  } catch (thrown) {
    return unreadable(Code.UNAVAILABLE, 'the error of an internal call', thrown);
  }
}
