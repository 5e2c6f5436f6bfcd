/** edubba.v1.Control in terms of the service: an operator's calls, in addition to the Cloud Bigtable API. */
import {
  BigtableError,
  type ByteString,
  Code,
  fromBytes,
  invalidArgument,
  toBytes,
  toText,
  utf8,
} from '../../base/index.ts';
import type { FamilyUsage, RowRange } from '../../model/index.ts';
import { type ExportService, forgetResources, type Service } from '../../service/index.ts';
import { exportMessage } from '../convert/exported-backup.ts';
import { Control } from '../generated/edubba/v1/control_pb.ts';
import { checkViewsIfThere } from './authorized-views.ts';
import type { MethodTable } from './method-table.ts';

/**
 * Entries of a list in one message: of a tablet that is up to 128 KiB of keys, which clients with a limit of 4 MiB must
 * be able to take.
 */
const TABLETS_A_MESSAGE = 16;
const NAMES_A_MESSAGE = 1000;
const EXPORTS_A_MESSAGE = 100;

export function registerControl(methods: MethodTable, service: Service): void {
  const control = Control.method;
  methods.stream(control.compactTables, async (context, { table }, send) => {
    for await (const { doneTablets, totalTablets } of service.compactTables(
      context,
      table === '' ? undefined : table,
    )) {
      await send({ doneTablets: BigInt(doneTablets), totalTablets: BigInt(totalTablets) });
    }
  });
  methods.change(control.flush, async (context) => {
    await service.flush(context);
    return {};
  });
  methods.change(control.splitTablets, async (context, { table, row }) => {
    await service.splitTablets(context, table, row.length === 0 ? undefined : fromBytes(row));
    return {};
  });
  methods.change(control.mergeTablets, async (context, { table, row }) => {
    await service.mergeTablets(context, table, rowOf(row));
    return {};
  });
  methods.stream(control.listTablets, async (context, { table }, send) => {
    const tablets = await service.listTablets(context, table);
    for (const some of parts(tablets, TABLETS_A_MESSAGE)) {
      await send({
        tablets: some.map(({ range, server, files, fileBytes, memoryBytes }) => ({
          ...rangeBytes(range),
          server,
          files: BigInt(files),
          fileBytes: BigInt(fileBytes),
          memoryBytes: BigInt(memoryBytes),
        })),
      });
    }
  });
  methods.stream(control.listTabletEvents, async (context, { table }, send) => {
    for await (const { range, events } of service.listTabletEvents(context, table))
      await send({
        tablets: [
          {
            ...rangeBytes(range),
            events: events.map(({ kind, atMicros, epoch, server }) => ({
              kind,
              atMicros: BigInt(atMicros),
              epoch: BigInt(epoch),
              server: server ?? '',
            })),
          },
        ],
      });
  });
  methods.stream(control.listTableNames, async (context, { prefix }, send) => {
    const names = await service.listTableNames(context, prefix);
    for (const tables of parts(names, NAMES_A_MESSAGE)) await send({ tables: [...tables] });
  });
  methods.change(control.deleteTableAtOnce, async (context, { table }) => {
    await checkViewsIfThere(service, context, table);
    await service.deleteTable(context, table, true);
    await forgetResources(service, context, table);
    return {};
  });
  methods.stream(control.listDeletedTables, async (context, { prefix }, send) => {
    const deleted = await service.listDeletedTables(context, prefix);
    for (const some of parts(deleted, NAMES_A_MESSAGE))
      await send({
        tables: some.map(({ name, deletedMicros, keptUntilMicros }) => ({
          name,
          deletedMicros: BigInt(deletedMicros),
          keptUntilMicros: BigInt(keptUntilMicros),
        })),
      });
  });
  registerUsage(methods, service);
  registerExports(methods, service);
  methods.unary(control.getCounters, async (context) => {
    const counters = await service.counters(context);
    return {
      counters: Object.fromEntries(Object.entries(counters).map(([name, count]) => [name, BigInt(Math.trunc(count))])),
    };
  });
}

function registerUsage(methods: MethodTable, service: Service): void {
  const control = Control.method;
  methods.unary(control.getFamilyUsage, async (context, { table }) => ({
    families: (await service.familyUsage(context, table)).map(familyUsage),
  }));
  methods.unary(control.getTableUsage, async (context, { table }) => {
    const { families, table: totals } = await service.tableUsage(context, table);
    return {
      families: families.map((each) => ({
        usage: familyUsage(each),
        ...quotaOf(each),
        rowsWritten: BigInt(each.rowsWritten),
        rowsRead: BigInt(each.rowsRead),
        bytesIn: BigInt(each.bytesIn),
        bytesOut: BigInt(each.bytesOut),
      })),
      ...(totals && {
        tableTotals: {
          ...quotaOf(totals),
          reads: BigInt(totals.reads),
          writes: BigInt(totals.writes),
          rowsWritten: BigInt(totals.rowsWritten),
          rowsRead: BigInt(totals.rowsRead),
        },
      }),
    };
  });
  methods.change(control.setQuota, async (context, { table, family, quotaBytes }) => {
    await service.setQuota(context, table, {
      ...(family !== '' && { family: utf8(family) }),
      ...(quotaBytes !== undefined && { quotaBytes: Number(quotaBytes) }),
    });
    return {};
  });
}

function registerExports(methods: MethodTable, service: Service): void {
  const control = Control.method;
  const exportsOf = (): ExportService => {
    if (service.exports === undefined) throw new BigtableError(Code.UNIMPLEMENTED, 'there is no backup store here');
    return service.exports;
  };
  methods.change(control.exportBackup, async (context, { backup, id }) =>
    exportMessage(await exportsOf().exportBackup(context, backup, id)),
  );
  methods.change(control.importBackup, async (context, { name, id, expireMicros }) => {
    await exportsOf().importBackup(context, { name, from: id, expireMicros: Number(expireMicros) });
    return {};
  });
  methods.stream(control.listExports, async (context, _request, send) => {
    for (const some of parts(await exportsOf().listExports(context), EXPORTS_A_MESSAGE))
      await send({ exports: some.map(exportMessage) });
  });
  methods.change(control.deleteExport, async (context, { id }) => {
    await exportsOf().deleteExport(context, id);
    return {};
  });
}

function familyUsage({ family, cells, logicalBytes, diskBytes, memoryBytes }: FamilyUsage) {
  return {
    family: toText(family),
    cells: BigInt(cells),
    logicalBytes: BigInt(logicalBytes),
    diskBytes: BigInt(diskBytes),
    memoryBytes: BigInt(memoryBytes),
  };
}

function quotaOf({ quotaBytes }: { readonly quotaBytes?: number }): { quotaBytes?: bigint } {
  return quotaBytes === undefined ? {} : { quotaBytes: BigInt(quotaBytes) };
}

function rowOf(row: Uint8Array): ByteString {
  if (row.length === 0) throw invalidArgument('row must name the first row of a tablet', { field: 'row' });
  return fromBytes(row);
}

/** Splits a list into at least one part, so that an answer comes immediately. */
function* parts<T>(all: readonly T[], size: number): Iterable<readonly T[]> {
  for (let from = 0; from < all.length || from === 0; from += size) yield all.slice(from, from + size);
}

function rangeBytes({ start, end = '' }: RowRange): { start: Buffer; end: Buffer } {
  return { start: toBytes(start), end: toBytes(end) };
}
