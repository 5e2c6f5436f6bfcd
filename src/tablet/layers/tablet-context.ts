/**
 * The state of one tablet, and the services of its server: made first, then handed to the parts that read, write, flush
 * and compact.
 */
import { AssertionError } from '../../base/index.ts';
import type { ServerLog } from '../../commitlog/index.ts';
import type { Env } from '../../env/index.ts';
import type { FilterCompiler } from '../../filter/index.ts';
import type { Limits, RowRange, TableSchema } from '../../model/index.ts';
import type { BlockCache, IndexCache, MemoryBudget, OwnedResidency } from '../../sstable/index.ts';
import { ServingState } from '../contract/serving-state.ts';
import type { TabletHost, TabletState } from '../contract/tablet-state.ts';
import { FileOpener } from './file-opener.ts';
import { LayerSet } from './layer-set.ts';
import { OwnedFiles } from './owned-files.ts';
import { ReadCredits } from './read-credits.ts';
import { ServerTime } from './server-time.ts';
import { TabletCommits } from './tablet-commits.ts';
import type { TabletFile } from './tablet-file.ts';

export interface TabletOptions {
  readonly env: Env;
  readonly host: TabletHost;
  readonly log: ServerLog;
  readonly cache: BlockCache;
  /** The memory of in-memory locality groups. */
  readonly memory: MemoryBudget;
  /** Decides for the groups that are not in-memory ones. Default: they are not in memory. */
  readonly residency?: OwnedResidency | undefined;
  /** The budget of indexes and Bloom filters. Default: none is evicted. */
  readonly indexes?: IndexCache | undefined;
  /** The programs of filters, shared by the tablets of a server. */
  readonly filters: FilterCompiler;
  readonly limits: Limits;
  readonly blockSizeBytes: number;
  /**
   * Default false. True: writes are acknowledged before their records are durable (the setting `durability:
   * 'buffered'`).
   */
  readonly buffered?: boolean;
  /** A part of a read's answer is full when its values reach this. Default: 256 KiB. */
  readonly readBatchBytes?: number | undefined;
}

export class TabletContext {
  readonly options: TabletOptions;
  readonly env: Env;
  readonly host: TabletHost;
  readonly range: RowRange;
  readonly serving: ServingState;
  readonly opener: FileOpener;
  readonly ownedFiles: OwnedFiles;
  readonly layers: LayerSet;
  readonly time: ServerTime;
  readonly commits: TabletCommits;

  /** `files`: those of `state`, open. */
  constructor(options: TabletOptions, state: TabletState, files: readonly TabletFile[]) {
    const { env, host } = options;
    this.options = options;
    this.env = env;
    this.host = host;
    this.range = state.range;
    this.serving = new ServingState(state.tableId, host, env.clock);
    this.opener = new FileOpener(options);
    this.ownedFiles = new OwnedFiles(host);
    this.layers = new LayerSet(files, this.ownedFiles, new ReadCredits(() => host.compactionEarned()));
    this.time = new ServerTime(env.clock, host, state, files);
    this.commits = new TabletCommits(host, this.layers, this.time, state);
  }

  /** The tablet as METADATA has it. */
  get state(): TabletState {
    return this.commits.state;
  }

  /** Called with every error of work that changes memtables or lists of files: a tripped assert ends the tablet. */
  noteError(error: unknown): void {
    if (!(error instanceof AssertionError) || this.serving.failure !== undefined) return;
    this.serving.fail(error);
    this.host.failed(error);
  }

  /** The schema of the table now. */
  schema(): TableSchema {
    return this.host.schema(this.commits.state.tableId);
  }
}
