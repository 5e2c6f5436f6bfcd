/**
 * A system under measure, in the few verbs that the lines need. Rows of one value or of 20 cells; a system without
 * columns keeps a cell as an entry of its own, under row key, '/', name of the cell, and reads a row as a short range.
 */
import type { Job, Shape } from './job.ts';

/** A row to write: one value, or cells in the order of their names. */
export interface RowToWrite {
  readonly key: string;
  readonly values: readonly Buffer[];
}

export interface Store {
  /** Resolves once the row is acknowledged: if the store is synced, once it is on disk. Called by 256 writers. */
  put(row: RowToWrite): Promise<void>;
  /** The same for a batch of rows. */
  putBatch(rows: readonly RowToWrite[]): Promise<void>;
  /**
   * Bytes of values found; 0 where the row is not there. `alone`: no other read is under way, so a system may use a
   * call that holds the thread.
   */
  get(key: string, alone: boolean): Promise<number> | number;
  /** As `get`, without a promise if memory has the row; for a system whose `get` returns a promise even then. */
  getNow?(key: string): Promise<number> | number;
  /** Bytes of values in the whole table. */
  scan(reverse: boolean): Promise<number>;
  /** True while the system reports work under way; other work shows in CPU time. */
  isBusy?(): boolean | Promise<boolean>;
  close(): Promise<void>;
}

export interface StoreOptions extends Pick<Job, 'directory' | 'shape' | 'cacheBytes'> {
  /** True if an acknowledged write is on disk. A system without such writes ignores it. */
  readonly isSynced: boolean;
}

export type OpenStore = (options: StoreOptions) => Promise<Store>;

/** Key and value of each entry of a row, for systems without columns. */
export function entriesOf({ key, values }: RowToWrite, names: readonly string[]): [key: string, value: Buffer][] {
  return values.length === 1 ? [[key, values[0] as Buffer]] : values.map((value, i) => [`${key}/${names[i]}`, value]);
}

/** The range of a row's cells: '0' follows '/'. */
export const rangeOfCells = (key: string): { gte: string; lt: string } => ({ gte: `${key}/`, lt: `${key}0` });

export const hasCells = (shape: Shape): boolean => shape === 'cells';

/**
 * Group commit for a system whose own writes are one call, one sync: what comes while a batch is under way goes out
 * together in the next, as Edubba's log does it. Without it a peer would sync once a row.
 */
export class GroupCommit {
  readonly #write: (rows: readonly RowToWrite[]) => Promise<void>;
  #waiting: RowToWrite[] = [];
  #next: Promise<void> | undefined;
  #current: Promise<void> = Promise.resolve();

  constructor(write: (rows: readonly RowToWrite[]) => Promise<void>) {
    this.#write = write;
  }

  put(row: RowToWrite): Promise<void> {
    this.#waiting.push(row);
    this.#next ??= this.#current.then(() => {
      const rows = this.#waiting;
      this.#waiting = [];
      this.#next = undefined;
      return (this.#current = this.#write(rows));
    });
    return this.#next;
  }
}
