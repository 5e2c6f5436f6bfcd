/**
 * The front doors of tablet servers: the Cloud API as clients of other processes call it, by the product's own handlers
 * and its own client side, over the simulated network in place of HTTP/2. Each tablet server has one. A call for a row
 * of another server is passed on as bytes, as in a server with several (docs/decisions/0047-calls-passed-on-as-bytes.md).
 *
 * As on the wire, what crosses of an error is its status: code and message.
 */
import { asBuffer, assert, BigtableError, Code, notFound } from '../../src/base/index.ts';
import { CallContext, callCancelled, type CallHandler, ManualClock } from '../../src/env/index.ts';
import type { Random, RequestContext, Transport } from '../../src/env/index.ts';
import { loadServiceOverRpc, registerCloudApi, RequestDecoder, wireStatus } from '../../src/grpc/index.ts';
import type { RawCallPasser, Service } from '../../src/service/index.ts';
import type { ApiEnv, RpcCall, RpcClient, RpcMethod, RpcSink } from '../../src/wire/index.ts';

/** Messages of an answer that wait for the network. */
const MAX_QUEUED = 2;

/** The parts of doors that are loaded before a run: to load a module takes real time. */
export interface DoorParts {
  readonly decoder: RequestDecoder;
  readonly serviceOverRpc: Awaited<ReturnType<typeof loadServiceOverRpc>>;
}

export async function loadDoorParts(): Promise<DoorParts> {
  const decoder = new RequestDecoder(new ManualClock());
  await decoder.load();
  return { decoder, serviceOverRpc: await loadServiceOverRpc() };
}

export function doorOf(serverAddress: string): string {
  return `door of ${serverAddress}`;
}

/** A call as the network carries it. */
interface DoorMessage {
  readonly request: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

export interface FrontDoorOptions {
  readonly service: Service;
  readonly env: ApiEnv;
  readonly passer: RawCallPasser;
  readonly decoder: RequestDecoder;
}

/** Takes calls of clients. */
export class FrontDoor implements CallHandler {
  readonly #clock: ApiEnv['clock'];
  readonly #methods = new Map<string, RpcMethod>();

  constructor({ service, env, passer, decoder }: FrontDoorOptions) {
    this.#clock = env.clock;
    const methods = { register: (path: string, method: RpcMethod) => void this.#methods.set(path, method) };
    registerCloudApi(methods, service, env, passer, decoder);
  }

  async call(path: string, message: unknown, context: RequestContext): Promise<Uint8Array> {
    const method = this.#methods.get(path);
    if (method?.kind !== 'unary') throw notFound(`no call ${path} of one answer`);
    const { request, headers } = message as DoorMessage;
    try {
      const answer = await method.handle(this.#callOf(path, headers, context), asBuffer(request));
      return answer instanceof Uint8Array ? answer : Buffer.concat(answer);
    } catch (thrown) {
      throw asStatus(thrown);
    }
  }

  async *stream(path: string, message: unknown, context: RequestContext): AsyncIterable<Uint8Array> {
    const method = this.#methods.get(path);
    if (method?.kind !== 'stream') throw notFound(`no call ${path} of a streamed answer`);
    const { request, headers } = message as DoorMessage;
    const sink = new MessageQueue();
    const work = (async () => method.handle(this.#callOf(path, headers, context), asBuffer(request), sink))();
    work.then(
      () => sink.written(),
      () => sink.written(),
    );
    try {
      for (let next = await sink.take(); next !== undefined; next = await sink.take()) yield next;
      await work;
    } catch (thrown) {
      throw asStatus(thrown);
    } finally {
      sink.end();
    }
  }

  #callOf(path: string, headers: DoorMessage['headers'], context: RequestContext): RpcCall {
    assert(context instanceof CallContext, 'a call of a client has come over the network');
    return {
      path,
      context,
      startMs: this.#clock.monotonicMs(),
      header: (name) => headers[name],
      addTrailer: () => {},
    };
  }
}

/** The messages of a streamed answer. Its writer waits while MAX_QUEUED are not taken. */
class MessageQueue implements RpcSink {
  readonly #messages: Buffer[] = [];
  #isWritten = false;
  #isOver = false;
  #onMessage = (): void => {};
  #onTaken = (): void => {};

  /** Resolves with the next message; undefined at the end. */
  async take(): Promise<Buffer | undefined> {
    while (this.#messages.length === 0 && !this.#isWritten) await new Promise<void>((go) => (this.#onMessage = go));
    const message = this.#messages.shift();
    this.#onTaken();
    return message;
  }

  send(message: Buffer | readonly Buffer[]): Promise<void> | undefined {
    if (this.#isOver) return Promise.reject(callCancelled());
    this.#messages.push(Buffer.concat([message].flat()));
    this.#onMessage();
    return this.#messages.length < MAX_QUEUED ? undefined : new Promise((go) => (this.#onTaken = go));
  }

  sendCopy(message: Buffer): Promise<void> | undefined {
    return this.send(message);
  }

  written(): void {
    this.#isWritten = true;
    this.#onMessage();
  }

  /** No reader takes more. */
  end(): void {
    this.#isOver = true;
    this.#onTaken();
  }
}

/** The wire of a client, which calls any of the doors. */
export class DoorClient implements RpcClient {
  readonly #transport: Transport;
  readonly #doors: readonly string[];
  readonly #random: Random;
  readonly #headers: DoorMessage['headers'];

  constructor(transport: Transport, doors: readonly string[], random: Random, headers: DoorMessage['headers']) {
    this.#transport = transport;
    this.#doors = doors;
    this.#random = random;
    this.#headers = headers;
  }

  async unary(path: string, request: Uint8Array, context: RequestContext): Promise<Buffer> {
    return bytesOf(await this.#transport.call(this.#door(), path, this.#message(request), context));
  }

  async *stream(path: string, request: Uint8Array, context: RequestContext): AsyncIterable<Buffer> {
    for await (const message of this.#transport.stream(this.#door(), path, this.#message(request), context))
      yield bytesOf(message);
  }

  close(): void {}

  destroy(): void {}

  #message(request: Uint8Array): DoorMessage {
    return { request, headers: this.#headers };
  }

  #door(): string {
    return this.#doors[Math.floor(this.#random.float() * this.#doors.length)]!;
  }
}

function bytesOf(answer: unknown): Buffer {
  assert(answer instanceof Uint8Array, 'answers of a door are bytes');
  return asBuffer(answer);
}

function asStatus(thrown: unknown): BigtableError {
  const { code, message } = wireStatus(thrown);
  assert(code !== Code.OK, 'an error has a status');
  return new BigtableError(code, message);
}
