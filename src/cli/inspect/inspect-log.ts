/** Shows the content of a commit log: its place, its appends, their records, and its end. */
import { asBuffer, jsonField, jsonKey, notFound, quote, toBigInt } from '../../base/index.ts';
import type { FileSystem } from '../../env/index.ts';
import { type InspectedAppend, type InspectedRecord, inspectLog } from '../../inspect/index.ts';
import { familyName, mergedState, type Mutation } from '../../model/index.ts';
import type { InspectOptions } from './inspect-options.ts';
import { aligned, counted, formatMicros, jsonLine } from '../output/output.ts';
import { quoted } from '../output/quote.ts';
import type { Terminal } from '../output/terminal.ts';

interface LogFiles {
  readonly segments: readonly { readonly name: string; readonly base: number; readonly sizeBytes: number }[];
  readonly fenced: boolean;
  readonly end: number;
  readonly tornBytes: number;
}

interface LogSource {
  readonly fileSystem: FileSystem;
  logFiles(path: string): Promise<LogFiles>;
}

const ORIGINS = ['user', 'garbage collection', 'replication'];

/** `segment`: the name of the requested segment; undefined for the whole log. */
export async function inspectLogFile(
  source: LogSource,
  { path, segment }: { readonly path: string; readonly segment: string | undefined },
  options: InspectOptions,
  terminal: Terminal,
): Promise<void> {
  // a torn or damaged log is shown as far as it can be read: its end is looked for last
  const sum = { appends: 0, records: 0, firstSequence: 0, lastSequence: 0 };
  const known = segment === undefined ? undefined : await segmentOf(source, path, segment);
  for await (const append of inspectLog(source.fileSystem, path, known)) {
    sum.appends++;
    sum.records += append.records.length;
    if (sum.appends === 1) sum.firstSequence = append.records[0]?.sequence ?? 0;
    sum.lastSequence = append.records.at(-1)?.sequence ?? sum.lastSequence;
    if (!options.verify)
      await terminal.print(options.json ? jsonLine(appendAsJson(append, options)) : appendText(append, options));
  }
  const files = await source.logFiles(path);
  await terminal.print(options.json ? jsonLine({ log: path, ...files, ...sum }) : summaryText(path, files, sum));
}

/** The base of the segment and that of the next. */
async function segmentOf(
  source: LogSource,
  path: string,
  name: string,
): Promise<{ from: number; before: number | undefined }> {
  const { segments } = await source.logFiles(path);
  const at = segments.findIndex((segment) => segment.name === name);
  const found = segments[at];
  if (!found)
    throw notFound(
      `${name} is no segment of the log ${path}; its segments: ${segments.map((one) => one.name).join(', ') || 'none'}`,
    );
  return { from: found.base, before: segments[at + 1]?.base };
}

function appendText({ position, sizeBytes, records }: InspectedAppend, options: InspectOptions): string {
  const head = `append at ${position}, ${counted(sizeBytes, 'byte')}, ${counted(records.length, 'record')}\n`;
  return head + records.map((record) => recordText(record, options)).join('');
}

function recordText(inspected: InspectedRecord, { entries }: InspectOptions): string {
  const { tableId, epoch, sequence, commitMicros, origin, change, record } = inspected;
  const head = `  record ${sequence} of epoch ${epoch}, table ${tableId}, ${formatMicros(toBigInt(commitMicros))}${origin === 0 ? '' : `, by ${ORIGINS[origin]}`}: `;
  if (change.kind === 'dropRows') return `${head}drops ${rangeText(change.range)}\n`;
  const counts = Object.entries(change.mutations).map(([kind, count]) => `${count} ${kind}`);
  const rows =
    change.rows === 1
      ? `row ${quote(change.firstRow ?? '')}`
      : `${change.rows} rows, ${quote(change.firstRow ?? '')} to ${quote(change.lastRow ?? '')}`;
  const text = `${head}${rows}, ${counts.join(', ')}, ${counted(change.valueBytes, 'byte')} of values\n`;
  if (!entries || record.body.kind === 'dropRows') return text;
  return (
    text +
    record.body.rows
      .flatMap(({ row, mutations }) => mutations.map((mutation) => `    ${quote(row)} ${mutationText(mutation)}\n`))
      .join('')
  );
}

function rangeText({ start, end }: { readonly start: string; readonly end: string | undefined }): string {
  if (start === '' && end === undefined) return 'all rows';
  return `rows from ${quote(start)} ${end === undefined ? 'on' : `to ${quote(end)}`}`;
}

function mutationText(mutation: Mutation): string {
  if (mutation.kind === 'deleteFromRow') return mutation.kind;
  const family = familyName(mutation.family);
  if (mutation.kind === 'deleteFromFamily') return `${mutation.kind} ${family}`;
  const column = `${family}:${quote(mutation.qualifier)}`;
  switch (mutation.kind) {
    case 'setCell':
      return `${mutation.kind} ${column} @ ${mutation.timestamp} ${quoted(asBuffer(mutation.value))}`;
    case 'addToCell':
      return `${mutation.kind} ${column} @ ${mutation.timestamp} ${mutation.input instanceof Uint8Array ? quoted(asBuffer(mutation.input)) : mutation.input}`;
    case 'mergeToCell':
      return `${mutation.kind} ${column} @ ${mutation.timestamp} ${quoted(asBuffer(mergedState(mutation)))}`;
    case 'deleteFromColumn':
      return `${mutation.kind} ${column}${mutation.range ? ` from ${mutation.range.start ?? 'the beginning'} to ${mutation.range.end ?? 'the end'}` : ''}`;
  }
}

function summaryText(
  path: string,
  files: LogFiles,
  sum: { appends: number; records: number; firstSequence: number; lastSequence: number },
): string {
  const { segments, fenced, end, tornBytes } = files;
  const rows = segments.map(({ name, base, sizeBytes }) => [name, base, sizeBytes]);
  const records = sum.records === 0 ? '' : `, ${sum.firstSequence} to ${sum.lastSequence}`;
  return [
    `log ${path}: ${counted(sum.appends, 'append')}, ${counted(sum.records, 'record')}${records}\n`,
    aligned([['segment', 'base', 'bytes'], ...rows], '  '),
    `  ends at ${end}${fenced ? ', fenced: nothing is appended any more' : ''}\n`,
    tornBytes === 0
      ? ''
      : `  torn tail: ${counted(tornBytes, 'byte')} after the end belong to an append that was never finished or acknowledged (or is being written now)\n`,
    fenced ? '' : '  read without a lock: if a server is writing it, this is what it held at some instant\n',
  ].join('');
}

function appendAsJson({ position, sizeBytes, records }: InspectedAppend, { entries }: InspectOptions): unknown {
  return { position, sizeBytes, records: records.map((record) => recordAsJson(record, entries === true)) };
}

function recordAsJson({ record, change, ...head }: InspectedRecord, entries: boolean): unknown {
  if (change.kind === 'dropRows')
    return {
      ...head,
      change: { kind: change.kind, ...jsonKey('start', change.range.start), ...jsonKey('end', change.range.end) },
    };
  const { firstRow, lastRow, ...counts } = change;
  const summary = { ...head, change: { ...counts, ...jsonKey('firstRow', firstRow), ...jsonKey('lastRow', lastRow) } };
  if (!entries || record.body.kind === 'dropRows') return summary;
  return {
    ...summary,
    rows: record.body.rows.map(({ row, mutations }) => ({
      ...jsonKey('row', row),
      mutations: mutations.map(mutationAsJson),
    })),
  };
}

function mutationAsJson(mutation: Mutation): unknown {
  const { kind } = mutation;
  if (kind === 'deleteFromRow') return { kind };
  const head = { kind, family: familyName(mutation.family) };
  if (kind === 'deleteFromFamily') return head;
  const column = { ...head, ...jsonKey('qualifier', mutation.qualifier) };
  switch (kind) {
    case 'setCell':
      return { ...column, timestamp: mutation.timestamp, ...jsonField('value', asBuffer(mutation.value)) };
    case 'addToCell': {
      const { input, timestamp } = mutation;
      return {
        ...column,
        timestamp,
        ...(input instanceof Uint8Array ? jsonField('input', asBuffer(input)) : { input }),
      };
    }
    case 'mergeToCell':
      return { ...column, timestamp: mutation.timestamp, ...jsonField('state', asBuffer(mergedState(mutation))) };
    case 'deleteFromColumn':
      return { ...column, range: mutation.range };
  }
}
