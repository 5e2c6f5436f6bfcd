/**
 * An instance as a file of the lock service, `instances/<full name of the instance>`. Format:
 * docs/formats/instances.md.
 */
import type { AppProfile, Autoscaling, Cluster, Instance, MemoryLayerState } from '../model/index.ts';
import { encodeDocument, PlainObject } from '../metadata/index.ts';

const INSTANCE_DIRECTORY = 'instances/';

/** The file of an instance; of a prefix of names, the prefix of their files. */
export function instancePath(name: string): string {
  return INSTANCE_DIRECTORY + name;
}

export interface InstanceFile {
  readonly instance: Instance;
  /** Unique names of the last writes of the file, the newest last: a writer whose answer was lost looks for its own. */
  readonly writes: readonly string[];
}

export function encodeInstance({ instance, writes }: InstanceFile): Buffer {
  return encodeDocument({ ...instance, writes });
}

/** Checks every field: CorruptionError names the one that is wrong. */
export function decodeInstance(path: string, contents: Uint8Array): InstanceFile {
  const object = PlainObject.parse(path, contents);
  return { instance: readInstance(object), writes: object.texts('writes') };
}

function readInstance(object: PlainObject): Instance {
  return {
    name: object.text('name'),
    displayName: object.text('displayName'),
    type: object.oneOf('type', ['production', 'development']),
    edition: object.oneOf('edition', ['enterprise', 'enterprise-plus']),
    labels: object.object('labels').record((all, name) => all.text(name)),
    createdMicros: object.has('createdMicros') ? object.count('createdMicros') : undefined,
    clusters: object.objects('clusters').map(readCluster),
    appProfiles: object.objects('appProfiles').map(readAppProfile),
    revision: object.count('revision'),
  };
}

function readCluster(object: PlainObject): Cluster {
  return {
    id: object.text('id'),
    zone: object.text('zone'),
    nodes: object.count('nodes'),
    autoscaling: object.has('autoscaling') ? readAutoscaling(object.object('autoscaling')) : undefined,
    scalingFactor: object.has('scalingFactor') ? scalingFactorOf(object.count('scalingFactor')) : undefined,
    storage: object.oneOf('storage', ['ssd', 'hdd']),
    revision: object.count('revision'),
    ...(object.has('memoryLayer') && { memoryLayer: readMemoryLayer(object.object('memoryLayer')) }),
  };
}

function readMemoryLayer(object: PlainObject): MemoryLayerState {
  return { isOn: object.flag('isOn'), revision: object.count('revision') };
}

function scalingFactorOf(factor: number): 1 | 2 {
  return factor === 2 ? 2 : 1;
}

function readAutoscaling(object: PlainObject): Autoscaling {
  return {
    minNodes: object.count('minNodes'),
    maxNodes: object.count('maxNodes'),
    cpuPercent: object.count('cpuPercent'),
    storageGib: object.count('storageGib'),
  };
}

function readAppProfile(object: PlainObject): AppProfile {
  return {
    id: object.text('id'),
    description: object.text('description'),
    routing: readRouting(object.object('routing')),
    isolation: readIsolation(object.object('isolation')),
    revision: object.count('revision'),
  };
}

function readRouting(object: PlainObject): AppProfile['routing'] {
  const kind = object.oneOf('kind', ['single', 'any']);
  return kind === 'single'
    ? { kind, cluster: object.text('cluster'), allowsTransactions: object.flag('allowsTransactions') }
    : { kind, clusters: object.texts('clusters'), hasRowAffinity: object.flag('hasRowAffinity') };
}

function readIsolation(object: PlainObject): AppProfile['isolation'] {
  const kind = object.oneOf('kind', ['standard', 'data-boost']);
  return kind === 'standard'
    ? { kind, priority: object.oneOf('priority', ['low', 'medium', 'high']) }
    : { kind, hostPays: object.flag('hostPays') };
}
