/**
 * google.bigtable.admin.v2.BigtableTableAdmin: authorized views. Data is read and changed through them by the calls on
 * data (views.ts).
 */
import { create } from '@bufbuild/protobuf';
import { FieldMaskSchema } from '@bufbuild/protobuf/wkt';
import { BigtableError, Code, invalidArgument, quote, toBigtableError } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { Service } from '../../service/index.ts';
import { AUTHORIZED_VIEW, TABLE } from '../convert/names.ts';
import {
  BigtableTableAdmin,
  CreateAuthorizedViewMetadataSchema,
  UpdateAuthorizedViewMetadataSchema,
} from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import {
  type AuthorizedView,
  AuthorizedView_ResponseView as View,
  AuthorizedViewSchema,
} from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { KeptResources } from './kept-resources.ts';
import type { MethodTable } from './method-table.ts';
import type { Operations } from './operations.ts';

/** The most row prefixes, and columns and prefixes of columns, of a view. */
const MAX_PARTS = 1000;
const FAMILY_NAME = /^[-_.a-zA-Z0-9]{1,64}$/;
const FIELDS = ['subset_view', 'deletion_protection'];

export function registerAuthorizedViews(methods: MethodTable, service: Service, operations: Operations): void {
  const admin = BigtableTableAdmin.method;
  const views = viewsOf(service);
  methods.change(admin.createAuthorizedView, async (context, request) => {
    const requestTime = operations.now();
    const view = await views.create(context, request.parent, request.authorizedViewId, request.authorizedView);
    const times = { originalRequest: request, requestTime, finishTime: operations.now() };
    return operations.done(context, [CreateAuthorizedViewMetadataSchema, times], [AuthorizedViewSchema, view]);
  });
  methods.unary(admin.getAuthorizedView, async (context, { name, view }) =>
    seenIn(await views.get(context, name), view),
  );
  methods.unary(admin.listAuthorizedViews, async (context, request) => {
    const { items, nextPageToken } = await views.list(context, request.parent, request);
    return { authorizedViews: items.map((view) => seenIn(view, request.view || View.NAME_ONLY)), nextPageToken };
  });
  methods.change(admin.updateAuthorizedView, async (context, request) => {
    const requestTime = operations.now();
    const { authorizedView: given, updateMask: mask } = request;
    const paths = pathsOf(given, mask?.paths ?? []);
    const view = await views.update(context, given, create(FieldMaskSchema, { paths }));
    const times = { originalRequest: request, requestTime, finishTime: operations.now() };
    return operations.done(context, [UpdateAuthorizedViewMetadataSchema, times], [AuthorizedViewSchema, view]);
  });
  methods.change(admin.deleteAuthorizedView, async (context, { name, etag }) => {
    await views.delete(context, name, etag);
    return {};
  });
}

/** FAILED_PRECONDITION where the table has a view that is protected against deletion. */
export async function checkViewsOfTable(service: Service, context: RequestContext, table: string): Promise<void> {
  if (service.resources === undefined) return;
  const kept = (await viewsOf(service).all(context, table)).find(({ deletionProtection }) => deletionProtection);
  if (kept !== undefined)
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `table ${table} cannot be deleted: ${kept.name} is protected against deletion`,
    );
}

/** FAILED_PRECONDITION where a table of the instance has such a view: the instance cannot be deleted either. */
export async function checkViewsOfInstance(service: Service, context: RequestContext, name: string): Promise<void> {
  if (service.resources === undefined) return;
  for (const table of await service.listTables(context, `${name}/tables/`))
    await checkViewsIfThere(service, context, table.name);
}

/** As `checkViewsOfTable`, for a table that may be deleted by now: then it has no views. */
export async function checkViewsIfThere(service: Service, context: RequestContext, table: string): Promise<void> {
  try {
    await checkViewsOfTable(service, context, table);
  } catch (thrown) {
    if (toBigtableError(thrown).code !== Code.NOT_FOUND) throw thrown;
  }
}

function viewsOf(service: Service): KeptResources<typeof AuthorizedViewSchema> {
  return new KeptResources(service, {
    kind: 'authorizedViews',
    schema: AuthorizedViewSchema,
    form: AUTHORIZED_VIEW,
    parentForm: TABLE,
    idField: 'authorized_view_id',
    field: 'authorized_view',
    changeable: FIELDS,
    pageItems: 32,
    check: checkView,
  });
}

/** Without a mask, the fields that are set; `*` means all. */
function pathsOf(given: AuthorizedView | undefined, paths: readonly string[]): string[] {
  if (paths.includes('*')) return FIELDS;
  if (paths.length > 0 || given === undefined) return [...paths];
  const set = FIELDS.filter((field) =>
    field === 'subset_view' ? given.authorizedView.case === 'subsetView' : given.deletionProtection,
  );
  // a flag that is false is as one that is not set: it is all that the message can mean
  return set.length > 0 ? set : ['deletion_protection'];
}

function checkView({ authorizedView }: AuthorizedView): void {
  if (authorizedView.case !== 'subsetView')
    throw invalidArgument('authorized_view.subset_view must be set', { field: 'authorized_view' });
  const { rowPrefixes, familySubsets } = authorizedView.value;
  const families = Object.entries(familySubsets);
  const wrong = families.find(([family]) => !FAMILY_NAME.test(family));
  if (wrong !== undefined)
    throw invalidArgument(`family_subsets: column family ${quote(wrong[0], 100)} must be 1 to 64 of [-_.a-zA-Z0-9]`, {
      field: 'authorized_view',
    });
  const columns = families.map(([, subset]) => subset.qualifiers.length + subset.qualifierPrefixes.length);
  for (const [what, parts] of [
    ['row prefixes', rowPrefixes.length],
    ['qualifiers and prefixes of them', columns.reduce((sum, count) => sum + count, 0)],
  ] as const) {
    if (parts > MAX_PARTS)
      throw invalidArgument(`an authorized view may have ${MAX_PARTS} ${what}, not ${parts}`, {
        field: 'authorized_view',
      });
  }
}

/** All of it without a view of the response, as in the cloud; the API's definition says BASIC. */
function seenIn(view: AuthorizedView, responseView: View): AuthorizedView {
  const { name, etag, deletionProtection } = view;
  if (responseView === View.FULL || responseView === View.RESPONSE_VIEW_UNSPECIFIED) return view;
  return create(AuthorizedViewSchema, responseView === View.NAME_ONLY ? { name } : { name, etag, deletionProtection });
}
