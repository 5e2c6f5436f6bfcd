/**
 * google.bigtable.v2.Bigtable in terms of the service: what is implemented of the Data API's fifteen calls.
 */
import { type ByteString, toBytes } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import { isEmptyRange, type RowRange } from '../../model/index.ts';
import type { Service } from '../../service/index.ts';
import { checkAndMutateAnswer, mutateRowsAnswer, readModifyWriteAnswer } from '../codec/answers.ts';
import { MutationReader } from '../codec/mutation-reader.ts';
import { rowRangeOf } from '../convert/row-set.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import type { ApiEnv, RpcCall, RpcSink } from '../../wire/index.ts';
import type { MethodTable } from './method-table.ts';
import { readRows } from './read-rows.ts';
import { refuseAuthorizedView, refuseMaterializedView, withAppProfile } from './target.ts';

const NOTHING = Buffer.alloc(0);
const nothing = (): Buffer => NOTHING;
/** Entries of MutateRows answered in one message: 100,000 of them would take a step of their own to encode. */
const ENTRIES_A_MESSAGE = 500;

export function registerDataApi(methods: MethodTable, service: Service, env: ApiEnv): void {
  const data = Bigtable.method;
  const writes = new Writes(service, env);
  methods.raw(data.readRows, { kind: 'stream', handle: (call, bytes, sink) => readRows(service, env, call, bytes, sink) });
  methods.raw(data.mutateRow, { kind: 'unary', handle: (call, bytes) => writes.mutateRow(call, bytes) });
  methods.raw(data.mutateRows, { kind: 'stream', handle: (call, bytes, sink) => writes.mutateRows(call, bytes, sink) });
  methods.raw(data.checkAndMutateRow, { kind: 'unary', handle: (call, bytes) => writes.checkAndMutateRow(call, bytes) });
  methods.raw(data.readModifyWriteRow, { kind: 'unary', handle: (call, bytes) => writes.readModifyWriteRow(call, bytes) });
  methods.stream(data.sampleRowKeys, async (context, request, send) => {
    refuseAuthorizedView(request.authorizedViewName);
    refuseMaterializedView(request.materializedViewName);
    const range = request.rowRange && rowRangeOf(request.rowRange);
    const samples = await service.sampleRowKeys(withAppProfile(context, request.appProfileId), request.tableName);
    for (const sample of range ? clipSamples(samples, range) : samples) await send({ rowKey: toBytes(sample.row), offsetBytes: BigInt(sample.offsetBytes) });
  });
  methods.unary(data.pingAndWarm, async () => ({}));
}

type Sample = { readonly row: ByteString; readonly offsetBytes: number };

/** Samples inside the range, then its end. Offsets count from the sample before the range's start. */
function clipSamples(samples: readonly Sample[], range: RowRange): Sample[] {
  if (isEmptyRange(range)) return [];
  const isInside = (row: ByteString): boolean => row !== '' && row > range.start && (range.end === undefined || row < range.end);
  const before = samples.filter((sample) => sample.row !== '' && sample.row <= range.start).at(-1)?.offsetBytes ?? 0;
  const after = samples.find((sample) => sample.row === '' || (range.end !== undefined && sample.row >= range.end))?.offsetBytes ?? before;
  return [...samples.filter((sample) => isInside(sample.row)), { row: range.end ?? '', offsetBytes: after }].map((sample) => ({
    row: sample.row,
    offsetBytes: sample.offsetBytes - before,
  }));
}

class Writes {
  readonly #service: Service;
  readonly #env: ApiEnv;

  constructor(service: Service, env: ApiEnv) {
    this.#service = service;
    this.#env = env;
  }

  mutateRow(call: RpcCall, bytes: Buffer): Promise<Buffer> {
    const reader = this.#reader(bytes);
    return this.#carriedOut(call, reader, reader.mutateRow(), (context, mutations) => this.#service.mutateRow(context, reader.target.table, mutations)).then(nothing);
  }

  async mutateRows(call: RpcCall, bytes: Buffer, sink: RpcSink): Promise<void> {
    const reader = this.#reader(bytes);
    const entries = await reader.mutateRows();
    const prepared = this.#prepare(call.context, reader);
    const context = prepared instanceof Promise ? await prepared : prepared;
    const outcomes = await this.#service.mutateRows(context, reader.target.table, entries);
    for (let from = 0; from < outcomes.length; from += ENTRIES_A_MESSAGE) {
      if (from > 0) await this.#env.clock.yield();
      const wait = sink.send(mutateRowsAnswer(outcomes, from, Math.min(from + ENTRIES_A_MESSAGE, outcomes.length)));
      if (wait !== undefined) await wait;
    }
  }

  checkAndMutateRow(call: RpcCall, bytes: Buffer): Promise<Buffer> {
    const reader = this.#reader(bytes);
    return this.#carriedOut(call, reader, reader.checkAndMutateRow(), (context, { row, predicate, whenTrue, whenFalse }) =>
      this.#service.checkAndMutateRow(context, { table: reader.target.table, row, predicate, whenTrue, whenFalse }),
    ).then(checkAndMutateAnswer);
  }

  readModifyWriteRow(call: RpcCall, bytes: Buffer): Promise<Buffer> {
    const reader = this.#reader(bytes);
    return this.#carriedOut(call, reader, reader.readModifyWriteRow(), (context, { row, rules }) =>
      this.#service.readModifyWriteRow(context, reader.target.table, row, rules).then((cells) => readModifyWriteAnswer(row, cells)),
    );
  }

  /** Carries out what was read, in the same step where nothing has to be waited for first: that is the rule. */
  #carriedOut<Q, A>(call: RpcCall, reader: MutationReader, read: Q | Promise<Q>, work: (context: RequestContext, request: Q) => Promise<A>): Promise<A> {
    if (read instanceof Promise) return read.then((request) => this.#carriedOut(call, reader, request, work));
    const context = this.#prepare(call.context, reader);
    return context instanceof Promise ? context.then((prepared) => work(prepared, read)) : work(context, read);
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
