/** Names of tables. A table that lies in the database's own instance is named by its id alone, in calls and in messages. */
import { invalidArgument } from '../base/index.ts';
import { DEFAULT_INSTANCE, DEFAULT_PROJECT } from '../model/index.ts';
import { textOf } from './input.ts';

/** Where tables live that are named by their id alone, unless `connect` is told another instance. */
export const DEFAULT_PARENT = `projects/${DEFAULT_PROJECT}/instances/${DEFAULT_INSTANCE}`;

/** A full resource name is taken as it is. */
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
