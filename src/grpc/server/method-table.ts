/**
 * Makes an API's methods: those that are implemented by a handler in terms of messages (or of raw bytes on hot paths),
 * all others as UNIMPLEMENTED, naming the call. Every method, implemented or not, answers malformed bytes with
 * INVALID_ARGUMENT.
 */
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { BigtableError, Code } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import { decodeRequest, encode } from '../codec/messages.ts';
import { noSpaceForAnswer } from './answer-space.ts';
import type { RpcMethod, RpcServer } from '../../wire/index.ts';

/** Space for an answer, which is reserved before anything is done; a larger one is reserved when it is made. */
const ANSWER_BYTES = 16 * 1024;

/** Size of an answer in addition to its message, compressed or not. */
const FRAMING_BYTES = 1024;

type Method<I extends DescMessage, O extends DescMessage, K extends DescMethod['methodKind']> = DescMethod & {
  readonly methodKind: K;
  readonly input: I;
  readonly output: O;
};

export class MethodTable {
  readonly #server: Pick<RpcServer, 'register'>;
  readonly #registered = new Set<string>();

  constructor(server: Pick<RpcServer, 'register'>) {
    this.#server = server;
  }

  unary<I extends DescMessage, O extends DescMessage>(
    method: Method<I, O, 'unary'>,
    handle: (context: RequestContext, request: MessageShape<I>) => Promise<MessageInitShape<O>>,
    /** Reserved before the call is handled; 0 for calls that must always be answered. */
    answerBytes = ANSWER_BYTES,
  ): void {
    this.#unary(method, handle, answerBytes, false);
  }

  /** The same for a call that changes something. Its outcome is answered however little memory is left then. */
  change<I extends DescMessage, O extends DescMessage>(
    method: Method<I, O, 'unary'>,
    handle: (context: RequestContext, request: MessageShape<I>) => Promise<MessageInitShape<O>>,
  ): void {
    this.#unary(method, handle, ANSWER_BYTES, true);
  }

  #unary<I extends DescMessage, O extends DescMessage>(
    method: Method<I, O, 'unary'>,
    handle: (context: RequestContext, request: MessageShape<I>) => Promise<MessageInitShape<O>>,
    answerBytes: number,
    isChange: boolean,
  ): void {
    this.raw(method, {
      kind: 'unary',
      handle: async (call, bytes) => {
        const request = decodeRequest(method.input, bytes);
        noteTarget(call.context, request);
        const { reservation } = call.context;
        if (answerBytes > 0 && !reservation.tryGrow(answerBytes)) throw noSpaceForAnswer(answerBytes);
        const answer = encode(method.output, create(method.output, await handle(call.context, request)));
        const lackingBytes = answer.length + FRAMING_BYTES - reservation.heldBytes;
        if (isChange && lackingBytes > 0 && !reservation.tryGrow(lackingBytes)) reservation.force(lackingBytes);
        return answer;
      },
    });
  }

  /** `send` resolves when the reader is ready for more. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: Method<I, O, 'server_streaming'>,
    handle: (
      context: RequestContext,
      request: MessageShape<I>,
      send: (message: MessageInitShape<O>) => Promise<void>,
    ) => Promise<void>,
  ): void {
    this.raw(method, {
      kind: 'stream',
      handle: (call, bytes, sink) => {
        const request = decodeRequest(method.input, bytes);
        noteTarget(call.context, request);
        return handle(call.context, request, async (message) =>
          sink.send(encode(method.output, create(method.output, message))),
        );
      },
    });
  }

  /** A method that reads and writes bytes by itself. */
  raw(method: DescMethod, handler: RpcMethod): void {
    const path = `/${method.parent.typeName}/${method.name}`;
    this.#registered.add(path);
    this.#server.register(path, handler);
  }

  /** Registers every method of the service that was not registered before as UNIMPLEMENTED. */
  registerUnimplemented(service: DescService): void {
    for (const method of service.methods) {
      if (!this.#registered.has(`/${service.typeName}/${method.name}`)) this.raw(method, unimplemented(method));
    }
  }
}

/** The API's requests name their target in one of these fields. */
const TARGETS = ['tableName', 'name', 'parent'];

function noteTarget({ notes }: RequestContext, request: object): void {
  if (notes === undefined) return;
  const fields = request as Readonly<Record<string, unknown>>;
  const named = TARGETS.map((field) => fields[field]).find((value) => typeof value === 'string' && value !== '');
  if (typeof named === 'string') notes.target = named;
}

function unimplemented(method: DescMethod): RpcMethod {
  const refuse = (bytes: Buffer): never => {
    decodeRequest(method.input, bytes);
    throw new BigtableError(
      Code.UNIMPLEMENTED,
      `${method.parent.typeName}/${method.name} is not implemented by Edubba`,
    );
  };
  switch (method.methodKind) {
    case 'unary':
      return { kind: 'unary', handle: async (_call, bytes) => refuse(bytes) };
    case 'server_streaming':
      return { kind: 'stream', handle: async (_call, bytes) => refuse(bytes) };
    case 'client_streaming':
    case 'bidi_streaming':
      return {
        kind: 'bidi',
        handle: async (_call, requests) => {
          for await (const bytes of requests) refuse(bytes);
          refuse(Buffer.alloc(0));
        },
      };
  }
}
