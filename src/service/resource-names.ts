/**
 * Full names of resources by their parts: instances, what is in them, tables, and what is in those. Backups are in
 * their instance: clusters have no policies. Column families have names here, which the cloud does not give them:
 * TABLE/columnFamilies/FAMILY.
 */

/** What a name names. */
export type NamedKind =
  | 'project'
  | 'instance'
  | 'table'
  | 'columnFamily'
  | 'authorizedView'
  | 'schemaBundle'
  | 'backup'
  | 'logicalView'
  | 'materializedView';

export interface NamedResource {
  readonly kind: NamedKind;
  readonly name: string;
  /** Itself, and the resources that contain it, without the project: the outermost first. */
  readonly chain: readonly string[];
  readonly instance: string;
  /** '' for what is not in a table. */
  readonly table: string;
  readonly id: string;
}

const FORM =
  /^projects\/([^/]{1,1000})(?:\/instances\/([^/]{1,1000})(?:\/(tables|clusters|logicalViews|materializedViews)\/([^/]{1,1000})(?:\/(columnFamilies|authorizedViews|schemaBundles|backups)\/([^/]{1,1000}))?)?)?$/;
const KINDS: Readonly<Record<string, NamedKind>> = {
  tables: 'table',
  logicalViews: 'logicalView',
  materializedViews: 'materializedView',
  columnFamilies: 'columnFamily',
  authorizedViews: 'authorizedView',
  schemaBundles: 'schemaBundle',
  backups: 'backup',
};

/** Undefined for a text of another form. */
export function parseResourceName(name: string): NamedResource | undefined {
  const [, project, instanceId, collection, id, inTable, innerId] = FORM.exec(name) ?? [];
  if (project === undefined) return undefined;
  if (instanceId === undefined) return { kind: 'project', name, chain: [], instance: '', table: '', id: project };
  const instance = `projects/${project}/instances/${instanceId}`;
  if (collection === undefined || id === undefined)
    return { kind: 'instance', name, chain: [instance], instance, table: '', id: instanceId };
  if (collection === 'clusters') {
    if (inTable !== 'backups' || innerId === undefined) return undefined;
    return { kind: 'backup', name, chain: [instance, name], instance, table: '', id: innerId };
  }
  if (inTable === 'backups' || (inTable !== undefined && collection !== 'tables')) return undefined;
  const outer = `${instance}/${collection}/${id}`;
  const table = collection === 'tables' ? outer : '';
  if (inTable === undefined || innerId === undefined)
    return { kind: KINDS[collection]!, name, chain: [instance, outer], instance, table, id };
  return { kind: KINDS[inTable]!, name, chain: [instance, outer, name], instance, table, id: innerId };
}
