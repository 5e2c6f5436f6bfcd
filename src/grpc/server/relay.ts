/** The answer to a read that was passed on to another server, on its way to the client. */
import { successor, unavailable } from '../../base/index.ts';
import type { CallNotes, PullStream } from '../../env/index.ts';
import { ALL_ROWS, isEmptyRange } from '../../model/index.ts';
import { canReadOn, type ReadPart, type ReadRequest } from '../../service/index.ts';
import { lendOnward, type RpcSink } from '../../wire/index.ts';

export class Relay {
  readonly #parts: PullStream<ReadPart>;
  readonly #sink: RpcSink;
  readonly #notes: CallNotes | undefined;
  /** The last part that was sent. */
  #last: ReadPart | undefined;

  constructor(parts: PullStream<ReadPart>, sink: RpcSink, notes: CallNotes | undefined) {
    this.#parts = parts;
    this.#sink = sink;
    this.#notes = notes;
  }

  /** Sends all parts. Returns the error after which the read may continue elsewhere. */
  async run(): Promise<unknown> {
    try {
      for (;;) {
        let part: ReadPart | undefined;
        try {
          const pulled = this.#parts.pull();
          part = pulled instanceof Promise ? await pulled : pulled;
        } catch (error) {
          if (canReadOn(error)) return error;
          throw error;
        }
        if (part === undefined) return undefined;
        const wait = this.#send(part);
        if (wait !== undefined) await wait;
      }
    } finally {
      const ending = this.#parts.end();
      if (ending !== undefined) await ending;
    }
  }

  /** The part of the request that is not answered yet; undefined where there is none. */
  restOf(request: ReadRequest, error: unknown): ReadRequest | undefined {
    const last = this.#last;
    if (last === undefined) return request;
    if (last.isInsideRow) throw unavailable('the tablet moved in the midst of a row: read again', error);
    const { ranges = [], rowsLimit = 0, reversed = false } = request;
    const { start, end } = ranges[0] ?? ALL_ROWS;
    const { lastRow, rows } = last;
    if (rowsLimit > 0 && rows >= rowsLimit) return undefined;
    const left =
      lastRow === undefined ? { start, end } : reversed ? { start, end: lastRow } : { start: successor(lastRow), end };
    return isEmptyRange(left)
      ? undefined
      : { ...request, ranges: [left], rowsLimit: rowsLimit > 0 ? rowsLimit - rows : 0 };
  }

  #send(part: ReadPart): Promise<void> | undefined {
    this.#last = part;
    if (this.#notes !== undefined) this.#notes.rows = part.rows;
    const message = part.message as Buffer | readonly Buffer[];
    if (message instanceof Uint8Array) lendOnward(message);
    return this.#sink.send(message);
  }
}
