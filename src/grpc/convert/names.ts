/** The names of projects, instances and what they contain, in requests. */
import { invalidArgument, quote } from '../../base/index.ts';

/** The form of a name; its capitals stand for ids. */
export interface NameForm {
  readonly words: string;
  readonly pattern: RegExp;
}

export const PROJECT = formOf('projects/PROJECT');
export const INSTANCE = formOf('projects/PROJECT/instances/INSTANCE');
export const CLUSTER = formOf('projects/PROJECT/instances/INSTANCE/clusters/CLUSTER');
export const MEMORY_LAYER = formOf('projects/PROJECT/instances/INSTANCE/clusters/CLUSTER/memoryLayer');
export const BACKUP = formOf('projects/PROJECT/instances/INSTANCE/clusters/CLUSTER/backups/BACKUP');
export const APP_PROFILE = formOf('projects/PROJECT/instances/INSTANCE/appProfiles/APP_PROFILE');
export const TABLE = formOf('projects/PROJECT/instances/INSTANCE/tables/TABLE');
export const AUTHORIZED_VIEW = formOf(
  'projects/PROJECT/instances/INSTANCE/tables/TABLE/authorizedViews/AUTHORIZED_VIEW',
);
export const SCHEMA_BUNDLE = formOf('projects/PROJECT/instances/INSTANCE/tables/TABLE/schemaBundles/SCHEMA_BUNDLE');
export const LOGICAL_VIEW = formOf('projects/PROJECT/instances/INSTANCE/logicalViews/LOGICAL_VIEW');
export const MATERIALIZED_VIEW = formOf('projects/PROJECT/instances/INSTANCE/materializedViews/MATERIALIZED_VIEW');
export const LOCATION = formOf('projects/PROJECT/locations/ZONE');

/** The id that stands for all instances. */
export const ANY = '-';

/** Ids are free, but no longer than 1000 characters. */
function formOf(words: string): NameForm {
  return { words, pattern: new RegExp(`^${words.replaceAll(/\b[A-Z_]+\b/g, '([^/]{1,1000})')}$`) };
}

/** The ids in a name of that form. INVALID_ARGUMENT for another one. */
export function idsOf(
  name: string,
  { words, pattern }: NameForm,
  field: string,
): readonly [first: string, second: string, third: string] {
  const match = pattern.exec(name);
  if (match === null) throw invalidArgument(`${field} ${quote(name, 200)} must be ${words}`, { field });
  const [, first = '', second = '', third = ''] = match;
  return [first, second, third];
}

/** A name before the last of these separators and after it; all of it and nothing where it has none. */
export function inTwo(name: string, between: string): [string, string] {
  const at = name.lastIndexOf(between);
  return at < 0 ? [name, ''] : [name.slice(0, at), name.slice(at + between.length)];
}
