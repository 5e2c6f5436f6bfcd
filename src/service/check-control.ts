/** The form of the calls of ControlService. */
import type { ByteString } from '../base/index.ts';
import type { Limits } from '../model/index.ts';
import { checkRowKey, checkTableName } from './check-names.ts';

/** A row at which tablets meet, or are to meet. */
export function checkTabletBound(table: string, row: ByteString, limits: Limits): void {
  checkTableName(table, limits);
  checkRowKey(row, limits, 'the first row of a tablet');
}
