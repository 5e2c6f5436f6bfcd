/** Instances, their clusters and app profiles over the Cloud API of any Bigtable server. */
import { BigtableError, Code } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { AppProfile, Cluster, Instance } from '../../model/index.ts';
import type {
  AppProfileChange,
  ClusterChange,
  InstanceChange,
  InstanceService,
  NewInstance,
} from '../../service/index.ts';
import type { RpcClient } from '../../wire/index.ts';
import {
  appProfileMessage,
  appProfileOf,
  autoscalingMessage,
  clusterMessage,
  clusterOf,
  descriptionOf,
  instanceMessage,
  projectOf,
} from '../convert/instance.ts';
import { ANY, inTwo } from '../convert/names.ts';
import { microsOf } from '../convert/time.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import type { Instance as InstanceMessage } from '../generated/google/bigtable/admin/v2/instance_pb.ts';
import { checkFinished } from './finished.ts';
import { call } from './remote-control.ts';

const admin = BigtableInstanceAdmin.method;

/** The API shows no revisions. */
const REVISION = 0;

/** The parts of instances by the full names of their instances, each by id. */
interface Parts {
  readonly clusters: ReadonlyMap<string, readonly Cluster[]>;
  readonly appProfiles: ReadonlyMap<string, readonly AppProfile[]>;
}

/**
 * An instance is read by three calls, one after another, and its `revision` is 0: changes that name one are
 * UNIMPLEMENTED. Where a server goes on with a change after its answer, the change is UNAVAILABLE.
 */
export class RemoteInstances implements InstanceService {
  readonly #client: RpcClient;

  constructor(client: RpcClient) {
    this.#client = client;
  }

  async getInstance(context: RequestContext, name: string): Promise<Instance> {
    const message = await call(this.#client, context, admin.getInstance, { name });
    return instanceOf(message, await this.#partsOf(context, name));
  }

  async listInstances(context: RequestContext, project: string): Promise<readonly Instance[]> {
    const messages: InstanceMessage[] = [];
    for (let pageToken = ''; ; ) {
      const page = await call(this.#client, context, admin.listInstances, { parent: `projects/${project}`, pageToken });
      messages.push(...page.instances);
      pageToken = page.nextPageToken;
      if (pageToken === '') break;
    }
    const parts = await this.#partsOf(context, `projects/${project}/instances/${ANY}`);
    return messages
      .map((message) => instanceOf(message, parts))
      .filter(({ clusters }) => clusters.length > 0) // others were deleted since they were listed
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async createInstance(context: RequestContext, instance: NewInstance): Promise<Instance> {
    const { name } = instance;
    const clusters = instance.clusters.map((cluster) => [cluster.id, clusterMessage({ name }, cluster)]);
    const operation = await call(this.#client, context, admin.createInstance, {
      parent: `projects/${projectOf(name)}`,
      instanceId: name.slice(name.lastIndexOf('/') + 1),
      instance: instanceMessage({ ...instance, createdMicros: undefined }),
      clusters: Object.fromEntries(clusters),
    });
    checkFinished(operation, name);
    return this.getInstance(context, name);
  }

  async changeInstance(context: RequestContext, name: string, change: InstanceChange): Promise<Instance> {
    await this.#change(context, name, change);
    return this.getInstance(context, name);
  }

  async deleteInstance(context: RequestContext, name: string): Promise<void> {
    await call(this.#client, context, admin.deleteInstance, { name });
  }

  async #change(context: RequestContext, name: string, change: InstanceChange): Promise<void> {
    switch (change.kind) {
      case 'describe':
        return this.#describe(context, name, change);
      case 'createCluster': {
        const { id: clusterId } = change.cluster;
        const cluster = clusterMessage({ name }, change.cluster);
        checkFinished(
          await call(this.#client, context, admin.createCluster, { parent: name, clusterId, cluster }),
          name,
        );
        return;
      }
      case 'updateCluster':
        return this.#updateCluster(context, `${name}/clusters/${change.id}`, change);
      case 'deleteCluster':
        await call(this.#client, context, admin.deleteCluster, { name: `${name}/clusters/${change.id}` });
        return;
      case 'createAppProfile': {
        const { id: appProfileId } = change.profile;
        const appProfile = appProfileMessage({ name }, change.profile);
        await call(this.#client, context, admin.createAppProfile, { parent: name, appProfileId, appProfile });
        return;
      }
      case 'updateAppProfile':
        return this.#updateAppProfile(context, name, change);
      case 'deleteAppProfile': {
        const { id, ignoreWarnings = false } = change;
        await call(this.#client, context, admin.deleteAppProfile, {
          name: `${name}/appProfiles/${id}`,
          ignoreWarnings,
        });
        return;
      }
      case 'replaceCluster':
      case 'replaceAppProfile':
      case 'setMemoryLayer':
        throw new BigtableError(Code.UNIMPLEMENTED, `the Cloud API has no call for the change ${change.kind}`);
    }
  }

  async #describe(
    context: RequestContext,
    name: string,
    { displayName, type, edition, labels }: Extract<InstanceChange, { readonly kind: 'describe' }>,
  ): Promise<void> {
    const paths = Object.entries({ display_name: displayName, type, edition, labels })
      .filter(([, value]) => value !== undefined)
      .map(([path]) => path);
    // what the mask does not name is not read
    const instance = instanceMessage({
      name,
      displayName: displayName ?? '',
      type: type ?? 'production',
      edition: edition ?? 'enterprise',
      labels: labels ?? {},
      createdMicros: undefined,
    });
    checkFinished(
      await call(this.#client, context, admin.partialUpdateInstance, { instance, updateMask: { paths } }),
      name,
    );
  }

  async #updateCluster(context: RequestContext, name: string, { nodes, autoscaling }: ClusterChange): Promise<void> {
    const paths = [
      ...(nodes === undefined ? [] : ['serve_nodes']),
      ...(autoscaling === undefined ? [] : ['cluster_config.cluster_autoscaling_config']),
    ];
    const cluster = {
      name,
      ...(nodes !== undefined && { serveNodes: nodes }),
      ...(autoscaling != null && autoscalingMessage(autoscaling)),
    };
    checkFinished(
      await call(this.#client, context, admin.partialUpdateCluster, { cluster, updateMask: { paths } }),
      name,
    );
  }

  async #updateAppProfile(
    context: RequestContext,
    name: string,
    { id, description, routing, isolation }: { readonly id: string } & AppProfileChange,
  ): Promise<void> {
    const routingPath = routing?.kind === 'single' ? 'single_cluster_routing' : 'multi_cluster_routing_use_any';
    const isolationPath = isolation?.kind === 'standard' ? 'standard_isolation' : 'data_boost_isolation_read_only';
    const paths = [
      ...(description === undefined ? [] : ['description']),
      ...(routing === undefined ? [] : [routingPath]),
      ...(isolation === undefined ? [] : [isolationPath]),
    ];
    // what the mask does not name is not read
    const appProfile = appProfileMessage(
      { name },
      {
        id,
        description: description ?? '',
        routing: routing ?? { kind: 'any', clusters: [], hasRowAffinity: false },
        isolation: isolation ?? { kind: 'standard', priority: 'high' },
      },
    );
    const operation = await call(this.#client, context, admin.updateAppProfile, { appProfile, updateMask: { paths } });
    checkFinished(operation, appProfile.name);
  }

  /** Those of the instance, or of all instances of its project. */
  async #partsOf(context: RequestContext, parent: string): Promise<Parts> {
    const clusters = new Map<string, Cluster[]>();
    for (let pageToken = ''; ; ) {
      const page = await call(this.#client, context, admin.listClusters, { parent, pageToken });
      for (const message of page.clusters) {
        const [instance, id] = inTwo(message.name, '/clusters/');
        // other servers encrypt files: the key is none of the figures that are shown
        const cluster = clusterOf(id, { ...message, encryptionConfig: undefined });
        add(clusters, instance, { ...cluster, revision: REVISION });
      }
      pageToken = page.nextPageToken;
      if (pageToken === '') break;
    }
    const appProfiles = new Map<string, AppProfile[]>();
    for (let pageToken = ''; ; ) {
      const page = await call(this.#client, context, admin.listAppProfiles, { parent, pageToken });
      for (const message of page.appProfiles) {
        const [instance, id] = inTwo(message.name, '/appProfiles/');
        add(appProfiles, instance, { ...appProfileOf(id, message), revision: REVISION });
      }
      pageToken = page.nextPageToken;
      if (pageToken === '') return { clusters, appProfiles };
    }
  }
}

function instanceOf(message: InstanceMessage, { clusters, appProfiles }: Parts): Instance {
  const { name, createTime } = message;
  return {
    name,
    ...descriptionOf(message),
    createdMicros: microsOf(createTime, 'create_time'),
    clusters: sorted(clusters.get(name) ?? []),
    appProfiles: sorted(appProfiles.get(name) ?? []),
    revision: REVISION,
  };
}

function add<T>(parts: Map<string, T[]>, instance: string, part: T): void {
  const all = parts.get(instance);
  if (all === undefined) parts.set(instance, [part]);
  else all.push(part);
}

function sorted<T extends Cluster | AppProfile>(parts: readonly T[]): T[] {
  return [...parts].sort((a, b) => (a.id < b.id ? -1 : 1));
}
