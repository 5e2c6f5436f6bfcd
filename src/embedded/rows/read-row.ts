/**
 * A read of one row. Hot path: mostly one pull has all of it; then no promise is made, and no stream of rows.
 */
import { type PullStream, pullStreamOf } from '../../env/index.ts';
import type { ReadBatch } from '../../model/index.ts';
import type { ReadRequest } from '../../service/index.ts';
import type { CallOptions } from '../calls/call-options.ts';
import type { Call, Calls } from '../calls/calls.ts';
import { asked } from '../values/input.ts';
import { type Row, RowBuilder } from './row.ts';

/** Undefined if the read finds no row. Returns a promise if it has to wait. */
export function readRow(
  calls: Calls,
  request: () => ReadRequest,
  options: CallOptions,
): Row | undefined | Promise<Row | undefined> {
  let call: Call | undefined;
  let batches: PullStream<ReadBatch> | undefined;
  try {
    const message = asked(request);
    call = asked(() => calls.begin(options));
    batches = pullStreamOf(call.service.readRows(call.context, message));
    const builder = new RowBuilder();
    for (;;) {
      const batch = batches.pull();
      if (batch instanceof Promise) return calls.awaited(awaitRow(call, batches, builder, batch));
      const row = batch && addFragments(builder, batch);
      if (row === undefined && batch !== undefined) continue;
      const ending = end(call, batches);
      return ending instanceof Promise ? calls.awaited(ending.then(() => row)) : row;
    }
  } catch (error) {
    if (call !== undefined) abandon(call, batches);
    throw calls.failure(error);
  }
}

/** Continues with the batch that is awaited. */
async function awaitRow(
  call: Call,
  batches: PullStream<ReadBatch>,
  builder: RowBuilder,
  pulled: Promise<ReadBatch | undefined>,
): Promise<Row | undefined> {
  let row: Row | undefined;
  try {
    let next: ReadBatch | undefined | Promise<ReadBatch | undefined> = pulled;
    for (;;) {
      const batch = await (next instanceof Promise && call.end !== undefined ? call.end.race(next) : next);
      if (batch === undefined) break;
      row = addFragments(builder, batch);
      if (row !== undefined) break;
      next = batches.pull();
    }
  } catch (error) {
    abandon(call, batches);
    throw error;
  }
  await end(call, batches);
  return row;
}

/** The row, once it is whole. */
function addFragments(builder: RowBuilder, { fragments }: ReadBatch): Row | undefined {
  for (const fragment of fragments) {
    const row = builder.add(fragment);
    if (row !== undefined) return row;
  }
  return undefined;
}

function end(call: Call, batches: PullStream<ReadBatch> | undefined): void | Promise<void> {
  call.end?.stop();
  const ending = batches?.end();
  if (ending instanceof Promise) return ending.finally(() => call.context.reservation.release());
  call.context.reservation.release();
}

/** Ends a read that has failed: its caller gets only that error. */
function abandon(call: Call, batches: PullStream<ReadBatch> | undefined): void {
  const ending = end(call, batches);
  if (ending instanceof Promise) ending.catch(() => {});
}
