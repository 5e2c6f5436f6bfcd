/** Instances and clusters in the library's words: ids in place of full names where these are of the own project. */
import { checkOptions, describeValue, invalidArgument, isObjectOfNames, type OptionTable } from '../../base/index.ts';
import {
  type Autoscaling,
  type Cluster as ModelCluster,
  DEFAULT_CLUSTER,
  DEFAULT_ZONE,
  type Instance as ModelInstance,
} from '../../model/index.ts';
import {
  checkInstanceChange,
  checkNewInstance,
  type ClusterChange,
  type InstanceChange,
  type NewCluster,
  type NewInstance,
} from '../../service/index.ts';
import { CALL_OPTIONS, type CallOptions, checkCallOptions } from '../calls/call-options.ts';
import { idOf, numberOf, oneOf, textOf } from '../values/input.ts';
import { ownInstanceName, ownProject } from '../values/names.ts';
import { type AppProfile, ownAppProfile } from './app-profiles.ts';

/** A name for servers and its figures: all clusters of all instances are the servers of one database. */
export interface Cluster extends Omit<NewCluster, 'autoscaling' | 'scalingFactor'> {
  /** Left out: the number of nodes is fixed. */
  readonly autoscaling?: Autoscaling;
  /** Numbers of nodes are multiples of it. Left out: 1. */
  readonly scalingFactor?: 1 | 2;
}

type Description = Pick<ModelInstance, 'displayName' | 'type' | 'edition' | 'labels'>;

export interface Instance extends Description {
  /** Its id, or its full resource name where it is in another project: projects/P/instances/I. */
  readonly name: string;
  /** Microseconds since 1970. Left out for the default instance, and for one that came with its first table. */
  readonly createdMicros?: number;
  /** By id; at least one. */
  readonly clusters: readonly Cluster[];
  /** By id. */
  readonly appProfiles: readonly AppProfile[];
}

/** The figures are checked, kept and shown, and act upon nothing. */
export interface ClusterFigures {
  /** The id of a zone. Default: `local`. */
  readonly zone?: string | undefined;
  /** 1 or more. Default: the least that `autoscaling` and `scalingFactor` allow, or 1. */
  readonly nodes?: number | undefined;
  /** `storageGib` is 0, the default of the storage, where it is left out. Default: the number of nodes is fixed. */
  readonly autoscaling?: AutoscalingOptions | undefined;
  /** Numbers of nodes are multiples of it. Default: 1. */
  readonly scalingFactor?: 1 | 2 | undefined;
  /** Default: ssd. */
  readonly storage?: ModelCluster['storage'] | undefined;
}

export type AutoscalingOptions = Omit<Autoscaling, 'storageGib'> & Partial<Pick<Autoscaling, 'storageGib'>>;

export interface InstanceOptions extends CallOptions {
  /** 1 to 128 characters. Default: its id. */
  readonly displayName?: string | undefined;
  /** Default: production. */
  readonly type?: ModelInstance['type'] | undefined;
  /** Default: enterprise. */
  readonly edition?: ModelInstance['edition'] | undefined;
  /** Default: none. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** By id; at least one. Default: `{ edubba: {} }`. */
  readonly clusters?: Readonly<Record<string, ClusterFigures>> | undefined;
}

export interface ListInstancesOptions extends CallOptions {
  /** The id of the project. Default: that of the database. */
  readonly project?: string | undefined;
}

export interface ClusterOptions extends ClusterFigures, CallOptions {}

/** What is left out stays; `labels` replaces all labels. */
export interface InstanceUpdate extends CallOptions, Pick<InstanceOptions, keyof Description> {}

/** What is left out stays. */
export interface ClusterUpdate extends CallOptions {
  readonly nodes?: number | undefined;
  /** null: the number of nodes is fixed. */
  readonly autoscaling?: AutoscalingOptions | null | undefined;
}

const FIGURES = {
  zone: 'free',
  nodes: 'free',
  autoscaling: 'free',
  scalingFactor: 'free',
  storage: 'free',
} satisfies OptionTable<ClusterFigures>;
const AUTOSCALING = {
  minNodes: 'bound',
  maxNodes: 'bound',
  cpuPercent: 'bound',
  storageGib: 'free',
} satisfies OptionTable<AutoscalingOptions>;
const CLUSTER_OPTIONS = { ...FIGURES, ...CALL_OPTIONS } satisfies OptionTable<ClusterOptions>;
const CLUSTER_UPDATE = { ...CALL_OPTIONS, nodes: 'free', autoscaling: 'free' } satisfies OptionTable<ClusterUpdate>;
const INSTANCE_UPDATE = {
  ...CALL_OPTIONS,
  displayName: 'free',
  type: 'free',
  edition: 'free',
  labels: 'free',
} satisfies OptionTable<InstanceUpdate>;
const INSTANCE_OPTIONS = { ...INSTANCE_UPDATE, clusters: 'free' } satisfies OptionTable<InstanceOptions>;
const LIST_OPTIONS = { ...CALL_OPTIONS, project: 'free' } satisfies OptionTable<ListInstancesOptions>;
const TYPES: readonly ModelInstance['type'][] = ['production', 'development'];
const EDITIONS: readonly ModelInstance['edition'][] = ['enterprise', 'enterprise-plus'];
const STORAGES: readonly ModelCluster['storage'][] = ['ssd', 'hdd'];
const FACTORS: readonly (1 | 2)[] = [1, 2];

/** The instance as its users name it; frozen. */
export function ownInstance(instance: ModelInstance, parent: string): Instance {
  const { name, displayName, type, edition, labels, createdMicros, clusters, appProfiles } = instance;
  return Object.freeze({
    name: ownInstanceName(name, parent),
    displayName,
    type,
    edition,
    labels: Object.freeze({ ...labels }),
    ...(createdMicros !== undefined && { createdMicros }),
    clusters: Object.freeze(clusters.map(ownCluster)),
    appProfiles: Object.freeze(appProfiles.map(ownAppProfile)),
  });
}

export function ownCluster({ id, zone, nodes, autoscaling, scalingFactor, storage }: NewCluster): Cluster {
  return Object.freeze({
    id,
    zone,
    nodes,
    ...(autoscaling !== undefined && { autoscaling: Object.freeze({ ...autoscaling }) }),
    ...(scalingFactor !== undefined && { scalingFactor }),
    storage,
  });
}

/** INVALID_ARGUMENT for options that are not known or of the wrong form. */
export function askedInstance(name: string, options: InstanceOptions): NewInstance {
  checkOptions(options, INSTANCE_OPTIONS, 'createInstance');
  const { clusters = { [DEFAULT_CLUSTER]: {} } } = options;
  if (!isObjectOfNames(clusters))
    throw invalidArgument(
      'createInstance: clusters must be an object with the options of each cluster by its id, ' +
        `not ${describeValue(clusters)}`,
    );
  const instance: NewInstance = {
    name,
    displayName: name.slice(name.lastIndexOf('/') + 1),
    type: 'production',
    edition: 'enterprise',
    labels: {},
    ...descriptionOf(options),
    clusters: Object.entries(clusters).map(([id, figures]) => {
      checkOptions(figures, FIGURES, `cluster "${id}"`);
      return clusterOf(id, figures);
    }),
  };
  checkNewInstance(instance);
  return instance;
}

export function askedInstanceUpdate(instance: string, update: InstanceUpdate): InstanceChange {
  checkOptions(update, INSTANCE_UPDATE, 'updateInstance');
  const description = descriptionOf(update);
  if (Object.keys(description).length === 0)
    throw invalidArgument('updateInstance: displayName, type, edition or labels must be given');
  return checked(instance, { kind: 'describe', ...description });
}

/** What is given of it. */
function descriptionOf({ displayName, type, edition, labels }: InstanceUpdate): Partial<Description> {
  return {
    ...(displayName !== undefined && { displayName: textOf(displayName, 'displayName') }),
    ...(type !== undefined && { type: oneOf(type, TYPES, 'type') }),
    ...(edition !== undefined && { edition: oneOf(edition, EDITIONS, 'edition') }),
    ...(labels !== undefined && { labels: labelsOf(labels) }),
  };
}

/** The id of the project. */
export function askedProject(options: ListInstancesOptions, parent: string): string {
  checkOptions(options, LIST_OPTIONS, 'listInstances');
  const { project } = options;
  return project === undefined ? ownProject(parent) : idOf(project, 'project');
}

export function askedCluster(instance: string, id: string, options: ClusterOptions): InstanceChange {
  checkOptions(options, CLUSTER_OPTIONS, 'createCluster');
  return checked(instance, { kind: 'createCluster', cluster: clusterOf(idOf(id, 'the id of a cluster'), options) });
}

export function askedClusterUpdate(instance: string, id: string, update: ClusterUpdate): InstanceChange {
  checkOptions(update, CLUSTER_UPDATE, 'updateCluster');
  const { nodes, autoscaling } = update;
  if (nodes === undefined && autoscaling === undefined)
    throw invalidArgument('updateCluster: nodes or autoscaling must be given');
  const change: ClusterChange = {
    ...(nodes !== undefined && { nodes: numberOf(nodes, 'nodes') }),
    ...(autoscaling !== undefined && { autoscaling: autoscaling === null ? null : autoscalingOf(autoscaling) }),
  };
  return checked(instance, { kind: 'updateCluster', id: idOf(id, 'the id of a cluster'), ...change });
}

export function askedClusterDeletion(id: string, options: CallOptions): InstanceChange {
  checkCallOptions(options);
  return { kind: 'deleteCluster', id: idOf(id, 'the id of a cluster') };
}

function clusterOf(id: string, figures: ClusterFigures): NewCluster {
  const { zone, storage } = figures;
  const autoscaling = figures.autoscaling === undefined ? undefined : autoscalingOf(figures.autoscaling);
  const scalingFactor =
    figures.scalingFactor === undefined ? undefined : oneOf(figures.scalingFactor, FACTORS, 'scalingFactor');
  const { nodes = autoscaling?.minNodes ?? scalingFactor ?? 1 } = figures;
  return {
    id,
    zone: zone === undefined ? DEFAULT_ZONE : textOf(zone, 'zone'),
    nodes: numberOf(nodes, 'nodes'),
    autoscaling,
    scalingFactor,
    storage: storage === undefined ? 'ssd' : oneOf(storage, STORAGES, 'storage'),
  };
}

function autoscalingOf(given: AutoscalingOptions): Autoscaling {
  checkOptions(given, AUTOSCALING, 'autoscaling');
  const { minNodes, maxNodes, cpuPercent, storageGib } = given;
  return {
    minNodes: numberOf(minNodes, 'autoscaling: minNodes'),
    maxNodes: numberOf(maxNodes, 'autoscaling: maxNodes'),
    cpuPercent: numberOf(cpuPercent, 'autoscaling: cpuPercent'),
    storageGib: storageGib === undefined ? 0 : numberOf(storageGib, 'autoscaling: storageGib'),
  };
}

function labelsOf(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (!isObjectOfNames(labels))
    throw invalidArgument(`labels must be an object of texts by name, not ${describeValue(labels)}`);
  return Object.fromEntries(
    Object.entries(labels).map(([name, value]) => [name, textOf(value, `label ${JSON.stringify(name)}`)]),
  );
}

/** Checks the change as the service does, before a request is sent. */
function checked(instance: string, change: InstanceChange): InstanceChange {
  checkInstanceChange(instance, change);
  return change;
}
