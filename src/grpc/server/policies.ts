/** Rights: the calls on policies that table admin and instance admin have in common (API: google.iam.v1). */
import { BigtableError, Code, invalidArgument } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { KeptPolicy, PolicyStore, Service } from '../../service/index.ts';
import { policyMessage, versionOfEtag } from '../convert/policy.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import type { SetIamPolicyRequest } from '../generated/google/iam/v1/iam_policy_pb.ts';
import type { MethodTable } from './method-table.ts';

export function registerPolicies(methods: MethodTable, service: Service): void {
  const store = (): PolicyStore => {
    if (service.policies === undefined)
      throw new BigtableError(Code.FAILED_PRECONDITION, 'this door keeps no policies');
    return service.policies;
  };
  for (const admin of [BigtableTableAdmin.method, BigtableInstanceAdmin.method]) {
    methods.unary(admin.getIamPolicy, async (context, { resource }) =>
      policyMessage(await store().getPolicy(context, resource)),
    );
    methods.change(admin.setIamPolicy, async (context, request) => policyMessage(await set(store(), context, request)));
    methods.unary(admin.testIamPermissions, async (context, { resource, permissions }) => {
      const wild = permissions.find((permission) => permission.includes('*'));
      if (wild !== undefined)
        throw invalidArgument(`permissions: ${JSON.stringify(wild.slice(0, 100))} must not have a wildcard`, {
          field: 'permissions',
        });
      const policies = store();
      return { permissions: (await policies.testPermissions?.(context, resource, permissions)) ?? permissions };
    });
  }
}

function set(store: PolicyStore, context: RequestContext, request: SetIamPolicyRequest): Promise<KeptPolicy> {
  const { resource, policy } = request;
  if (policy === undefined) throw invalidArgument('policy must be set', { field: 'policy' });
  if (policy.bindings.some(({ condition }) => condition !== undefined))
    throw invalidArgument('policy: Edubba has no conditions of bindings: name a family by its own resource', {
      field: 'policy',
    });
  if (policy.auditConfigs.length > 0)
    throw invalidArgument('policy: audit configs are not kept: all changes are logged', { field: 'policy' });
  const bindings = policy.bindings
    .filter(({ members }) => members.length > 0)
    .map(({ role, members }) => ({ role, members }));
  // no policy has the version -1
  const version = policy.etag.length === 0 ? undefined : (versionOfEtag(policy.etag) ?? -1);
  return store.setPolicy(context, resource, { bindings }, version);
}
