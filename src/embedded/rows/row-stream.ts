/**
 * The rows of one read: fragments of the service joined into whole rows. It begins with the first pull, which also
 * reports an invalid request. Hot path: no promise for a row that is ready.
 */
import {
  BigtableError,
  checkOptions,
  Code,
  describeValue,
  invalidArgument,
  type OptionTable,
} from '../../base/index.ts';
import { PullStream, pullStreamOf } from '../../env/index.ts';
import type { ReadBatch, RowFragment } from '../../model/index.ts';
import type { ReadRequest } from '../../service/index.ts';
import type { CallOptions } from '../calls/call-options.ts';
import type { Call, Calls } from '../calls/calls.ts';
import { asked } from '../values/input.ts';
import { type Row, RowBuilder } from './row.ts';

const NOTHING: readonly RowFragment[] = [];

export interface ToArrayOptions {
  /** More rows than this are refused. Default: 100,000; Infinity for any number. */
  readonly max?: number;
}

const TO_ARRAY = { max: 'bound' } satisfies OptionTable<ToArrayOptions>;
const MAX_ROWS = 100_000;

/** The rows of a scan, in its order. Leaving a loop over them ends the read. */
export interface Rows extends AsyncIterableIterator<Row, void> {
  /**
   * All rows that are left, in memory. RESOURCE_EXHAUSTED where they are more than `max`: a loop over the rows takes
   * any number, and the scan's `limit` stops at one.
   */
  toArray(options?: ToArrayOptions): Promise<Row[]>;
}

export class RowStream extends PullStream<Row> implements Rows {
  readonly #calls: Calls;
  readonly #options: CallOptions;
  #request: (() => ReadRequest) | undefined;
  #call: Call | undefined;
  #batches: PullStream<ReadBatch> | undefined;
  #fragments = NOTHING;
  #next = 0;
  /** The error that ended the read, until it is reported. */
  #failure: BigtableError | undefined;
  readonly #rows = new RowBuilder();

  constructor(calls: Calls, request: () => ReadRequest, options: CallOptions) {
    super();
    this.#calls = calls;
    this.#request = request;
    this.#options = options;
  }

  pull(): Row | undefined | Promise<Row | undefined> {
    try {
      const request = this.#request;
      if (request !== undefined) {
        this.#request = undefined;
        const message = asked(request);
        const call = asked(() => this.#calls.begin(this.#options));
        this.#call = call;
        if (call.end !== undefined) call.end.onEnd = () => this.#giveUp();
        this.#batches = pullStreamOf(call.service.readRows(call.context, message));
      }
      if (this.#failure !== undefined) this.#reportFailure(this.#failure);
      for (;;) {
        const row = this.#nextRow();
        if (row !== undefined) return row;
        const batch = this.#batches?.pull();
        if (batch instanceof Promise) return this.#calls.awaited(this.#awaitRow(batch));
        if (!this.#take(batch)) return undefined;
      }
    } catch (error) {
      return this.#fail(error);
    }
  }

  end(): void | Promise<void> {
    this.#request = undefined;
    this.#fragments = NOTHING;
    const [batches, call] = [this.#batches, this.#call];
    this.#batches = undefined;
    this.#call = undefined;
    call?.end?.stop();
    const ending = batches?.end();
    if (ending instanceof Promise) return ending.finally(() => call?.context.reservation.release());
    call?.context.reservation.release();
  }

  async toArray(options: ToArrayOptions = {}): Promise<Row[]> {
    checkOptions(options, TO_ARRAY, 'toArray');
    const { max = MAX_ROWS } = options;
    if (typeof max !== 'number' || !(max >= 0))
      throw invalidArgument(`max must be a number of rows, not ${describeValue(max)}`);
    const rows: Row[] = [];
    for await (const row of this) {
      if (rows.length >= max) throw new BigtableError(Code.RESOURCE_EXHAUSTED, tooMany(max));
      rows.push(row);
    }
    return rows;
  }

  /** The next row of the batch that came last. */
  #nextRow(): Row | undefined {
    const fragments = this.#fragments;
    while (this.#next < fragments.length) {
      const row = this.#rows.add(fragments[this.#next++]!);
      if (row !== undefined) return row;
    }
    return undefined;
  }

  /** False at the end. */
  #take(batch: ReadBatch | undefined): boolean {
    this.#fragments = batch?.fragments ?? NOTHING;
    this.#next = 0;
    if (batch === undefined) this.end();
    return batch !== undefined;
  }

  async #awaitRow(batch: Promise<ReadBatch | undefined>): Promise<Row | undefined> {
    let came: ReadBatch | undefined;
    const end = this.#call?.end;
    try {
      came = await (end === undefined ? batch : end.race(batch));
    } catch (error) {
      if (end?.error !== undefined) this.#giveUp();
      this.#failure = undefined;
      return this.#fail(error);
    }
    if (this.#failure !== undefined) this.#reportFailure(this.#failure);
    // given up meanwhile
    if (this.#batches === undefined) return undefined;
    return this.#take(came) ? this.pull() : undefined;
  }

  /** The call has ended before its last row. */
  #giveUp(): void {
    this.#failure = this.#call?.end?.error;
    const ending = this.end();
    // the caller gets only the error that ended the read
    if (ending instanceof Promise) ending.catch(() => {});
  }

  #reportFailure(error: BigtableError): never {
    this.#failure = undefined;
    throw error;
  }

  #fail(error: unknown): never {
    this.#batches = undefined;
    this.end();
    throw this.#calls.failure(error);
  }
}

function tooMany(max: number): string {
  return `the scan has more than ${max} rows: give it a limit, give toArray a larger max, or take the rows in a loop`;
}
