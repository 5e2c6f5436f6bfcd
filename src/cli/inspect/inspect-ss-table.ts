/** Shows what is inside an SSTable. */
import { type ByteString, jsonField, jsonKey, quote, toBigInt } from '../../base/index.ts';
import { type InspectedSsTable, inspectSsTable, ssTableEntries, type SsTableComponents } from '../../inspect/index.ts';
import { type Entry, EntryKind, familyOf, qualifierOf } from '../../model/index.ts';
import type { InspectOptions } from './inspect-options.ts';
import { aligned, counted, formatMicros, jsonLine } from '../output/output.ts';
import { quoted } from '../output/quote.ts';
import type { Terminal } from '../output/terminal.ts';

const NAME_OF_KIND = new Map<number, string>(Object.entries(EntryKind).map(([name, kind]) => [kind, name]));

export async function inspectSsTableFile(
  source: SsTableComponents,
  path: string,
  options: InspectOptions,
  terminal: Terminal,
): Promise<void> {
  const inspected = await inspectSsTable(source, path, { verify: options.verify ?? false });
  await terminal.print(options.json ? jsonLine(asJson(inspected)) : asText(inspected));
  if (!options.entries) return;
  if (!options.json) await terminal.print('\nentries\n');
  for await (const entry of ssTableEntries(source, path))
    await terminal.print(options.json ? jsonLine(entryAsJson(entry)) : entryText(entry));
}

function asText({ layout, verified }: InspectedSsTable): string {
  const { properties } = layout;
  const counts = Object.entries(properties.entries).filter(([, count]) => count > 0);
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  const facts: [string, string][] = [
    ['file', `${layout.path}, ${counted(layout.sizeBytes, 'byte')}`],
    [
      'format',
      `version ${layout.formatVersion}, required features ${layout.requiredFeatures}, optional features ${layout.optionalFeatures}`,
    ],
    ['group', properties.group],
    [
      'created',
      `${formatMicros(toBigInt(properties.createdMicros))}${properties.origin === '' ? '' : `, from ${properties.origin}`}`,
    ],
    [
      'entries',
      `${total}${counts.length === 0 ? '' : `: ${counts.map(([name, count]) => `${count} ${name}`).join(', ')}`}`,
    ],
    [
      'rows',
      properties.firstRow === undefined
        ? '0'
        : `${properties.rows}, from ${quote(properties.firstRow)} to ${quote(properties.lastRow ?? '')}`,
    ],
    [
      'timestamps',
      properties.minTimestamp === undefined ? 'none' : `from ${properties.minTimestamp} to ${properties.maxTimestamp}`,
    ],
    ['raw bytes', String(properties.rawBytes)],
    ['families', familiesText(properties.families ?? [])],
    [
      'newest record',
      properties.newest === undefined
        ? 'not told'
        : `epoch ${properties.newest.epoch}, sequence ${properties.newest.sequence}`,
    ],
    [
      'newest time given',
      properties.lastServerMicros
        ? formatMicros(BigInt(properties.lastServerMicros))
        : properties.lastServerMicros === 0
          ? 'none'
          : 'not told',
    ],
    ['compression', compressionText(layout)],
    ['bloom filter', bloomText(layout)],
    ...layout.rowRangeDeletions.map(({ start, end }): [string, string] => [
      'deleted',
      `rows from ${quote(start)} ${end === undefined ? 'on' : `to ${quote(end)}`}, in older files`,
    ]),
  ];
  const sections = layout.sections.map(({ name, offset, lengthBytes }) => [name, offset, lengthBytes]);
  const blocks = layout.blocks.map(({ offset, lengthBytes, rawBytes, entries, first, lastRow }, i) => [
    i,
    offset,
    lengthBytes,
    rawBytes,
    ratio(rawBytes, lengthBytes),
    entries,
    quote(first.row),
    first.column === '' ? '' : columnText(first.column),
    quote(lastRow),
  ]);
  return [
    aligned(facts),
    `\n${aligned([['section', 'offset', 'bytes'], ...sections])}`,
    `\n${aligned([['block', 'offset', 'bytes', 'raw', 'ratio', 'entries', 'first row', 'first column', 'last row'], ...blocks])}`,
    verified ? `\nverified: ${verifiedText(verified)}\n` : '',
  ].join('');
}

function familiesText(families: NonNullable<InspectedSsTable['layout']['properties']['families']>): string {
  const texts = families.map(
    ({ family, cells, logicalBytes }) =>
      `${familyText(family)}: ${counted(cells, 'cell')}, ${counted(logicalBytes, 'byte')}`,
  );
  return texts.join('; ') || 'not told';
}

function bloomText({ bloomFilter }: InspectedSsTable['layout']): string {
  return bloomFilter
    ? `${bloomFilter.kind}, ${counted(bloomFilter.keys, 'key')}, ${counted(bloomFilter.sizeBytes, 'byte')}`
    : 'none';
}

function compressionText({ properties, compressionSharedBytes }: InspectedSsTable['layout']): string {
  const { kind, rawBytes, storedBytes } = properties.compression;
  if (kind === 'none') return kind;
  const shared = compressionSharedBytes === 0 ? '' : `, ${counted(compressionSharedBytes, 'byte')} shared by all`;
  return `${kind}, blocks of ${counted(rawBytes, 'byte')} in ${storedBytes}, ${ratio(rawBytes, storedBytes)} : 1${shared}`;
}

function ratio(rawBytes: number, storedBytes: number): string {
  return storedBytes === 0 ? '1.0' : (rawBytes / storedBytes).toFixed(1);
}

export function verifiedText({ blocks, entries, blockBytes }: NonNullable<InspectedSsTable['verified']>): string {
  return `${counted(blocks, 'block')}, ${counted(entries, 'entry', 'entries')}, ${counted(blockBytes, 'byte')}: all is as it was written`;
}

function columnText(column: ByteString): string {
  return column.includes('\0') ? `${familyText(familyOf(column))}:${quote(qualifierOf(column))}` : familyText(column);
}

/** A family that was dropped and made again has a generation: FAMILY#2. */
function familyText(stored: string): string {
  return stored.replace('\x01', '#');
}

function entryText({ row, column, kind, timestamp, rangeEnd, value }: Entry): string {
  const place = `${quote(row)} ${column === '' ? '' : `${columnText(column)} `}`;
  const name = NAME_OF_KIND.get(kind) ?? `kind ${kind}`;
  if (kind === EntryKind.rangeDeletion) return `${place}${name} @ ${timestamp} to ${rangeEnd ?? 'the end'}\n`;
  return kind < EntryKind.put ? `${place}${name}\n` : `${place}${name} @ ${timestamp} ${quoted(bufferOf(value))}\n`;
}

function asJson({ layout, verified }: InspectedSsTable): unknown {
  const { firstRow, lastRow, ...properties } = layout.properties;
  return {
    ...layout,
    properties: {
      ...properties,
      ...jsonKey('firstRow', firstRow),
      ...jsonKey('lastRow', lastRow),
      families: properties.families?.map(({ family, ...counts }) => ({ family: familyText(family), ...counts })),
    },
    rowRangeDeletions: layout.rowRangeDeletions.map(({ start, end }) => ({
      ...jsonKey('start', start),
      ...jsonKey('end', end),
    })),
    blocks: layout.blocks.map((inspected) => {
      const { first, lastRow: last, ...block } = inspected;
      return { ...block, first: positionAsJson(first), ...jsonKey('lastRow', last) };
    }),
    verified,
  };
}

function positionAsJson({
  row,
  column,
  kind,
  timestamp,
}: Pick<Entry, 'row' | 'column' | 'kind' | 'timestamp'>): Record<string, unknown> {
  return {
    ...jsonKey('row', row),
    ...(column !== '' && { family: familyText(familyOf(column)) }),
    ...(column.includes('\0') && jsonKey('qualifier', qualifierOf(column))),
    kind: NAME_OF_KIND.get(kind),
    timestamp,
  };
}

function entryAsJson(entry: Entry): unknown {
  return {
    ...positionAsJson(entry),
    rangeEnd: entry.rangeEnd,
    ...(entry.kind >= EntryKind.put && jsonField('value', bufferOf(entry.value))),
  };
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
