/** Policies over the Cloud API of an Edubba server. */
import { BigtableError, Code } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { Policy } from '../../model/index.ts';
import type { KeptPolicy, PolicyStore } from '../../service/index.ts';
import type { RpcClient } from '../../wire/index.ts';
import { policyEtag, versionOfEtag } from '../convert/policy.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import type { Policy as PolicyMessage } from '../generated/google/iam/v1/policy_pb.ts';
import { call } from './remote-control.ts';

const admin = BigtableTableAdmin.method;

export class RemotePolicies implements PolicyStore {
  readonly #client: RpcClient;

  constructor(client: RpcClient) {
    this.#client = client;
  }

  async getPolicy(context: RequestContext, resource: string): Promise<KeptPolicy> {
    return policyOf(await call(this.#client, context, admin.getIamPolicy, { resource }));
  }

  async setPolicy(context: RequestContext, resource: string, policy: Policy, version?: number): Promise<KeptPolicy> {
    const bindings = policy.bindings.map(({ role, members }) => ({ role, members: [...members] }));
    const etag = version === undefined ? {} : { etag: policyEtag(version) };
    return policyOf(await call(this.#client, context, admin.setIamPolicy, { resource, policy: { bindings, ...etag } }));
  }

  async testPermissions(context: RequestContext, resource: string, permissions: readonly string[]): Promise<string[]> {
    const request = { resource, permissions: [...permissions] };
    return (await call(this.#client, context, admin.testIamPermissions, request)).permissions;
  }
}

/** UNIMPLEMENTED for the etag of another server: it is no number that a change could name. */
function policyOf({ bindings, etag }: PolicyMessage): KeptPolicy {
  const version = versionOfEtag(etag);
  if (version === undefined)
    throw new BigtableError(Code.UNIMPLEMENTED, 'the server is not one of Edubba: set its policies by its own tools');
  return { bindings: bindings.map(({ role, members }) => ({ role, members })), version };
}
