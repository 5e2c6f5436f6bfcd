/**
 * The contract of an API and its wire on the server's side: methods by path, raw bytes in and out, a context for each
 * call.
 *
 * Promises of the wire:
 * - Request bytes are reserved from the budget before more than a small share of them is taken in, and before the
 *   handler runs; the reservation is released when the call has ended. Methods with tiny requests take nothing of it
 *   and do not wait.
 * - `context.signal` aborts when the caller cancels, loses its connection or runs out of time; `context.deadlineMs` is
 *   the caller's.
 * - Response headers of streams go out before the handler runs: a client may wait for them.
 * - An error that a handler throws becomes the call's status; nothing that a client sends or a handler throws ends the
 *   process.
 * - A request above `maxRequestBytes` fails with RESOURCE_EXHAUSTED as soon as its length is known.
 * - A call that holds memory and moves too slowly is ended with UNAVAILABLE, but only while others wait for memory.
 */
import type { Code } from '../../base/index.ts';
import type { CallContext, Env, RequestContext } from '../../env/index.ts';

/** The part of the environment that an API and its wire use. */
export type ApiEnv = Pick<Env, 'clock' | 'random' | 'requestBudget' | 'logger' | 'metrics'>;

/** The parts of a call by which its caller is authenticated, before anything of its request is taken in. */
export interface CallCredentials {
  /** "/package.Service/Method". */
  readonly path: string;
  /** A header of the request by its lower-case name; the first one where there are several. */
  header(name: string): string | undefined;
  /**
   * The subject of the client's certificate (RFC 2253's escapes, parts joined by commas), where the server asks clients
   * for one that is signed.
   */
  readonly certificate: string | undefined;
}

/**
 * Returns the caller's principal, which goes into the call's context. An error that it throws or rejects with becomes
 * the call's status, sent before anything of the request is held. Synchronous where possible.
 */
export type Authenticate = (credentials: CallCredentials) => string | Promise<string>;

/** A call that has ended: answered, failed or cancelled, and everything of its answer sent or lost. */
export interface EndedCall {
  readonly path: string;
  /** It has notes where the server has an OnCall. */
  readonly context: RequestContext;
  /** The address of its caller. */
  readonly peer: string;
  readonly code: Code;
  /** From its headers to its end. */
  readonly durationMs: number;
  /** Bytes of messages with their prefixes, as sent over the wire. */
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

/** A callback that must not throw, wait or keep the call. */
export type OnCall = (call: EndedCall) => void;

export interface RpcCall {
  /** "/package.Service/Method". */
  readonly path: string;
  readonly context: CallContext;
  /** The time at which its headers arrived, on the monotonic clock. */
  readonly startMs: number;
  /** A header of the request by its lower-case name; the first one where there are several. */
  header(name: string): string | undefined;
  /**
   * Adds a header that goes with the status at the end. Call it before the handler ends. A name ending in -bin has a
   * value of base64.
   */
  addTrailer(name: string, value: string): void;
}

/** The sink of a stream's messages. */
export interface RpcSink {
  /**
   * Takes a message, in one buffer or several; the bytes belong to the wire from then on. Undefined: continue. A
   * promise: the reader is slower than the writer, make nothing more until it resolves; it rejects when the call has
   * ended (CANCELLED, DEADLINE_EXCEEDED). Bytes taken and not yet sent are held in the call's reservation; where the
   * budget has no space for them it rejects with UNAVAILABLE.
   */
  send(message: Buffer | readonly Buffer[]): Promise<void> | undefined;
  /** The same for a small message that stays the caller's: it is copied before this returns. */
  sendCopy(message: Buffer): Promise<void> | undefined;
}

/**
 * A request up to this size is tiny: where a method takes none larger, its requests are not counted, and never wait.
 */
export const TINY_REQUEST_BYTES = 4096;

/** The part of a method that does not depend on its kind. */
interface MethodLimits {
  /** The largest request. Default: the server's. */
  readonly maxRequestBytes?: number;
}

/** Headers of the answer in addition to gRPC's own, known before the handler runs: name, value, name, value … */
interface AnswerHeaders {
  headers?(call: RpcCall): readonly string[];
}

export type RpcMethod = MethodLimits &
  AnswerHeaders &
  (
    | {
        readonly kind: 'unary';
        /** Returns the answer, in one buffer or several; the bytes belong to the wire from then on. */
        handle(call: RpcCall, request: Buffer): Promise<Uint8Array | readonly Buffer[]>;
      }
    /** Undefined: everything was sent synchronously. */
    | { readonly kind: 'stream'; handle(call: RpcCall, request: Buffer, sink: RpcSink): Promise<void> | undefined }
    | { readonly kind: 'bidi'; handle(call: RpcCall, requests: AsyncIterable<Buffer>, sink: RpcSink): Promise<void> }
  );

/** The outcome of a call that failed, as sent to its caller. */
export interface RpcStatus {
  readonly code: Code;
  readonly message: string;
  /** A serialized google.rpc.Status, where there are details. */
  readonly details: Buffer | undefined;
}

export interface RpcServer {
  /** A path that is not registered is answered UNIMPLEMENTED. Call before `listen`. */
  register(path: string, method: RpcMethod): void;
  /** Resolves with the port (the one chosen where `port` is 0). ALREADY_EXISTS where the address is in use. */
  listen(host: string, port: number): Promise<number>;
  /** Takes no new calls, lets those under way end for `graceMs`, then cuts them off. */
  close(graceMs: number): Promise<void>;
}
