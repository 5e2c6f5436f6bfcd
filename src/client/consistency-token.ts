/**
 * Consistency tokens: each names a table and the instant it was issued. Every write acknowledged before that instant is
 * visible wherever the table can be read; with one cluster that is so immediately.
 */
import { crc32c, invalidArgument } from '../base/index.ts';

export function consistencyToken(tableId: string, nowMicros: number): string {
  const text = `${tableId}-${nowMicros.toString(16)}`;
  return `${text}-${checkOf(text)}`;
}

/** INVALID_ARGUMENT if the token was not issued by this table. */
export function checkConsistencyToken(token: string, table: string, tableId: string): void {
  const at = token.lastIndexOf('-');
  const text = token.slice(0, Math.max(at, 0));
  if (!text.startsWith(`${tableId}-`) || token.slice(at + 1) !== checkOf(text)) {
    throw invalidArgument(`consistency token ${JSON.stringify(token.slice(0, 80))} was not given by table ${table}`);
  }
}

function checkOf(text: string): string {
  return crc32c(Buffer.from(text, 'latin1')).toString(16).padStart(8, '0');
}
