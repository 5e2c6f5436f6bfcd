/**
 * google.bigtable.admin.v2.BigtableInstanceAdmin: instances and clusters. All clusters are the servers of this one
 * database: a cluster's figures describe it and act upon nothing.
 */
import { invalidArgument } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { Cluster, Instance } from '../../model/index.ts';
import { forgetResources, type InstanceService, partOf, type Service } from '../../service/index.ts';
import { applyMask } from '../convert/field-mask.ts';
import { clusterMessage, clusterOf, descriptionOf, instanceMessage } from '../convert/instance.ts';
import { ANY, CLUSTER, idsOf, INSTANCE, PROJECT } from '../convert/names.ts';
import {
  BigtableInstanceAdmin,
  CreateClusterMetadataSchema,
  type CreateClusterRequest,
  CreateInstanceMetadataSchema,
  type CreateInstanceRequest,
  PartialUpdateClusterMetadataSchema,
  type PartialUpdateClusterRequest,
  type PartialUpdateInstanceRequest,
  UpdateClusterMetadataSchema,
  UpdateInstanceMetadataSchema,
} from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import {
  type Cluster as ClusterMessage,
  ClusterSchema,
  type Instance as InstanceMessage,
  InstanceSchema,
} from '../generated/google/bigtable/admin/v2/instance_pb.ts';
import type { Operation } from '../generated/google/longrunning/operations_pb.ts';
import { checkViewsOfInstance } from './authorized-views.ts';
import { instancesOf, untilNotOvertaken } from './instances-of.ts';
import type { MethodTable } from './method-table.ts';
import type { Operations } from './operations.ts';

/** Fields that PartialUpdateInstance and PartialUpdateCluster change. */
const INSTANCE_FIELDS = ['display_name', 'type', 'edition', 'labels'];
const CLUSTER_FIELDS = ['serve_nodes', 'cluster_config'];

export function registerInstanceAdmin(methods: MethodTable, service: Service, operations: Operations): void {
  const admin = BigtableInstanceAdmin.method;
  const calls = new InstanceAdmin(service, operations);
  methods.change(admin.createInstance, (context, request) => calls.createInstance(context, request));
  methods.unary(admin.getInstance, async (context, { name }) => {
    idsOf(name, INSTANCE, 'name');
    return instanceMessage(await calls.instances.getInstance(context, name));
  });
  methods.unary(admin.listInstances, async (context, { parent }) => {
    const [project] = idsOf(parent, PROJECT, 'parent');
    return { instances: (await calls.instances.listInstances(context, project)).map(instanceMessage) };
  });
  methods.change(admin.updateInstance, (context, request) => calls.updateInstance(context, request));
  methods.change(admin.partialUpdateInstance, (context, request) => calls.partialUpdateInstance(context, request));
  methods.change(admin.deleteInstance, async (context, { name }) => {
    idsOf(name, INSTANCE, 'name');
    await checkViewsOfInstance(service, context, name);
    await calls.instances.deleteInstance(context, name);
    await forgetResources(service, context, name);
    return {};
  });
  methods.change(admin.createCluster, (context, request) => calls.createCluster(context, request));
  methods.unary(admin.getCluster, async (context, { name }) => {
    const { instance, cluster } = await calls.findCluster(context, name);
    return clusterMessage(instance, cluster);
  });
  methods.unary(admin.listClusters, async (context, { parent }) => {
    const [project, id] = idsOf(parent, INSTANCE, 'parent');
    const instances =
      id === ANY
        ? await calls.instances.listInstances(context, project)
        : [await calls.instances.getInstance(context, parent)];
    return {
      clusters: instances.flatMap((instance) => instance.clusters.map((cluster) => clusterMessage(instance, cluster))),
    };
  });
  methods.change(admin.updateCluster, (context, request) => calls.updateCluster(context, request));
  methods.change(admin.partialUpdateCluster, (context, request) => calls.partialUpdateCluster(context, request));
  methods.change(admin.deleteCluster, async (context, { name }) => {
    const [project, instance, id] = idsOf(name, CLUSTER, 'name');
    await calls.instances.changeInstance(context, nameOf(project, instance), { kind: 'deleteCluster', id });
    return {};
  });
}

class InstanceAdmin {
  readonly #service: Service;
  readonly #operations: Operations;

  constructor(service: Service, operations: Operations) {
    this.#service = service;
    this.#operations = operations;
  }

  get instances(): InstanceService {
    return instancesOf(this.#service);
  }

  async createInstance(context: RequestContext, request: CreateInstanceRequest): Promise<Operation> {
    const requestTime = this.#operations.now();
    const [project] = idsOf(request.parent, PROJECT, 'parent');
    if (request.instance === undefined) throw missing('instance');
    const name = nameOf(project, request.instanceId);
    idsOf(name, INSTANCE, 'instance_id');
    const clusters = Object.entries(request.clusters).map(([id, cluster]) => clusterOf(id, cluster));
    const instance = await this.instances.createInstance(context, {
      name,
      ...descriptionOf(request.instance),
      clusters,
    });
    const metadata = { originalRequest: request, requestTime, finishTime: this.#operations.now() };
    return this.#operations.done(
      context,
      [CreateInstanceMetadataSchema, metadata],
      [InstanceSchema, instanceMessage(instance)],
    );
  }

  /** Changes display name and type alone, as the API says. */
  async updateInstance(context: RequestContext, given: InstanceMessage): Promise<InstanceMessage> {
    idsOf(given.name, INSTANCE, 'name');
    const { displayName, type } = descriptionOf(given);
    const change = { kind: 'describe', displayName, ...(given.type && { type }) } as const;
    return instanceMessage(await this.instances.changeInstance(context, given.name, change));
  }

  async partialUpdateInstance(context: RequestContext, request: PartialUpdateInstanceRequest): Promise<Operation> {
    const requestTime = this.#operations.now();
    const { instance: given, updateMask: mask } = request;
    if (given === undefined) throw missing('instance');
    idsOf(given.name, INSTANCE, 'instance.name');
    const present = instanceMessage(await this.instances.getInstance(context, given.name));
    const wanted = descriptionOf(applyMask(InstanceSchema, { present, given, mask }, INSTANCE_FIELDS));
    const isNamed = (field: string): boolean => mask?.paths.some((path) => path.split('.')[0] === field) ?? false;
    const changed = await this.instances.changeInstance(context, given.name, {
      kind: 'describe',
      ...(isNamed('display_name') && { displayName: wanted.displayName }),
      ...(isNamed('type') && given.type && { type: wanted.type }),
      ...(isNamed('edition') && { edition: wanted.edition }),
      ...(isNamed('labels') && { labels: wanted.labels }),
    });
    const metadata = { originalRequest: request, requestTime, finishTime: this.#operations.now() };
    return this.#operations.done(
      context,
      [UpdateInstanceMetadataSchema, metadata],
      [InstanceSchema, instanceMessage(changed)],
    );
  }

  async createCluster(context: RequestContext, request: CreateClusterRequest): Promise<Operation> {
    const requestTime = this.#operations.now();
    idsOf(request.parent, INSTANCE, 'parent');
    if (request.cluster === undefined) throw missing('cluster');
    const name = `${request.parent}/clusters/${request.clusterId}`;
    idsOf(name, CLUSTER, 'cluster_id');
    const cluster = clusterOf(request.clusterId, request.cluster);
    const changed = await this.instances.changeInstance(context, request.parent, { kind: 'createCluster', cluster });
    const metadata = { originalRequest: request, requestTime, finishTime: this.#operations.now() };
    return this.#operations.done(
      context,
      [CreateClusterMetadataSchema, metadata],
      [ClusterSchema, clusterMessage(changed, partOf(changed, 'clusters', request.clusterId))],
    );
  }

  async findCluster(
    context: RequestContext,
    name: string,
  ): Promise<{ readonly instance: Instance; readonly cluster: Cluster }> {
    const [project, id, cluster] = idsOf(name, CLUSTER, 'name');
    const instance = await this.instances.getInstance(context, nameOf(project, id));
    return { instance, cluster: partOf(instance, 'clusters', cluster) };
  }

  /** Changes the number of nodes alone, as the API says. */
  async updateCluster(context: RequestContext, given: ClusterMessage): Promise<Operation> {
    const requestTime = this.#operations.now();
    const { serveNodes } = given;
    const changed = await this.#replaceCluster(context, given, (present) => ({ ...present, serveNodes }));
    const metadata = { originalRequest: given, requestTime, finishTime: this.#operations.now() };
    return this.#operations.done(context, [UpdateClusterMetadataSchema, metadata], [ClusterSchema, changed]);
  }

  async partialUpdateCluster(context: RequestContext, request: PartialUpdateClusterRequest): Promise<Operation> {
    const requestTime = this.#operations.now();
    const { cluster: given, updateMask: mask } = request;
    if (given === undefined) throw missing('cluster');
    const changed = await this.#replaceCluster(context, given, (present) =>
      applyMask(ClusterSchema, { present, given, mask }, CLUSTER_FIELDS),
    );
    const metadata = { originalRequest: request, requestTime, finishTime: this.#operations.now() };
    return this.#operations.done(context, [PartialUpdateClusterMetadataSchema, metadata], [ClusterSchema, changed]);
  }

  #replaceCluster(
    context: RequestContext,
    { name }: ClusterMessage,
    next: (present: ClusterMessage) => ClusterMessage,
  ): Promise<ClusterMessage> {
    return untilNotOvertaken(async () => {
      const { instance, cluster: present } = await this.findCluster(context, name);
      const { id, revision } = present;
      const cluster = clusterOf(id, next(clusterMessage(instance, present)));
      const change = { kind: 'replaceCluster', cluster, revision } as const;
      const changed = await this.instances.changeInstance(context, instance.name, change);
      return clusterMessage(changed, partOf(changed, 'clusters', id));
    });
  }
}

function nameOf(project: string, instance: string): string {
  return `projects/${project}/instances/${instance}`;
}

function missing(field: string) {
  return invalidArgument(`${field} must be set`, { field });
}
