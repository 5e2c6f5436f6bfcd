/**
 * Work on tablets just loaded that would hold up further loads and the first reads: it begins a while after the last
 * load.
 */
import { toBigtableError } from '../base/index.ts';
import type { Clock, Logger, Timer } from '../env/index.ts';
import type { MetadataKey } from '../metadata/index.ts';
import type { MemtableBudget } from './memtable-budget.ts';
import type { HostServices } from './tablet-host.ts';

/** Compactions and splits begin that were due when the tablets were loaded. */
const FIRST_WORK_MS = 500;
/** Replayed records are written to files, so that the logs of dead servers are no longer needed. */
const FLUSH_REPLAYED_MS = 2000;

export interface LoadAftermathOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly budget: MemtableBudget;
  readonly services: Pick<HostServices, 'filesChanged'>;
}

export class LoadAftermath {
  readonly #options: LoadAftermathOptions;
  /** Tablets whose files were not examined since they were loaded. */
  readonly #loaded = new Set<MetadataKey>();
  #firstWork: Timer | undefined;
  #flushTimer: Timer | undefined;

  constructor(options: LoadAftermathOptions) {
    this.#options = options;
  }

  /** A tablet was loaded. */
  loaded(key: MetadataKey): void {
    this.#loaded.add(key);
    this.#firstWork?.cancel();
    this.#firstWork = this.#options.clock.timer(FIRST_WORK_MS, () => this.#beginWork());
  }

  /** A call that loads tablets is over. */
  callEnded(): void {
    this.#flushTimer?.cancel();
    this.#flushTimer = this.#options.clock.timer(FLUSH_REPLAYED_MS, () => void this.#flushReplayed());
  }

  stop(): void {
    this.#firstWork?.cancel();
    this.#flushTimer?.cancel();
  }

  #beginWork(): void {
    const { budget, services } = this.#options;
    const keys = [...this.#loaded];
    this.#loaded.clear();
    for (const key of keys) services.filesChanged(key);
    budget.resume();
  }

  async #flushReplayed(): Promise<void> {
    const { budget, logger } = this.#options;
    await budget.flushReplayed().catch((error: unknown) => {
      logger.warn('the log could not be trimmed', { error: toBigtableError(error).message });
    });
  }
}
