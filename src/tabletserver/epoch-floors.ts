/**
 * The highest epoch of each tablet at which this server has released it: at or below it the tablet is not loaded again.
 *
 * Invariant: a floor is needed for as long as METADATA may give the tablet to this server at or below it, since a load
 * reads the row. Whenever there are twice as many as the last check has left, the rows are read, and the floors that
 * are no longer needed are dropped.
 */
import { assert } from '../base/index.ts';
import type { MetadataKey, MetadataRow } from '../metadata/index.ts';

/** The number that is kept without a check. However large it is, a released tablet costs about one read of its row. */
const MIN_CHECK_SIZE = 8;

export interface EpochFloorsOptions {
  readonly serverName: string;
  readRow(key: MetadataKey): Promise<MetadataRow | undefined>;
  /** Called when rows could not be read: the floors are kept. */
  onError(error: unknown): void;
}

export class EpochFloors {
  readonly #options: EpochFloorsOptions;
  readonly #floors = new Map<MetadataKey, number>();
  #nextCheckSize = MIN_CHECK_SIZE;
  #checking: Promise<void> | undefined;

  constructor(options: EpochFloorsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#floors.size;
  }

  /** The check against METADATA that is under way. */
  get checking(): Promise<void> | undefined {
    return this.#checking;
  }

  /** 0 if the tablet has no floor. */
  of(key: MetadataKey): number {
    return this.#floors.get(key) ?? 0;
  }

  raise(key: MetadataKey, epoch: number): void {
    this.#floors.set(key, Math.max(epoch, this.of(key)));
    if (this.#floors.size <= this.#nextCheckSize || this.#checking !== undefined) return;
    this.#checking = this.#check()
      .catch((error: unknown) => this.#options.onError(error))
      .finally(() => (this.#checking = undefined));
  }

  /** The tablet is served at that epoch: METADATA, whose epochs only grow, gives it to no server at a lower one. */
  passed(key: MetadataKey, epoch: number): void {
    assert(epoch > this.of(key), 'a tablet is not served at or below its floor');
    this.#floors.delete(key);
  }

  async #check(): Promise<void> {
    const { serverName, readRow } = this.#options;
    try {
      for (const [key, floor] of [...this.#floors]) {
        const row = await readRow(key);
        const isNeeded = row?.server?.name === serverName && row.epoch <= floor;
        if (!isNeeded && this.#floors.get(key) === floor) this.#floors.delete(key);
      }
    } finally {
      this.#nextCheckSize = Math.max(MIN_CHECK_SIZE, 2 * this.#floors.size);
    }
  }
}
