/**
 * google.bigtable.admin.v2.BigtableInstanceAdmin: memory layers of clusters
 * (docs/decisions/0103-memory-layers.md).
 */
import { BigtableError, Code, invalidArgument, notFound } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { MemoryLayerService, Service } from '../../service/index.ts';
import { applyMask } from '../convert/field-mask.ts';
import { clusterOfLayer, memoryLayerMessage } from '../convert/memory-layer.ts';
import { ANY, CLUSTER, idsOf, MEMORY_LAYER } from '../convert/names.ts';
import {
  BigtableInstanceAdmin,
  type ListMemoryLayersRequest,
  UpdateMemoryLayerMetadataSchema,
  type UpdateMemoryLayerRequest,
} from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { MemoryLayerSchema } from '../generated/google/bigtable/admin/v2/instance_pb.ts';
import type { Operation } from '../generated/google/longrunning/operations_pb.ts';
import type { MethodTable } from './method-table.ts';
import type { Operations } from './operations.ts';
import { pageOf } from './pages.ts';

const MAX_PAGE = 500;
/** What UpdateMemoryLayer changes; also where it names no field. */
const FIELDS = ['memory_config'];

export function registerMemoryLayers(methods: MethodTable, service: Service, operations: Operations): void {
  const admin = BigtableInstanceAdmin.method;
  const calls = new MemoryLayerCalls(service, operations);
  methods.unary(admin.getMemoryLayer, async (context, { name }) => {
    idsOf(name, MEMORY_LAYER, 'name');
    return memoryLayerMessage(await calls.layers.getMemoryLayer(context, clusterOfLayer(name)));
  });
  methods.unary(admin.listMemoryLayers, (context, request) => calls.list(context, request));
  methods.change(admin.updateMemoryLayer, (context, request) => calls.update(context, request));
}

class MemoryLayerCalls {
  readonly #service: Service;
  readonly #operations: Operations;

  constructor(service: Service, operations: Operations) {
    this.#service = service;
    this.#operations = operations;
  }

  get layers(): MemoryLayerService {
    const { memoryLayers } = this.#service;
    if (memoryLayers === undefined) throw new BigtableError(Code.FAILED_PRECONDITION, 'this door has no memory layers');
    return memoryLayers;
  }

  async list(context: RequestContext, request: ListMemoryLayersRequest) {
    const { parent } = request;
    const [project, id, cluster] = idsOf(parent, CLUSTER, 'parent');
    const instance = `projects/${project}/instances/${id}`;
    const all = await this.layers.listMemoryLayers(context, instance);
    const layers = all.filter((layer) => cluster === ANY || layer.cluster === parent).map(memoryLayerMessage);
    if (layers.length === 0) throw notFound(`${parent} does not exist`);
    const { items, nextPageToken } = pageOf(layers, request, `${instance}/clusters/`, MAX_PAGE);
    return { memoryLayers: items, nextPageToken };
  }

  /** The etag counts wherever it is set: it names the state that the caller has seen, and is no change. */
  async update(context: RequestContext, request: UpdateMemoryLayerRequest): Promise<Operation> {
    const requestTime = this.#operations.now();
    const { memoryLayer: given, updateMask: mask } = request;
    if (given === undefined) throw invalidArgument('memory_layer must be set', { field: 'memory_layer' });
    idsOf(given.name, MEMORY_LAYER, 'memory_layer.name');
    const cluster = clusterOfLayer(given.name);
    const present = memoryLayerMessage({ cluster, isOn: false, etag: '' });
    if (mask?.paths.some((path) => path.startsWith('memory_config.')))
      throw invalidArgument('update_mask: only the whole memory_config can be changed', { field: 'update_mask' });
    const wanted = applyMask(MemoryLayerSchema, { present, given, mask }, FIELDS, FIELDS);
    const changed = await this.layers.updateMemoryLayer(context, cluster, {
      isOn: wanted.memoryConfig !== undefined,
      ...(given.etag !== '' && { etag: given.etag }),
    });
    const metadata = { originalRequest: request, requestTime, finishTime: this.#operations.now() };
    return this.#operations.done(
      context,
      [UpdateMemoryLayerMetadataSchema, metadata],
      [MemoryLayerSchema, memoryLayerMessage(changed)],
    );
  }
}
