/**
 * The implemented part of google.bigtable.admin.v2.BigtableInstanceAdmin: the existing instances and clusters. They are
 * never created here. Each name of the right form stands for an instance, each instance has one cluster, and all are
 * always ready, so that programs which check for their instance before they use it continue.
 */
import { create } from '@bufbuild/protobuf';
import type { RequestContext } from '../../env/index.ts';
import { DEFAULT_INSTANCE, DEFAULT_PROJECT } from '../../model/index.ts';
import type { Service } from '../../service/index.ts';
import { CLUSTER, idsOf, INSTANCE, PROJECT } from '../convert/names.ts';
import { CLUSTER_ID } from '../convert/table.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { StorageType } from '../generated/google/bigtable/admin/v2/common_pb.ts';
import {
  type Cluster,
  Cluster_State as ClusterState,
  ClusterSchema,
  type Instance,
  Instance_State as InstanceState,
  Instance_Type as InstanceType,
  InstanceSchema,
} from '../generated/google/bigtable/admin/v2/instance_pb.ts';
import type { MethodTable } from './method-table.ts';

/** The id that stands for all instances. */
const ANY = '-';

export function registerInstanceAdmin(methods: MethodTable, service: Service): void {
  const admin = BigtableInstanceAdmin.method;
  methods.unary(admin.getInstance, async (_context, { name }) => {
    const [project, instance] = idsOf(name, INSTANCE, 'name', 'projects/PROJECT/instances/INSTANCE');
    return instanceMessage(project, instance);
  });
  methods.unary(admin.listInstances, async (context, { parent }) => {
    const [project] = idsOf(parent, PROJECT, 'parent', 'projects/PROJECT');
    return {
      instances: (await instancesOf(service, context, project)).map((instance) => instanceMessage(project, instance)),
    };
  });
  methods.unary(admin.getCluster, async (_context, { name }) => {
    const [project, instance, cluster] = idsOf(
      name,
      CLUSTER,
      'name',
      'projects/PROJECT/instances/INSTANCE/clusters/CLUSTER',
    );
    return clusterMessage(project, instance, cluster);
  });
  methods.unary(admin.listClusters, async (context, { parent }) => {
    const [project, instance] = idsOf(
      parent,
      INSTANCE,
      'parent',
      'projects/PROJECT/instances/INSTANCE, or - for all instances',
    );
    const instances = instance === ANY ? await instancesOf(service, context, project) : [instance];
    return { clusters: instances.map((each) => clusterMessage(project, each, CLUSTER_ID)) };
  });
}

/** The instances that hold tables, and the default one. */
async function instancesOf(service: Service, context: RequestContext, project: string): Promise<string[]> {
  const prefix = `projects/${project}/instances/`;
  const tables = await service.listTables(context, prefix);
  const ids = new Set(tables.map(({ name }) => name.slice(prefix.length, name.indexOf('/', prefix.length))));
  if (ids.size === 0 || project === DEFAULT_PROJECT) ids.add(DEFAULT_INSTANCE);
  return [...ids].sort();
}

function instanceMessage(project: string, instance: string): Instance {
  return create(InstanceSchema, {
    name: `projects/${project}/instances/${instance}`,
    displayName: instance,
    state: InstanceState.READY,
    type: InstanceType.PRODUCTION,
  });
}

function clusterMessage(project: string, instance: string, cluster: string): Cluster {
  return create(ClusterSchema, {
    name: `projects/${project}/instances/${instance}/clusters/${cluster}`,
    location: `projects/${project}/locations/local`,
    state: ClusterState.READY,
    serveNodes: 1,
    defaultStorageType: StorageType.SSD,
  });
}
