/**
 * Tokens of writes that are sent again (API: google.bigtable.v2.Idempotency): a server that has made the write does not
 * make it a second time. It matters for aggregates, where adding twice is not adding once.
 *
 * A tablet keeps the tokens of its rows as cells of a locality group of their own, which no schema names and no read
 * shows (docs/decisions/0108-idempotency-tokens.md).
 */
import type { ByteString } from '../base/index.ts';
import { type ColumnKey, columnKey } from './cell.ts';
import type { TableSchema } from './schema.ts';

export interface Idempotency {
  /** The same for each attempt of a write of the row, and for no other write of it. */
  readonly token: ByteString;
  /** When the first attempt was sent, ms since 1970 by the client's clock. Undefined: any attempt is accepted. */
  readonly startMs?: number | undefined;
}

export const MIN_TOKEN_BYTES = 8;
export const MAX_TOKEN_BYTES = 1024;
/** For this time after a write its token is known. */
export const TOKEN_MS = 15 * 60 * 1000;

/** Users' names of groups and families have no dollar sign. Stored: never rename. */
export const TOKEN_GROUP = '$tokens';
export const TOKEN_FAMILY = '$token';

/** The column of the token in its row. */
export function tokenColumn(token: ByteString): ColumnKey {
  return columnKey(TOKEN_FAMILY, token);
}

/** Tokens as if they were all of a table: what compactions of their group know. */
export const TOKEN_SCHEMA: TableSchema = Object.freeze<TableSchema>({
  name: '',
  id: '',
  granularity: 'micros',
  deletionProtection: false,
  families: { [TOKEN_FAMILY]: { name: TOKEN_FAMILY, gcRule: { kind: 'maxAge', ageMicros: TOKEN_MS * 1000 } } },
});
