/**
 * Instances, their clusters and app profiles (API: google.bigtable.admin.v2.Instance, Cluster, AppProfile). They group
 * tables and describe how programs use them; all clusters of all instances are the servers of this one database.
 * Plain frozen data, one small file of the lock service for each instance.
 */

export interface Instance {
  /** The full resource name: projects/P/instances/I. */
  readonly name: string;
  readonly displayName: string;
  readonly type: 'production' | 'development';
  readonly edition: 'enterprise' | 'enterprise-plus';
  readonly labels: Readonly<Record<string, string>>;
  /**
   * Microseconds since 1970. Undefined for one that no one has created: the default instance, and one that came with
   * its first table.
   */
  readonly createdMicros: number | undefined;
  /** By id; at least one. */
  readonly clusters: readonly Cluster[];
  /** By id. */
  readonly appProfiles: readonly AppProfile[];
  /** Grows by one with each change; 0 while nothing was changed. */
  readonly revision: number;
}

/** What each part of an instance has, too. */
interface Part {
  /** The last part of its name. */
  readonly id: string;
  /** The revision of the instance that changed it last. */
  readonly revision: number;
}

export interface Cluster extends Part {
  /** The id of a zone: the last part of projects/P/locations/ZONE. */
  readonly zone: string;
  /** 1 or more. */
  readonly nodes: number;
  /** Undefined: the number of nodes is fixed. */
  readonly autoscaling: Autoscaling | undefined;
  /** Numbers of nodes are multiples of it. Undefined: 1, and no one has said so. */
  readonly scalingFactor: 1 | 2 | undefined;
  readonly storage: 'ssd' | 'hdd';
  /** Undefined: no one has turned it on or off yet, and it is off. */
  readonly memoryLayer?: MemoryLayerState | undefined;
}

export interface MemoryLayerState {
  readonly isOn: boolean;
  /** The revision of the instance that changed it last. */
  readonly revision: number;
}

/**
 * The memory layer of a cluster (API: google.bigtable.admin.v2.MemoryLayer). While that of one cluster is on, all
 * locality groups of all tables of the instance are in-memory groups (paper section 6).
 */
export interface MemoryLayer {
  /** The full name of its cluster. */
  readonly cluster: string;
  readonly isOn: boolean;
  /** Another text after each change. */
  readonly etag: string;
}

/** Those of an instance's clusters, by name. */
export function memoryLayersOf({ name, createdMicros = 0, clusters }: Instance): MemoryLayer[] {
  return clusters.map(({ id, memoryLayer }) => ({
    cluster: `${name}/clusters/${id}`,
    isOn: memoryLayer?.isOn ?? false,
    // a later instance of the name has other etags
    etag: `${createdMicros.toString(36)}-${memoryLayer?.revision ?? 0}`,
  }));
}

/** True while the tables of the instance are served from memory. */
export function isServedFromMemory({ clusters }: Instance): boolean {
  return clusters.some(({ memoryLayer }) => memoryLayer?.isOn);
}

export interface Autoscaling {
  readonly minNodes: number;
  readonly maxNodes: number;
  /** 10 to 80. */
  readonly cpuPercent: number;
  /** For each node; 0 = the storage's default. */
  readonly storageGib: number;
}

export interface AppProfile extends Part {
  readonly description: string;
  readonly routing: SingleClusterRouting | AnyClusterRouting;
  readonly isolation: StandardIsolation | DataBoostIsolation;
}

export interface SingleClusterRouting {
  readonly kind: 'single';
  readonly cluster: string;
  /** False: CheckAndMutateRow and ReadModifyWriteRow are refused. */
  readonly allowsTransactions: boolean;
}

/** CheckAndMutateRow and ReadModifyWriteRow are refused. */
export interface AnyClusterRouting {
  readonly kind: 'any';
  /** By id; empty = all. */
  readonly clusters: readonly string[];
  readonly hasRowAffinity: boolean;
}

export interface StandardIsolation {
  readonly kind: 'standard';
  readonly priority: 'low' | 'medium' | 'high';
}

/** Only reads are allowed. */
export interface DataBoostIsolation {
  readonly kind: 'data-boost';
  readonly hostPays: boolean;
}

/** The cluster of an instance that no one has created, and its zone. */
export const DEFAULT_CLUSTER = 'edubba';
export const DEFAULT_ZONE = 'local';
/** The app profile of calls that name none; each instance begins with it. */
export const DEFAULT_APP_PROFILE = 'default';

/** An instance as it is before anyone has created or changed it. */
export function uncreatedInstance(name: string): Instance {
  const clusters: readonly Cluster[] = [
    {
      id: DEFAULT_CLUSTER,
      zone: DEFAULT_ZONE,
      nodes: 1,
      autoscaling: undefined,
      scalingFactor: undefined,
      storage: 'ssd',
      revision: 0,
    },
  ];
  return {
    name,
    displayName: name.slice(name.lastIndexOf('/') + 1),
    type: 'production',
    edition: 'enterprise',
    labels: {},
    createdMicros: undefined,
    clusters,
    appProfiles: [defaultAppProfile(clusters)],
    revision: 0,
  };
}

/** The first app profile of an instance with these clusters: transactions are allowed where there is only one. */
export function defaultAppProfile(clusters: readonly Cluster[]): AppProfile {
  const [first, ...others] = clusters;
  return {
    id: DEFAULT_APP_PROFILE,
    description: '',
    routing:
      first !== undefined && others.length === 0
        ? { kind: 'single', cluster: first.id, allowsTransactions: true }
        : { kind: 'any', clusters: [], hasRowAffinity: false },
    isolation: { kind: 'standard', priority: 'high' },
    revision: 0,
  };
}

/** The full name of the instance of the table with that full name. */
export function instanceOfTable(table: string): string {
  return table.slice(0, table.lastIndexOf('/tables/'));
}
