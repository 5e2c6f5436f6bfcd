/**
 * Calls on a table that are larger than one message, or than one slice of the event loop: reads of thousands of rows, of
 * long row keys, and of none, and rows of thousands of mutations. Each answer is judged.
 */
import { RowMutation, type Table } from '../../src/embedded/index.ts';
import type { Random } from '../../src/env/index.ts';
import { COLUMN, FAMILY, type KnownTable, LETTERS } from './known-table.ts';

/** More ranges than one message to a tablet has, and than are sorted at a time. */
const MANY = 2100;
/** Keys that together are more than one message to a tablet has. */
const LONG_KEYS = 20;
const LONG_KEY_CHARS = 60_000;
/** More mutations than are checked in one slice. */
const MANY_MUTATIONS = 1100;
/** A row that is larger than a tablet is to be. */
const LARGE_CELLS = 18;
const LARGE_CELL_CHARS = 2000;

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
    return this.#write(table, handle, drawn < 0.9 ? manyDeletions : largeCells);
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

  /** All of it is one change: the last mutation is seen. */
  async #write(table: KnownTable, handle: Table, fill: (mutation: RowMutation) => void): Promise<undefined> {
    const [row, value] = this.#parts.newRow();
    const mutation = new RowMutation(row);
    fill(mutation);
    table.begin(row, value);
    await handle.apply(mutation.set(COLUMN, value), { timeoutMs: this.#parts.timeoutMs });
    table.wrote(row);
  }
}

function manyDeletions(mutation: RowMutation): void {
  for (let i = 0; i < MANY_MUTATIONS; i++) mutation.deleteFamily(FAMILY);
}

/** Columns after that of the value. */
function largeCells(mutation: RowMutation): void {
  for (let i = 0; i < LARGE_CELLS; i++) mutation.set(`${COLUMN}${i}`, 'x'.repeat(LARGE_CELL_CHARS));
}

/** In no order. */
function shortKeys(): readonly string[] {
  return Array.from({ length: MANY }, (_, i) => `${LETTERS[i % LETTERS.length]}-absent-${i}`);
}

function longKeys(): readonly string[] {
  return Array.from({ length: LONG_KEYS }, (_, i) => `${LETTERS[i % LETTERS.length]}${'-'.repeat(LONG_KEY_CHARS)}${i}`);
}
