/** A quota as a program gives it. */
import { checkOptions, describeValue, invalidArgument, type OptionTable } from '../../base/index.ts';
import type { QuotaChange } from '../../service/index.ts';
import { textOf } from '../values/input.ts';

/** A quota of a table, or of one of its families. */
export interface Quota {
  /** Default: the quota is of the table, all families together. */
  readonly family?: string;
  /** Most bytes on disk and in memory together, a whole number of 0 or more. `none`: no limit. */
  readonly bytes: number | 'none';
}

const OPTIONS = { family: 'bound', bytes: 'bound' } satisfies OptionTable<Quota>;

/** INVALID_ARGUMENT for anything else. */
export function quotaChange(quota: Quota): QuotaChange {
  checkOptions(quota, OPTIONS, 'setQuota');
  const { family, bytes } = quota;
  if (bytes !== 'none' && !(typeof bytes === 'number' && Number.isSafeInteger(bytes) && bytes >= 0))
    throw invalidArgument(
      `the bytes of a quota must be a whole number of 0 or more, or "none", not ${describeValue(bytes)}`,
    );
  return {
    ...(family !== undefined && { family: textOf(family, 'a family') }),
    ...(bytes !== 'none' && { quotaBytes: bytes }),
  };
}
