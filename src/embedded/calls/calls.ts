/**
 * The library's calls of the service. Each call has a context, releases its bytes at its end, and is refused after
 * close.
 */
import { BigtableError, Code } from '../../base/index.ts';
import type { KeepAlive } from '../../boot/index.ts';
import { type Env, type RequestContext, requestContext } from '../../env/index.ts';
import { DEFAULT_PARENT } from '../../model/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import type { Service } from '../../service/index.ts';
import { CallEnd, type CallKind } from './call-end.ts';
import { type CallOptions, checkCallOptions } from './call-options.ts';
import { callersError, forCaller } from './caller-error.ts';
import { asked } from '../values/input.ts';

/** The parts of Env that the library uses. */
export type CallEnv = Pick<Env, 'clock' | 'requestBudget'>;

export interface Call {
  readonly service: Service;
  readonly context: RequestContext;
  /** Undefined if only its answer can end the call. */
  readonly end: CallEnd | undefined;
}

type Work<T> = (service: Service, context: RequestContext) => Promise<T>;

export class Calls {
  readonly parent: string;
  /**
   * The filter for the newest version of a column, by column. Always the same object, because programs are cached by
   * identity.
   */
  readonly newestOfColumn = new Map<string, RowFilter>();
  readonly #service: Service;
  readonly #env: CallEnv;
  readonly #keepAlive: KeepAlive | undefined;
  #closed = false;
  /** Calls that are not answered. */
  #running = 0;
  #onIdle: (() => void) | undefined;

  /**
   * `keepAlive`: keeps the process alive while a call is awaited. `parent`: the instance of tables that are named by
   * their id.
   */
  constructor(service: Service, env: CallEnv, keepAlive?: KeepAlive, parent = DEFAULT_PARENT) {
    this.parent = parent;
    this.#service = service;
    this.#env = env;
    this.#keepAlive = keepAlive;
  }

  close(): void {
    this.#closed = true;
  }

  /** The wall clock, since 1970. */
  get nowMicros(): number {
    return this.#env.clock.nowMicros();
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Resolves when every call that `run` made is answered. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#running === 0) resolve();
      else this.#onIdle = resolve;
    });
  }

  /** A call that changes nothing. */
  read<T>(work: Work<T>, options?: CallOptions): Promise<T> {
    return options === undefined ? this.#runForCaller(work) : this.awaited(this.#runUntilEnd(work, options, 'read'));
  }

  /** A call that may change something: if it is cancelled after it began, its outcome is unknown. */
  write<T>(work: Work<T>, options?: CallOptions): Promise<T> {
    return options === undefined ? this.#runForCaller(work) : this.awaited(this.#runUntilEnd(work, options, 'write'));
  }

  /** The promise for the caller: see `forCaller`. */
  awaited<T>(work: Promise<T>): Promise<T> {
    return forCaller(work, this.parent, this.#keepAlive);
  }

  /** The caller's copy of the error: see `callersError`. */
  failure(error: unknown): BigtableError {
    return callersError(error, this.parent);
  }

  /**
   * Begins a call that continues. The caller releases the context's reservation at the end of the call, and stops its
   * `end`.
   */
  begin(options: CallOptions, kind: CallKind = 'read'): Call {
    if (this.#closed) throw new BigtableError(Code.FAILED_PRECONDITION, 'the database is closed');
    const { clock, requestBudget: budget } = this.#env;
    if (options.signal === undefined && options.timeoutMs === undefined) {
      return { service: this.#service, context: requestContext({ budget, principal: 'embedded' }), end: undefined };
    }
    const end = new CallEnd({ clock, budget, kind, options });
    return { service: this.#service, context: end.context, end };
  }

  /** `awaited` of `#run` in one promise: what calls without options cost. */
  async #runForCaller<T>(work: Work<T>): Promise<T> {
    this.#keepAlive?.hold();
    let call: Call | undefined;
    try {
      call = this.begin(NONE);
      this.#running++;
      return await work(call.service, call.context);
    } catch (error) {
      throw callersError(error, this.parent);
    } finally {
      if (call !== undefined) this.#ended(call);
      this.#keepAlive?.release();
    }
  }

  async #run<T>(work: Work<T>, call: Call): Promise<T> {
    this.#running++;
    try {
      return await work(call.service, call.context);
    } finally {
      this.#ended(call);
    }
  }

  #ended({ context }: Call): void {
    context.reservation.release();
    if (--this.#running === 0) this.#onIdle?.();
  }

  async #runUntilEnd<T>(work: Work<T>, options: CallOptions, kind: CallKind): Promise<T> {
    const call = asked(() => {
      checkCallOptions(options);
      return this.begin(options, kind);
    });
    if (call.end === undefined) return this.#run(work, call);
    try {
      return await call.end.race(this.#run(work, call));
    } finally {
      call.end.stop();
    }
  }
}

const NONE: CallOptions = Object.freeze({});
