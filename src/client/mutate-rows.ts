/**
 * A batch of writes: divided by tablet, the divisions sent concurrently, the answers joined by entry. Entries whose
 * tablet moved are sent again.
 */
import { BigtableError, toBigtableError, unavailable } from '../base/index.ts';
import {
  Pacer,
  type Clock,
  fromPlainError,
  type PlainError,
  type RequestContext,
  type Transport,
} from '../env/index.ts';
import type { AssignedTablet } from '../locator/index.ts';
import type { RowMutations, TableSchema } from '../model/index.ts';
import { callServer, isNotServing } from '../protocol/index.ts';
import type { RetryPolicy, Router } from './router.ts';

export interface MutateRowsParts {
  readonly router: Router;
  readonly transport: Transport;
  readonly clock: Clock;
}

/** May be plain data, as in a server's answer: no error is made for an entry that is only sent again. */
type Fail = (index: number, error: BigtableError | PlainError) => void;

/** Answers by entry: undefined = done, else why not. `outcomes` has the failures so far: those entries are not sent. */
export async function mutateRows(
  parts: MutateRowsParts,
  context: RequestContext,
  table: string,
  entries: readonly RowMutations[],
  outcomes: (BigtableError | undefined)[],
): Promise<(BigtableError | undefined)[]> {
  const { router } = parts;
  let retries: RetryPolicy | undefined;
  let left: number[] = [];
  for (let i = 0; i < entries.length; i++) if (outcomes[i] === undefined) left.push(i);
  for (;;) {
    const misdirected: number[] = [];
    const fail: Fail = (i, error) => {
      if (isNotServing(error)) misdirected.push(i);
      else outcomes[i] = error instanceof BigtableError ? error : fromPlainError(error);
    };
    const schema = await router.table(table, context);
    const batches = await divideByTablet(parts, context, schema, table, entries, left, fail);
    await Promise.all(
      [...batches].map(([tablet, indexes]) => sendBatch(parts, context, schema.id, tablet, entries, indexes, fail)),
    );
    if (misdirected.length === 0) return outcomes;
    for (const tablet of batches.keys()) router.drop(tablet);
    left = misdirected.sort((a, b) => a - b);
    try {
      retries ??= router.retryPolicy(context);
      await retries.wait(unavailable('some rows are served by no server now'));
      await router.refresh(table, context);
    } catch (thrown) {
      const error = toBigtableError(thrown);
      for (const i of left) outcomes[i] = error;
      return outcomes;
    }
  }
}

async function divideByTablet(
  { router, clock }: MutateRowsParts,
  context: RequestContext,
  schema: TableSchema,
  table: string,
  entries: readonly RowMutations[],
  indexes: readonly number[],
  fail: Fail,
): Promise<Map<AssignedTablet, number[]>> {
  const batches = new Map<AssignedTablet, number[]>();
  const pacer = new Pacer(clock);
  for (const i of indexes) {
    const { row } = entries[i]!;
    try {
      const tablet =
        router.cached(schema.id, row) ??
        (await router.locate(table, schema, context, (locator) => locator.locate(schema.id, row, context)));
      const batch = batches.get(tablet);
      if (batch) batch.push(i);
      else batches.set(tablet, [i]);
    } catch (thrown) {
      fail(i, toBigtableError(thrown));
    }
    if (pacer.due()) await pacer.pause();
  }
  return batches;
}

/** Fails every entry of a batch that failed as a whole. */
async function sendBatch(
  { router, transport }: MutateRowsParts,
  context: RequestContext,
  tableId: string,
  tablet: AssignedTablet,
  entries: readonly RowMutations[],
  indexes: readonly number[],
  fail: Fail,
): Promise<void> {
  try {
    const message = {
      tableId,
      schemaVersion: router.schemaVersion(tableId),
      entries: indexes.length === entries.length ? entries : indexes.map((i) => entries[i]!),
      ...(context.writeWait !== undefined && { asksWait: true }),
    };
    const { outcomes, waitedMs } = await callServer(transport, tablet.server.address, 'mutateRows', message, context);
    if (waitedMs !== undefined) context.writeWait?.add(waitedMs);
    for (let i = 0; i < indexes.length; i++) {
      const outcome = outcomes[i];
      if (outcome !== undefined) fail(indexes[i]!, outcome);
    }
  } catch (thrown) {
    const error = toBigtableError(thrown);
    for (const i of indexes) fail(i, error);
  }
}
