/** Change streams over the Cloud API of any Bigtable server. */
import { create } from '@bufbuild/protobuf';
import { BigtableError, type ByteString, Code, fromBytes, unavailable } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { Mutation, RowRange } from '../../model/index.ts';
import type { ChangeService, ChangeStreamRequest, StreamEvent, StreamToken } from '../../service/index.ts';
import type { RpcClient } from '../../wire/index.ts';
import { decodeAnswer, encode } from '../codec/messages.ts';
import { mutationOf } from '../convert/mutation.ts';
import { partitionOf, rangeOfPartition } from '../convert/partition.ts';
import { microsOf, timestampOf } from '../convert/time.ts';
import {
  Bigtable,
  GenerateInitialChangeStreamPartitionsRequestSchema,
  GenerateInitialChangeStreamPartitionsResponseSchema,
  ReadChangeStreamRequestSchema,
  type ReadChangeStreamResponse_CloseStream as CloseStream,
  type ReadChangeStreamResponse_DataChange as DataChange,
  ReadChangeStreamResponse_DataChange_Type as ChangeType,
  type ReadChangeStreamResponse_MutationChunk as MutationChunk,
  ReadChangeStreamResponseSchema,
} from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { errorOfStatus } from '../rpc/error-of-status.ts';
import { pathOf } from './remote-control.ts';

const data = Bigtable.method;

export class RemoteChanges implements ChangeService {
  readonly #client: RpcClient;

  constructor(client: RpcClient) {
    this.#client = client;
  }

  async changeStreamRanges(context: RequestContext, table: string): Promise<readonly RowRange[]> {
    const request = create(GenerateInitialChangeStreamPartitionsRequestSchema, { tableName: table });
    const bytes = encode(GenerateInitialChangeStreamPartitionsRequestSchema, request);
    const ranges: RowRange[] = [];
    const path = pathOf(data.generateInitialChangeStreamPartitions);
    for await (const answer of this.#client.stream(path, bytes, context)) {
      const { partition } = decodeAnswer(GenerateInitialChangeStreamPartitionsResponseSchema, answer);
      if (partition !== undefined) ranges.push(rangeOfPartition(partition, 'partition'));
    }
    return ranges;
  }

  async *readChanges(context: RequestContext, request: ChangeStreamRequest): AsyncGenerator<StreamEvent, void> {
    const assembler = new ChangeAssembler();
    const bytes = encode(ReadChangeStreamRequestSchema, messageOf(request));
    for await (const answer of this.#client.stream(pathOf(data.readChangeStream), bytes, context)) {
      const { streamRecord: record } = decodeAnswer(ReadChangeStreamResponseSchema, answer);
      switch (record.case) {
        case 'dataChange': {
          const event = assembler.add(record.value);
          if (event !== undefined) yield event;
          break;
        }
        case 'heartbeat': {
          const { continuationToken, estimatedLowWatermark } = record.value;
          const watermarkMicros = microsOf(estimatedLowWatermark, 'estimated_low_watermark') ?? 0;
          yield { kind: 'heartbeat', token: continuationToken?.token ?? '', watermarkMicros };
          break;
        }
        case 'closeStream': {
          const closed = closedOf(record.value);
          if (closed !== undefined) yield closed;
          return;
        }
      }
    }
  }
}

function messageOf({ table, range, startMicros, tokens, endMicros, heartbeatMs }: ChangeStreamRequest) {
  const startFrom = tokens
    ? ({
        case: 'continuationTokens',
        value: { tokens: tokens.map((one) => ({ partition: partitionOf(one.range), token: one.token })) },
      } as const)
    : ({ case: 'startTime', value: timestampOf(startMicros ?? 0) } as const);
  return create(ReadChangeStreamRequestSchema, {
    tableName: table,
    partition: partitionOf(range),
    ...((tokens !== undefined || startMicros !== undefined) && { startFrom }),
    ...(endMicros !== undefined && { endTime: timestampOf(endMicros) }),
    ...(heartbeatMs !== undefined && { heartbeatDuration: durationOf(heartbeatMs) }),
  });
}

function durationOf(ms: number): { readonly seconds: bigint; readonly nanos: number } {
  const seconds = Math.floor(ms / 1000);
  return { seconds: BigInt(seconds), nanos: Math.floor((ms - seconds * 1000) * 1e6) };
}

/** Undefined where the stream has come to its end. Throws what ended it otherwise. */
function closedOf({ status, continuationTokens, newPartitions }: CloseStream): StreamEvent | undefined {
  if (continuationTokens.length === 0) {
    const error = status && errorOfStatus(status.code, status.message);
    if (error) throw error;
    return undefined;
  }
  const tokens = continuationTokens.map(
    ({ partition, token }): StreamToken => ({ range: rangeOfPartition(partition, 'partition'), token }),
  );
  const ranges = newPartitions.map((partition) => rangeOfPartition(partition, 'new_partitions'));
  return { kind: 'closed', tokens, ranges: ranges.length > 0 ? ranges : tokens.map(({ range }) => range) };
}

/** Puts the messages of a change together. */
class ChangeAssembler {
  #head: DataChange | undefined;
  #mutations: Mutation[] = [];
  /** The pieces of a value that was cut. */
  #pieces: Uint8Array[] = [];

  add(part: DataChange): StreamEvent | undefined {
    const isFirst = part.type !== ChangeType.CONTINUATION;
    if (isFirst !== (this.#head === undefined)) throw unavailable('the server sent the parts of a change out of order');
    this.#head ??= part;
    for (const chunk of part.chunks) this.#addChunk(chunk);
    if (!part.done) return undefined;
    if (this.#pieces.length > 0) throw unavailable('the server did not send the end of a value');
    const { rowKey, commitTimestamp, type } = this.#head;
    const row: ByteString = fromBytes(rowKey);
    const mutations = this.#mutations;
    this.#head = undefined;
    this.#mutations = [];
    return {
      kind: 'change',
      row,
      mutations,
      commitMicros: microsOf(commitTimestamp, 'commit_timestamp') ?? 0,
      origin: type === ChangeType.GARBAGE_COLLECTION ? 'garbageCollection' : 'user',
      token: part.token,
      watermarkMicros: microsOf(part.estimatedLowWatermark, 'estimated_low_watermark') ?? 0,
    };
  }

  #addChunk({ mutation, chunkInfo }: MutationChunk): void {
    if (mutation === undefined) return;
    const kind = mutation.mutation;
    if (chunkInfo === undefined || kind.case !== 'setCell') {
      this.#mutations.push(mutationOf(mutation));
      return;
    }
    if (chunkInfo.chunkedValueOffset === 0) {
      this.#pieces = [];
      this.#mutations.push(mutationOf(mutation));
    }
    this.#pieces.push(kind.value.value);
    if (!chunkInfo.lastChunk) return;
    const first = this.#mutations.at(-1);
    if (first?.kind !== 'setCell') throw new BigtableError(Code.INTERNAL, 'a value without its cell');
    this.#mutations[this.#mutations.length - 1] = { ...first, value: Buffer.concat(this.#pieces) };
    this.#pieces = [];
  }
}
