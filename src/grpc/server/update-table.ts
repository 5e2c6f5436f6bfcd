/**
 * UpdateTable: deletion protection, the change stream, and the fields of a table that are kept as they are. It answers
 * an operation that is done.
 */
import { BigtableError, Code, invalidArgument, toText } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { Service, TableChange } from '../../service/index.ts';
import { checkRowKeySchemaChange } from '../convert/row-key-schema.ts';
import { changeStreamOf, checkBackupPolicy, extraOf, KEPT_FIELDS, tableMessage } from '../convert/table.ts';
import {
  UpdateTableMetadataSchema,
  type UpdateTableRequest,
} from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { type Table, Table_View as View, TableSchema } from '../generated/google/bigtable/admin/v2/table_pb.ts';
import type { Operation } from '../generated/google/longrunning/operations_pb.ts';
import type { Operations } from './operations.ts';

/** Fields of google.bigtable.admin.v2.Table that exist and cannot be changed by UpdateTable. */
const FIXED_FIELDS = Object.values(TableSchema.field).map((field) => field.proto.name);

/** Fields that can be changed, and have an effect. */
const ACTING_FIELDS = ['deletion_protection', 'change_stream_config'];

export async function updateTable(
  service: Service,
  operations: Operations,
  context: RequestContext,
  request: UpdateTableRequest,
): Promise<Operation> {
  const { table, updateMask, ignoreWarnings } = request;
  if (!table) throw invalidArgument('table must be set', { field: 'table' });
  if (!updateMask || updateMask.paths.length === 0)
    throw invalidArgument('update_mask must name at least one field', { field: 'update_mask' });
  const fields = [...new Set(updateMask.paths.map(changeableField))];
  const present = await service.getTable(context, table.name);
  if (fields.includes('row_key_schema'))
    checkRowKeySchemaChange(
      Boolean(present.extra?.row_key_schema),
      table.rowKeySchema,
      Object.keys(present.families).map(toText),
      ignoreWarnings,
    );
  const changed = await service.updateTable(context, table.name, changeOf(table, fields, present.extra ?? {}));
  const now = operations.now();
  return operations.done(
    context,
    [UpdateTableMetadataSchema, { name: table.name, startTime: now, endTime: now }],
    [TableSchema, tableMessage(changed, View.SCHEMA_VIEW)],
  );
}

/** The table's own field that a path of the mask lies in. */
function changeableField(path: string): string {
  const field = path.split('.')[0] ?? '';
  if (ACTING_FIELDS.includes(field) || KEPT_FIELDS.includes(field)) return field;
  if (FIXED_FIELDS.includes(field))
    throw new BigtableError(Code.UNIMPLEMENTED, `update_mask: UpdateTable cannot change ${field}`);
  throw invalidArgument(`update_mask: a Table has no field ${JSON.stringify(path)}`, { field: 'update_mask' });
}

function changeOf(table: Table, fields: readonly string[], present: Readonly<Record<string, string>>): TableChange {
  const keptFields = fields.filter((field) => KEPT_FIELDS.includes(field));
  checkBackupPolicy(table);
  const given = extraOf(table) ?? {};
  // a field in the mask that the message lacks is removed: '' means removal
  const changed = Object.fromEntries(keptFields.map((field) => [field, given[field] ?? '']));
  return {
    deletionProtection: fields.includes('deletion_protection') ? table.deletionProtection : undefined,
    changeStream: fields.includes('change_stream_config')
      ? (changeStreamOf(table.changeStreamConfig) ?? 'none')
      : undefined,
    extra: keptFields.length > 0 ? { ...present, ...changed } : undefined,
  };
}
