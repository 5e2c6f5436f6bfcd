/**
 * The contents that each row of a table may have, after calls of which some had no answer. A call that was
 * acknowledged has happened; one that failed, or was under way when the power went, may have happened or not.
 */
import assert from 'node:assert/strict';
import type { Table } from '../../src/embedded/index.ts';
import { plainCellsOf } from '../behaviour/plain-calls.ts';
import {
  byteOrder,
  cellsOf,
  changed,
  describeCells,
  mayShow,
  NO_CELLS,
  type PlainCell,
  type PlainFamilies,
  type PlainRow,
  resolved,
  type Step,
} from '../behaviour/plain-row.ts';

export class Witness {
  readonly families: PlainFamilies;
  readonly #now: () => number;
  readonly #rows = new Map<string, readonly PlainRow[]>();

  constructor(families: PlainFamilies, now: () => number) {
    this.families = families;
    this.#now = now;
  }

  /** Another that knows the same. */
  copy(now: () => number): Witness {
    const copy = new Witness(this.families, now);
    for (const [key, rows] of this.#rows) copy.#rows.set(key, rows);
    return copy;
  }

  keys(): string[] {
    return [...this.#rows.keys()].sort(byteOrder);
  }

  /** A call of which it is known only later whether it had an answer. */
  begin(keys: readonly string[], change: (row: PlainRow) => PlainRow): { acknowledged(): void } {
    const after = keys.map((key) => this.#of(key).map(change));
    keys.forEach((key, i) => void this.#rows.set(key, [...this.#of(key), ...(after[i] as PlainRow[])]));
    return { acknowledged: () => keys.forEach((key, i) => void this.#rows.set(key, after[i] as PlainRow[])) };
  }

  beginSteps(key: string, steps: readonly Step[]): { acknowledged(): void } {
    return this.begin([key], (row) => changed(row, steps, this.families, this.#now()));
  }

  /** Changes of one row, each of which happens only after the one before. `acknowledged`: `count` have happened. */
  beginChain(key: string, changes: readonly (readonly Step[])[]): { acknowledged(count: number): void } {
    const states = [this.#of(key)];
    for (const steps of changes)
      states.push(states.at(-1)!.map((row) => changed(row, steps, this.families, this.#now())));
    let most = 0;
    this.#rows.set(key, states.flat());
    return {
      acknowledged: (count) => {
        most = Math.max(most, count);
        this.#rows.set(key, states.slice(most).flat());
      },
    };
  }

  /** Reads everything, fails on the first row that must not be so, and takes note of what is there. */
  async check(table: Table, when: string): Promise<void> {
    const got = new Map<string, PlainCell[]>();
    for await (const row of table.scan({ versions: 'all' })) got.set(row.key.toString('latin1'), plainCellsOf(row));
    for (const key of new Set([...this.keys(), ...got.keys()])) this.#checkRow(key, got.get(key) ?? [], when);
  }

  #checkRow(key: string, cells: readonly PlainCell[], when: string): void {
    const now = this.#now();
    const left = this.#of(key).filter((row) => mayShow(key, row, cells, this.families, now));
    if (left.length === 0) {
      const allowed = this.#of(key)
        .map((row) => `\n  or ${describeCells(cellsOf(key, row, this.families, now))}`)
        .join('');
      assert.fail(
        `${when}: row ${JSON.stringify(key)} shows\n     ${describeCells(cells)}\n  it may show${allowed.replace('\n  or', '\n    ')}`,
      );
    }
    const [row] = left.map((one) => resolved(one, cells, this.families, now));
    this.#rows.set(key, left.length === 1 && row !== undefined ? [row] : left);
  }

  #of(key: string): readonly PlainRow[] {
    return this.#rows.get(key) ?? [NO_CELLS];
  }
}
