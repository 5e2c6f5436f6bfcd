/** Memory layers of clusters: the API's message and the model. */
import { create } from '@bufbuild/protobuf';
import type { MemoryLayer } from '../../model/index.ts';
import {
  type MemoryLayer as MemoryLayerMessage,
  MemoryLayer_State as State,
  MemoryLayerSchema,
} from '../generated/google/bigtable/admin/v2/instance_pb.ts';

const SUFFIX = '/memoryLayer';

/** Without a size: how much memory there is, is a setting of the servers. */
export function memoryLayerMessage({ cluster, isOn, etag }: MemoryLayer): MemoryLayerMessage {
  return create(MemoryLayerSchema, {
    name: cluster + SUFFIX,
    etag,
    state: isOn ? State.READY : State.DISABLED,
    ...(isOn && { memoryConfig: {} }),
  });
}

export function memoryLayerOf({ name, memoryConfig, etag }: MemoryLayerMessage): MemoryLayer {
  return { cluster: clusterOfLayer(name), isOn: memoryConfig !== undefined, etag };
}

/** The name of the cluster in that of its memory layer. */
export function clusterOfLayer(name: string): string {
  return name.endsWith(SUFFIX) ? name.slice(0, -SUFFIX.length) : name;
}

export function layerOfCluster(cluster: string): string {
  return cluster + SUFFIX;
}
