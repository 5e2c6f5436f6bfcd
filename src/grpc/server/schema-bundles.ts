/** google.bigtable.admin.v2.BigtableTableAdmin: schema bundles, which are kept for the types of SQL. */
import type { Service } from '../../service/index.ts';
import { SCHEMA_BUNDLE, TABLE } from '../convert/names.ts';
import {
  BigtableTableAdmin,
  CreateSchemaBundleMetadataSchema,
  UpdateSchemaBundleMetadataSchema,
} from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { SchemaBundleSchema } from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { KeptResources } from './kept-resources.ts';
import type { MethodTable } from './method-table.ts';
import type { Operations } from './operations.ts';
import { checkSchemaBundle } from './schema-bundle.ts';

export function registerSchemaBundles(methods: MethodTable, service: Service, operations: Operations): void {
  const admin = BigtableTableAdmin.method;
  const bundles = new KeptResources(service, {
    kind: 'schemaBundles',
    schema: SchemaBundleSchema,
    form: SCHEMA_BUNDLE,
    parentForm: TABLE,
    idField: 'schema_bundle_id',
    field: 'schema_bundle',
    changeable: ['proto_schema', 'avro_schema'],
    // of half a megabyte each; clients take four
    pageItems: 4,
    check: checkSchemaBundle,
  });
  methods.change(admin.createSchemaBundle, async (context, { parent, schemaBundleId, schemaBundle }) => {
    const startTime = operations.now();
    const bundle = await bundles.create(context, parent, schemaBundleId, schemaBundle);
    const times = { startTime, endTime: operations.now() };
    return operations.done(
      context,
      [CreateSchemaBundleMetadataSchema, { name: bundle.name, ...times }],
      [SchemaBundleSchema, bundle],
    );
  });
  methods.unary(admin.getSchemaBundle, (context, { name }) => bundles.get(context, name));
  methods.unary(admin.listSchemaBundles, async (context, request) => {
    const { items, nextPageToken } = await bundles.list(context, request.parent, request);
    return { schemaBundles: items, nextPageToken };
  });
  methods.change(admin.updateSchemaBundle, async (context, { schemaBundle, updateMask, ignoreWarnings }) => {
    const startTime = operations.now();
    const bundle = await bundles.update(context, schemaBundle, updateMask, ignoreWarnings);
    const times = { startTime, endTime: operations.now() };
    return operations.done(
      context,
      [UpdateSchemaBundleMetadataSchema, { name: bundle.name, ...times }],
      [SchemaBundleSchema, bundle],
    );
  });
  methods.change(admin.deleteSchemaBundle, async (context, { name, etag }) => {
    await bundles.delete(context, name, etag);
    return {};
  });
}
