/** Backups in the library's words: ids in place of full names where these are of the database's own instance. */
import { checkOptions, describeValue, invalidArgument, type OptionTable, toBigInt } from '../../base/index.ts';
import type { Backup, ListedBackup, ListedExport, NewBackup, NewImport } from '../../model/index.ts';
import type { BackupChange } from '../../service/index.ts';
import { CALL_OPTIONS, type CallOptions } from '../calls/call-options.ts';
import { type Timestamp, timestampOf } from '../values/input.ts';
import { ownBackupName, ownTableName } from '../values/names.ts';

export interface CopyBackupOptions extends CallOptions {
  /** When it is deleted: 6 hours to 90 days after its start. Default: 30 days. */
  readonly expires?: Timestamp | undefined;
}

export interface BackupOptions extends CopyBackupOptions {
  /** `hot` and `standard` are the same in Edubba; others may restore a hot one faster. Default: standard. */
  readonly kind?: Backup['kind'] | undefined;
  /** When a hot one becomes a standard one: after 24 hours or more. Default: never. */
  readonly hotToStandard?: Timestamp | undefined;
}

/** What is left out stays. */
export interface BackupUpdate extends CallOptions {
  /** 6 hours to 90 days after its start. */
  readonly expires?: Timestamp | undefined;
  /** null: it stays hot. */
  readonly hotToStandard?: Timestamp | null | undefined;
}

const COPY_OPTIONS = { ...CALL_OPTIONS, expires: 'free' } satisfies OptionTable<CopyBackupOptions>;
const BACKUP_OPTIONS = {
  ...COPY_OPTIONS,
  kind: 'free',
  hotToStandard: 'free',
} satisfies OptionTable<BackupOptions>;
const BACKUP_UPDATE = { ...COPY_OPTIONS, hotToStandard: 'free' } satisfies OptionTable<BackupUpdate>;
const KINDS: readonly Backup['kind'][] = ['standard', 'hot'];
const KEPT_MICROS = 30 * 24 * 3_600_000_000;

/** The backup as its users name it and its table. */
export function ownBackup<B extends ListedBackup>(backup: B, parent: string): B {
  const name = ownBackupName(backup.name, parent);
  if (backup.state === 'unreadable') return { ...backup, name };
  const { table, sourceBackup } = backup;
  return {
    ...backup,
    name,
    table: ownTableName(table, parent),
    ...(sourceBackup !== undefined && { sourceBackup: ownBackupName(sourceBackup, parent) }),
  };
}

/** The exported backup as its users name what it is of. */
export function ownExport<E extends ListedExport>(one: E, parent: string): E {
  if (one.state === 'unreadable') return one;
  return { ...one, backup: ownBackupName(one.backup, parent), table: ownTableName(one.table, parent) };
}

/** INVALID_ARGUMENT for options that are not known or of the wrong form. */
export function askedBackup(
  { name, source, nowMicros }: Pick<NewBackup, 'name' | 'source'> & { readonly nowMicros: number },
  options: BackupOptions,
): NewBackup {
  checkOptions(options, BACKUP_OPTIONS, 'createBackup');
  const { kind = 'standard' } = options;
  if (!KINDS.includes(kind))
    throw invalidArgument(`createBackup: kind must be one of ${KINDS.join(', ')}, not ${describeValue(kind)}`);
  const hotToStandardMicros = microsOf(options.hotToStandard, 'hotToStandard');
  return {
    ...{ name, source, kind, expireMicros: microsOf(options.expires, 'expires') ?? nowMicros + KEPT_MICROS },
    ...(hotToStandardMicros !== undefined && { hotToStandardMicros }),
  };
}

export function askedCopy(
  { name, source, nowMicros }: Pick<NewBackup, 'name' | 'source'> & { readonly nowMicros: number },
  options: CopyBackupOptions,
): NewBackup {
  checkOptions(options, COPY_OPTIONS, 'copyBackup');
  return {
    name,
    source,
    kind: 'standard',
    expireMicros: microsOf(options.expires, 'expires') ?? nowMicros + KEPT_MICROS,
  };
}

export function askedImport(
  { name, from, nowMicros }: Pick<NewImport, 'name' | 'from'> & { readonly nowMicros: number },
  options: CopyBackupOptions,
): NewImport {
  checkOptions(options, COPY_OPTIONS, 'import');
  return { name, from, expireMicros: microsOf(options.expires, 'expires') ?? nowMicros + KEPT_MICROS };
}

export function askedBackupChange(update: BackupUpdate): BackupChange {
  checkOptions(update, BACKUP_UPDATE, 'updateBackup');
  const expireMicros = microsOf(update.expires, 'expires');
  const hotToStandardMicros = update.hotToStandard === null ? null : microsOf(update.hotToStandard, 'hotToStandard');
  if (expireMicros === undefined && hotToStandardMicros === undefined)
    throw invalidArgument('updateBackup: expires or hotToStandard must be given');
  return {
    ...(expireMicros !== undefined && { expireMicros }),
    ...(hotToStandardMicros !== undefined && { hotToStandardMicros }),
  };
}

function microsOf(time: Timestamp | undefined, what: string): number | undefined {
  if (time === undefined) return undefined;
  return Number(toBigInt(timestampOf(time, what)));
}
