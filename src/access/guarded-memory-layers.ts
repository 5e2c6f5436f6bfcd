/** Memory layers of clusters, as far as the caller has rights on their instances: clusters have no policies. */
import type { RequestContext } from '../env/index.ts';
import type { MemoryLayer } from '../model/index.ts';
import { checkClusterName, type MemoryLayerChange, type MemoryLayerService } from '../service/index.ts';
import type { Gate } from './gate.ts';

export class GuardedMemoryLayers implements MemoryLayerService {
  readonly #layers: MemoryLayerService;
  readonly #gate: Gate;

  constructor(layers: MemoryLayerService, gate: Gate) {
    this.#layers = layers;
    this.#gate = gate;
  }

  async getMemoryLayer(context: RequestContext, cluster: string): Promise<MemoryLayer> {
    const { instance } = checkClusterName(cluster);
    this.#gate.check(context, 'GetMemoryLayer', 'bigtable.memoryLayers.get', instance);
    return this.#layers.getMemoryLayer(context, cluster);
  }

  async listMemoryLayers(context: RequestContext, instance: string): Promise<readonly MemoryLayer[]> {
    this.#gate.check(context, 'ListMemoryLayers', 'bigtable.memoryLayers.list', instance);
    return this.#layers.listMemoryLayers(context, instance);
  }

  async updateMemoryLayer(context: RequestContext, cluster: string, change: MemoryLayerChange): Promise<MemoryLayer> {
    const { instance } = checkClusterName(cluster);
    return this.#gate.change(context, 'UpdateMemoryLayer', 'bigtable.memoryLayers.update', instance, () =>
      this.#layers.updateMemoryLayer(context, cluster, change),
    );
  }
}
