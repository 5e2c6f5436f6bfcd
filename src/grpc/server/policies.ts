/** Rights: the calls on policies that table admin and instance admin have in common (API: google.iam.v1). */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { BigtableError, Code, invalidArgument } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { KeptPolicy, PolicyStore, Service } from '../../service/index.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import type { SetIamPolicyRequest } from '../generated/google/iam/v1/iam_policy_pb.ts';
import type { PolicySchema } from '../generated/google/iam/v1/policy_pb.ts';
import type { MethodTable } from './method-table.ts';

export function registerPolicies(methods: MethodTable, service: Service): void {
  const store = (): PolicyStore => {
    if (service.policies === undefined)
      throw new BigtableError(Code.FAILED_PRECONDITION, 'this door keeps no policies');
    return service.policies;
  };
  for (const admin of [BigtableTableAdmin.method, BigtableInstanceAdmin.method]) {
    methods.unary(admin.getIamPolicy, async (context, { resource }) =>
      messageOf(await store().getPolicy(context, resource)),
    );
    methods.change(admin.setIamPolicy, async (context, request) => messageOf(await set(store(), context, request)));
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
  return store.setPolicy(
    context,
    resource,
    { bindings },
    policy.etag.length === 0 ? undefined : versionOf(policy.etag),
  );
}

/** -1, which no policy has, for the etag of something else. */
function versionOf(etag: Uint8Array): number {
  const text = Buffer.from(etag).toString('latin1');
  return /^\d{1,15}$/.test(text) ? Number(text) : -1;
}

function messageOf({ bindings, version }: KeptPolicy): MessageInitShape<typeof PolicySchema> {
  return {
    version: 1,
    etag: Buffer.from(String(version)),
    bindings: bindings.map(({ role, members }) => ({ role, members: [...members] })),
  };
}
