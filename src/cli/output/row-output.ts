/** The formats of rows: cbt's layout for people, a line of JSON for programs. */
import { jsonBase64, jsonField } from '../../base/index.ts';
import type { Cell, Row } from '../../embedded/index.ts';
import { formatMicros, jsonLine } from './output.ts';
import { quoted, visible } from './quote.ts';
import type { ValueKind, ValueKinds } from './value-kinds.ts';

const INT64_BYTES = 8;

/** A row as cbt shows it, but with numbers where the schema has numbers. */
export function rowText(row: Row, kinds: ValueKinds): string {
  const lines = ['-'.repeat(40), visible(row.key)];
  for (const { family, qualifier, timestamp, value } of row.cells) {
    lines.push(
      `  ${`${family}:${visible(qualifier)}`.padEnd(40)} @ ${formatMicros(timestamp)}`,
      `    ${valueText(value, kinds.of(family, qualifier))}`,
    );
  }
  return `${lines.join('\n')}\n`;
}

/** One line. */
export function rowJson(row: Row, kinds: ValueKinds): string {
  const cells = row.cells.map((cell) => cellJson(cell, kinds.of(cell.family, cell.qualifier)));
  return `${open(jsonField('key', row.key))}"cells":[${cells.join(',')}]}\n`;
}

/** The key alone. */
export function keyJson(row: Row): string {
  return jsonLine(jsonField('key', row.key));
}

/**
 * Without a line end. A number is written with all its digits: JSON has no limit, though JavaScript reads beyond 2^53
 * inexactly.
 */
export function cellJson({ family, qualifier, timestamp, value }: Cell, kind: ValueKind): string {
  const head = open({ family, ...jsonField('qualifier', qualifier), timestamp: String(timestamp) });
  if (kind === 'int64' && value.length === INT64_BYTES) return `${head}"value":${value.readBigInt64BE()}}`;
  const fields = kind === 'text' ? jsonField('value', value) : jsonBase64('value', value);
  return head + JSON.stringify(fields).slice(1);
}

/** The object, open for another member. */
function open(fields: Readonly<Record<string, string>>): string {
  return `${JSON.stringify(fields).slice(0, -1)},`;
}

export function valueText(value: Buffer, kind: ValueKind): string {
  return kind === 'int64' && value.length === INT64_BYTES ? String(value.readBigInt64BE()) : quoted(value);
}
