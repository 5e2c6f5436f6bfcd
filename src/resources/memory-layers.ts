/** Memory layers: each is kept with its cluster, in the file of the instance. */
import { notFound } from '../base/index.ts';
import type { RequestContext } from '../env/index.ts';
import { type Instance, type MemoryLayer, memoryLayersOf } from '../model/index.ts';
import {
  checkClusterName,
  type InstanceService,
  type MemoryLayerChange,
  type MemoryLayerService,
} from '../service/index.ts';

export class MemoryLayers implements MemoryLayerService {
  readonly #instances: InstanceService;

  constructor(instances: InstanceService) {
    this.#instances = instances;
  }

  async getMemoryLayer(context: RequestContext, cluster: string): Promise<MemoryLayer> {
    const { instance } = checkClusterName(cluster);
    return layerOf(await this.#instances.getInstance(context, instance), cluster);
  }

  async listMemoryLayers(context: RequestContext, instance: string): Promise<readonly MemoryLayer[]> {
    return memoryLayersOf(await this.#instances.getInstance(context, instance));
  }

  async updateMemoryLayer(
    context: RequestContext,
    cluster: string,
    { isOn, etag }: MemoryLayerChange,
  ): Promise<MemoryLayer> {
    const { instance, id } = checkClusterName(cluster);
    const change = { kind: 'setMemoryLayer', id, isOn, etag } as const;
    return layerOf(await this.#instances.changeInstance(context, instance, change), cluster);
  }
}

function layerOf(instance: Instance, cluster: string): MemoryLayer {
  const found = memoryLayersOf(instance).find((layer) => layer.cluster === cluster);
  if (found === undefined) throw notFound(`${cluster} does not exist`);
  return found;
}
