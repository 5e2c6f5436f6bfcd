/**
 * ReadModifyWrite as pure computation: from the newest cells and the rules to the cells to be written
 * (API: google.bigtable.v2.ReadModifyWriteRowRequest). Rules apply in order and each sees what those before it made.
 */
import { addWrapping, asBuffer, BigtableError, Code, type Int64, int64Bytes, quote, readInt64BE } from '../base/index.ts';
import { type Cell, type ColumnKey, columnKey, type Mutation, type ReadModifyWriteRule } from '../model/index.ts';

export interface ReadModifyWriteResult {
  readonly mutations: readonly Mutation[];
  /** The new cells, one a column, ordered by column. */
  readonly cells: readonly Cell[];
}

/** `newest`: the newest visible cell of each column that a rule names; `now`: the server's time for the new cells. */
export function readModifyWrite(
  rules: readonly ReadModifyWriteRule[],
  newest: ReadonlyMap<ColumnKey, Cell>,
  now: Int64,
): ReadModifyWriteResult {
  const made = new Map<ColumnKey, Cell>();
  for (const rule of rules) {
    const key = columnKey(rule.family, rule.qualifier);
    const old = made.get(key) ?? newest.get(key);
    const timestamp = old !== undefined && old.timestamp > now ? old.timestamp : now;
    made.set(key, { family: rule.family, qualifier: rule.qualifier, timestamp, value: changedValue(rule, old) });
  }
  const cells = [...made].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, cell]) => cell);
  return { cells, mutations: cells.map(({ family, qualifier, timestamp, value }) => ({ kind: 'setCell', family, qualifier, timestamp, value })) };
}

function changedValue(rule: ReadModifyWriteRule, old: Cell | undefined): Uint8Array {
  if (rule.change.kind === 'append') return old === undefined ? rule.change.suffix : Buffer.concat([old.value, rule.change.suffix]);
  // an absent cell counts as 0; one that is there must hold 8 bytes, as the API says: an empty value is no number
  if (old === undefined) return int64Bytes(rule.change.amount);
  if (old.value.length !== 8) {
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `column ${rule.family}:${quote(rule.qualifier)} holds ${old.value.length} bytes: only a value of 8 bytes (big-endian int64) can be incremented`,
    );
  }
  return int64Bytes(addWrapping(readInt64BE(asBuffer(old.value), 0), rule.change.amount));
}
