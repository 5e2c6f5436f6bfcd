/** How rows, times and tables of text are written: cbt's layout for people, JSON for programs. */
import type { Row } from '../embedded/index.ts';
import { quoted, visible } from './quote.ts';

/** One line. int64 comes as text, since JSON's numbers end at 2^53. */
export function jsonLine(value: unknown): string {
  return `${JSON.stringify(value, (_key, part: unknown) => (typeof part === 'bigint' ? part.toString() : part))}\n`;
}

/** A row as cbt shows it. */
export function rowText(row: Row): string {
  const lines = ['-'.repeat(40), visible(row.key)];
  for (const { family, qualifier, timestamp, value } of row.cells) {
    lines.push(`  ${`${family}:${visible(qualifier)}`.padEnd(40)} @ ${formatMicros(timestamp)}`, `    ${quoted(value)}`);
  }
  return `${lines.join('\n')}\n`;
}

export function rowAsJson(row: Row): unknown {
  return {
    key: jsonBytes(row.key),
    cells: row.cells.map(({ family, qualifier, timestamp, value }) => ({ family, qualifier: jsonBytes(qualifier), timestamp, value: jsonBytes(value) })),
  };
}

/** Text where the bytes are UTF-8, else {"base64": …}. */
export function jsonBytes(bytes: Buffer): string | { readonly base64: string } {
  const text = bytes.toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes) ? text : { base64: bytes.toString('base64') };
}

/** Microseconds as cbt writes them: 2006/01/02-15:04:05.000000, but always in UTC; the bare number where the calendar ends. */
export function formatMicros(micros: bigint): string {
  const seconds = micros / 1_000_000n;
  if (micros < 0n || seconds > 253_402_300_799n) return `${micros}`;
  const date = new Date(Number(seconds) * 1000).toISOString();
  return `${date.slice(0, 10).replaceAll('-', '/')}-${date.slice(11, 19)}.${String(micros % 1_000_000n).padStart(6, '0')}`;
}

/** Columns joined by tabs of eight, as cbt's lists are: at least four columns of air behind the widest. */
export function tabbed(rows: readonly (readonly [string, string])[]): string {
  const stop = Math.ceil(Math.max(10, ...rows.map(([first]) => first.length + 4)) / 8);
  return rows.map(([first, second]) => `${first}${'\t'.repeat(stop - Math.floor(first.length / 8))}${second}\n`).join('');
}

/** Columns padded with spaces; numbers to the right. */
export function aligned(rows: readonly (readonly (string | number)[])[], indent = ''): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)));
  const cell = (value: string | number, column: number): string => {
    const width = widths[column] as number;
    return typeof value === 'number' ? String(value).padStart(width) : value.padEnd(width);
  };
  return rows.map((row) => `${indent}${row.map(cell).join('  ').trimEnd()}\n`).join('');
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
