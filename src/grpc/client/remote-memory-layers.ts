/** Memory layers of clusters over the Cloud API of any Bigtable server. */
import type { RequestContext } from '../../env/index.ts';
import type { MemoryLayer } from '../../model/index.ts';
import type { MemoryLayerChange, MemoryLayerService } from '../../service/index.ts';
import type { RpcClient } from '../../wire/index.ts';
import { layerOfCluster, memoryLayerOf } from '../convert/memory-layer.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { call } from './remote-control.ts';

const admin = BigtableInstanceAdmin.method;

export class RemoteMemoryLayers implements MemoryLayerService {
  readonly #client: RpcClient;

  constructor(client: RpcClient) {
    this.#client = client;
  }

  async getMemoryLayer(context: RequestContext, cluster: string): Promise<MemoryLayer> {
    return memoryLayerOf(await call(this.#client, context, admin.getMemoryLayer, { name: layerOfCluster(cluster) }));
  }

  async listMemoryLayers(context: RequestContext, instance: string): Promise<readonly MemoryLayer[]> {
    const parent = `${instance}/clusters/-`;
    const found: MemoryLayer[] = [];
    for (let pageToken = ''; ; ) {
      const page = await call(this.#client, context, admin.listMemoryLayers, { parent, pageToken });
      found.push(...page.memoryLayers.map(memoryLayerOf));
      pageToken = page.nextPageToken;
      if (pageToken === '') return found;
    }
  }

  /** A server that does it in an operation of its own may answer before it is done. */
  async updateMemoryLayer(
    context: RequestContext,
    cluster: string,
    { isOn, etag = '' }: MemoryLayerChange,
  ): Promise<MemoryLayer> {
    const memoryLayer = { name: layerOfCluster(cluster), etag, ...(isOn && { memoryConfig: {} }) };
    const updateMask = { paths: ['memory_config'] };
    await call(this.#client, context, admin.updateMemoryLayer, { memoryLayer, updateMask });
    return this.getMemoryLayer(context, cluster);
  }
}
