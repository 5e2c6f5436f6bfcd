/** The calls of google.bigtable.v2.Bigtable that move data, in terms of the service. */
import type { BigtableError } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { Service } from '../../service/index.ts';
import { checkAndMutateAnswer, mutateRowsAnswer, oneCellAnswer } from '../codec/answers.ts';
import { type BatchFields, MutationReader } from '../codec/mutation-reader.ts';
import type { RequestDecoder } from '../codec/request-decoder.ts';
import type { ApiEnv, RpcCall, RpcMethod, RpcSink } from '../../wire/index.ts';
import { withAnswerSpace } from './answer-space.ts';
import { Reads } from './read-rows.ts';
import { refuseAuthorizedView, withAppProfile } from './target.ts';

const EMPTY_MESSAGE = Buffer.alloc(0);
const emptyMessage = (): Buffer => EMPTY_MESSAGE;
/** Entries of MutateRows answered in one message: encoding 100,000 of them would hold the event loop. */
const MAX_ENTRIES_PER_MESSAGE = 500;

/** By path. They read and write the usual messages by hand, and load the generated codec for the others. */
export function dataApi(service: Service, env: ApiEnv, decoder: RequestDecoder): ReadonlyMap<string, RpcMethod> {
  const reads = new Reads(service, env, decoder);
  const writes = new Writes(service, env, decoder);
  return new Map<string, RpcMethod>([
    [
      '/google.bigtable.v2.Bigtable/ReadRows',
      { kind: 'stream', handle: (call, bytes, sink) => reads.readRows(call, bytes, sink) },
    ],
    [
      '/google.bigtable.v2.Bigtable/MutateRow',
      { kind: 'unary', handle: (call, bytes) => writes.mutateRow(call, bytes) },
    ],
    [
      '/google.bigtable.v2.Bigtable/MutateRows',
      { kind: 'stream', handle: (call, bytes, sink) => writes.mutateRows(call, bytes, sink) },
    ],
    [
      '/google.bigtable.v2.Bigtable/CheckAndMutateRow',
      { kind: 'unary', handle: (call, bytes) => writes.checkAndMutateRow(call, bytes) },
    ],
    [
      '/google.bigtable.v2.Bigtable/ReadModifyWriteRow',
      { kind: 'unary', handle: (call, bytes) => writes.readModifyWriteRow(call, bytes) },
    ],
  ]);
}

class Writes {
  readonly #service: Service;
  readonly #env: ApiEnv;
  readonly #decoder: RequestDecoder;

  constructor(service: Service, env: ApiEnv, decoder: RequestDecoder) {
    this.#service = service;
    this.#env = env;
    this.#decoder = decoder;
  }

  mutateRow(call: RpcCall, bytes: Buffer): Promise<Buffer> {
    return this.#carryOut(
      call,
      bytes,
      (reader) => reader.mutateRow(),
      (context, mutations, table) => this.#service.mutateRow(context, table, mutations),
    ).then(emptyMessage);
  }

  async mutateRows(call: RpcCall, bytes: Buffer, sink: RpcSink): Promise<void> {
    const outcomes = await this.#carryOut(
      call,
      bytes,
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

  checkAndMutateRow(call: RpcCall, bytes: Buffer): Promise<Buffer> {
    return this.#carryOut(
      call,
      bytes,
      (reader) => reader.checkAndMutateRow(),
      (context, { row, predicate, whenTrue, whenFalse }, table) =>
        this.#service.checkAndMutateRow(context, { table, row, predicate, whenTrue, whenFalse }),
    ).then(checkAndMutateAnswer);
  }

  readModifyWriteRow(call: RpcCall, bytes: Buffer): Promise<Buffer> {
    return this.#carryOut(
      call,
      bytes,
      (reader) => reader.readModifyWriteRow(),
      (context, { row, rules }, table) =>
        withAnswerSpace(context.reservation, (maxAnswerBytes) =>
          this.#service.readModifyWriteRow(context, table, row, rules, maxAnswerBytes),
        ).then(
          (cells) =>
            oneCellAnswer(row, cells) ?? this.#decoder.load().then((generated) => generated.rowAnswer(row, cells)),
        ),
    );
  }

  /** Reads the request and carries it out, synchronously where nothing has to be waited for first, as usual. */
  #carryOut<Q, A>(
    call: RpcCall,
    bytes: Buffer,
    read: (reader: MutationReader) => Q | Promise<Q>,
    work: (context: RequestContext, request: Q, table: string) => Promise<A>,
  ): Promise<A> {
    const reader = new MutationReader(bytes, this.#decoder, this.#env.clock);
    const request = read(reader);
    const carryOut = (given: Q): Promise<A> => {
      const { table } = reader.target;
      if (call.context.notes !== undefined) call.context.notes.target = table;
      const context = this.#prepare(call.context, reader);
      return context instanceof Promise
        ? context.then((prepared) => work(prepared, given, table))
        : work(context, given, table);
    };
    return request instanceof Promise ? request.then(carryOut) : carryOut(request);
  }

  /** Checks and completes a request that has been read, before it is carried out. */
  #prepare(given: RequestContext, reader: MutationReader): RequestContext | Promise<RequestContext> {
    refuseAuthorizedView(reader.target.authorizedView);
    const context = withAppProfile(given, reader.target.appProfile);
    return reader.untruncated.length > 0 ? this.#truncate(context, reader) : context;
  }

  async #truncate(context: RequestContext, reader: MutationReader): Promise<RequestContext> {
    const schema = await this.#service.getTable(context, reader.target.table);
    if (schema.granularity === 'millis') reader.truncate();
    return context;
  }
}
