/**
 * The changes of a table, as `Table.readChanges` gives them: the streams of all its tablets as one, over splits, merges
 * and moves (docs/decisions/0105-change-streams.md).
 *
 * Invariants:
 * - The token tells of the changes that the loop has taken, and of no later one.
 * - Of each tablet one event waits for the loop at most.
 */
import {
  assert,
  type ByteString,
  checkOptions,
  fromBytes,
  invalidArgument,
  type Int64,
  offAbort,
  onAbort,
  type OptionTable,
  toBigInt,
  toBytes,
} from '../../base/index.ts';
import { ALL_ROWS, type RowRange } from '../../model/index.ts';
import type { ChangeStreamRequest, StreamEvent } from '../../service/index.ts';
import { CALL_OPTIONS, type CallOptions, checkCallValues } from '../calls/call-options.ts';
import type { Call, Calls } from '../calls/calls.ts';
import { asked, textOf, type Timestamp, timestampOf } from '../values/input.ts';
import { INSPECT, type Inspect, type InspectOptions, inspected, readableTime } from '../values/show.ts';
import { type RowMutation, rowMutationOf } from './row-mutation.ts';

export interface ChangesOptions extends CallOptions {
  /** Changes from this time on. Default: those from now on. Not with `token`. */
  readonly since?: Timestamp;
  /** Where an earlier loop has come to: its `token`. */
  readonly token?: string;
  /** The loop ends when it has come beyond this time. Default: it goes on, and waits for changes. */
  readonly until?: Timestamp;
}

const CHANGES_OPTIONS = {
  since: 'bound',
  token: 'bound',
  until: 'bound',
  ...CALL_OPTIONS,
} satisfies OptionTable<ChangesOptions>;

/** What one call, or garbage collection, has changed in a row. */
export class Change {
  /** The row, and what was done to it, in order. It can be applied to another table. */
  readonly mutation: RowMutation;
  /** The time of the commit by the clock of its server, microseconds since 1970. */
  readonly time: bigint;
  readonly origin: 'user' | 'garbageCollection';

  /** Made by `Table.readChanges`. */
  constructor(mutation: RowMutation, time: Int64, origin: Change['origin']) {
    this.mutation = mutation;
    this.time = toBigInt(time);
    this.origin = origin;
  }

  /** The key of the row. */
  get row(): Buffer {
    return toBytes(this.mutation.row);
  }

  /** `{ row, mutations, time, origin }`, times as text. */
  toJSON(): object {
    return { ...this.mutation.toJSON(), time: String(this.time), origin: this.origin };
  }

  [INSPECT](depth: number, options: InspectOptions, inspect: Inspect): string {
    const { mutation, origin, time } = this;
    return inspected('Change', { mutation, time: readableTime(time), origin }, depth, options, inspect);
  }
}

/** Leaving a loop over the changes ends the read. */
export interface Changes extends AsyncIterableIterator<Change, void> {
  /**
   * The place after the change that came last, to go on from later; changes may come again, and none is left out.
   * Undefined while the place is not known yet, for lack of a first answer.
   */
  readonly token: string | undefined;
}

/** A part of the rows, and how far it was read. */
interface Part {
  readonly range: RowRange;
  /** Undefined: nothing was read yet. */
  token: string | undefined;
  /** Where it begins then; undefined: with the call. */
  readonly sinceMicros: number | undefined;
}

interface Arrival {
  readonly part: Part;
  readonly event: StreamEvent;
  readonly taken: () => void;
}

export class ChangeStream implements Changes {
  readonly #table: string;
  readonly #calls: Calls;
  readonly #options: ChangesOptions;
  /** In the order of the rows. Those that have come to their end stay, for the token. */
  #parts: readonly Part[] = [];
  #call: Call | undefined;
  #untilMicros: number | undefined;
  readonly #stop = new AbortController();
  /** The caller's, once it is listened to. */
  #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => this.#stop.abort(this.#signal?.reason);
  readonly #arrived: Arrival[] = [];
  #running = 0;
  #failure: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;
  #isOver = false;

  constructor(table: string, calls: Calls, options: ChangesOptions) {
    this.#table = table;
    this.#calls = calls;
    this.#options = options;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  get token(): string | undefined {
    if (this.#parts.length === 0) return this.#options.token;
    if (this.#parts.some(({ token, sinceMicros }) => token === undefined && sinceMicros === undefined))
      return undefined;
    return encode(this.#parts);
  }

  next(): Promise<IteratorResult<Change, void>> {
    return this.#calls.awaited(this.#next());
  }

  async return(): Promise<IteratorResult<Change, void>> {
    this.#end();
    return { done: true, value: undefined };
  }

  async #next(): Promise<IteratorResult<Change, void>> {
    try {
      if (this.#isOver) return { done: true, value: undefined };
      if (this.#call === undefined) this.#begin();
      for (;;) {
        if (this.#failure !== undefined) throw this.#failure.error;
        const arrival = this.#arrived.shift();
        if (arrival !== undefined) {
          const change = this.#take(arrival);
          if (change !== undefined) return { done: false, value: change };
        } else if (this.#isOver || this.#running === 0) {
          this.#end();
          return { done: true, value: undefined };
        } else {
          await new Promise<void>((resolve) => (this.#wake = resolve));
        }
      }
    } catch (error) {
      this.#end();
      throw this.#calls.failure(error);
    }
  }

  #begin(): void {
    const timeoutMs = asked(() => {
      checkOptions(this.#options, CHANGES_OPTIONS, 'readChanges');
      const { signal, timeoutMs: limitMs, since, token, until } = this.#options;
      checkCallValues({ signal, timeoutMs: limitMs });
      if (since !== undefined && token !== undefined)
        throw invalidArgument('readChanges begins at a time (since), or at a token, not at both');
      this.#untilMicros = until === undefined ? undefined : Number(timestampOf(until, 'until'));
      const sinceMicros = since === undefined ? undefined : Number(timestampOf(since, 'since'));
      this.#parts =
        token === undefined
          ? [{ range: ALL_ROWS, token: undefined, sinceMicros }]
          : decode(textOf(token, 'a token of readChanges'));
      if (signal?.aborted) this.#stop.abort(signal.reason);
      onAbort(signal, this.#onAbort);
      this.#signal = signal;
      return limitMs;
    });
    this.#call = this.#calls.begin({ signal: this.#stop.signal, timeoutMs });
    for (const part of this.#parts) this.#start(part);
  }

  #start(part: Part): void {
    this.#running++;
    this.#read(part)
      .catch((error: unknown) => (this.#failure ??= { error }))
      .finally(() => {
        this.#running--;
        this.#wake?.();
      });
  }

  async #read(part: Part): Promise<void> {
    const { service, context } = this.#call!;
    if (service.changes === undefined) throw invalidArgument('this database has no change streams');
    const { range, token, sinceMicros: startMicros } = part;
    const from = token === undefined ? { startMicros } : { tokens: [{ range, token }] };
    const request: ChangeStreamRequest = { table: this.#table, range, endMicros: this.#untilMicros, ...from };
    for await (const event of service.changes.readChanges(context, request)) {
      await new Promise<void>((taken) => {
        this.#arrived.push({ part, event, taken });
        this.#wake?.();
      });
      if (this.#isOver) return;
    }
  }

  /** The change, if the event is one. */
  #take({ part, event, taken }: Arrival): Change | undefined {
    assert(this.#parts.includes(part), 'an event is one of the parts that are read');
    taken();
    if (event.kind === 'closed') {
      const parts = event.tokens.map(({ range, token }): Part => ({ range, token, sinceMicros: undefined }));
      this.#parts = this.#parts.flatMap((one) => (one === part ? parts : [one]));
      for (const one of parts) this.#start(one);
      return undefined;
    }
    part.token = event.token;
    if (event.kind === 'heartbeat') return undefined;
    return new Change(rowMutationOf(event.row, event.mutations), event.commitMicros, event.origin);
  }

  /** Ends the streams. */
  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    offAbort(this.#signal, this.#onAbort);
    const call = this.#call;
    if (call === undefined) return;
    this.#stop.abort();
    call.end?.stop();
    for (const { taken } of this.#arrived.splice(0)) taken();
    this.#wake?.();
    call.context.reservation.release();
  }
}

interface EncodedPart {
  readonly start: string;
  readonly end?: string;
  readonly token?: string;
  readonly sinceMicros?: number;
}

interface EncodedPlace {
  readonly format: unknown;
  readonly parts: readonly EncodedPart[];
}

function encode(parts: readonly Part[]): string {
  const list = parts.map(
    ({ range: { start, end }, token, sinceMicros }): EncodedPart => ({
      start: base64(start),
      ...(end !== undefined && { end: base64(end) }),
      ...(token !== undefined ? { token } : { sinceMicros: sinceMicros! }),
    }),
  );
  return Buffer.from(JSON.stringify({ format: 1, parts: list })).toString('base64url');
}

function decode(token: string): readonly Part[] {
  try {
    const { format, parts }: EncodedPlace = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (format !== 1 || parts.length === 0) throw invalidArgument('it is of another version');
    return parts.map(({ start, end, token: of, sinceMicros }) => ({
      range: { start: bytesOf(start), end: end === undefined ? undefined : bytesOf(end) },
      token: of,
      sinceMicros,
    }));
  } catch {
    throw invalidArgument('the token of readChanges cannot be read: give one that a loop over changes had');
  }
}

function base64(text: ByteString): string {
  return toBytes(text).toString('base64url');
}

function bytesOf(text: string): ByteString {
  return fromBytes(Buffer.from(text, 'base64url'));
}
