/**
 * An operator's calls to an Edubba server, over its own API (edubba.v1.Control). Other servers of the Cloud API lack
 * it: UNIMPLEMENTED.
 */
import {
  create,
  type DescMessage,
  type DescMethod,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { BigtableError, type ByteString, Code, fromBytes, toBytes, toText, utf8 } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import {
  type DeletedTable,
  type FamilyUsage,
  LIMITS,
  type RowRange,
  type TableUsage,
  type TabletHistory,
  type TabletStatistics,
} from '../../model/index.ts';
import { checkQuota, type CompactionProgress, type ControlService, type QuotaChange } from '../../service/index.ts';
import type { RpcClient } from '../../wire/index.ts';
import { decodeAnswer, encode } from '../codec/messages.ts';
import { Control, FamilyUsageSchema } from '../generated/edubba/v1/control_pb.ts';

const control = Control.method;

type Method<I extends DescMessage, O extends DescMessage, K extends DescMethod['methodKind']> = DescMethod & {
  readonly methodKind: K;
  readonly input: I;
  readonly output: O;
};

export async function call<I extends DescMessage, O extends DescMessage>(
  client: RpcClient,
  context: RequestContext,
  method: Method<I, O, 'unary'>,
  request: MessageInitShape<I>,
): Promise<MessageShape<O>> {
  const bytes = encode(method.input, create(method.input, request));
  return decodeAnswer(method.output, await client.unary(pathOf(method), bytes, context));
}

export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** A call of edubba.v1.Control. */
export async function controlCall<I extends DescMessage, O extends DescMessage>(
  client: RpcClient,
  context: RequestContext,
  method: Method<I, O, 'unary'>,
  request: MessageInitShape<I>,
): Promise<MessageShape<O>> {
  try {
    return await call(client, context, method, request);
  } catch (error) {
    throw explained(error, method);
  }
}

export async function* controlStream<I extends DescMessage, O extends DescMessage>(
  client: RpcClient,
  context: RequestContext,
  method: Method<I, O, 'server_streaming'>,
  request: MessageInitShape<I>,
): AsyncIterable<MessageShape<O>> {
  try {
    const bytes = encode(method.input, create(method.input, request));
    for await (const answer of client.stream(pathOf(method), bytes, context)) yield decodeAnswer(method.output, answer);
  } catch (error) {
    throw explained(error, method);
  }
}

export class RemoteControl implements ControlService {
  protected readonly client: RpcClient;

  constructor(client: RpcClient) {
    this.client = client;
  }

  async *compactTables(context: RequestContext, table?: string): AsyncIterable<CompactionProgress> {
    for await (const { doneTablets, totalTablets } of controlStream(this.client, context, control.compactTables, {
      table: table ?? '',
    })) {
      yield { doneTablets: Number(doneTablets), totalTablets: Number(totalTablets) };
    }
  }

  async flush(context: RequestContext): Promise<void> {
    await controlCall(this.client, context, control.flush, {});
  }

  async splitTablets(context: RequestContext, table: string, row?: ByteString): Promise<void> {
    if (row === '') throw new BigtableError(Code.INVALID_ARGUMENT, 'the first row of a tablet must not be empty');
    await controlCall(this.client, context, control.splitTablets, { table, row: toBytes(row ?? '') });
  }

  async mergeTablets(context: RequestContext, table: string, row: ByteString): Promise<void> {
    await controlCall(this.client, context, control.mergeTablets, { table, row: toBytes(row) });
  }

  async listTablets(context: RequestContext, table: string): Promise<readonly TabletStatistics[]> {
    const all: TabletStatistics[] = [];
    for await (const { tablets } of controlStream(this.client, context, control.listTablets, { table })) {
      for (const { start, end, server, files, fileBytes, memoryBytes } of tablets) {
        const range = rangeOf(start, end);
        all.push({
          range,
          server,
          files: Number(files),
          fileBytes: Number(fileBytes),
          memoryBytes: Number(memoryBytes),
        });
      }
    }
    return all;
  }

  async *listTabletEvents(context: RequestContext, table: string): AsyncIterable<TabletHistory> {
    for await (const { tablets } of controlStream(this.client, context, control.listTabletEvents, { table }))
      for (const { start, end, events } of tablets)
        yield {
          range: rangeOf(start, end),
          events: events.map(({ kind, atMicros, epoch, server }) => ({
            kind,
            atMicros: Number(atMicros),
            epoch: Number(epoch),
            server: server === '' ? undefined : server,
          })),
        };
  }

  /** Deletes the table; where there is none, the one of its name that was deleted last. */
  protected async deleteTableAtOnce(context: RequestContext, table: string): Promise<void> {
    await controlCall(this.client, context, control.deleteTableAtOnce, { table });
  }

  async listDeletedTables(context: RequestContext, prefix: string): Promise<readonly DeletedTable[]> {
    const all: DeletedTable[] = [];
    for await (const { tables } of controlStream(this.client, context, control.listDeletedTables, { prefix }))
      for (const { name, deletedMicros, keptUntilMicros } of tables)
        all.push({ name, deletedMicros: Number(deletedMicros), keptUntilMicros: Number(keptUntilMicros) });
    return all;
  }

  async familyUsage(context: RequestContext, table: string): Promise<readonly FamilyUsage[]> {
    const { families } = await controlCall(this.client, context, control.getFamilyUsage, { table });
    return families.map(familyUsage);
  }

  async tableUsage(context: RequestContext, table: string): Promise<TableUsage> {
    const { families, tableTotals } = await controlCall(this.client, context, control.getTableUsage, { table });
    return {
      families: families.map(({ usage, quotaBytes, rowsWritten, rowsRead, bytesIn, bytesOut }) => ({
        ...familyUsage(usage ?? create(FamilyUsageSchema)),
        ...quotaOf(quotaBytes),
        rowsWritten: Number(rowsWritten),
        rowsRead: Number(rowsRead),
        bytesIn: Number(bytesIn),
        bytesOut: Number(bytesOut),
      })),
      ...(tableTotals && {
        table: {
          ...quotaOf(tableTotals.quotaBytes),
          reads: Number(tableTotals.reads),
          writes: Number(tableTotals.writes),
          rowsWritten: Number(tableTotals.rowsWritten),
          rowsRead: Number(tableTotals.rowsRead),
        },
      }),
    };
  }

  async setQuota(context: RequestContext, table: string, change: QuotaChange): Promise<void> {
    checkQuota(table, change, LIMITS.default);
    const { family = '', quotaBytes } = change;
    const request = { table, family: toText(family) };
    await controlCall(
      this.client,
      context,
      control.setQuota,
      quotaBytes === undefined ? request : { ...request, quotaBytes: BigInt(quotaBytes) },
    );
  }

  async counters(context: RequestContext): Promise<Readonly<Record<string, number>>> {
    const { counters } = await controlCall(this.client, context, control.getCounters, {});
    return Object.fromEntries(
      Object.entries(counters)
        .map(([name, count]): [string, number] => [name, Number(count)])
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  }

  /** Names of tables that begin with the prefix, in any instance, ascending. */
  protected async tableNames(context: RequestContext, prefix: string): Promise<string[]> {
    const names: string[] = [];
    for await (const { tables } of controlStream(this.client, context, control.listTableNames, { prefix }))
      names.push(...tables);
    return names;
  }
}

function familyUsage({ family, cells, logicalBytes, diskBytes, memoryBytes }: MessageShape<typeof FamilyUsageSchema>) {
  return {
    family: utf8(family),
    cells: Number(cells),
    logicalBytes: Number(logicalBytes),
    diskBytes: Number(diskBytes),
    memoryBytes: Number(memoryBytes),
  };
}

function quotaOf(quotaBytes: bigint | undefined): { readonly quotaBytes?: number } {
  return quotaBytes === undefined ? {} : { quotaBytes: Number(quotaBytes) };
}

/** A server that does not know the call is not one of Edubba's, or an older one. */
function explained(error: unknown, { parent, name }: DescMethod): unknown {
  if (!(error instanceof BigtableError) || error.code !== Code.UNIMPLEMENTED) return error;
  const message = `the server lacks ${parent.typeName}/${name}: it is not an Edubba server, or one of an earlier version (it says: ${error.message})`;
  return new BigtableError(Code.UNIMPLEMENTED, message, { cause: error });
}

/** An empty `end` is the end of the table. */
function rangeOf(start: Uint8Array, end: Uint8Array): RowRange {
  return { start: fromBytes(start), end: end.length === 0 ? undefined : fromBytes(end) };
}
