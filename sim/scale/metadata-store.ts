/**
 * The rows of METADATA of a large cluster, as its storage has them: what a commit has changed is there, whichever
 * server serves it later. No row is added or removed after the start.
 */
import { assert, type ByteString } from '../../src/base/index.ts';
import {
  commitOfRow,
  judge,
  keyOfRow,
  LOCATION_FAMILY,
  type MetadataCommit,
  type MetadataKey,
  type MetadataRow,
  mutationsOf,
} from '../../src/metadata/index.ts';
import type { Cell, RowFragment, RowRange } from '../../src/model/index.ts';
import type { CommitOutcome } from '../../src/protocol/index.ts';

interface Stored {
  row: MetadataRow;
  cells: readonly Cell[];
}

export class MetadataStore {
  readonly #rows = new Map<MetadataKey, Stored>();
  /** Ascending. */
  readonly #keys: MetadataKey[];

  constructor(rows: readonly MetadataRow[]) {
    for (const row of rows) {
      const key = keyOfRow(row);
      this.#store(commitOfRow('made', { kind: 'created', atMicros: 0 }, key, undefined, row), key);
    }
    this.#keys = [...this.#rows.keys()].sort();
  }

  get(key: MetadataKey): MetadataRow | undefined {
    return this.#rows.get(key)?.row;
  }

  /** Rows of the range as a read returns them. */
  fragments({ start, end }: RowRange, limit: number, isLocationOnly: boolean): RowFragment[] {
    const fragments: RowFragment[] = [];
    for (let at = this.#indexOf(start); at < this.#keys.length && fragments.length < limit; at++) {
      const row = this.#keys[at]!;
      if (end !== undefined && row >= end) break;
      const { cells } = this.#rows.get(row)!;
      fragments.push({
        row,
        last: true,
        cells: isLocationOnly ? cells.filter(({ family }) => family === LOCATION_FAMILY) : cells,
      });
    }
    return fragments;
  }

  commit(commit: MetadataCommit): CommitOutcome {
    const verdict = judge(commit, (key) => this.get(key));
    if (verdict === 'refused') return { kind: 'refused', rows: commit.rows.map(({ key }) => this.get(key)) };
    if (verdict === 'apply') for (const { key } of commit.rows) this.#store(commit, key);
    return { kind: 'done' };
  }

  #store(commit: MetadataCommit, key: MetadataKey): void {
    const row = commit.rows.find((one) => one.key === key)?.row;
    assert(row !== undefined, 'no row of a large cluster is removed');
    const mutations = mutationsOf(commit).find(([each]) => each === key)![1];
    const cells = mutations.map((mutation): Cell => {
      assert(mutation.kind === 'setCell', 'a row of METADATA is made of cells');
      const { family, qualifier, timestamp, value } = mutation;
      return { family, qualifier, timestamp: timestamp as number, value };
    });
    this.#rows.set(key, { row, cells });
  }

  /** The index of the first key at or above `start`. */
  #indexOf(start: ByteString): number {
    let [low, high] = [0, this.#keys.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#keys[middle]! < start) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
