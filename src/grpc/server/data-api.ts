/** The calls of google.bigtable.v2.Bigtable that move data, in terms of the service. */
import type { BigtableError } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { RawCallPasser, RawWrite, Service } from '../../service/index.ts';
import { mutateRowsAnswer } from '../codec/answers.ts';
import type { BatchFields } from '../codec/mutation-reader.ts';
import type { RequestDecoder } from '../codec/request-decoder.ts';
import type { ApiEnv, RpcCall, RpcMethod, RpcSink } from '../../wire/index.ts';
import { ChangeRequests } from './change-requests.ts';
import { DecodedWrites } from './decoded-writes.ts';
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

  constructor(service: Service, env: ApiEnv, decoder: RequestDecoder) {
    this.#service = service;
    this.#env = env;
    this.#requests = new ChangeRequests(service, env, decoder);
  }

  async mutateRows(call: RpcCall, bytes: Buffer, sink: RpcSink): Promise<void> {
    const outcomes = await this.#requests.carryOut(
      call.context,
      bytes,
      'write',
      (reader) => reader.mutateRows(),
      (context, batch, table) => this.#mutateEntries(context, table, batch),
    );
    // the outcome of a write must be sent, however little memory is left: an entry's outcome is shorter than the entry
    // was
    call.context.reservation.setAside(bytes.length);
    for (let from = 0; from < outcomes.length; from += MAX_ENTRIES_PER_MESSAGE) {
      if (from > 0) await this.#env.clock.yield();
      const wait = sink.send(
        mutateRowsAnswer(outcomes, from, Math.min(from + MAX_ENTRIES_PER_MESSAGE, outcomes.length)),
      );
      if (wait !== undefined) await wait;
    }
  }

  /** Outcomes by the entries' indexes in the request. */
  async #mutateEntries(
    context: RequestContext,
    table: string,
    { entries, failures }: BatchFields,
  ): Promise<readonly (BigtableError | undefined)[]> {
    if (context.notes !== undefined) context.notes.rows = entries.length + failures.length;
    if (failures.length === 0) return this.#service.mutateRows(context, table, entries);
    // the table must exist even where no entry is left to be carried out
    const answered =
      entries.length > 0
        ? await this.#service.mutateRows(context, table, entries)
        : await this.#service.getTable(context, table).then(() => []);
    const outcomes: (BigtableError | undefined)[] = [];
    let at = 0;
    for (const { index, error } of failures) {
      while (outcomes.length < index) outcomes.push(answered[at++]);
      outcomes.push(error);
    }
    while (at < entries.length) outcomes.push(answered[at++]);
    return outcomes;
  }
}
