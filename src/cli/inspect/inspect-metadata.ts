/**
 * Shows what a database consists of: the lock service's files, tables, tablets and their files; with --verify every
 * SSTable is checked.
 */
import { jsonKey, quote } from '../../base/index.ts';
import {
  type InspectedTablet,
  inspectMetadata,
  inspectSsTable,
  type MetadataComponents,
  type MetadataInspection,
} from '../../inspect/index.ts';
import type { TableSchema } from '../../model/index.ts';
import { formatGcRule } from '../arguments/gc-policy.ts';
import type { InspectOptions } from './inspect-options.ts';
import { verifiedText } from './inspect-ss-table.ts';
import { counted, formatMicros, jsonLine } from '../output/output.ts';
import type { Terminal } from '../output/terminal.ts';

type MetadataSource = MetadataComponents & { readonly directory: string; readonly identity: string };

interface Tally {
  tablets: number;
  readonly files: Set<string>;
  verifiedEntries: number;
}

export async function inspectMetadataOf(
  source: MetadataSource,
  options: InspectOptions,
  terminal: Terminal,
): Promise<void> {
  const inspected = await inspectMetadata(source);
  const names = new Map(inspected.schemas.map(({ id, name }) => [id, name]));
  const tally: Tally = { tablets: 0, files: new Set(), verifiedEntries: 0 };
  await terminal.print(options.json ? headAsJson(source, inspected) : headText(source, inspected));
  for await (const tablet of inspected.tablets()) {
    tally.tablets++;
    await terminal.print(
      options.json ? jsonLine(tabletAsJson(tablet)) : tabletText(tablet, names.get(tablet.row.tableId), options),
    );
    for (const path of Object.values(tablet.row.files).flat()) {
      // files are shared after a split
      if (tally.files.has(path)) continue;
      tally.files.add(path);
      if (options.verify) await verifyFile(source, path, options, terminal, tally);
    }
  }
  if (options.json) return;
  await terminal.print(
    `${counted(tally.tablets, 'tablet')}, ${counted(tally.files.size, 'SSTable')}${options.verify ? `, ${counted(tally.verifiedEntries, 'entry', 'entries')} verified` : ''}\n`,
  );
  await terminal.print(
    'read without a lock: if a server is running here, what it acknowledged before now is there, and maybe a little more\n',
  );
}

async function verifyFile(
  source: MetadataSource,
  path: string,
  options: InspectOptions,
  terminal: Terminal,
  tally: Tally,
): Promise<void> {
  const { verified } = await inspectSsTable(source, path, { verify: true });
  if (!verified) return;
  tally.verifiedEntries += verified.entries;
  await terminal.print(
    options.json ? jsonLine({ kind: 'verified', path, ...verified }) : `    ${path}: ${verifiedText(verified)}\n`,
  );
}

function headText({ directory, identity }: MetadataSource, { lockFiles, schemas }: MetadataInspection): string {
  const lines = [`database ${identity} in ${directory}`, `lock service: ${counted(lockFiles.length, 'file')}`];
  for (const { path, version, sizeBytes } of lockFiles)
    lines.push(`  ${path}, version ${version}, ${counted(sizeBytes, 'byte')}`);
  lines.push(counted(schemas.length, 'table'));
  for (const schema of schemas) lines.push(...tableLines(schema));
  lines.push('tablets', '');
  return lines.join('\n');
}

function tableLines({ id, name, granularity, deletionProtection, families }: TableSchema): string[] {
  const head = `  ${id} ${name}, timestamps in ${granularity}${deletionProtection ? ', protected from deletion' : ''}`;
  const family = (one: TableSchema['families'][string]): string => {
    const aggregate = one.valueType?.aggregate
      ? `, ${one.valueType.aggregate.kind} of ${one.valueType.aggregate.input}`
      : '';
    const generation = one.generation ? `, generation ${one.generation}` : '';
    return `    ${one.name}: ${formatGcRule(one.gcRule)}${aggregate}${generation}`;
  };
  return [head, ...Object.values(families).map(family)];
}

function tabletText(
  { rowIn, row, events }: InspectedTablet,
  tableName: string | undefined,
  { entries }: InspectOptions,
): string {
  const { tableId, range, server, epoch, version, files, redo, logs, lastServerMicros = 0 } = row;
  const table =
    rowIn === 'METADATA' ? `${tableId} ${tableName ?? '(its table has no schema any more)'}` : `${tableId} METADATA`;
  const lines = [
    `  ${table}, rows ${range.start === '' ? 'from the first' : `from ${quote(range.start)}`} ${range.end === undefined ? 'to the last' : `to ${quote(range.end)}`}`,
    `    ${server ? `assigned to ${server.name} at ${server.address}` : 'not assigned'}, epoch ${epoch}, version ${version}; its row is in the ${rowIn === 'METADATA' ? 'table METADATA' : rowIn}`,
    `    redo point: epoch ${redo.epoch}, record ${redo.sequence}; later records are in ${logs.length === 0 ? 'no log' : logs.join(', ')}`,
  ];
  if (lastServerMicros > 0)
    lines.push(
      `    newest time that a server gave, up to the redo point or later: ${formatMicros(BigInt(lastServerMicros))}`,
    );
  for (const [group, paths] of Object.entries(files))
    lines.push(`    ${group}: ${paths.length === 0 ? 'no SSTables' : `${paths.join(', ')} (newest first)`}`);
  if (entries)
    for (const event of events)
      lines.push(
        `    ${formatMicros(BigInt(event.atMicros))} ${event.kind}, epoch ${event.epoch}${event.server === undefined ? '' : `, ${event.server}`}`,
      );
  return `${lines.join('\n')}\n`;
}

function headAsJson({ directory, identity }: MetadataSource, { lockFiles, schemas }: MetadataInspection): string {
  return (
    jsonLine({ kind: 'database', directory, identity, lockFiles }) +
    schemas.map((schema) => jsonLine({ kind: 'table', ...schema })).join('')
  );
}

function tabletAsJson({ key, rowIn, row, events }: InspectedTablet): unknown {
  return {
    kind: 'tablet',
    ...jsonKey('key', key),
    rowIn,
    ...row,
    range: { ...jsonKey('start', row.range.start), ...jsonKey('end', row.range.end) },
    events,
  };
}
