/** What a backup is of: the table, and who might read it, at that time. */
import type { Policy } from './policy.ts';
import type { TableSchema } from './schema.ts';

/** A policy that was in force on the table of a backup, or on one of its families. */
export interface SourcePolicy extends Policy {
  /** Left out: it is the table's. */
  readonly family?: string | undefined;
}

/** What a backup is of. */
export interface BackupSource {
  /** The schema of the table at that time. */
  readonly schema: TableSchema;
  /** The policies of the table and its families at that time. */
  readonly policies: readonly SourcePolicy[];
}
