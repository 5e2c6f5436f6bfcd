/** The calls of google.bigtable.v2.Bigtable that move data, in terms of the service. */
import { type BigtableError, toBigtableError } from '../../base/index.ts';
import { inSlices, type RequestContext } from '../../env/index.ts';
import type { RowMutations } from '../../model/index.ts';
import type { AuthorizedView, RawCallPasser, RawWrite, Service } from '../../service/index.ts';
import { mutateRowsAnswer } from '../codec/answers.ts';
import type { BatchFields } from '../codec/mutation-reader.ts';
import type { RequestDecoder } from '../codec/request-decoder.ts';
import type { ApiEnv, RpcCall, RpcMethod, RpcSink } from '../../wire/index.ts';
import { ChangeRequests, type ChangeTarget } from './change-requests.ts';
import { DecodedWrites } from './decoded-writes.ts';
import { FeatureFlags } from './features.ts';
import { RateLimiter } from './rate-limiter.ts';
import { Reads } from './read-rows.ts';
import { RowWrites } from './row-writes.ts';

/** Entries of MutateRows answered in one message: encoding 100,000 of them would hold the event loop. */
const MAX_ENTRIES_PER_MESSAGE = 500;

/**
 * By path. They read and write the usual messages by hand, and load the generated codec for the others. `passer`:
 * passes calls for rows of other servers on.
 */
export function dataApi(
  service: Service,
  env: ApiEnv,
  decoder: RequestDecoder,
  passer: RawCallPasser | undefined,
): ReadonlyMap<string, RpcMethod> {
  const reads = new Reads(service, env, decoder, passer);
  const writes = new RowWrites({
    decoded: new DecodedWrites(service, env, decoder),
    decoder,
    rules: service.appProfiles,
    passer,
  });
  const batches = new BatchWrites(service, env, decoder);
  const rowWrite = (method: RawWrite['method']): RpcMethod => ({
    kind: 'unary',
    handle: ({ context }, bytes) => writes.write(method, context, bytes),
  });
  return new Map<string, RpcMethod>([
    [
      '/google.bigtable.v2.Bigtable/ReadRows',
      { kind: 'stream', handle: (call, bytes, sink) => reads.readRows(call, bytes, sink) },
    ],
    [
      '/google.bigtable.v2.Bigtable/MutateRows',
      { kind: 'stream', handle: (call, bytes, sink) => batches.mutateRows(call, bytes, sink) },
    ],
    ['/google.bigtable.v2.Bigtable/MutateRow', rowWrite('mutateRow')],
    ['/google.bigtable.v2.Bigtable/CheckAndMutateRow', rowWrite('checkAndMutateRow')],
    ['/google.bigtable.v2.Bigtable/ReadModifyWriteRow', rowWrite('readModifyWriteRow')],
  ]);
}

class BatchWrites {
  readonly #service: Service;
  readonly #env: ApiEnv;
  readonly #requests: ChangeRequests;
  readonly #features = new FeatureFlags();

  constructor(service: Service, env: ApiEnv, decoder: RequestDecoder) {
    this.#service = service;
    this.#env = env;
    this.#requests = new ChangeRequests(service, env, decoder);
  }

  async mutateRows(call: RpcCall, bytes: Buffer, sink: RpcSink): Promise<void> {
    const limiter = this.#features.of(call).mutateRowsRateLimit
      ? new RateLimiter(call.context, this.#env.clock)
      : undefined;
    const outcomes = await this.#requests.carryOut(
      call.context,
      bytes,
      'write',
      (reader) => reader.mutateRows(),
      (target, batch) => this.#mutateEntries(target, batch),
    );
    // the outcome of a write must be sent, however little memory is left: an entry's outcome is shorter than the entry
    // was
    call.context.reservation.setAside(bytes.length);
    const rateLimit = limiter?.field();
    for (let from = 0; from < outcomes.length; from += MAX_ENTRIES_PER_MESSAGE) {
      if (from > 0) await this.#env.clock.yield();
      const wait = sink.send(
        mutateRowsAnswer(outcomes, from, Math.min(from + MAX_ENTRIES_PER_MESSAGE, outcomes.length), rateLimit),
      );
      if (wait !== undefined) await wait;
    }
  }

  /** Outcomes by the entries' indexes in the request. */
  async #mutateEntries(
    { context, table, view }: ChangeTarget,
    { entries, failures }: BatchFields,
  ): Promise<readonly (BigtableError | undefined)[]> {
    if (context.notes !== undefined) context.notes.rows = entries.length + failures.length;
    // an empty batch is refused
    if (entries.length + failures.length === 0) return this.#service.mutateRows(context, table, entries);
    const mutate = (allowed: readonly RowMutations[]) => this.#mutateAllowed(context, table, allowed);
    const answered = view === undefined ? await mutate(entries) : await this.#throughView(view, entries, mutate);
    if (failures.length === 0) return answered;
    const outcomes: (BigtableError | undefined)[] = [];
    let at = 0;
    for (const { index, error } of failures) {
      while (outcomes.length < index) outcomes.push(answered[at++]);
      outcomes.push(error);
    }
    while (at < entries.length) outcomes.push(answered[at++]);
    return outcomes;
  }

  /** The table must exist even where no entry is left to be carried out. */
  async #mutateAllowed(
    context: RequestContext,
    table: string,
    entries: readonly RowMutations[],
  ): Promise<readonly (BigtableError | undefined)[]> {
    if (entries.length > 0) return this.#service.mutateRows(context, table, entries);
    await this.#service.getTable(context, table);
    return [];
  }

  /** Entries that lie outside of the view fail by themselves. */
  async #throughView(
    view: AuthorizedView,
    entries: readonly RowMutations[],
    mutate: (allowed: readonly RowMutations[]) => Promise<readonly (BigtableError | undefined)[]>,
  ): Promise<readonly (BigtableError | undefined)[]> {
    const refusals: (BigtableError | undefined)[] = [];
    await inSlices(this.#env.clock, entries.length, (from, to) => {
      for (let at = from; at < to; at++) refusals.push(refusalOf(view, entries[at]!));
    });
    const answered = await mutate(entries.filter((_entry, at) => refusals[at] === undefined));
    let next = 0;
    return refusals.map((refusal) => refusal ?? answered[next++]);
  }
}

function refusalOf(view: AuthorizedView, entry: RowMutations): BigtableError | undefined {
  try {
    view.checkRow(entry);
    return undefined;
  } catch (thrown) {
    return toBigtableError(thrown);
  }
}
