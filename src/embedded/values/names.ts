/**
 * Names of tables, backups and instances. Tables and backups in the database's own instance, backups in its first
 * cluster, and instances of its project, are named by their id alone, in calls and in messages.
 */
import { invalidArgument } from '../../base/index.ts';
import { DEFAULT_CLUSTER } from '../../model/index.ts';
import { checkInstanceName } from '../../service/index.ts';
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

/** A full resource name is returned unchanged. */
export function fullInstanceName(name: string, parent: string): string {
  if (textOf(name, 'an instance name') === '') throw invalidArgument('an instance name must not be empty');
  const fullName = name.includes('/') ? name : instancesOfProject(parent) + name;
  checkInstanceName(fullName);
  return fullName;
}

/** The instance's name as its users write it. */
export function ownInstanceName(fullName: string, parent: string): string {
  const prefix = instancesOfProject(parent);
  return fullName.startsWith(prefix) ? fullName.slice(prefix.length) : fullName;
}

/** The id of the project of the database's own instance. */
export function ownProject(parent: string): string {
  return parent.split('/')[1]!;
}

/** What the full names of the instances of its project begin with. */
function instancesOfProject(parent: string): string {
  return parent.slice(0, parent.lastIndexOf('/') + 1);
}

/** The message of an error with tables, backups and instances named as their users name them. */
export function inOwnWords(message: string, parent: string): string {
  return message
    .replaceAll(`table ${parent}/tables/`, 'table ')
    .replaceAll(`backup ${parent}${OWN_BACKUPS}`, 'backup ')
    .replaceAll(`instance ${instancesOfProject(parent)}`, 'instance ');
}
