/** The names of projects, instances and clusters in requests. */
import { invalidArgument, quote } from '../../base/index.ts';

/** Ids are free, but no longer than this. */
const ID = '([^/]{1,1000})';
export const PROJECT = new RegExp(`^projects/${ID}$`);
export const INSTANCE = new RegExp(`^projects/${ID}/instances/${ID}$`);
export const CLUSTER = new RegExp(`^projects/${ID}/instances/${ID}/clusters/${ID}$`);

type Ids = readonly [project: string, instance: string, cluster: string];

/** The ids in a name of that form. INVALID_ARGUMENT for another one, which tells the form in `words`. */
export function idsOf(name: string, form: RegExp, field: string, words: string): Ids {
  const match = form.exec(name);
  if (match === null) throw invalidArgument(`${field} ${quote(name, 200)} must be ${words}`, { field });
  return match.slice(1) as unknown as Ids;
}
