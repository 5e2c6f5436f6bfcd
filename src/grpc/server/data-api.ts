/**
 * google.bigtable.v2.Bigtable in terms of the service: what is implemented of the Data API's fifteen calls.
 */
import { create } from '@bufbuild/protobuf';
import { type ByteString, Code, toBytes } from '../../base/index.ts';
import { Pacer, type RequestContext } from '../../env/index.ts';
import { isEmptyRange, type RowRange } from '../../model/index.ts';
import type { Service } from '../../service/index.ts';
import { encode } from '../codec/messages.ts';
import { MutationReader } from '../codec/mutation-reader.ts';
import { filterOf } from '../convert/filter.ts';
import { rowMessage } from '../convert/row.ts';
import { rowRangeOf } from '../convert/row-set.ts';
import {
  Bigtable, CheckAndMutateRowResponseSchema, type MutateRowsResponse_Entry, MutateRowsResponse_EntrySchema, MutateRowsResponseSchema,
  ReadModifyWriteRowResponseSchema,
} from '../generated/google/bigtable/v2/bigtable_pb.ts';
import type { ApiEnv, RpcCall, RpcSink } from '../rpc/rpc-server.ts';
import { rpcStatus } from '../rpc/status.ts';
import type { MethodTable } from './method-table.ts';
import { readRows } from './read-rows.ts';
import { refuseAuthorizedView, refuseMaterializedView, withAppProfile } from './target.ts';

const NOTHING = Buffer.alloc(0);
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

  async mutateRow(call: RpcCall, bytes: Buffer): Promise<Buffer> {
    const reader = this.#reader(bytes);
    const mutations = await reader.mutateRow();
    const context = await this.#prepare(call.context, reader);
    await this.#service.mutateRow(context, reader.target.table, mutations);
    return NOTHING;
  }

  async mutateRows(call: RpcCall, bytes: Buffer, sink: RpcSink): Promise<void> {
    const reader = this.#reader(bytes);
    const entries = await reader.mutateRows();
    const context = await this.#prepare(call.context, reader);
    const outcomes = await this.#service.mutateRows(context, reader.target.table, entries);
    const ok = { code: Code.OK as number };
    let part: MutateRowsResponse_Entry[] = [];
    for (const [at, error] of outcomes.entries()) {
      part.push(create(MutateRowsResponse_EntrySchema, { index: BigInt(at), status: error ? rpcStatus(error) : ok }));
      if (part.length < ENTRIES_A_MESSAGE && at < outcomes.length - 1) continue;
      await sink.send(encode(MutateRowsResponseSchema, create(MutateRowsResponseSchema, { entries: part })));
      part = [];
      await this.#env.clock.yield();
    }
  }

  async checkAndMutateRow(call: RpcCall, bytes: Buffer): Promise<Buffer> {
    const reader = this.#reader(bytes);
    const { row, predicate, whenTrue, whenFalse } = await reader.checkAndMutateRow();
    const context = await this.#prepare(call.context, reader);
    const request = { table: reader.target.table, row, predicate: filterOf(predicate), whenTrue, whenFalse };
    const predicateMatched = await this.#service.checkAndMutateRow(context, request);
    return encode(CheckAndMutateRowResponseSchema, create(CheckAndMutateRowResponseSchema, { predicateMatched }));
  }

  async readModifyWriteRow(call: RpcCall, bytes: Buffer): Promise<Buffer> {
    const reader = this.#reader(bytes);
    const { row, rules } = await reader.readModifyWriteRow();
    const context = await this.#prepare(call.context, reader);
    const cells = await this.#service.readModifyWriteRow(context, reader.target.table, row, rules);
    return encode(ReadModifyWriteRowResponseSchema, create(ReadModifyWriteRowResponseSchema, { row: rowMessage(row, cells) }));
  }

  #reader(bytes: Buffer): MutationReader {
    return new MutationReader(bytes, new Pacer(this.#env.clock));
  }

  /** What is to be done once a request is read and before it is carried out. */
  async #prepare(given: RequestContext, reader: MutationReader): Promise<RequestContext> {
    refuseAuthorizedView(reader.target.authorizedView);
    const context = withAppProfile(given, reader.target.appProfile);
    if (reader.untruncated.length > 0) {
      const schema = await this.#service.getTable(context, reader.target.table);
      if (schema.granularity === 'millis') reader.truncate();
    }
    return context;
  }
}
