/** GenerateInitialChangeStreamPartitions and ReadChangeStream in terms of the service. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { BigtableError, Code, invalidArgument, toBytes } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import { instanceOfTable } from '../../model/index.ts';
import type { ChangeService, ChangeStreamRequest, Service, StreamEvent, StreamToken } from '../../service/index.ts';
import { mutationMessage } from '../convert/mutation.ts';
import { partitionOf, rangeOfPartition } from '../convert/partition.ts';
import { microsOf, timestampOf } from '../convert/time.ts';
import {
  Bigtable,
  type ReadChangeStreamRequest,
  ReadChangeStreamResponse_DataChange_Type as ChangeType,
  type ReadChangeStreamResponseSchema,
} from '../generated/google/bigtable/v2/bigtable_pb.ts';
import type { StreamContinuationToken } from '../generated/google/bigtable/v2/data_pb.ts';
import type { MethodTable } from './method-table.ts';
import { withAppProfile } from './target.ts';

type Answer = MessageInitShape<typeof ReadChangeStreamResponseSchema>;
type Chunk = NonNullable<
  Extract<NonNullable<Answer['streamRecord']>, { case: 'dataChange' }>['value']['chunks']
>[number];

/** A message carries about this many bytes of values; a larger value is cut. */
const CHUNK_BYTES = 512 * 1024;

export function registerChangeStreams(methods: MethodTable, service: Service): void {
  methods.stream(Bigtable.method.generateInitialChangeStreamPartitions, async (context, request, send) => {
    const { tableName, appProfileId } = request;
    const profiled = withAppProfile(context, service.appProfiles, 'read', tableName, appProfileId);
    for (const range of await changesOf(service).changeStreamRanges(profiled, tableName))
      await send({ partition: partitionOf(range) });
  });
  methods.stream(Bigtable.method.readChangeStream, async (context, request, send) => {
    const { tableName, appProfileId } = request;
    const profiled = withAppProfile(context, service.appProfiles, 'read', tableName, appProfileId);
    const wanted = requestOf(request);
    const cluster = await clusterOf(service, profiled, tableName);
    let isClosed = false;
    for await (const event of changesOf(service).readChanges(profiled, wanted)) {
      for (const answer of answersOf(event, wanted, cluster)) await send(answer);
      isClosed = event.kind === 'closed';
    }
    if (!isClosed) await send({ streamRecord: { case: 'closeStream', value: { status: { code: Code.OK } } } });
  });
}

function changesOf({ changes }: Service): ChangeService {
  if (changes === undefined) throw new BigtableError(Code.FAILED_PRECONDITION, 'this door reaches no change streams');
  return changes;
}

/** The cluster to which changes are made: an instance of Edubba has the data of all its clusters in one. */
async function clusterOf({ instances }: Service, context: RequestContext, table: string): Promise<string> {
  const instance = await instances?.getInstance(context, instanceOfTable(table));
  return instance?.clusters[0]?.id ?? '';
}

function requestOf(request: ReadChangeStreamRequest): ChangeStreamRequest {
  const { tableName, partition, startFrom, endTime, heartbeatDuration } = request;
  const range = rangeOfPartition(partition, 'partition');
  const heartbeatMs =
    heartbeatDuration && Number(heartbeatDuration.seconds) * 1000 + Math.floor(heartbeatDuration.nanos / 1e6);
  if (heartbeatMs !== undefined && heartbeatMs <= 0)
    throw invalidArgument('heartbeat_duration must be positive', { field: 'heartbeat_duration' });
  return {
    table: tableName,
    range,
    startMicros: startFrom.case === 'startTime' ? microsOf(startFrom.value, 'start_time') : undefined,
    tokens: startFrom.case === 'continuationTokens' ? startFrom.value.tokens.map(tokenOf) : undefined,
    endMicros: endTime && microsOf(endTime, 'end_time'),
    heartbeatMs,
  };
}

function tokenOf({ partition, token }: StreamContinuationToken): StreamToken {
  return { range: rangeOfPartition(partition, 'continuation_tokens.tokens.partition'), token };
}

function* answersOf(event: StreamEvent, { range }: ChangeStreamRequest, cluster: string): Generator<Answer, void> {
  switch (event.kind) {
    case 'change':
      return yield* changeAnswers(event, cluster);
    case 'heartbeat': {
      const { token, watermarkMicros } = event;
      const value = {
        continuationToken: { partition: partitionOf(range), token },
        estimatedLowWatermark: timestampOf(watermarkMicros),
      };
      return yield { streamRecord: { case: 'heartbeat', value } };
    }
    case 'closed': {
      const value = {
        status: { code: Code.OUT_OF_RANGE, message: 'the partition has changed: read the new ones' },
        continuationTokens: event.tokens.map(({ range: of, token }) => ({ partition: partitionOf(of), token })),
        newPartitions: event.ranges.map(partitionOf),
      };
      return yield { streamRecord: { case: 'closeStream', value } };
    }
  }
}

/** One message, or several if the values are large. */
function* changeAnswers(
  { row, mutations, commitMicros, origin, token, watermarkMicros }: Extract<StreamEvent, { kind: 'change' }>,
  cluster: string,
): Generator<Answer, void> {
  const messages = [...packed(mutations.flatMap((mutation) => [...chunksOf(mutationMessage(mutation))]))];
  if (messages.length === 0) messages.push([]);
  for (const [i, chunks] of messages.entries()) {
    const isFirst = i === 0;
    const isLast = i === messages.length - 1;
    const head = {
      rowKey: toBytes(row),
      commitTimestamp: timestampOf(commitMicros),
      ...(origin === 'user' && { sourceClusterId: cluster }),
    };
    const kind = origin === 'user' ? ChangeType.USER : ChangeType.GARBAGE_COLLECTION;
    const value = {
      type: isFirst ? kind : ChangeType.CONTINUATION,
      chunks,
      ...(isFirst && head),
      ...(isLast && { done: true, token, estimatedLowWatermark: timestampOf(watermarkMicros) }),
    };
    yield { streamRecord: { case: 'dataChange', value } };
  }
}

/** The mutation, a large value in several chunks. */
function* chunksOf(mutation: ReturnType<typeof mutationMessage>): Generator<Chunk, void> {
  const set = mutation.mutation.case === 'setCell' ? mutation.mutation.value : undefined;
  if (set === undefined || set.value.length <= CHUNK_BYTES) return yield { mutation };
  const { value, ...cell } = set;
  for (let offset = 0; offset < value.length; offset += CHUNK_BYTES) {
    const part = value.subarray(offset, offset + CHUNK_BYTES);
    yield {
      chunkInfo: {
        chunkedValueSize: value.length,
        chunkedValueOffset: offset,
        lastChunk: offset + part.length === value.length,
      },
      mutation: {
        mutation: {
          case: 'setCell',
          value: {
            familyName: cell.familyName,
            columnQualifier: cell.columnQualifier,
            timestampMicros: cell.timestampMicros,
            value: part,
          },
        },
      },
    };
  }
}

function* packed(chunks: readonly Chunk[]): Generator<Chunk[], void> {
  let message: Chunk[] = [];
  let bytes = 0;
  for (const chunk of chunks) {
    const size = bytesOf(chunk);
    if (message.length > 0 && bytes + size > CHUNK_BYTES) {
      yield message;
      message = [];
      bytes = 0;
    }
    message.push(chunk);
    bytes += size;
  }
  if (message.length > 0) yield message;
}

/** About the bytes that a chunk takes. */
function bytesOf({ mutation }: Chunk): number {
  const kind = mutation?.mutation;
  return 100 + (kind?.case === 'setCell' ? (kind.value.value?.length ?? 0) : 0);
}
