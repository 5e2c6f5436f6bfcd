/** Memory layers of clusters (API: google.bigtable.admin.v2.BigtableInstanceAdmin). */
import type { RequestContext } from '../env/index.ts';
import type { MemoryLayer } from '../model/index.ts';

export interface MemoryLayerChange {
  readonly isOn: boolean;
  /** That of the memory layer as the caller knows it; ABORTED if it is another by now. Default: any. */
  readonly etag?: string | undefined;
}

export interface MemoryLayerService {
  /** `cluster`: its full name. NOT_FOUND where there is none. */
  getMemoryLayer(context: RequestContext, cluster: string): Promise<MemoryLayer>;
  /** Those of an instance's clusters, by name. */
  listMemoryLayers(context: RequestContext, instance: string): Promise<readonly MemoryLayer[]>;
  /** Acts on all servers when it returns. */
  updateMemoryLayer(context: RequestContext, cluster: string, change: MemoryLayerChange): Promise<MemoryLayer>;
}

/** For tablet servers: which tables are served from memory. */
export interface MemoryLayerSource {
  /** By the full name of the table. */
  isOn(table: string): boolean;
  /** Calls back after each change, until the returned function is called. */
  onChange(changed: () => void): () => void;
}
