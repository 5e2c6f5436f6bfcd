/**
 * The highest epoch of each tablet at which this server has let it go: at or below it the tablet is not loaded again.
 *
 * Invariant: a floor is needed for as long as METADATA may give the tablet to this server at or below it, since a load
 * looks at the row. Whenever there are twice as many as the last look has left, the rows are read, and those floors
 * dropped of which that is no longer so.
 */
import { assert } from '../base/index.ts';
import type { MetadataKey, MetadataRow } from '../metadata/index.ts';

/** So many are kept without a look. */
const LEAST = 64;

export interface EpochFloorsOptions {
  readonly serverName: string;
  readRow(key: MetadataKey): Promise<MetadataRow | undefined>;
  /** Told why rows could not be read: the floors are kept. */
  onError(error: unknown): void;
}

export class EpochFloors {
  readonly #options: EpochFloorsOptions;
  readonly #floors = new Map<MetadataKey, number>();
  #most = LEAST;
  #looking: Promise<void> | undefined;

  constructor(options: EpochFloorsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#floors.size;
  }

  /** Resolves when no look at METADATA is under way. */
  get settled(): Promise<void> {
    return this.#looking ?? Promise.resolve();
  }

  /** 0 where there is none. */
  of(key: MetadataKey): number {
    return this.#floors.get(key) ?? 0;
  }

  raise(key: MetadataKey, epoch: number): void {
    this.#floors.set(key, Math.max(epoch, this.of(key)));
    if (this.#floors.size <= this.#most || this.#looking !== undefined) return;
    this.#looking = this.#look()
      .catch((error: unknown) => this.#options.onError(error))
      .finally(() => (this.#looking = undefined));
  }

  /** The tablet is served at that epoch: METADATA, whose epochs only grow, gives it to no server at a lower one. */
  passed(key: MetadataKey, epoch: number): void {
    assert(epoch > this.of(key), 'a tablet is served at or below its floor');
    this.#floors.delete(key);
  }

  async #look(): Promise<void> {
    const { serverName, readRow } = this.#options;
    try {
      for (const [key, floor] of [...this.#floors]) {
        const row = await readRow(key);
        const isNeeded = row?.server?.name === serverName && row.epoch <= floor;
        if (!isNeeded && this.#floors.get(key) === floor) this.#floors.delete(key);
      }
    } finally {
      this.#most = Math.max(LEAST, 2 * this.#floors.size);
    }
  }
}
