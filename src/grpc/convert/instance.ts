/** Instances, clusters and app profiles: the API's messages and the model. */
import { create } from '@bufbuild/protobuf';
import { BigtableError, Code, invalidArgument, quote } from '../../base/index.ts';
import type { AppProfile, Autoscaling, Cluster, Instance } from '../../model/index.ts';
import type { NewAppProfile, NewCluster } from '../../service/index.ts';
import { StorageType } from '../generated/google/bigtable/admin/v2/common_pb.ts';
import {
  type AppProfile as AppProfileMessage,
  AppProfile_DataBoostIsolationReadOnly_ComputeBillingOwner as BillingOwner,
  AppProfile_MultiClusterRoutingUseAny_RowAffinitySchema as RowAffinitySchema,
  AppProfile_Priority as Priority,
  AppProfileSchema,
  type Cluster as ClusterMessage,
  Cluster_NodeScalingFactor as ScalingFactor,
  Cluster_State as ClusterState,
  ClusterSchema,
  type Instance as InstanceMessage,
  Instance_Edition as Edition,
  Instance_State as InstanceState,
  Instance_Type as InstanceType,
  InstanceSchema,
} from '../generated/google/bigtable/admin/v2/instance_pb.ts';
import { idsOf, LOCATION } from './names.ts';
import { timestampOf } from './time.ts';

/** What a message says of an instance: its parts have messages of their own. */
type Described = Pick<Instance, 'name' | 'displayName' | 'type' | 'edition' | 'labels' | 'createdMicros'>;

export function instanceMessage(instance: Described): InstanceMessage {
  return create(InstanceSchema, {
    name: instance.name,
    displayName: instance.displayName,
    state: InstanceState.READY,
    type: instance.type === 'production' ? InstanceType.PRODUCTION : InstanceType.DEVELOPMENT,
    edition: instance.edition === 'enterprise' ? Edition.ENTERPRISE : Edition.ENTERPRISE_PLUS,
    labels: instance.labels,
    ...(instance.createdMicros !== undefined && { createTime: timestampOf(instance.createdMicros) }),
  });
}

/** The fields that a caller may set. INVALID_ARGUMENT for values that the API does not define. */
export function descriptionOf({
  displayName,
  type,
  edition,
  labels,
}: InstanceMessage): Pick<Instance, 'displayName' | 'type' | 'edition' | 'labels'> {
  return { displayName, labels: { ...labels }, type: typeOf(type), edition: editionOf(edition) };
}

function typeOf(type: InstanceType): Instance['type'] {
  switch (type) {
    case InstanceType.TYPE_UNSPECIFIED:
    case InstanceType.PRODUCTION:
      return 'production';
    case InstanceType.DEVELOPMENT:
      return 'development';
    default:
      throw unknown('instance.type', type);
  }
}

function editionOf(edition: Edition): Instance['edition'] {
  switch (edition) {
    case Edition.EDITION_UNSPECIFIED:
    case Edition.ENTERPRISE:
      return 'enterprise';
    case Edition.ENTERPRISE_PLUS:
      return 'enterprise-plus';
    default:
      throw unknown('instance.edition', edition);
  }
}

export function clusterMessage(instance: Pick<Instance, 'name'>, cluster: NewCluster): ClusterMessage {
  const { autoscaling } = cluster;
  return create(ClusterSchema, {
    name: `${instance.name}/clusters/${cluster.id}`,
    location: `projects/${projectOf(instance.name)}/locations/${cluster.zone}`,
    state: ClusterState.READY,
    serveNodes: cluster.nodes,
    nodeScalingFactor: SCALING_FACTORS[cluster.scalingFactor ?? 0],
    defaultStorageType: cluster.storage === 'ssd' ? StorageType.SSD : StorageType.HDD,
    ...(autoscaling && autoscalingMessage(autoscaling)),
  });
}

/** The field of a cluster's message that has it. */
export function autoscalingMessage({ minNodes, maxNodes, cpuPercent, storageGib }: Autoscaling) {
  const clusterAutoscalingConfig = {
    autoscalingLimits: { minServeNodes: minNodes, maxServeNodes: maxNodes },
    autoscalingTargets: { cpuUtilizationPercent: cpuPercent, storageUtilizationGibPerNode: storageGib },
  };
  return { config: { case: 'clusterConfig', value: { clusterAutoscalingConfig } } } as const;
}

const SCALING_FACTORS = [
  ScalingFactor.NODE_SCALING_FACTOR_UNSPECIFIED,
  ScalingFactor.NODE_SCALING_FACTOR_1X,
  ScalingFactor.NODE_SCALING_FACTOR_2X,
] as const;

/** Without a number of nodes it has the least that its scaling allows: there is no footprint to compute one from. */
export function clusterOf(id: string, message: ClusterMessage): NewCluster {
  if (message.encryptionConfig?.kmsKeyName)
    throw invalidArgument(`cluster ${id}: Edubba does not encrypt files with keys of a key management service`, {
      field: 'cluster.encryption_config',
    });
  const [, zone] = idsOf(message.location, LOCATION, 'cluster.location');
  const autoscaling = autoscalingOf(message);
  const scalingFactor = scalingFactorOf(message.nodeScalingFactor);
  const nodes = message.serveNodes || (autoscaling?.minNodes ?? scalingFactor ?? 1);
  return { id, zone, nodes, autoscaling, scalingFactor, storage: storageOf(message.defaultStorageType) };
}

function autoscalingOf({ config }: ClusterMessage): Autoscaling | undefined {
  const scaling = config.value?.clusterAutoscalingConfig;
  if (scaling === undefined) return undefined;
  const { autoscalingLimits: limits, autoscalingTargets: targets } = scaling;
  if (limits === undefined || targets === undefined)
    throw invalidArgument('cluster_autoscaling_config must have autoscaling_limits and autoscaling_targets', {
      field: 'cluster.cluster_config',
    });
  return {
    minNodes: limits.minServeNodes,
    maxNodes: limits.maxServeNodes,
    cpuPercent: targets.cpuUtilizationPercent,
    storageGib: targets.storageUtilizationGibPerNode,
  };
}

function scalingFactorOf(factor: ScalingFactor): Cluster['scalingFactor'] {
  switch (factor) {
    case ScalingFactor.NODE_SCALING_FACTOR_UNSPECIFIED:
      return undefined;
    case ScalingFactor.NODE_SCALING_FACTOR_1X:
      return 1;
    case ScalingFactor.NODE_SCALING_FACTOR_2X:
      return 2;
    default:
      throw unknown('cluster.node_scaling_factor', factor);
  }
}

function storageOf(type: StorageType): Cluster['storage'] {
  switch (type) {
    case StorageType.STORAGE_TYPE_UNSPECIFIED:
    case StorageType.SSD:
      return 'ssd';
    case StorageType.HDD:
      return 'hdd';
    default:
      throw unknown('cluster.default_storage_type', type);
  }
}

/** Without an etag, as in the cloud. */
export function appProfileMessage(instance: Pick<Instance, 'name'>, profile: NewAppProfile): AppProfileMessage {
  const { routing, isolation } = profile;
  return create(AppProfileSchema, {
    name: `${instance.name}/appProfiles/${profile.id}`,
    description: profile.description,
    routingPolicy:
      routing.kind === 'single'
        ? {
            case: 'singleClusterRouting',
            value: { clusterId: routing.cluster, allowTransactionalWrites: routing.allowsTransactions },
          }
        : {
            case: 'multiClusterRoutingUseAny',
            value: {
              clusterIds: [...routing.clusters],
              ...(routing.hasRowAffinity && {
                affinity: { case: 'rowAffinity', value: create(RowAffinitySchema) },
              }),
            },
          },
    isolation:
      isolation.kind === 'standard'
        ? { case: 'standardIsolation', value: { priority: PRIORITIES[isolation.priority] } }
        : {
            case: 'dataBoostIsolationReadOnly',
            value: isolation.hostPays ? { computeBillingOwner: BillingOwner.HOST_PAYS } : {},
          },
  });
}

const PRIORITIES = {
  low: Priority.LOW,
  medium: Priority.MEDIUM,
  high: Priority.HIGH,
} as const;

export function appProfileOf(id: string, message: AppProfileMessage): NewAppProfile {
  return {
    id,
    description: message.description,
    routing: routingOf(message),
    isolation: isolationOf(message),
  };
}

function routingOf({ routingPolicy }: AppProfileMessage): AppProfile['routing'] {
  switch (routingPolicy.case) {
    case 'singleClusterRouting': {
      const { clusterId, allowTransactionalWrites } = routingPolicy.value;
      return { kind: 'single', cluster: clusterId, allowsTransactions: allowTransactionalWrites };
    }
    case 'multiClusterRoutingUseAny': {
      const { clusterIds, affinity } = routingPolicy.value;
      return { kind: 'any', clusters: [...clusterIds].sort(), hasRowAffinity: affinity.case === 'rowAffinity' };
    }
    case undefined:
      throw invalidArgument('an app profile must have single_cluster_routing or multi_cluster_routing_use_any', {
        field: 'app_profile.routing_policy',
      });
  }
}

function isolationOf({ isolation, routingPolicy }: AppProfileMessage): AppProfile['isolation'] {
  switch (isolation.case) {
    case undefined:
      return { kind: 'standard', priority: 'high' };
    case 'priority':
      return { kind: 'standard', priority: priorityOf(isolation.value) };
    case 'standardIsolation':
      if (isolation.value.memoryConfig !== undefined)
        throw new BigtableError(
          Code.FAILED_PRECONDITION,
          'memory_config needs a cluster with a memory layer: Edubba keeps locality groups in memory instead',
        );
      return { kind: 'standard', priority: priorityOf(isolation.value.priority) };
    case 'dataBoostIsolationReadOnly':
      if (routingPolicy.case !== 'singleClusterRouting' || routingPolicy.value.allowTransactionalWrites)
        throw invalidArgument('Data Boost needs single_cluster_routing without transactional writes', {
          field: 'app_profile.isolation',
        });
      return { kind: 'data-boost', hostPays: isolation.value.computeBillingOwner === BillingOwner.HOST_PAYS };
  }
}

function priorityOf(priority: Priority): 'low' | 'medium' | 'high' {
  switch (priority) {
    case Priority.LOW:
      return 'low';
    case Priority.MEDIUM:
      return 'medium';
    case Priority.UNSPECIFIED:
    case Priority.HIGH:
      return 'high';
    default:
      throw unknown('app_profile.priority', priority);
  }
}

export function projectOf(instance: string): string {
  return instance.split('/')[1]!;
}

function unknown(field: string, value: number) {
  return invalidArgument(`${field} ${quote(String(value))} is not a value of the API`, { field });
}
