/** What commands print: cbt's layout for people, one JSON document a line with --json. */
import { toText } from '../base/index.ts';
import type { Cell, Row } from '../embedded/index.ts';

export function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function printJson(value: unknown): void {
  printLine(JSON.stringify(value, (_key, part: unknown) => (typeof part === 'bigint' ? part.toString() : part)));
}

/** A row as cbt shows it. */
export function printRow(row: Row): void {
  printLine('----------------------------------------');
  printLine(visible(row.key));
  for (const cell of row.cells) {
    printLine(`  ${`${cell.family}:${visible(cell.qualifier)}`.padEnd(40)} @ ${formatMicros(cell.timestamp)}`);
    printLine(`    ${JSON.stringify(visible(cell.value))}`);
  }
}

/** Bytes that are no UTF-8 are given as {"base64": …}. */
export function rowAsJson(row: Row): unknown {
  return {
    key: jsonBytes(row.key),
    cells: row.cells.map((cell: Cell) => ({ family: cell.family, qualifier: jsonBytes(cell.qualifier), timestamp: cell.timestamp, value: jsonBytes(cell.value) })),
  };
}

function jsonBytes(bytes: Buffer): string | { readonly base64: string } {
  const text = bytes.toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes) ? text : { base64: bytes.toString('base64') };
}

/** Text as it is, other bytes as \xNN. */
function visible(bytes: Buffer): string {
  const text = toText(bytes.latin1Slice());
  if (!text.includes('\ufffd')) return text;
  return [...bytes].map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`)).join('');
}

/** Microseconds as cbt writes them: 2006/01/02-15:04:05.000000 in UTC; the bare number where the calendar ends. */
function formatMicros(micros: bigint): string {
  const seconds = micros / 1_000_000n;
  const rest = micros % 1_000_000n;
  if (rest < 0n || seconds < 0n || seconds > 253_402_300_799n) return `${micros}`;
  const date = new Date(Number(seconds) * 1000).toISOString();
  return `${date.slice(0, 10).replaceAll('-', '/')}-${date.slice(11, 19)}.${String(rest).padStart(6, '0')}`;
}
