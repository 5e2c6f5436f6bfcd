/**
 * Names of tables. A table that lies in the database's own instance is named by its id alone, in calls and in messages.
 */
import { invalidArgument } from '../../base/index.ts';
import { textOf } from './input.ts';

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

/** The message of an error with tables named as their users name them. */
export function inOwnWords(message: string, parent: string): string {
  return message.replaceAll(`table ${parent}/tables/`, 'table ');
}
