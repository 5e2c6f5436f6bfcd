/**
 * The form of instances, clusters and app profiles. Each check throws INVALID_ARGUMENT with the thing, its value and
 * the limit. Patterns are those of the API's definitions (google/bigtable/admin/v2/instance.proto).
 */
import { invalidArgument, quote } from '../base/index.ts';
import type { Autoscaling, Instance } from '../model/index.ts';
import type {
  AppProfileChange,
  ClusterChange,
  InstanceChange,
  NewAppProfile,
  NewCluster,
  NewInstance,
} from './instance-service.ts';

/** Ids of projects are free, and so are those of instances that came with a table. */
const INSTANCE_NAME = /^projects\/[^/]{1,1000}\/instances\/([^/]{1,1000})$/;
const CLUSTER_NAME = /^(projects\/[^/]{1,1000}\/instances\/[^/]{1,1000})\/clusters\/([^/]{1,1000})$/;
const NEW_INSTANCE_ID = /^[a-z][-a-z0-9]{0,31}[a-z0-9]$/;
const CLUSTER_ID = /^[a-z][-a-z0-9]{0,63}$/;
const APP_PROFILE_ID = /^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}$/;
const ZONE = /^[^/]{1,100}$/;
const LABEL_KEY = /^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$/u;
const LABEL_VALUE = /^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$/u;
const HALF_OF_A_CHARACTER = /\p{Surrogate}/u;

const MAX_LABELS = 64;
const MAX_LABEL_BYTES = 128;
const MAX_DISPLAY_NAME_CHARS = 128;
const MAX_DESCRIPTION_CHARS = 1024;
const MAX_NODES = 100_000;
const CPU_PERCENT = [10, 80] as const;
/** GiB for each node. */
const STORAGE_GIB = { ssd: [2560, 5120], hdd: [8192, 16_384] } as const;
const STORAGES = ['ssd', 'hdd'] as const;

export function checkInstanceName(name: string): void {
  if (!INSTANCE_NAME.test(name))
    throw invalidArgument(`instance name ${quote(name, 200)} must be projects/PROJECT/instances/INSTANCE`);
}

/** The instance and the id in the full name of a cluster. */
export function checkClusterName(name: string): { readonly instance: string; readonly id: string } {
  const [, instance, id] = CLUSTER_NAME.exec(name) ?? [];
  if (instance === undefined || id === undefined)
    throw invalidArgument(
      `cluster name ${quote(name, 200)} must be projects/PROJECT/instances/INSTANCE/clusters/CLUSTER`,
    );
  return { instance, id };
}

export function checkNewInstance(instance: NewInstance): void {
  checkInstanceName(instance.name);
  const id = INSTANCE_NAME.exec(instance.name)![1]!;
  checkText('instance name', instance.name);
  if (!NEW_INSTANCE_ID.test(id))
    throw invalidArgument(
      `instance id ${quote(id)} must be 2 to 33 characters of [-a-z0-9], begin with a letter and not end with "-"`,
    );
  checkDescription(instance);
  if (instance.clusters.length === 0) throw invalidArgument('an instance must have at least one cluster');
  for (const cluster of instance.clusters) checkCluster(cluster);
}

export function checkInstanceChange(name: string, change: InstanceChange): void {
  checkInstanceName(name);
  switch (change.kind) {
    case 'describe':
      return checkDescription(change);
    case 'createCluster':
    case 'replaceCluster':
      return checkCluster(change.cluster);
    case 'createAppProfile':
    case 'replaceAppProfile':
      return checkAppProfile(change.profile);
    case 'updateCluster':
      return checkClusterChange(change);
    case 'updateAppProfile':
      return checkAppProfileChange(change);
    case 'deleteCluster':
    case 'deleteAppProfile':
    case 'setMemoryLayer':
      return;
  }
}

function checkDescription({ displayName, labels = {} }: Partial<Pick<Instance, 'displayName' | 'labels'>>): void {
  if (displayName !== undefined) {
    if (displayName === '') throw invalidArgument('the display name of an instance must not be empty');
    checkText('display name', displayName);
    checkLength('display name', displayName, MAX_DISPLAY_NAME_CHARS);
  }
  const all = Object.entries(labels);
  if (all.length > MAX_LABELS) throw invalidArgument(`an instance may have ${MAX_LABELS} labels, not ${all.length}`);
  for (const [key, value] of all) {
    if (!LABEL_KEY.test(key) || Buffer.byteLength(key) >= MAX_LABEL_BYTES)
      throw invalidArgument(
        `label ${quote(key)} must be 1 to 63 lower-case letters, digits, _ and -, begin with a letter, and take less than ${MAX_LABEL_BYTES} bytes`,
      );
    if (!LABEL_VALUE.test(value) || Buffer.byteLength(value) >= MAX_LABEL_BYTES)
      throw invalidArgument(
        `the value ${quote(value)} of label ${quote(key)} must be at most 63 lower-case letters, digits, _ and -, and take less than ${MAX_LABEL_BYTES} bytes`,
      );
  }
}

/** INVALID_ARGUMENT for a cluster that may not be. */
export function checkCluster({ id, zone, nodes, autoscaling, scalingFactor = 1, storage }: NewCluster): void {
  if (!CLUSTER_ID.test(id))
    throw invalidArgument(`cluster id ${quote(id)} must be 1 to 64 characters of [-a-z0-9] and begin with a letter`);
  if (!ZONE.test(zone)) throw invalidArgument(`the zone ${quote(zone)} of cluster ${id} must be 1 to 100 characters`);
  checkText(`zone of cluster ${id}`, zone);
  checkNodes(`nodes of cluster ${id}`, nodes, scalingFactor);
  if (autoscaling !== undefined) checkAutoscaling(`cluster ${id}`, autoscaling, scalingFactor, storage);
}

/** As far as it can be known without the cluster: the rest is checked when it is changed. */
function checkClusterChange({ id, nodes, autoscaling }: { readonly id: string } & ClusterChange): void {
  if (nodes !== undefined) checkNodes(`nodes of cluster ${id}`, nodes, 1);
  if (autoscaling != null) checkAutoscaling(`cluster ${id}`, autoscaling, 1);
}

function checkAutoscaling(
  what: string,
  { minNodes, maxNodes, cpuPercent, storageGib }: Autoscaling,
  scalingFactor: number,
  storage?: NewCluster['storage'],
): void {
  checkNodes(`least nodes of ${what}`, minNodes, scalingFactor);
  checkNodes(`most nodes of ${what}`, maxNodes, scalingFactor);
  if (minNodes > maxNodes)
    throw invalidArgument(`the autoscaling of ${what} has ${minNodes} nodes at least and ${maxNodes} at most`);
  const [leastPercent, mostPercent] = CPU_PERCENT;
  if (!isWithin(cpuPercent, CPU_PERCENT))
    throw invalidArgument(
      `the CPU target of ${what} must be ${leastPercent} to ${mostPercent} percent, not ${cpuPercent}`,
    );
  const kinds = storage === undefined ? STORAGES : [storage];
  if (storageGib !== 0 && !kinds.some((kind) => isWithin(storageGib, STORAGE_GIB[kind])))
    throw invalidArgument(
      `the storage target of ${what} must be ${kinds.map((kind) => `${STORAGE_GIB[kind].join(' to ')} GiB a node (${kind})`).join(', ')}, or 0, not ${storageGib}`,
    );
}

function isWithin(number: number, [least, most]: readonly [least: number, most: number]): boolean {
  return Number.isInteger(number) && number >= least && number <= most;
}

function checkNodes(what: string, nodes: number, scalingFactor: number): void {
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > MAX_NODES)
    throw invalidArgument(`the ${what} must be 1 to ${MAX_NODES}, not ${nodes}`);
  if (nodes % scalingFactor !== 0)
    throw invalidArgument(`the ${what} must be a multiple of the node scaling factor ${scalingFactor}, not ${nodes}`);
}

/** INVALID_ARGUMENT for an app profile that may not be. */
export function checkAppProfile(profile: NewAppProfile): void {
  const { id, routing, isolation } = profile;
  if (!APP_PROFILE_ID.test(id))
    throw invalidArgument(
      `app profile id ${quote(id)} must be 1 to 50 characters of [-_.a-zA-Z0-9], the first of [_a-zA-Z0-9]`,
    );
  checkAppProfileChange(profile);
  if (isolation.kind === 'data-boost' && (routing.kind === 'any' || routing.allowsTransactions))
    throw invalidArgument(
      `app profile ${id}: Data Boost needs routing to a single cluster, without transactional writes`,
    );
}

/** As far as it can be known without the app profile: the rest is checked when it is changed. */
function checkAppProfileChange({ id, description, routing }: { readonly id: string } & AppProfileChange): void {
  if (description !== undefined) {
    const what = `description of app profile ${id}`;
    checkText(what, description);
    checkLength(what, description, MAX_DESCRIPTION_CHARS);
  }
  if (routing === undefined) return;
  const clusters = routing.kind === 'any' ? routing.clusters : [routing.cluster];
  if (new Set(clusters).size !== clusters.length)
    throw invalidArgument(`app profile ${id} names a cluster twice: ${quote(clusters.join(', '))}`);
}

/** Half of a character has no bytes in UTF-8. */
function checkText(what: string, text: string): void {
  if (HALF_OF_A_CHARACTER.test(text)) throw invalidArgument(`the ${what} ${quote(text)} holds half of a character`);
}

function checkLength(what: string, text: string, maxChars: number): void {
  if (text.length > maxChars)
    throw invalidArgument(`the ${what} has ${text.length} characters; the limit is ${maxChars}`);
}
