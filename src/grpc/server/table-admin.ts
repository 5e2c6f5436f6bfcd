/**
 * google.bigtable.admin.v2.BigtableTableAdmin in terms of the service: tables, families, row ranges, consistency
 * tokens. Authorized views, schema bundles, policies and backups have files of their own; snapshots are UNIMPLEMENTED.
 */
import {
  type ByteString,
  Code,
  fromBytes,
  invalidArgument,
  ownOf,
  prefixEnd,
  toBigtableError,
  utf8,
} from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import { ALL_ROWS, instanceOfTable, type RowRange, type TableSchema as ModelTable } from '../../model/index.ts';
import { forgetResources, type FamilyChange, type NewTable, type Service } from '../../service/index.ts';
import { checkRowKeySchema } from '../convert/row-key-schema.ts';
import {
  changeStreamOf,
  checkBackupPolicy,
  extraOf,
  familyOf,
  granularityOf,
  showsClusters,
  tableMessage,
} from '../convert/table.ts';
import {
  BigtableTableAdmin,
  type CreateTableRequest,
  type DropRowRangeRequest,
  type ListTablesRequest,
  type ModifyColumnFamiliesRequest_Modification as Modification,
  UndeleteTableMetadataSchema,
} from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { Table_View as View, TableSchema } from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { checkViewsOfTable } from './authorized-views.ts';
import { instancesOf } from './instances-of.ts';
import type { MethodTable } from './method-table.ts';
import type { Operations } from './operations.ts';
import { pageOf } from './pages.ts';
import { updateTable } from './update-table.ts';

const MAX_PAGE = 1000;

export function registerTableAdmin(methods: MethodTable, service: Service, operations: Operations): void {
  const admin = BigtableTableAdmin.method;
  methods.change(admin.createTable, async (context, request) =>
    tableMessage(await service.createTable(context, newTableOf(request)), View.SCHEMA_VIEW),
  );
  methods.unary(admin.listTables, (context, request) => listTables(service, context, request));
  methods.unary(admin.getTable, async (context, { name, view }) => {
    const schema = await service.getTable(context, name);
    const clusters = await clustersIn(service, context, instanceOfTable(name), view);
    return tableMessage(schema, view || View.SCHEMA_VIEW, clusters);
  });
  methods.change(admin.updateTable, (context, request) => updateTable(service, operations, context, request));
  methods.change(admin.deleteTable, async (context, request) => {
    await checkViewsOfTable(service, context, request.name);
    const isKept = await service.deleteTable(context, request.name);
    // what belongs to a table that is kept is kept with it
    if (!isKept) await forgetResources(service, context, request.name);
    return {};
  });
  methods.change(admin.undeleteTable, async (context, { name }) => {
    const startTime = operations.now();
    const table = await service.undeleteTable(context, name);
    return operations.done(
      context,
      [UndeleteTableMetadataSchema, { name, startTime, endTime: operations.now() }],
      [TableSchema, tableMessage(table, View.SCHEMA_VIEW)],
    );
  });
  methods.change(admin.modifyColumnFamilies, async (context, request) => {
    if (request.modifications.length === 0)
      throw invalidArgument('modifications must not be empty', { field: 'modifications' });
    const created = request.modifications.filter(({ mod }) => mod.case === 'create').map(({ id }) => id);
    if (created.length > 0) checkNewFamilies(await service.getTable(context, request.name), created);
    return tableMessage(
      await service.modifyFamilies(context, request.name, request.modifications.map(familyChangeOf)),
      View.SCHEMA_VIEW,
    );
  });
  methods.change(admin.dropRowRange, async (context, request) => {
    const { case: target, value } = request.target;
    // "setting this to false is a no-op", says the API
    if (target === 'deleteAllDataFromTable' && !value) await service.getTable(context, request.name);
    else await service.dropRowRange(context, request.name, dropRangeOf(request));
    return {};
  });
  methods.unary(admin.generateConsistencyToken, async (context, request) => ({
    consistencyToken: await service.generateConsistencyToken(context, request.name),
  }));
  methods.unary(admin.checkConsistency, async (context, request) => ({
    consistent: await service.checkConsistency(context, request.name, request.consistencyToken),
  }));
}

function newTableOf(request: CreateTableRequest): NewTable {
  const { table } = request;
  if (request.parent === '')
    throw invalidArgument('parent must name an instance: projects/P/instances/I', { field: 'parent' });
  const { rowKeySchema, columnFamilies = {} } = table ?? {};
  if (rowKeySchema !== undefined) checkRowKeySchema(rowKeySchema, Object.keys(columnFamilies));
  const families = Object.entries(columnFamilies).map(([name, family]) => familyOf(name, family));
  if (table !== undefined) checkBackupPolicy(table);
  const extra = table && extraOf(table);
  return {
    name: `${request.parent}/tables/${request.tableId}`,
    families: families.sort((a, b) => (a.name < b.name ? -1 : 1)),
    splits: request.initialSplits.map((split) => fromBytes(split.key)),
    granularity: granularityOf(table?.granularity ?? 0),
    deletionProtection: table?.deletionProtection ?? false,
    changeStream: changeStreamOf(table?.changeStreamConfig),
    extra,
  };
}

async function listTables(service: Service, context: RequestContext, request: ListTablesRequest) {
  if (request.parent === '')
    throw invalidArgument('parent must name an instance: projects/P/instances/I', { field: 'parent' });
  const prefix = `${request.parent}/tables/`;
  const { items, nextPageToken } = pageOf(await service.listTables(context, prefix), request, prefix, MAX_PAGE);
  const clusters = items.length === 0 ? [] : await clustersIn(service, context, request.parent, request.view);
  return { tables: items.map((table) => tableMessage(table, request.view || View.NAME_ONLY, clusters)), nextPageToken };
}

/** INVALID_ARGUMENT where a family has the name of a field of the row keys: both are columns of SQL. */
function checkNewFamilies(schema: ModelTable, created: readonly string[]): void {
  const { rowKeySchema } = tableMessage(schema, View.SCHEMA_VIEW);
  if (rowKeySchema !== undefined) checkRowKeySchema(rowKeySchema, created);
}

/** The ids of the instance's clusters, where the view shows them, and the caller may see the instance. */
async function clustersIn(
  service: Service,
  context: RequestContext,
  instance: string,
  view: View,
): Promise<readonly string[]> {
  if (!showsClusters(view)) return [];
  try {
    return (await instancesOf(service).getInstance(context, instance)).clusters.map(({ id }) => id);
  } catch (thrown) {
    if (toBigtableError(thrown).code === Code.PERMISSION_DENIED) return [];
    throw thrown;
  }
}

const FIELDS: Readonly<Record<string, 'gcRule' | 'valueType'>> = { gc_rule: 'gcRule', value_type: 'valueType' };

function familyChangeOf(modification: Modification): FamilyChange {
  const { id, mod, updateMask } = modification;
  switch (mod.case) {
    case 'create':
      return { kind: 'create', family: familyOf(id, mod.value) };
    case 'update': {
      // an empty mask means the GC rule, as before there were masks
      const paths = updateMask?.paths.length ? updateMask.paths : ['gc_rule'];
      const fields = paths.map((path) => {
        const field = ownOf(FIELDS, path);
        if (field === undefined)
          throw invalidArgument(`update_mask: ${JSON.stringify(path)} is not one of gc_rule, value_type`, {
            field: 'update_mask',
          });
        return field;
      });
      return { kind: 'update', family: familyOf(id, mod.value), fields };
    }
    case 'drop':
      if (!mod.value) break;
      return { kind: 'drop', name: utf8(id) };
  }
  throw invalidArgument(`modification of family ${JSON.stringify(id)}: one of create, update and drop must be set`, {
    field: 'modifications',
  });
}

function dropRangeOf(request: DropRowRangeRequest): RowRange {
  const { target } = request;
  if (target.case === 'deleteAllDataFromTable') return ALL_ROWS;
  if (target.case !== 'rowKeyPrefix' || target.value.length === 0) {
    throw invalidArgument('row_key_prefix must not be empty, or delete_all_data_from_table be set', {
      field: 'row_key_prefix',
    });
  }
  const prefix: ByteString = fromBytes(target.value);
  return { start: prefix, end: prefixEnd(prefix) };
}
