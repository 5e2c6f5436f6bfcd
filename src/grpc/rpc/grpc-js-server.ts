/**
 * RpcServer on @grpc/grpc-js. The only file of the server side that knows grpc-js.
 *
 * grpc-js collects a whole message before it calls a handler, so the reservation of request bytes holds the work back, not the
 * receipt; the number of streams a connection is limited for that reason.
 */
import * as grpc from '@grpc/grpc-js';
import { BigtableError, Code, toBigtableError } from '../../base/index.ts';
import { type RequestContext, requestContext } from '../../env/index.ts';
import { GrpcJsSink } from './grpc-js-sink.ts';
import type { ApiEnv, RpcCall, RpcMethod, RpcServer } from './rpc-server.ts';
import { wireStatus } from './status.ts';

/** A MutateRows of 100,000 small mutations or of two values of 100 MiB fits. */
const MAX_REQUEST_BYTES = 256 * 1024 * 1024;
const MAX_STREAMS_A_CONNECTION = 1000;

/** What the three kinds of call of grpc-js have in common. */
interface RawCall {
  readonly metadata: grpc.Metadata;
  getDeadline(): grpc.Deadline;
  on(event: 'cancelled', listener: () => void): unknown;
}

const asIs = (bytes: Buffer): Buffer => bytes;

export class GrpcJsServer implements RpcServer {
  readonly #env: ApiEnv;
  readonly #server: grpc.Server;
  #bound: string | undefined;

  constructor(env: ApiEnv) {
    this.#env = env;
    this.#server = new grpc.Server({
      'grpc.max_receive_message_length': MAX_REQUEST_BYTES,
      'grpc.max_send_message_length': -1,
      'grpc.max_concurrent_streams': MAX_STREAMS_A_CONNECTION,
      'grpc.enable_channelz': 0,
    });
  }

  register(path: string, method: RpcMethod): void {
    switch (method.kind) {
      case 'unary':
        return this.#add(path, 'unary', (call: grpc.ServerUnaryCall<Buffer, Buffer>, done: grpc.sendUnaryData<Buffer>) => {
          this.#unary(path, method, call).then((answer) => done(null, answer), (error: unknown) => done(statusObject(error)));
        });
      case 'stream':
        return this.#add(path, 'serverStream', (call: grpc.ServerWritableStream<Buffer, Buffer>) => {
          this.#streaming(path, call, call.request, (rpcCall, sink) => method.handle(rpcCall, call.request, sink));
        });
      case 'bidi':
        return this.#add(path, 'bidi', (call: grpc.ServerDuplexStream<Buffer, Buffer>) => {
          // the stream is read and written: an iteration that destroyed it at its end would swallow the answer
          const requests = call.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
          this.#streaming(path, call, undefined, (rpcCall, sink) => method.handle(rpcCall, requests, sink));
        });
    }
  }

  listen(host: string, port: number): Promise<number> {
    const target = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(target, grpc.ServerCredentials.createInsecure(), (error, bound) => {
        if (!error) {
          this.#bound = target.replace(/\d+$/, String(bound));
          return resolve(bound);
        }
        if (/EADDRINUSE/.test(error.message)) return reject(new BigtableError(Code.ALREADY_EXISTS, `address ${target} is already in use`, { cause: error }));
        reject(new BigtableError(Code.UNAVAILABLE, `cannot listen on ${target}: ${error.message}`, { cause: error }));
      });
    });
  }

  close(graceMs: number): Promise<void> {
    return new Promise((resolve) => {
      // forceShutdown overlooks connections where channelz is off, so it is drain that cuts off what outlasts the grace
      if (this.#bound !== undefined) this.#server.drain(this.#bound, graceMs);
      this.#server.tryShutdown(() => resolve());
    });
  }

  #add(path: string, kind: 'unary' | 'serverStream' | 'bidi', handler: unknown): void {
    this.#server.register(path, handler as grpc.handleUnaryCall<Buffer, Buffer>, asIs, asIs, kind);
  }

  async #unary(path: string, method: Extract<RpcMethod, { kind: 'unary' }>, call: grpc.ServerUnaryCall<Buffer, Buffer>): Promise<Buffer> {
    const { context, end } = this.#context(call);
    try {
      await admit(context, call.request);
      const answer = await method.handle(rpcCall(path, context, call.metadata), call.request);
      return Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength);
    } catch (error) {
      this.#note(path, error);
      throw error;
    } finally {
      end();
    }
  }

  #streaming(
    path: string,
    call: grpc.ServerWritableStream<Buffer, Buffer> | grpc.ServerDuplexStream<Buffer, Buffer>,
    request: Buffer | undefined,
    handle: (call: RpcCall, sink: GrpcJsSink) => Promise<void>,
  ): void {
    call.sendMetadata(new grpc.Metadata());
    const { context, end } = this.#context(call);
    const sink = new GrpcJsSink(call, context, this.#env.clock);
    const run = async (): Promise<void> => {
      if (request) await admit(context, request);
      await handle(rpcCall(path, context, call.metadata), sink);
      await sink.drained();
    };
    run().then(
      () => {
        end();
        call.end();
      },
      (error: unknown) => {
        end();
        this.#note(path, error);
        call.emit('error', statusObject(error));
      },
    );
  }

  /** The call's context, and what to do once its handler is done. */
  #context(call: RawCall): { context: RequestContext; end: () => void } {
    const { clock, requestBudget } = this.#env;
    const abort = new AbortController();
    const leftMs = Number(call.getDeadline()) - clock.nowMicros() / 1000;
    const deadlineMs = clock.monotonicMs() + leftMs;
    let ended = false;
    call.on('cancelled', () => {
      // grpc-js says so at the end of every call
      if (ended) return;
      const late = clock.monotonicMs() >= deadlineMs;
      abort.abort(new BigtableError(late ? Code.DEADLINE_EXCEEDED : Code.CANCELLED, late ? 'the deadline of the call is over' : 'the caller gave the call up'));
    });
    const trace = call.metadata.get('traceparent')[0];
    const context = requestContext({ budget: requestBudget, signal: abort.signal, deadlineMs, trace: trace === undefined ? '' : String(trace) });
    const end = (): void => {
      ended = true;
      context.reservation.release();
    };
    return { context, end };
  }

  /** Faults of our own are told to the log; those of the caller only to the caller. */
  #note(path: string, thrown: unknown): void {
    const error = toBigtableError(thrown);
    if (error.code !== Code.INTERNAL && error.code !== Code.DATA_LOSS && error.code !== Code.UNKNOWN) return;
    const cause = error.cause instanceof Error ? error.cause : error;
    this.#env.logger.error('a call failed', { path, message: error.message, stack: cause.stack ?? '' });
  }
}

function rpcCall(path: string, context: RequestContext, metadata: grpc.Metadata): RpcCall {
  return {
    path,
    context,
    header: (name) => {
      const value = metadata.get(name)[0];
      return value === undefined ? undefined : value.toString();
    },
  };
}

async function admit(context: RequestContext, request: Buffer): Promise<void> {
  if (!context.reservation.tryGrow(request.length)) await context.reservation.grow(request.length, context.signal);
}

function statusObject(thrown: unknown): grpc.ServiceError {
  const status = wireStatus(thrown);
  const metadata = new grpc.Metadata();
  if (status.details) metadata.set('grpc-status-details-bin', status.details);
  return Object.assign(new Error(status.message), { code: status.code as number as grpc.status, details: status.message, metadata });
}
