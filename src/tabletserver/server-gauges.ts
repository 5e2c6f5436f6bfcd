/** The gauges of a tablet server: the sizes of its caches, memtables and log, and the work in progress. */
import type { ServerLog } from '../commitlog/index.ts';
import type { Metrics } from '../env/index.ts';
import type { BlockCache, IndexCache, MemoryBudget, RowCache } from '../sstable/index.ts';
import type { CompactionSchedule } from './compaction-schedule.ts';
import type { MemtableBudget } from './memtable-budget.ts';
import type { TabletMap } from './tablet-map.ts';

export interface ServerParts {
  /** The caches of its tablets. */
  readonly opener: {
    readonly cache: BlockCache;
    readonly rowCache: RowCache;
    readonly indexes: IndexCache;
    readonly memory: MemoryBudget;
  };
  readonly budget: MemtableBudget;
  readonly compactions: CompactionSchedule;
  readonly log: ServerLog;
  readonly tablets: TabletMap;
}

/** Measures until the returned function is called. */
export function serverGauges(metrics: Metrics, { opener, budget, compactions, log, tablets }: ServerParts): () => void {
  const { cache, rowCache, indexes, memory } = opener;
  return metrics.gauges({
    'blockCache.usedBytes': () => cache.usedBytes,
    'blockCache.limitBytes': () => cache.limitBytes,
    'rowCache.usedBytes': () => rowCache.usedBytes,
    'rowCache.limitBytes': () => rowCache.limitBytes,
    'indexes.usedBytes': () => indexes.usedBytes,
    'indexes.limitBytes': () => indexes.limitBytes,
    'inMemory.usedBytes': () => memory.usedBytes,
    'inMemory.limitBytes': () => memory.limitBytes,
    'inMemory.unfitBytes': () => memory.unfitBytes,
    'memtables.usedBytes': () => budget.totalBytes,
    'memtables.limitBytes': () => budget.limitBytes,
    'memtables.flushFailing': () => Number(budget.flushFails),
    'memtables.refusing': () => Number(budget.refuses),
    'compactions.running': () => compactions.running,
    'compactions.waiting': () => compactions.waiting,
    'log.sizeBytes': () => log.sizeBytes(),
    'log.limitBytes': () => budget.logLimitBytes,
    'log.pendingBytes': () => log.pendingBytes,
    'tabletserver.tablets': () => tablets.size,
  });
}
