/** What a change makes of an instance: pure, and all of the change or an error. */
import { BigtableError, Code, notFound } from '../base/index.ts';
import {
  type AppProfile,
  type Cluster,
  DEFAULT_APP_PROFILE,
  defaultAppProfile,
  type Instance,
  memoryLayersOf,
} from '../model/index.ts';
import { checkAppProfile, checkCluster } from './check-instances.ts';
import type { InstanceChange, NewAppProfile, NewInstance } from './instance-service.ts';
import { changedSinceRead } from './stale-change.ts';

const MAX_CLUSTERS = 64;
const MAX_APP_PROFILES = 500;

export function newInstance(instance: NewInstance, createdMicros: number): Instance {
  const clusters = sorted(instance.clusters.map((cluster) => ({ ...cluster, revision: 1 })));
  checkCount(clusters, MAX_CLUSTERS, 'clusters', instance.name);
  const appProfiles = [{ ...defaultAppProfile(clusters), revision: 1 }];
  return { ...instance, createdMicros, clusters, appProfiles, revision: 1 };
}

export function changedInstance(instance: Instance, change: InstanceChange): Instance {
  const revision = instance.revision + 1;
  const next = { ...instance, revision };
  switch (change.kind) {
    case 'describe': {
      const { kind: _, ...fields } = change;
      const given = Object.entries(fields).filter(([, value]) => value !== undefined);
      return { ...next, ...Object.fromEntries(given) };
    }
    case 'createCluster':
      return { ...next, clusters: added(instance, 'clusters', { ...change.cluster, revision }, MAX_CLUSTERS) };
    case 'replaceCluster':
      return {
        ...next,
        clusters: replaced(
          instance,
          'clusters',
          { ...partOf(instance, 'clusters', change.cluster.id), ...change.cluster, revision },
          change.revision,
        ),
      };
    case 'updateCluster':
      return { ...next, clusters: withChangedCluster(instance, change, revision) };
    case 'setMemoryLayer':
      return { ...next, clusters: withMemoryLayer(instance, change, revision) };
    case 'deleteCluster':
      return { ...next, clusters: withoutCluster(instance, change.id) };
    case 'createAppProfile': {
      checkClusters(instance, change.profile);
      const profile = { ...change.profile, revision };
      return { ...next, appProfiles: added(instance, 'appProfiles', profile, MAX_APP_PROFILES) };
    }
    case 'replaceAppProfile': {
      checkClusters(instance, change.profile);
      const profile = { ...change.profile, revision };
      return { ...next, appProfiles: replaced(instance, 'appProfiles', profile, change.revision) };
    }
    case 'updateAppProfile':
      return { ...next, appProfiles: withChangedAppProfile(instance, change, revision) };
    case 'deleteAppProfile':
      checkMayGo(instance, change);
      return { ...next, appProfiles: without(instance, 'appProfiles', change.id) };
  }
}

type PartsKind = 'clusters' | 'appProfiles';
type PartOf<K extends PartsKind> = Instance[K][number];

/** The part of that id. NOT_FOUND where there is none. */
export function partOf<K extends PartsKind>(instance: Instance, kind: K, id: string): PartOf<K> {
  const parts: readonly PartOf<K>[] = instance[kind];
  const found = parts.find((part) => part.id === id);
  if (found === undefined) throw notFound(`${nameOfPart(instance, kind, id)} does not exist`);
  return found;
}

/** The part, for messages. */
function nameOfPart({ name }: Instance, kind: PartsKind, id: string): string {
  return `${kind === 'clusters' ? 'cluster' : 'app profile'} ${id} of instance ${name}`;
}

function added<K extends PartsKind>(instance: Instance, kind: K, part: PartOf<K>, max: number): PartOf<K>[] {
  const parts: readonly PartOf<K>[] = instance[kind];
  if (parts.some(({ id }) => id === part.id))
    throw new BigtableError(Code.ALREADY_EXISTS, `${nameOfPart(instance, kind, part.id)} exists already`);
  const all = sorted([...parts, part]);
  checkCount(all, max, kind === 'clusters' ? 'clusters' : 'app profiles', instance.name);
  return all;
}

function replaced<K extends PartsKind>(instance: Instance, kind: K, part: PartOf<K>, revision: number): PartOf<K>[] {
  const present = partOf(instance, kind, part.id);
  if (present.revision !== revision) throw changedSinceRead(nameOfPart(instance, kind, part.id));
  const parts: readonly PartOf<K>[] = instance[kind];
  return parts.map((each) => (each.id === part.id ? part : each));
}

function without<K extends PartsKind>(instance: Instance, kind: K, id: string): PartOf<K>[] {
  const removed = partOf(instance, kind, id);
  const parts: readonly PartOf<K>[] = instance[kind];
  return parts.filter((part) => part !== removed);
}

function withoutCluster(instance: Instance, id: string): Cluster[] {
  const clusters = without(instance, 'clusters', id);
  const name = nameOfPart(instance, 'clusters', id);
  if (clusters.length === 0)
    throw new BigtableError(Code.FAILED_PRECONDITION, `${name} is its last one: delete the instance instead`);
  const user = instance.appProfiles.find((profile) => clustersOf(profile).includes(id));
  if (user !== undefined)
    throw new BigtableError(Code.FAILED_PRECONDITION, `${name} is used by app profile ${user.id}: change that first`);
  return clusters;
}

function withChangedCluster(
  instance: Instance,
  { id, nodes, autoscaling }: Extract<InstanceChange, { readonly kind: 'updateCluster' }>,
  revision: number,
): Cluster[] {
  const present = partOf(instance, 'clusters', id);
  const changed = {
    ...present,
    revision,
    ...(nodes !== undefined && { nodes }),
    ...(autoscaling !== undefined && { autoscaling: autoscaling ?? undefined }),
  };
  checkCluster(changed);
  return replaced(instance, 'clusters', changed, present.revision);
}

function withChangedAppProfile(
  instance: Instance,
  { id, description, routing, isolation }: Extract<InstanceChange, { readonly kind: 'updateAppProfile' }>,
  revision: number,
): AppProfile[] {
  const present = partOf(instance, 'appProfiles', id);
  const changed = {
    ...present,
    revision,
    ...(description !== undefined && { description }),
    ...(routing !== undefined && { routing }),
    ...(isolation !== undefined && { isolation }),
  };
  checkAppProfile(changed);
  checkClusters(instance, changed);
  return replaced(instance, 'appProfiles', changed, present.revision);
}

function checkMayGo(
  instance: Instance,
  { id, ignoreWarnings = false }: Extract<InstanceChange, { readonly kind: 'deleteAppProfile' }>,
): void {
  if (id === DEFAULT_APP_PROFILE && !ignoreWarnings)
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `${nameOfPart(instance, 'appProfiles', id)} is that of all calls that name none, which would fail: ignore this warning to delete it`,
    );
}

/** A change of the memory layer is none of the cluster: neither makes the other fail. */
function withMemoryLayer(
  instance: Instance,
  { id, isOn, etag }: Extract<InstanceChange, { readonly kind: 'setMemoryLayer' }>,
  revision: number,
): Cluster[] {
  const changed = partOf(instance, 'clusters', id);
  const name = `${instance.name}/clusters/${id}`;
  const present = memoryLayersOf(instance).find(({ cluster }) => cluster === name);
  if (etag !== undefined && etag !== present?.etag) throw changedSinceRead(`${name}/memoryLayer`);
  return instance.clusters.map((each) => (each === changed ? { ...each, memoryLayer: { isOn, revision } } : each));
}

/** The clusters that the profile names. */
function clustersOf({ routing }: NewAppProfile): readonly string[] {
  return routing.kind === 'single' ? [routing.cluster] : routing.clusters;
}

function checkClusters(instance: Instance, profile: NewAppProfile): void {
  for (const id of clustersOf(profile)) {
    if (!instance.clusters.some((cluster) => cluster.id === id))
      throw new BigtableError(
        Code.FAILED_PRECONDITION,
        `app profile ${profile.id} names cluster ${JSON.stringify(id)}, which instance ${instance.name} does not have`,
      );
  }
}

function checkCount(parts: readonly unknown[], max: number, words: string, instance: string): void {
  if (parts.length > max)
    throw new BigtableError(Code.RESOURCE_EXHAUSTED, `instance ${instance} has ${max} ${words}, and may have no more`);
}

function sorted<T extends Cluster | AppProfile>(parts: readonly T[]): T[] {
  return [...parts].sort((a, b) => (a.id < b.id ? -1 : 1));
}
