/**
 * Calls on a table that are larger than one message, or than one slice of the event loop: reads of thousands of rows, of
 * long row keys, and of none, rows of thousands of mutations, and large values. Each answer is judged.
 */
import { RowMutation, type Table } from '../../src/embedded/index.ts';
import type { Random } from '../../src/env/index.ts';
import { COLUMN, FAMILY, type KnownTable, LETTERS } from './known-table.ts';

/** More ranges than one message to a tablet has, and than are sorted at a time. */
const MANY = 2100;
/** Keys that together are more than one message to a tablet has. */
const LONG_KEYS = 20;
const LONG_KEY_CHARS = 60_000;
/** More mutations than are checked, and applied, in one slice. */
const MANY_MUTATIONS = 2100;
/** A row that is larger than a tablet is to be. */
const LARGE_CELLS = 18;
const LARGE_CELL_CHARS = 2000;
/** Values that an append copies, more than it copies in one piece, one that it does not copy, and one as large as it. */
const COPIED_VALUES = 5;
const COPIED_CHARS = 31_000;
const UNCOPIED_CHARS = 40_000;
const WHOLE_APPEND_CHARS = 1_100_000;

export interface LargeCallsParts {
  readonly random: Random;
  readonly timeoutMs: number;
  /** Returns a row and a value that no other has. */
  readonly newRow: () => readonly [row: string, value: string];
}

export class LargeCalls {
  readonly #parts: LargeCallsParts;

  constructor(parts: LargeCallsParts) {
    this.#parts = parts;
  }

  /** Makes a call that is drawn. Returns what is wrong with its answer; undefined: nothing. Fails as the call does. */
  async step(table: KnownTable, handle: Table): Promise<string | undefined> {
    const drawn = this.#parts.random.float();
    if (drawn < 0.3) return this.#scan(table, handle, shortKeys());
    if (drawn < 0.6) return this.#scan(table, handle, longKeys());
    if (drawn < 0.7) return this.#scanNothing(table, handle);
    return this.#write(table, handle);
  }

  /** Reads the known rows and those, which do not exist, in either direction. */
  async #scan(table: KnownTable, handle: Table, absent: readonly string[]): Promise<string | undefined> {
    const { random, timeoutMs } = this.#parts;
    const rows = [...table.rows.keys(), ...absent];
    const reverse = random.float() < 0.5;
    const found = new Map<string, string | undefined>();
    for await (const { name, cells } of handle.scan({ rows, reverse, timeoutMs })) {
      if (found.has(name)) return `row ${name} of table ${table.name} came twice`;
      found.set(name, cells[0]?.text);
    }
    const all = new Set(rows);
    return table.judge(found, (row) => all.has(row));
  }

  async #scanNothing({ name: table }: KnownTable, handle: Table): Promise<string | undefined> {
    for await (const { name } of handle.scan({ rows: [], timeoutMs: this.#parts.timeoutMs }))
      return `a read of no row of table ${table} found row ${name}`;
    return undefined;
  }

  /** All of it is one change. */
  async #write(table: KnownTable, handle: Table): Promise<undefined> {
    const [row, value] = this.#parts.newRow();
    const drawn = this.#parts.random.float();
    const { change } = LARGE_CHANGES.find(({ below }) => drawn < below)!;
    table.begin(row, value);
    await handle.apply(change(new RowMutation(row), value), { timeoutMs: this.#parts.timeoutMs });
    table.wrote(row);
  }
}

/** Each sets the column to the value, with a share up to `below`. */
const LARGE_CHANGES: readonly {
  readonly below: number;
  readonly change: (mutation: RowMutation, value: string) => RowMutation;
}[] = [
  { below: 0.35, change: manyDeletions },
  { below: 0.6, change: timeRanges },
  { below: 0.75, change: (mutation, value) => largeCells(mutation, value, LARGE_CELLS, LARGE_CELL_CHARS) },
  {
    below: 0.9,
    // the one that is not copied comes last
    change: (mutation, value) =>
      largeCells(largeCells(mutation, value, COPIED_VALUES, COPIED_CHARS), value, 1, UNCOPIED_CHARS),
  },
  { below: 1, change: (mutation, value) => largeCells(mutation, value, 1, WHOLE_APPEND_CHARS) },
];

function manyDeletions(mutation: RowMutation, value: string): RowMutation {
  for (let i = 0; i < MANY_MUTATIONS; i++) mutation.deleteFamily(FAMILY);
  return mutation.set(COLUMN, value);
}

/** Deletions of versions, with every combination of bounds. */
function timeRanges(mutation: RowMutation, value: string): RowMutation {
  const ranges = [{ since: 1000, until: 2000 }, { since: 1000 }, { until: 2000 }];
  for (const range of ranges) mutation.delete(COLUMN, range);
  return mutation.delete(COLUMN).set(COLUMN, value);
}

/** Columns after that of the value. */
function largeCells(mutation: RowMutation, value: string, cells: number, chars: number): RowMutation {
  mutation.set(COLUMN, value);
  for (let i = 0; i < cells; i++) mutation.set(`${COLUMN}${i}`, 'x'.repeat(chars));
  return mutation;
}

/** In no order. */
function shortKeys(): readonly string[] {
  return Array.from({ length: MANY }, (_, i) => `${LETTERS[i % LETTERS.length]}-absent-${i}`);
}

function longKeys(): readonly string[] {
  return Array.from({ length: LONG_KEYS }, (_, i) => `${LETTERS[i % LETTERS.length]}${'-'.repeat(LONG_KEY_CHARS)}${i}`);
}
