/**
 * The rows of one read, as the library gives them out: fragments of the service joined into whole rows. It begins with the first pull, where a wrong
 * request fails too. A row that is ready costs no promise, which is what makes a `get` of a cached row cheap.
 */
import { PullStream, pullStreamOf } from '../env/index.ts';
import type { ReadBatch, RowFragment } from '../model/index.ts';
import type { ReadRequest } from '../service/index.ts';
import type { Call, Calls } from './calls.ts';
import { type Row, RowBuilder } from './row.ts';

const NOTHING: readonly RowFragment[] = [];

export class RowStream extends PullStream<Row> {
  readonly #calls: Calls;
  readonly #signal: AbortSignal | undefined;
  #request: (() => ReadRequest) | undefined;
  #call: Call | undefined;
  #batches: PullStream<ReadBatch> | undefined;
  #fragments = NOTHING;
  #next = 0;
  readonly #rows = new RowBuilder();

  constructor(calls: Calls, request: () => ReadRequest, signal: AbortSignal | undefined) {
    super();
    this.#calls = calls;
    this.#request = request;
    this.#signal = signal;
  }

  pull(): Row | undefined | Promise<Row | undefined> {
    try {
      const request = this.#request;
      if (request !== undefined) {
        this.#request = undefined;
        const message = request();
        this.#call = this.#calls.begin(this.#signal);
        this.#batches = pullStreamOf(this.#call.service.readRows(this.#call.context, message));
      }
      for (;;) {
        const row = this.#nextRow();
        if (row !== undefined) return row;
        const batch = this.#batches?.pull();
        if (batch instanceof Promise) return this.#calls.awaited(this.#whenThere(batch));
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
    const ending = batches?.end();
    if (ending instanceof Promise) return ending.finally(() => call?.context.reservation.release());
    call?.context.reservation.release();
  }

  /** The next row of the batch that came last. */
  #nextRow(): Row | undefined {
    const fragments = this.#fragments;
    while (this.#next < fragments.length) {
      const row = this.#rows.add(fragments[this.#next++] as RowFragment);
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

  async #whenThere(batch: Promise<ReadBatch | undefined>): Promise<Row | undefined> {
    let came: ReadBatch | undefined;
    try {
      came = await batch;
    } catch (error) {
      return this.#fail(error);
    }
    // given up meanwhile
    if (this.#batches === undefined) return undefined;
    return this.#take(came) ? this.pull() : undefined;
  }

  #fail(error: unknown): never {
    this.#batches = undefined;
    this.end();
    throw error;
  }
}
