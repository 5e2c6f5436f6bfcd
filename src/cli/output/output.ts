/** The formats of times, tables of text, and JSON for programs. */
/** One line. int64 comes as text, since JSON's numbers end at 2^53. */
export function jsonLine(value: unknown): string {
  return `${JSON.stringify(value, (_key, part: unknown) => (typeof part === 'bigint' ? part.toString() : part))}\n`;
}

/**
 * Microseconds as cbt writes them: 2006/01/02-15:04:05.000000, but always in UTC; the bare number where the calendar
 * ends.
 */
export function formatMicros(micros: bigint): string {
  const seconds = micros / 1_000_000n;
  if (micros < 0n || seconds > 253_402_300_799n) return `${micros}`;
  const date = new Date(Number(seconds) * 1000).toISOString();
  return `${date.slice(0, 10).replaceAll('-', '/')}-${date.slice(11, 19)}.${String(micros % 1_000_000n).padStart(6, '0')}`;
}

/** Columns joined by tabs of eight, as cbt's lists are: at least four spaces after the widest. */
export function tabbed(rows: readonly (readonly string[])[]): string {
  const columns = rows[0]?.length ?? 0;
  const stops = Array.from({ length: columns }, (_, column) =>
    Math.ceil(Math.max(10, ...rows.map((row) => (row[column] ?? '').length + 4)) / 8),
  );
  const cell = (text: string, column: number): string => {
    const isLast = column === columns - 1;
    return isLast ? text : text + '\t'.repeat(stops[column]! - Math.floor(text.length / 8));
  };
  return rows.map((row) => `${row.map(cell).join('')}\n`).join('');
}

/** Columns padded with spaces; numbers to the right. */
export function aligned(rows: readonly (readonly (string | number)[])[], indent = ''): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)));
  const cell = (value: string | number, column: number): string => {
    const width = widths[column]!;
    return typeof value === 'number' ? String(value).padStart(width) : value.padEnd(width);
  };
  return rows.map((row) => `${indent}${row.map(cell).join('  ').trimEnd()}\n`).join('');
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
