/**
 * google.bigtable.admin.v2.BigtableInstanceAdmin: logical and materialized views. They are defined by SQL, which Edubba
 * does not run yet: they are kept, and cannot be read.
 */
import { invalidArgument } from '../../base/index.ts';
import type { Service } from '../../service/index.ts';
import { INSTANCE, LOGICAL_VIEW, MATERIALIZED_VIEW } from '../convert/names.ts';
import {
  BigtableInstanceAdmin,
  CreateLogicalViewMetadataSchema,
  CreateMaterializedViewMetadataSchema,
  UpdateLogicalViewMetadataSchema,
  UpdateMaterializedViewMetadataSchema,
} from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { LogicalViewSchema, MaterializedViewSchema } from '../generated/google/bigtable/admin/v2/instance_pb.ts';
import { KeptResources, type ResourceType } from './kept-resources.ts';
import type { MethodTable } from './method-table.ts';
import type { Operations } from './operations.ts';

const PAGE_ITEMS = 32;

const LOGICAL: ResourceType<typeof LogicalViewSchema> = {
  kind: 'logicalViews',
  schema: LogicalViewSchema,
  form: LOGICAL_VIEW,
  parentForm: INSTANCE,
  idField: 'logical_view_id',
  field: 'logical_view',
  changeable: ['query', 'deletion_protection'],
  pageItems: PAGE_ITEMS,
  check: ({ query }) => checkQuery(query, 'logical_view'),
};

/** Its query never changes. */
const MATERIALIZED: ResourceType<typeof MaterializedViewSchema> = {
  kind: 'materializedViews',
  schema: MaterializedViewSchema,
  form: MATERIALIZED_VIEW,
  parentForm: INSTANCE,
  idField: 'materialized_view_id',
  field: 'materialized_view',
  changeable: ['deletion_protection'],
  pageItems: PAGE_ITEMS,
  check: ({ query }) => checkQuery(query, 'materialized_view'),
};

function checkQuery(query: string, field: string): void {
  if (query.trim() === '') throw invalidArgument(`${field}.query must not be empty`, { field: `${field}.query` });
}

export function registerSqlViews(methods: MethodTable, service: Service, operations: Operations): void {
  const admin = BigtableInstanceAdmin.method;
  const logical = new KeptResources(service, LOGICAL);
  const materialized = new KeptResources(service, MATERIALIZED);

  methods.change(admin.createLogicalView, async (context, request) => {
    const startTime = operations.now();
    const view = await logical.create(context, request.parent, request.logicalViewId, request.logicalView);
    const times = { originalRequest: request, startTime, endTime: operations.now() };
    return operations.done(context, [CreateLogicalViewMetadataSchema, times], [LogicalViewSchema, view]);
  });
  methods.unary(admin.getLogicalView, (context, { name }) => logical.get(context, name));
  methods.unary(admin.listLogicalViews, async (context, request) => {
    const { items, nextPageToken } = await logical.list(context, request.parent, request);
    return { logicalViews: items, nextPageToken };
  });
  methods.change(admin.updateLogicalView, async (context, request) => {
    const startTime = operations.now();
    const view = await logical.update(context, request.logicalView, request.updateMask);
    const times = { originalRequest: request, startTime, endTime: operations.now() };
    return operations.done(context, [UpdateLogicalViewMetadataSchema, times], [LogicalViewSchema, view]);
  });
  methods.change(admin.deleteLogicalView, async (context, { name, etag }) => {
    await logical.delete(context, name, etag);
    return {};
  });

  methods.change(admin.createMaterializedView, async (context, request) => {
    const startTime = operations.now();
    const { parent, materializedViewId, materializedView } = request;
    const view = await materialized.create(context, parent, materializedViewId, materializedView);
    const times = { originalRequest: request, startTime, endTime: operations.now() };
    return operations.done(context, [CreateMaterializedViewMetadataSchema, times], [MaterializedViewSchema, view]);
  });
  methods.unary(admin.getMaterializedView, (context, { name }) => materialized.get(context, name));
  methods.unary(admin.listMaterializedViews, async (context, request) => {
    const { items, nextPageToken } = await materialized.list(context, request.parent, request);
    return { materializedViews: items, nextPageToken };
  });
  methods.change(admin.updateMaterializedView, async (context, request) => {
    const startTime = operations.now();
    const view = await materialized.update(context, request.materializedView, request.updateMask);
    const times = { originalRequest: request, startTime, endTime: operations.now() };
    return operations.done(context, [UpdateMaterializedViewMetadataSchema, times], [MaterializedViewSchema, view]);
  });
  methods.change(admin.deleteMaterializedView, async (context, { name, etag }) => {
    await materialized.delete(context, name, etag);
    return {};
  });
}
