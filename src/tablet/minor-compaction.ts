/**
 * A minor compaction (paper section 5.4): a frozen memtable becomes one SSTable, and older SSTables whose every row it hides are left
 * out of the list. Only writes and opens a file; committing the list to METADATA is the tablet's part.
 */
import type { Env } from '../env/index.ts';
import type { Memtable } from '../memtable/index.ts';
import type { RowRange } from '../model/index.ts';
import { type BlockCache, SsTable, writeSsTable } from '../sstable/index.ts';
import { coveredTables } from './layer-set.ts';
import { DEFAULT_GROUP } from './tablet-state.ts';

export interface MinorCompaction {
  readonly env: Env;
  readonly cache: BlockCache;
  readonly blockSizeBytes: number;
  readonly memtable: Memtable;
  /** The SSTables there are, newest first. */
  readonly tables: readonly SsTable[];
  /** Where the new one goes. */
  readonly path: string;
  readonly range: RowRange;
}

export interface MinorCompactionResult {
  /** Undefined where the memtable held nothing. */
  readonly table: SsTable | undefined;
  readonly covered: readonly SsTable[];
  /** Paths for METADATA, newest first. */
  readonly files: readonly string[];
}

export async function compactMemtable(work: MinorCompaction): Promise<MinorCompactionResult> {
  const { env, memtable, path, tables } = work;
  const deletions = memtable.rowRangeDeletions();
  const covered = coveredTables(tables, deletions);
  const kept = tables.filter((table) => !covered.includes(table));
  // with nothing older left there is nothing that deletions of rows could hide
  const keptDeletions = kept.length === 0 ? [] : deletions;
  const { fileSystem, codecs, clock, metrics } = env;
  const source = memtable.cursor();
  try {
    const written = await writeSsTable(
      { fileSystem, path, codecs, clock, blockSizeBytes: work.blockSizeBytes, group: DEFAULT_GROUP },
      source,
      keptDeletions,
    );
    if (written === undefined) return { table: undefined, covered, files: kept.map((table) => table.path) };
    env.metrics.add('tablet.minorCompactions');
    env.metrics.add('tablet.compactedBytes', written.sizeBytes);
    const table = await SsTable.open({ fileSystem, path, codecs, metrics, clock, cache: work.cache });
    return { table, covered, files: [path, ...kept.map((old) => old.path)] };
  } finally {
    source.close();
  }
}
