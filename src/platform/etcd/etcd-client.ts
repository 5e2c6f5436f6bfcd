/**
 * Calls of etcd's v3 API: over one connection to each member that is used, to one member until that fails.
 *
 * Invariants: a try has a deadline; a call is tried again, at the next member, until its bound is over. A call that is
 * not answered by then fails with UNAVAILABLE, with the members and what each said last, and so does one that is
 * refused after a try that was not answered; every other error says that it did nothing. (DEADLINE_EXCEEDED would say
 * that the time of the caller is over.) Whether a try that was not answered has happened is not known here: `call` says
 * if there was one, and only calls that may be repeated are given to it.
 */
import { assert, BigtableError, Code, toBigtableError, unavailable } from '../../base/index.ts';
import { ByteBudget, type Clock, type Random, type RequestContext, requestContext, sleep } from '../../env/index.ts';
import type { MessageCodec } from '../../protobuf/index.ts';
import { type ClientTlsOptions, WireClient } from '../../wire/index.ts';
import { consequenceOf, errorOfBreach, errorOfStatus } from './etcd-errors.ts';
import { AUTHENTICATE, type EtcdMethod } from './messages.ts';

export interface EtcdAccess {
  /** HOST:PORT of each member. */
  readonly endpoints: readonly string[];
  /** Default: calls are made without a user. */
  readonly user?: string;
  readonly password?: string;
  /** Default: connections are not encrypted. */
  readonly tls?: ClientTlsOptions;
}

export interface EtcdClientOptions extends EtcdAccess {
  readonly clock: Clock;
  readonly random: Random;
}

export interface Answered<A> {
  readonly answer: A;
  /** True: an earlier try was not answered, and may have happened, or may happen yet. */
  readonly isRepeated: boolean;
}

/** The deadline of a first try; it doubles when all members were tried. */
const TRY_MS = 400;
/** As long as a change of the leader takes, and some more. */
const BOUND_MS = 3000;
const PAUSE_MS = 50;
const CONNECT_MS = 2000;
const MAX_CONNECT_PAUSE_MS = 500;
/** etcd closes connections with more PINGs than one in 5 s. */
const KEEP_ALIVE_MS = 6000;
const KEEP_ALIVE_TIMEOUT_MS = 2000;
/** Tries in a row that a member left unanswered: TCP may wait longer after a cut than the cut lasted. */
const MAX_SILENT_TRIES = 2;
/** The times that a call signs in anew. */
const MAX_SIGN_INS = 2;
/** A password is checked slowly, by intent. */
const SIGN_IN_MS = 5000;
const MAX_MESSAGE_BYTES = 256 * 1024 * 1024;

export class EtcdClient {
  readonly #options: EtcdClientOptions;
  readonly #budget = new ByteBudget(1);
  readonly #members = new Map<string, WireClient>();
  readonly #onMoved = new Set<() => void>();
  #current: number;
  #token: Promise<string> | undefined;
  #isClosed = false;

  /** Nothing is sent before the first call. */
  constructor(options: EtcdClientOptions) {
    assert(options.endpoints.length > 0, 'etcd has members');
    this.#options = options;
    this.#current = Math.floor(options.random.float() * options.endpoints.length);
  }

  /** The answer to a call that may be repeated, and whether it was. */
  async call<Q, A>(method: EtcdMethod<Q, A>, request: Q): Promise<Answered<A>> {
    const { clock, endpoints } = this.#options;
    const endMs = clock.monotonicMs() + BOUND_MS;
    const said = new Map<string, string>();
    let isRepeated = false;
    let signIns = 0;
    for (let tries = 0; ; tries++) {
      const endpoint = this.#endpoint;
      const tryMs = TRY_MS * 2 ** Math.floor(tries / endpoints.length);
      // a pause may have lasted longer than it should
      const leftMs = Math.max(1, endMs - clock.monotonicMs());
      try {
        return { answer: await this.#try(endpoint, method, request, Math.min(tryMs, leftMs)), isRepeated };
      } catch (thrown) {
        const error = toBigtableError(thrown);
        const consequence = consequenceOf(error);
        if (consequence === 'signed out' && ++signIns <= MAX_SIGN_INS) {
          this.signOut();
          continue;
        }
        const isRefused = consequence === 'refused' || consequence === 'signed out';
        if (isRefused && isRepeated && error.code !== method.doneCode) throw unavailable(error.message, error);
        if (isRefused || this.#isClosed) throw error;
        isRepeated ||= consequence === 'unknown';
        said.set(endpoint, error.message);
        this.#moveFrom(endpoint);
        const pauseMs = (tries + 1) % endpoints.length === 0 ? PAUSE_MS * (1 + this.#options.random.float()) : 0;
        if (clock.monotonicMs() + pauseMs >= endMs)
          throw unavailable(`${[...said.values()].join('; ')} (${tries + 1} tries)`, error);
        if (pauseMs > 0) await sleep(clock, pauseMs);
      }
    }
  }

  /**
   * The answers to a call that does not end by itself, from the member that is used now. It is not begun again:
   * CANCELLED when other calls have given the member up, otherwise the error for which it is given up now.
   */
  async *stream<Q, A>(method: EtcdMethod<Q, A>, request: Q, signal: AbortSignal): AsyncGenerator<A, void, void> {
    const abort = new AbortController();
    const end = (): void => abort.abort();
    const endpoint = this.#endpoint;
    signal.addEventListener('abort', end);
    this.#onMoved.add(end);
    try {
      const context = requestContext({ budget: this.#budget, signal: abort.signal });
      const headers = await this.#headers();
      const bytes = method.request.encode(request);
      for await (const answer of this.#member(endpoint).stream(method.path, bytes, context, headers, true))
        yield decoded(method.answer, answer, endpoint);
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (consequenceOf(error) !== 'refused') this.#moveFrom(endpoint);
      throw error;
    } finally {
      signal.removeEventListener('abort', end);
      this.#onMoved.delete(end);
    }
  }

  /** The next call signs in anew: etcd may have refused one because its token is no longer good. */
  signOut(): void {
    this.#token = undefined;
  }

  close(): void {
    this.#isClosed = true;
    for (const member of this.#members.values())
      member.destroy(new BigtableError(Code.UNAVAILABLE, 'the connection to etcd was closed'));
  }

  get #endpoint(): string {
    return this.#options.endpoints[this.#current]!;
  }

  async #try<Q, A>(endpoint: string, method: EtcdMethod<Q, A>, request: Q, tryMs: number): Promise<A> {
    const headers = await this.#headers();
    const bytes = method.request.encode(request);
    try {
      const answer = await this.#member(endpoint).unary(method.path, bytes, this.#within(tryMs), headers);
      return decoded(method.answer, answer, endpoint);
    } catch (thrown) {
      const { code, message, details } = toBigtableError(thrown);
      if (message.startsWith('etcd at')) throw thrown;
      const what = method.path.slice(method.path.indexOf('.') + 1);
      const isLate = code === Code.DEADLINE_EXCEEDED;
      const why = isLate ? `no answer to ${what} within ${Math.round(tryMs)} ms` : message;
      throw new BigtableError(code, `etcd at ${endpoint}: ${why}`, { details });
    }
  }

  #within(ms: number): RequestContext {
    return requestContext({ budget: this.#budget, deadlineMs: this.#options.clock.monotonicMs() + ms });
  }

  /** A member that knows no leader is to say so. */
  async #headers(): Promise<readonly string[]> {
    const headers = ['hasleader', 'true'];
    const { user, password = '' } = this.#options;
    if (user === undefined) return headers;
    const token = (this.#token ??= this.#signIn(user, password));
    try {
      return [...headers, 'token', await token];
    } catch (error) {
      if (this.#token === token) this.#token = undefined;
      throw error;
    }
  }

  async #signIn(name: string, password: string): Promise<string> {
    const request = AUTHENTICATE.request.encode({ name, password });
    const answer = await this.#member(this.#endpoint).unary(AUTHENTICATE.path, request, this.#within(SIGN_IN_MS));
    return AUTHENTICATE.answer.decode(answer).token ?? '';
  }

  #moveFrom(endpoint: string): void {
    const { endpoints } = this.#options;
    if (endpoint !== this.#endpoint || endpoints.length === 1) return;
    this.#current = (this.#current + 1) % endpoints.length;
    for (const moved of [...this.#onMoved]) moved();
  }

  #member(address: string): WireClient {
    const known = this.#members.get(address);
    if (known !== undefined) return known;
    const { clock, random, tls } = this.#options;
    const member = new WireClient({
      address,
      clock,
      random,
      errorOf: (status) => errorOfStatus(address, status),
      errorOfBreach: (error) => errorOfBreach(address, error),
      ...(tls && { tls }),
      maxMessageBytes: MAX_MESSAGE_BYTES,
      connectMs: CONNECT_MS,
      maxPauseMs: MAX_CONNECT_PAUSE_MS,
      keepAliveMs: KEEP_ALIVE_MS,
      keepAliveTimeoutMs: KEEP_ALIVE_TIMEOUT_MS,
      maxSilentCalls: MAX_SILENT_TRIES,
    });
    this.#members.set(address, member);
    return member;
  }
}

/** UNAVAILABLE for bytes that are no such answer: what etcd did is not known. */
function decoded<A>(answer: MessageCodec<A>, bytes: Buffer, endpoint: string): A {
  try {
    return answer.decode(bytes);
  } catch (error) {
    throw unavailable(`etcd at ${endpoint}: ${toBigtableError(error).message}`, error);
  }
}
