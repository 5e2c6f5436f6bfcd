/**
 * Opens the tablets of a server on the resources they share: its log, its block and row caches, and the memory of their
 * indexes and their in-memory locality groups.
 */
import type { RedoRecord, ServerLog } from '../commitlog/index.ts';
import type { Env } from '../env/index.ts';
import { METADATA_TABLE_ID } from '../metadata/index.ts';
import type { Limits } from '../model/index.ts';
import type { MemoryLayerSource } from '../service/index.ts';
import { BlockCache, IndexCache, MemoryBudget, Residency, RowCache } from '../sstable/index.ts';
import { FilterCompiler, Tablet, type TabletApi, type TabletHost, type TabletState } from '../tablet/index.ts';

export interface TabletSettings {
  /**
   * Default `synced`. `buffered`: users' writes are acknowledged before their records are durable; METADATA's never
   * are.
   */
  readonly durability?: 'synced' | 'buffered';
  readonly limits: Limits;
  readonly blockSizeBytes: number;
  readonly blockCacheBytes: number;
  /** Size of the cache of SSTables' rows. */
  readonly scanCacheBytes: number;
  /** Memory of the indexes and Bloom filters of users' tables. */
  readonly indexBytes: number;
  /** Memory of the in-memory locality groups of users' tables. */
  readonly inMemoryBytes: number;
  /** A part of a read's answer is full when its values reach this. Default: 256 KiB. */
  readonly readBatchBytes?: number;
}

export class TabletOpener {
  readonly cache: BlockCache;
  readonly rowCache: RowCache;
  readonly indexes: IndexCache;
  readonly memory: MemoryBudget;
  /** Without a limit: METADATA must always be served. */
  readonly #metadataMemory = new MemoryBudget(Number.POSITIVE_INFINITY);
  readonly #env: Env;
  readonly #log: ServerLog;
  readonly #settings: TabletSettings;
  readonly #filters: FilterCompiler;
  /** Undefined where there are no memory layers. */
  readonly #residency: Residency | undefined;
  readonly #stopFollowing: (() => void) | undefined;

  /** `memoryLayers`: default none. */
  constructor(env: Env, log: ServerLog, settings: TabletSettings, memoryLayers?: MemoryLayerSource) {
    const { metrics, random } = env;
    this.#env = env;
    this.#log = log;
    this.#settings = settings;
    this.#filters = new FilterCompiler({ limits: settings.limits, random });
    this.memory = new MemoryBudget(settings.inMemoryBytes);
    this.indexes = new IndexCache({ limitBytes: settings.indexBytes, metrics });
    this.rowCache = new RowCache({ limitBytes: settings.scanCacheBytes, metrics });
    this.cache = new BlockCache({ limitBytes: settings.blockCacheBytes, metrics, rowCache: this.rowCache });
    if (memoryLayers === undefined) return;
    const residency = new Residency(this.memory, (table) => memoryLayers.isOn(table));
    this.#residency = residency;
    this.#stopFollowing = memoryLayers.onChange(() => residency.changed());
  }

  /** The tablets stay as they are: memory layers act on them no more. */
  stop(): void {
    this.#stopFollowing?.();
  }

  /** `records`: those to be replayed. */
  open(host: TabletHost, state: TabletState, records: Iterable<RedoRecord>): Promise<TabletApi> {
    const { limits, blockSizeBytes, durability, readBatchBytes } = this.#settings;
    const isMetadata = state.tableId === METADATA_TABLE_ID;
    const parts = {
      env: this.#env,
      host,
      log: this.#log,
      cache: this.cache,
      memory: isMetadata ? this.#metadataMemory : this.memory,
      residency: isMetadata ? undefined : this.#residency?.of(host.schema(state.tableId).name),
      indexes: isMetadata ? undefined : this.indexes,
      filters: this.#filters,
      limits,
      blockSizeBytes,
      buffered: durability === 'buffered' && !isMetadata,
      readBatchBytes,
    };
    return Tablet.load(parts, state, records);
  }
}
