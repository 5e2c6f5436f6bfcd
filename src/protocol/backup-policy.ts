/**
 * A table's own wish for backups (API: google.bigtable.admin.v2.Table.AutomatedBackupPolicy). The schema keeps it as
 * the API's message, with fields that have no effect here.
 */
import type { TableSchema } from '../model/index.ts';
import { flag, message, optional, whole } from '../protobuf/index.ts';

/** The field of a table in which it is kept. */
export const BACKUP_POLICY = 'automated_backup_policy';

export interface BackupPolicy {
  /** A backup expires after that time, microseconds. */
  readonly retentionMicros: number;
  /** A backup is a hot one for that time, microseconds; undefined: it is a standard one. */
  readonly hotMicros: number | undefined;
}

interface Duration {
  readonly seconds?: number;
  readonly nanos?: number;
}

interface Policy {
  readonly retention_period?: Duration;
  readonly keep_hot_duration?: Duration;
  readonly disabled?: boolean;
}

const duration = message<Duration>('Duration', { seconds: optional(1, whole), nanos: optional(2, whole) });
const policy = message<Policy>('AutomatedBackupPolicy', {
  retention_period: optional(1, duration),
  keep_hot_duration: optional(4, duration),
  disabled: optional(5, flag),
});

/** Undefined where the table wants none. INVALID_ARGUMENT if it is no such message. */
export function backupPolicyOf({ extra }: TableSchema): BackupPolicy | undefined {
  const encoded = extra?.[BACKUP_POLICY];
  if (!encoded) return undefined;
  const {
    retention_period: retention,
    keep_hot_duration: hot,
    disabled,
  } = policy.decode(Buffer.from(encoded, 'base64'));
  if (disabled || retention === undefined) return undefined;
  return { retentionMicros: microsOf(retention), hotMicros: hot && microsOf(hot) };
}

function microsOf({ seconds = 0, nanos = 0 }: Duration): number {
  return seconds * 1e6 + Math.floor(nanos / 1000);
}
