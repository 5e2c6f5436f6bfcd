/**
 * RpcClient on @grpc/grpc-js. The only file of the client side that knows grpc-js.
 */
import * as grpc from '@grpc/grpc-js';
import { BigtableError, Code } from '../../base/index.ts';
import type { Clock, RequestContext } from '../../env/index.ts';
import type { RpcClient } from './rpc-client.ts';
import { errorOfStatus } from './status.ts';

const asIs = (bytes: Buffer): Buffer => bytes;

export class GrpcJsClient implements RpcClient {
  readonly #address: string;
  readonly #client: grpc.Client;
  readonly #clock: Clock;
  readonly #headers: Readonly<Record<string, string>>;

  /** `headers` go with every call. The connection is made by the first call. */
  constructor(address: string, clock: Clock, headers: Readonly<Record<string, string>>) {
    this.#address = address;
    this.#clock = clock;
    this.#headers = headers;
    this.#client = new grpc.Client(address, grpc.credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
      'grpc.max_send_message_length': -1,
    });
  }

  unary(path: string, request: Uint8Array, context: RequestContext): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (context.signal?.aborted) return reject(cancelled());
      const call = this.#client.makeUnaryRequest(path, asIs, asIs, buffer(request), this.#metadata(), this.#options(context), (error, answer) => {
        context.signal?.removeEventListener('abort', onAbort);
        if (error) reject(errorOf(error, this.#address));
        else resolve(answer ?? Buffer.alloc(0));
      });
      const onAbort = (): void => call.cancel();
      context.signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  async *stream(path: string, request: Uint8Array, context: RequestContext): AsyncIterable<Buffer> {
    if (context.signal?.aborted) throw cancelled();
    const call = this.#client.makeServerStreamRequest(path, asIs, asIs, buffer(request), this.#metadata(), this.#options(context));
    const onAbort = (): void => call.cancel();
    context.signal?.addEventListener('abort', onAbort, { once: true });
    try {
      for await (const message of call) yield message as Buffer;
    } catch (error) {
      throw errorOf(error as grpc.ServiceError, this.#address);
    } finally {
      context.signal?.removeEventListener('abort', onAbort);
      call.cancel();
    }
  }

  close(): void {
    this.#client.close();
  }

  #metadata(): grpc.Metadata {
    const metadata = new grpc.Metadata();
    for (const [name, value] of Object.entries(this.#headers)) metadata.set(name, value);
    return metadata;
  }

  #options(context: RequestContext): grpc.CallOptions {
    if (context.deadlineMs === Number.POSITIVE_INFINITY) return {};
    const leftMs = context.deadlineMs - this.#clock.monotonicMs();
    return { deadline: this.#clock.nowMicros() / 1000 + leftMs };
  }
}

function buffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function cancelled(): BigtableError {
  return new BigtableError(Code.CANCELLED, 'the caller gave the call up');
}

function errorOf(error: grpc.ServiceError, address: string): BigtableError {
  if (typeof error.code !== 'number') return new BigtableError(Code.INTERNAL, error.message, { cause: error });
  // grpc-js' words for a server that is not there, of which the middle is of use
  const why = /^No connection established\. Last error: (?:Error: )?(.*?)\.? Resolution note:/.exec(error.details)?.[1];
  if (why !== undefined) return new BigtableError(Code.UNAVAILABLE, `cannot reach a server at ${address}: ${why}`, { cause: error });
  return errorOfStatus(error.code, error.details) ?? new BigtableError(Code.INTERNAL, error.message, { cause: error });
}
