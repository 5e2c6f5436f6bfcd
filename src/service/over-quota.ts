/** The refusal of a write that adds to a family or table beyond its quota (docs/decisions/0107-usage-and-quotas.md). */
import { BigtableError, Code, quote } from '../base/index.ts';

export interface OverQuota {
  /** Its full name. */
  readonly table: string;
  /** Undefined: the quota is that of the table. */
  readonly family?: string | undefined;
  readonly quotaBytes: number;
  /** What is taken already, as known to the server. Undefined: the caller may not know it. */
  readonly usedBytes?: number | undefined;
}

/** RESOURCE_EXHAUSTED: nothing was written. The details say the same as the message. */
export function overQuota({ table, family, quotaBytes, usedBytes }: OverQuota): BigtableError {
  const what = family === undefined ? `table ${table}` : `column family ${quote(family)} of table ${table}`;
  const used = usedBytes === undefined ? '' : `, it takes ${usedBytes} bytes already`;
  const message = `${what} has a quota of ${quotaBytes} bytes${used}, and the write adds more: nothing was written. Deletions are allowed`;
  const details = {
    table,
    quotaBytes,
    ...(family !== undefined && { family }),
    ...(usedBytes !== undefined && { usedBytes }),
  };
  return new BigtableError(Code.RESOURCE_EXHAUSTED, message, { details });
}

/** The error, without what the table or family takes if it is such a refusal. */
export function withoutUsage(error: BigtableError): BigtableError {
  const { table, family, quotaBytes, usedBytes } = error.details;
  if (error.code !== Code.RESOURCE_EXHAUSTED || typeof table !== 'string') return error;
  if (typeof quotaBytes !== 'number' || usedBytes === undefined) return error;
  return overQuota({ table, family: typeof family === 'string' ? family : undefined, quotaBytes });
}
