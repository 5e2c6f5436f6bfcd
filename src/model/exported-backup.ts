/**
 * Backups in a backup store: a directory or bucket apart from that of their database, so that they outlive it
 * (docs/BACKUPS.md). An exported backup is imported as a backup of the same or of another database.
 */
import type { Backup } from './backup.ts';

export interface ExportedBackup {
  /** In the backup store. */
  readonly id: string;
  readonly state: 'ready';
  /** The full name of the backup that was exported, which may exist no more. */
  readonly backup: string;
  /** The full name of its table. */
  readonly table: string;
  /** As of the backup: each row is as it was at one instant between these times, µs since 1970. */
  readonly startMicros: number;
  readonly endMicros: number;
  readonly exportedMicros: number;
  /** Number of SSTables. */
  readonly files: number;
  /** All SSTables together. */
  readonly sizeBytes: number;
}

/** One whose manifest is damaged, or of a later release. It can be deleted, and nothing else. */
export interface UnreadableExport {
  readonly id: string;
  readonly state: 'unreadable';
}

export type ListedExport = ExportedBackup | UnreadableExport;

/** A backup to be made of an exported one. */
export interface NewImport extends Pick<Backup, 'name' | 'expireMicros'> {
  /** The id of the exported backup. */
  readonly from: string;
}
