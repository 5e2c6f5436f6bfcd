/** Instances, as far as the caller has rights on them. */
import type { RequestContext } from '../env/index.ts';
import type { Instance } from '../model/index.ts';
import type { InstanceChange, InstanceService, NewInstance } from '../service/index.ts';
import type { Gate } from './gate.ts';

const CHANGES: Readonly<Record<InstanceChange['kind'], { readonly call: string; readonly permission: string }>> = {
  describe: { call: 'UpdateInstance', permission: 'bigtable.instances.update' },
  createCluster: { call: 'CreateCluster', permission: 'bigtable.clusters.create' },
  replaceCluster: { call: 'UpdateCluster', permission: 'bigtable.clusters.update' },
  updateCluster: { call: 'UpdateCluster', permission: 'bigtable.clusters.update' },
  deleteCluster: { call: 'DeleteCluster', permission: 'bigtable.clusters.delete' },
  setMemoryLayer: { call: 'UpdateMemoryLayer', permission: 'bigtable.memoryLayers.update' },
  createAppProfile: { call: 'CreateAppProfile', permission: 'bigtable.appProfiles.create' },
  replaceAppProfile: { call: 'UpdateAppProfile', permission: 'bigtable.appProfiles.update' },
  updateAppProfile: { call: 'UpdateAppProfile', permission: 'bigtable.appProfiles.update' },
  deleteAppProfile: { call: 'DeleteAppProfile', permission: 'bigtable.appProfiles.delete' },
};

export class GuardedInstances implements InstanceService {
  readonly #instances: InstanceService;
  readonly #gate: Gate;

  constructor(instances: InstanceService, gate: Gate) {
    this.#instances = instances;
    this.#gate = gate;
  }

  async getInstance(context: RequestContext, name: string): Promise<Instance> {
    this.#gate.check(context, 'GetInstance', 'bigtable.instances.get', name);
    return this.#instances.getInstance(context, name);
  }

  /** Those that the caller may see. */
  async listInstances(context: RequestContext, project: string): Promise<readonly Instance[]> {
    const all = await this.#instances.listInstances(context, project);
    return all.filter(({ name }) => this.#gate.rights.allows(context.principal, 'bigtable.instances.get', name));
  }

  /** No project has a policy: where the database has owners, they alone create instances. */
  createInstance(context: RequestContext, instance: NewInstance): Promise<Instance> {
    const { name } = instance;
    const project = name.slice(0, Math.max(0, name.indexOf('/instances/')));
    return this.#gate.change(context, 'CreateInstance', 'bigtable.instances.create', project, () =>
      this.#instances.createInstance(context, instance),
    );
  }

  changeInstance(context: RequestContext, name: string, change: InstanceChange): Promise<Instance> {
    const { call, permission } = CHANGES[change.kind];
    return this.#gate.change(context, call, permission, name, () =>
      this.#instances.changeInstance(context, name, change),
    );
  }

  deleteInstance(context: RequestContext, name: string): Promise<void> {
    return this.#gate.change(context, 'DeleteInstance', 'bigtable.instances.delete', name, () =>
      this.#instances.deleteInstance(context, name),
    );
  }
}
