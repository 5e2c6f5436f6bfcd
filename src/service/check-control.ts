/** The form of the calls of ControlService. */
import { type ByteString, invalidArgument } from '../base/index.ts';
import type { Limits } from '../model/index.ts';
import { checkFamilyName, checkRowKey, checkTableName } from './check-names.ts';
import type { QuotaChange } from './control-service.ts';

/** A quota is a whole number of bytes, from 0 on. */
export function checkQuota(table: string, { family, quotaBytes }: QuotaChange, limits: Limits): void {
  checkTableName(table, limits);
  if (family !== undefined) checkFamilyName(family, limits);
  if (quotaBytes !== undefined && (!Number.isSafeInteger(quotaBytes) || quotaBytes < 0))
    throw invalidArgument(`a quota must be a whole number of bytes from 0 to 2^53 - 1, not ${String(quotaBytes)}`, {
      field: 'quota_bytes',
    });
}

/** A row at which tablets meet, or are to meet. */
export function checkTabletBound(table: string, row: ByteString, limits: Limits): void {
  checkTableName(table, limits);
  checkRowKey(row, limits, 'the first row of a tablet');
}
