/**
 * Permissions by the names that the cloud gives them, and the roles that have them
 * (https://cloud.google.com/bigtable/docs/access-control). Edubba's own begin with `edubba.`: the cloud has no right to
 * change cells by read-modify-write alone.
 */

import type { NamedKind } from './resource-names.ts';

/** What a principal may do with the cells of a column family. */
export type FamilyRight = 'read' | 'write' | 'readModifyWrite' | 'admin';

/** The permission that gives the right, on the table itself and through an authorized view of it. */
export const PERMISSIONS_OF_RIGHTS: Readonly<
  Record<FamilyRight, { readonly table: string; readonly view: string | undefined }>
> = {
  read: { table: 'bigtable.tables.readRows', view: 'bigtable.authorizedViews.readRows' },
  write: { table: 'bigtable.tables.mutateRows', view: 'bigtable.authorizedViews.mutateRows' },
  readModifyWrite: {
    table: 'edubba.tables.readModifyWriteRows',
    view: 'edubba.authorizedViews.readModifyWriteRows',
  },
  admin: { table: 'bigtable.tables.update', view: undefined },
};

/** The name by which the permissions on a kind of resource begin. */
export const PERMITTED_AS: Readonly<Record<NamedKind, string>> = {
  project: 'instances',
  instance: 'instances',
  table: 'tables',
  columnFamily: 'tables',
  authorizedView: 'authorizedViews',
  schemaBundle: 'schemaBundles',
  backup: 'backups',
  logicalView: 'logicalViews',
  materializedView: 'materializedViews',
};

const KINDS = ['logicalViews', 'materializedViews', 'authorizedViews', 'schemaBundles'];
const ADMINISTERED = ['instances', 'clusters', 'appProfiles', 'tables', 'backups', ...KINDS];

const SEE = [
  ...[...ADMINISTERED, 'memoryLayers'].flatMap((kind) => [`bigtable.${kind}.get`, `bigtable.${kind}.list`]),
  'bigtable.hotTablets.list',
];
const READ = [
  'bigtable.tables.readRows',
  'bigtable.tables.sampleRowKeys',
  'bigtable.tables.generateConsistencyToken',
  'bigtable.tables.checkConsistency',
  'bigtable.authorizedViews.readRows',
  'bigtable.authorizedViews.sampleRowKeys',
  'bigtable.materializedViews.readRows',
  'bigtable.materializedViews.sampleRowKeys',
  'bigtable.logicalViews.readRows',
];
const WRITE = ['bigtable.tables.mutateRows', 'bigtable.authorizedViews.mutateRows'];
const READ_MODIFY_WRITE = ['edubba.tables.readModifyWriteRows', 'edubba.authorizedViews.readModifyWriteRows'];
const MANAGE = [
  ...ADMINISTERED.flatMap((kind) => [`bigtable.${kind}.create`, `bigtable.${kind}.update`, `bigtable.${kind}.delete`]),
  'bigtable.tables.undelete',
  'bigtable.backups.restore',
  'bigtable.backups.read',
  'bigtable.memoryLayers.update',
];
const SHARED = ['instances', 'tables', 'backups', ...KINDS];
const SEE_POLICY = SHARED.map((kind) => `bigtable.${kind}.getIamPolicy`);
const SET_POLICY = SHARED.map((kind) => `bigtable.${kind}.setIamPolicy`);

const READER = [...SEE, ...READ];
const USER = [...READER, ...WRITE, ...READ_MODIFY_WRITE];
const ADMIN = [...USER, ...MANAGE, ...SEE_POLICY, ...SET_POLICY];

/** By name, as a policy has it. */
export const ROLES: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['roles/bigtable.viewer', new Set(SEE)],
  ['roles/bigtable.reader', new Set(READER)],
  ['roles/bigtable.user', new Set(USER)],
  ['roles/bigtable.admin', new Set(ADMIN)],
  ['roles/viewer', new Set([...READER, ...SEE_POLICY])],
  ['roles/editor', new Set([...USER, ...MANAGE, ...SEE_POLICY])],
  ['roles/owner', new Set(ADMIN)],
  ['roles/edubba.writer', new Set(WRITE)],
  ['roles/edubba.incrementer', new Set(READ_MODIFY_WRITE)],
]);

/** All permissions that there are. */
export const PERMISSIONS: ReadonlySet<string> = new Set(ADMIN);
