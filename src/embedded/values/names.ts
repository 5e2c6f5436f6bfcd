/**
 * Names of tables and backups. Those that lie in the database's own instance, backups in its first cluster, are named
 * by their id alone, in calls and in messages.
 */
import { invalidArgument } from '../../base/index.ts';
import { DEFAULT_CLUSTER } from '../../model/index.ts';
import { textOf } from './input.ts';

const OWN_BACKUPS = `/clusters/${DEFAULT_CLUSTER}/backups/`;

/** A full resource name is returned unchanged. */
export function fullTableName(name: string, parent: string): string {
  if (textOf(name, 'a table name') === '') throw invalidArgument('a table name must not be empty');
  return name.includes('/') ? name : `${parent}/tables/${name}`;
}

/** The table's name as its users write it. */
export function ownTableName(fullName: string, parent: string): string {
  const prefix = `${parent}/tables/`;
  return fullName.startsWith(prefix) ? fullName.slice(prefix.length) : fullName;
}

/** A full resource name is returned unchanged. */
export function fullBackupName(name: string, parent: string): string {
  if (textOf(name, 'a backup name') === '') throw invalidArgument('a backup name must not be empty');
  return name.includes('/') ? name : `${parent}${OWN_BACKUPS}${name}`;
}

/** The backup's name as its users write it. */
export function ownBackupName(fullName: string, parent: string): string {
  const prefix = parent + OWN_BACKUPS;
  return fullName.startsWith(prefix) ? fullName.slice(prefix.length) : fullName;
}

/** The message of an error with tables and backups named as their users name them. */
export function inOwnWords(message: string, parent: string): string {
  return message
    .replaceAll(`table ${parent}/tables/`, 'table ')
    .replaceAll(`backup ${parent}${OWN_BACKUPS}`, 'backup ');
}
