/**
 * A service over the Cloud Bigtable API of any server: Edubba's own, Google's emulator. It adds no retries: failures
 * are returned to the caller.
 *
 * Bounds: a batch of mutations goes out in one request, a row comes back whole in memory.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { BigtableError, Code, fromBytes, toBytes, type ByteString } from '../../base/index.ts';
import type { Clock, Random, RequestContext } from '../../env/index.ts';
import {
  type Cell,
  mutationList,
  type ReadBatch,
  type ReadModifyWriteRule,
  type RowMutations,
} from '../../model/index.ts';
import type { CheckAndMutateRequest, KeySample, ReadRequest, Service } from '../../service/index.ts';
import { type ClientTlsOptions, type RpcClient, type RpcStatus, WireClient } from '../../wire/index.ts';
import { decodeAnswer, encode } from '../codec/messages.ts';
import { filterMessage } from '../convert/filter.ts';
import { mutationMessage, ruleMessage } from '../convert/mutation.ts';
import { cellsOf } from '../convert/row.ts';
import { rowSetMessage } from '../convert/row-set.ts';
import { timestampOf } from '../convert/time.ts';
import {
  Bigtable,
  MutateRowsRequest_EntrySchema,
  MutateRowsRequestSchema,
  MutateRowsResponseSchema,
  ReadRowsRequestSchema,
  ReadRowsResponseSchema,
  SampleRowKeysRequestSchema,
  SampleRowKeysResponseSchema,
} from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { FeatureFlagsSchema } from '../generated/google/bigtable/v2/feature_flags_pb.ts';
import { errorOfAnswer, errorOfStatus } from '../rpc/error-of-status.ts';
import { ChunkReader } from './chunk-reader.ts';
import { RemoteAdmin } from './remote-admin.ts';
import { call, pathOf } from './remote-control.ts';

const data = Bigtable.method;
const FEATURES = toBinary(
  FeatureFlagsSchema,
  create(FeatureFlagsSchema, { reverseScans: true, lastScannedRowResponses: true, microsecondTimestamp: true }),
);

export interface RemoteService extends Service {
  /** Closes the connection, and cancels the calls in progress on it: CANCELLED. */
  close(): void;
}

export interface RemoteOptions {
  /** HOST:PORT. */
  readonly address: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Default: plain text. */
  readonly tls?: ClientTlsOptions | undefined;
  /** A bearer token that goes with every call. Default: none. */
  readonly token?: string | undefined;
}

/** What each call of a remote service needs of its wire. */
export interface RemoteForm {
  /** Headers of every call; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The error for a status that is not OK. */
  readonly errorOf: (status: RpcStatus) => BigtableError;
}

/** A service over the server at `address`. Nothing is sent before the first call. */
export function overWire({ address, clock, random, tls, token }: RemoteOptions): RemoteService {
  return overRpc(({ headers, errorOf }) => {
    const all = token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` };
    return new WireClient({ address, clock, random, headers: all, errorOf, ...(tls && { tls }) });
  });
}

/** A service over the wire that `open` makes. */
export function overRpc(open: (form: RemoteForm) => RpcClient): RemoteService {
  const headers = { 'bigtable-features': Buffer.from(FEATURES).toString('base64url') };
  return new Remote(open({ headers, errorOf: errorOfAnswer }));
}

class Remote extends RemoteAdmin implements RemoteService {
  async mutateRow(context: RequestContext, table: string, entry: RowMutations): Promise<void> {
    await call(this.client, context, data.mutateRow, { tableName: table, ...entryFields(entry) });
  }

  async mutateRows(
    context: RequestContext,
    table: string,
    entries: readonly RowMutations[],
  ): Promise<readonly (BigtableError | undefined)[]> {
    const unanswered = new BigtableError(
      Code.UNAVAILABLE,
      'the server answered without a status for this entry: its outcome is unknown',
    );
    const outcomes = new Array<BigtableError | undefined>(entries.length).fill(unanswered);
    const request = create(MutateRowsRequestSchema, { tableName: table });
    /** By position in the request: the entry's index. */
    const sent: number[] = [];
    for (const [index, entry] of entries.entries()) {
      try {
        request.entries.push(create(MutateRowsRequest_EntrySchema, entryFields(entry)));
        sent.push(index);
      } catch (error) {
        // the API cannot express it: a timestamp of -1, a time range that ends at 0
        if (!(error instanceof BigtableError)) throw error;
        outcomes[index] = error;
      }
    }
    if (sent.length === 0 && entries.length > 0) {
      await this.getTable(context, table);
      return outcomes;
    }
    for await (const bytes of this.client.stream(
      pathOf(data.mutateRows),
      encode(MutateRowsRequestSchema, request),
      context,
    )) {
      for (const { index, status } of decodeAnswer(MutateRowsResponseSchema, bytes).entries) {
        const at = sent[Number(index)];
        if (at !== undefined) outcomes[at] = errorOfStatus(status?.code ?? Code.OK, status?.message ?? '');
      }
    }
    return outcomes;
  }

  async *readRows(context: RequestContext, request: ReadRequest): AsyncIterable<ReadBatch> {
    const { table, ranges, filter, rowsLimit, reversed } = request;
    const message = create(ReadRowsRequestSchema, {
      tableName: table,
      ...(ranges && ranges.length > 0 && { rows: rowSetMessage(ranges) }),
      ...(filter && { filter: filterMessage(filter) }),
      rowsLimit: BigInt(rowsLimit ?? 0),
      reversed: reversed ?? false,
    });
    const reader = new ChunkReader();
    for await (const bytes of this.client.stream(
      pathOf(data.readRows),
      encode(ReadRowsRequestSchema, message),
      context,
    )) {
      const answer = decodeAnswer(ReadRowsResponseSchema, bytes);
      const fragments = reader.rows(answer);
      if (answer.lastScannedRowKey.length > 0) yield { fragments, scannedTo: fromBytes(answer.lastScannedRowKey) };
      else if (fragments.length > 0) yield { fragments };
    }
    reader.end();
  }

  async sampleRowKeys(context: RequestContext, table: string): Promise<readonly KeySample[]> {
    const request = encode(SampleRowKeysRequestSchema, create(SampleRowKeysRequestSchema, { tableName: table }));
    const samples: KeySample[] = [];
    for await (const bytes of this.client.stream(pathOf(data.sampleRowKeys), request, context)) {
      const { rowKey, offsetBytes } = decodeAnswer(SampleRowKeysResponseSchema, bytes);
      samples.push({ row: fromBytes(rowKey), offsetBytes: Number(offsetBytes) });
    }
    return samples;
  }

  async checkAndMutateRow(context: RequestContext, request: CheckAndMutateRequest): Promise<boolean> {
    const { table, row, predicate, whenTrue, whenFalse } = request;
    const answer = await call(this.client, context, data.checkAndMutateRow, {
      tableName: table,
      rowKey: toBytes(row),
      ...(predicate && { predicateFilter: filterMessage(predicate) }),
      trueMutations: whenTrue.map(mutationMessage),
      falseMutations: whenFalse.map(mutationMessage),
    });
    return answer.predicateMatched;
  }

  async readModifyWriteRow(
    context: RequestContext,
    table: string,
    row: ByteString,
    rules: readonly ReadModifyWriteRule[],
  ): Promise<readonly Cell[]> {
    const answer = await call(this.client, context, data.readModifyWriteRow, {
      tableName: table,
      rowKey: toBytes(row),
      rules: rules.map(ruleMessage),
    });
    return cellsOf(answer.row);
  }

  close(): void {
    this.client.destroy(new BigtableError(Code.CANCELLED, 'the connection was closed while the call was under way'));
  }
}

/** The fields that MutateRowRequest and the entries of MutateRowsRequest have in common. */
function entryFields({ row, mutations, idempotency }: RowMutations) {
  return {
    rowKey: toBytes(row),
    mutations: mutationList(mutations).map(mutationMessage),
    ...(idempotency && {
      idempotency: {
        token: toBytes(idempotency.token),
        ...(idempotency.startMs !== undefined && { startTime: timestampOf(idempotency.startMs * 1000) }),
      },
    }),
  };
}
