/**
 * Opens the SSTables of a tablet with the tuning of their locality group: blocks of an in-memory group stay in memory
 * once they were read.
 */
import { CorruptionError } from '../../base/index.ts';
import type { Env } from '../../env/index.ts';
import type { LocalityGroup, RowRange } from '../../model/index.ts';
import {
  type BlockCache,
  type IndexCache,
  type MemoryBudget,
  type OwnedResidency,
  SsTable,
  writtenPath,
} from '../../sstable/index.ts';
import { TabletFile } from './tablet-file.ts';
import type { TabletState } from '../contract/tablet-state.ts';

export interface FileOpenerOptions {
  readonly env: Env;
  readonly cache: BlockCache;
  /** The budget of in-memory groups. */
  readonly memory: MemoryBudget;
  /** Decides for the groups that are not in-memory ones. Default: they are not in memory. */
  readonly residency?: OwnedResidency | undefined;
  /** The budget of indexes and Bloom filters. Default: none is evicted. */
  readonly indexes?: IndexCache | undefined;
}

export class FileOpener {
  readonly #options: FileOpenerOptions;

  constructor(options: FileOpenerOptions) {
    this.#options = options;
  }

  /** Opens a file that METADATA lists under that group. */
  async openListed(
    path: string,
    group: string,
    tuning: LocalityGroup,
    { range, clips }: TabletState,
  ): Promise<TabletFile> {
    const ssTable = await this.#open(path, tuning);
    const { lineage } = ssTable.properties;
    if (ssTable.group === group && (lineage === undefined || lineage.path === writtenPath(path)))
      return new TabletFile(ssTable, range, clips?.[path]);
    ssTable.close();
    if (lineage !== undefined && lineage.path !== writtenPath(path))
      throw new CorruptionError(path, 0, `another file stands in its place, which was written as ${lineage.path}`);
    throw new CorruptionError(
      path,
      0,
      `METADATA lists the file in locality group ${group}, and it says of itself that it is of ${ssTable.group}`,
    );
  }

  /** Opens a file that was written for the tablet of that range. */
  async open(path: string, tuning: LocalityGroup, range: RowRange): Promise<TabletFile> {
    return new TabletFile(await this.#open(path, tuning), range);
  }

  #open(path: string, { inMemory }: LocalityGroup): Promise<SsTable> {
    const { env, cache, memory, residency, indexes } = this.#options;
    const { fileSystem, codecs, metrics, clock } = env;
    const components = { fileSystem, path, codecs, metrics, clock, cache };
    // a group that is in memory needs no read, of indexes neither
    return SsTable.open({ ...components, ...(inMemory ? { inMemory: memory } : { residency, indexes }) });
  }
}
