/**
 * google.bigtable.v2.Bigtable in terms of the service: what is implemented of the Data API's fifteen calls.
 */
import type { BigtableError } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { Service } from '../../service/index.ts';
import { checkAndMutateAnswer, mutateRowsAnswer, readModifyWriteAnswer } from '../codec/answers.ts';
import { type BatchFields, MutationReader } from '../codec/mutation-reader.ts';
import { withRareMessages } from '../codec/rare.ts';
import type { ApiEnv, RpcCall, RpcMethod, RpcSink } from '../../wire/index.ts';
import { withAnswerRoom } from './answer-room.ts';
import { readRows } from './read-rows.ts';
import { refuseAuthorizedView, withAppProfile } from './target.ts';

const NOTHING = Buffer.alloc(0);
const nothing = (): Buffer => NOTHING;
/** Entries of MutateRows answered in one message: 100,000 of them would take a step of their own to encode. */
const ENTRIES_A_MESSAGE = 500;

/** The calls that data moves by. They read and write their messages by hand as far as these are the usual ones, and load the generated codec for the rest. */
export function dataApi(service: Service, env: ApiEnv): ReadonlyMap<string, RpcMethod> {
  const writes = new Writes(service, env);
  return new Map<string, RpcMethod>([
    [
      '/google.bigtable.v2.Bigtable/ReadRows',
      { kind: 'stream', handle: (call, bytes, sink) => readRows(service, env, call, bytes, sink) },
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

  constructor(service: Service, env: ApiEnv) {
    this.#service = service;
    this.#env = env;
  }

  mutateRow(call: RpcCall, bytes: Buffer): Promise<Buffer> {
    return this.#carriedOut(
      call,
      bytes,
      (reader) => reader.mutateRow(),
      (context, mutations, table) => this.#service.mutateRow(context, table, mutations),
    ).then(nothing);
  }

  async mutateRows(call: RpcCall, bytes: Buffer, sink: RpcSink): Promise<void> {
    const outcomes = await this.#carriedOut(
      call,
      bytes,
      (reader) => reader.mutateRows(),
      (context, batch, table) => this.#mutateEntries(context, table, batch),
    );
    // what is written must be told, however little memory is left: an entry's outcome is shorter than the entry was
    call.context.reservation.setAside(bytes.length);
    for (let from = 0; from < outcomes.length; from += ENTRIES_A_MESSAGE) {
      if (from > 0) await this.#env.clock.yield();
      const wait = sink.send(mutateRowsAnswer(outcomes, from, Math.min(from + ENTRIES_A_MESSAGE, outcomes.length)));
      if (wait !== undefined) await wait;
    }
  }

  /** Outcomes by the entries' places in the request. */
  async #mutateEntries(
    context: RequestContext,
    table: string,
    { entries, failures }: BatchFields,
  ): Promise<readonly (BigtableError | undefined)[]> {
    if (context.notes !== undefined) context.notes.rows = entries.length + failures.length;
    if (failures.length === 0) return this.#service.mutateRows(context, table, entries);
    // where none is left to be carried out the table must be there all the same
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
    return this.#carriedOut(
      call,
      bytes,
      (reader) => reader.checkAndMutateRow(),
      (context, { row, predicate, whenTrue, whenFalse }, table) =>
        this.#service.checkAndMutateRow(context, { table, row, predicate, whenTrue, whenFalse }),
    ).then(checkAndMutateAnswer);
  }

  readModifyWriteRow(call: RpcCall, bytes: Buffer): Promise<Buffer> {
    return this.#carriedOut(
      call,
      bytes,
      (reader) => reader.readModifyWriteRow(),
      (context, { row, rules }, table) =>
        withAnswerRoom(context.reservation, (maxAnswerBytes) =>
          this.#service.readModifyWriteRow(context, table, row, rules, maxAnswerBytes),
        ).then((cells) => readModifyWriteAnswer(row, cells)),
    );
  }

  /** Carries out what is read, in the same step where nothing has to be waited for first: that is the rule. */
  #carriedOut<Q, A>(
    call: RpcCall,
    bytes: Buffer,
    read: (reader: MutationReader) => Q | Promise<Q>,
    work: (context: RequestContext, request: Q, table: string) => Promise<A>,
  ): Promise<A> {
    let reader!: MutationReader;
    const request = withRareMessages(() => {
      // one for each try: what it has read it does not read once more
      reader = this.#reader(bytes);
      return read(reader);
    });
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

  #reader(bytes: Buffer): MutationReader {
    return new MutationReader(bytes, this.#env.clock);
  }

  /** What is to be done once a request is read and before it is carried out. */
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
