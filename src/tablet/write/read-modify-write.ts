/**
 * ReadModifyWrite by itself: from the newest cells and the rules to the new cells (API:
 * google.bigtable.v2.ReadModifyWriteRowRequest). Rules apply in order; each sees the results of those before it.
 *
 * Invariant: no large value is copied in one slice of the event loop.
 */
import {
  addWrapping,
  asBuffer,
  assert,
  BigtableError,
  Code,
  type Int64,
  int64Bytes,
  quote,
  readInt64BE,
} from '../../base/index.ts';
import { type Clock, joinInSlices } from '../../env/index.ts';
import { type Cell, type ColumnKey, columnKey, type Mutation, type ReadModifyWriteRule } from '../../model/index.ts';

export interface ReadModifyWriteResult {
  readonly mutations: readonly Mutation[];
  /** One new cell for each column, ordered by column. */
  readonly cells: readonly Cell[];
}

/** The new cells of one call. */
export class CellChanges {
  /** By column. */
  readonly #cells: readonly NewCell[];

  /**
   * Applies the rules. `newest`: the newest visible cell of each column that a rule names; `now`: the time of the
   * server for the new cells. FAILED_PRECONDITION if a value would become larger than `valueBytes`, or cannot be
   * incremented.
   */
  constructor(
    rules: readonly ReadModifyWriteRule[],
    newest: ReadonlyMap<ColumnKey, Cell>,
    now: Int64,
    valueBytes: number,
  ) {
    const cells = new Map<ColumnKey, NewCell>();
    for (const rule of rules) {
      const key = columnKey(rule.family, rule.qualifier);
      let cell = cells.get(key);
      if (cell === undefined) {
        cell = new NewCell(rule, newest.get(key), now, valueBytes);
        cells.set(key, cell);
      }
      cell.change(rule);
    }
    this.#cells = [...cells].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, cell]) => cell);
  }

  /** Approximate size of the new cells, none of whose values is made yet. */
  get bytes(): number {
    let bytes = 0;
    for (const cell of this.#cells) bytes += cell.bytes;
    return bytes;
  }

  /** Makes the large values, with pauses; undefined if there is none. To be called before `result`. */
  joinLarge(clock: Clock): Promise<void> | undefined {
    for (const cell of this.#cells) if (cell.isLarge) return this.#joinLarge(clock);
    return undefined;
  }

  async #joinLarge(clock: Clock): Promise<void> {
    for (const cell of this.#cells) if (cell.isLarge) await cell.join(clock);
  }

  result(): ReadModifyWriteResult {
    const cells = this.#cells.map((cell) => cell.made());
    return {
      cells,
      mutations: cells.map(({ family, qualifier, timestamp, value }) => ({
        kind: 'setCell',
        family,
        qualifier,
        timestamp,
        value,
      })),
    };
  }
}

/** Approximate size of a cell without its names and its value. */
const CELL_BYTES = 32;
/** A larger value is joined with pauses. */
const JOINED_BYTES = 1024 * 1024;

/**
 * A cell that rules make. The pieces that they append are joined once, at the end: there may be 100,000 of them, and a
 * value may be large.
 */
class NewCell {
  readonly #name: Pick<ReadModifyWriteRule, 'family' | 'qualifier'>;
  readonly #timestamp: Int64;
  readonly #limitBytes: number;
  #pieces: Uint8Array[] = [];
  #bytes = 0;

  constructor({ family, qualifier }: ReadModifyWriteRule, old: Cell | undefined, now: Int64, limitBytes: number) {
    this.#name = { family, qualifier };
    this.#timestamp = old !== undefined && old.timestamp > now ? old.timestamp : now;
    this.#limitBytes = limitBytes;
    if (old !== undefined) this.#append(old.value);
  }

  change({ change }: ReadModifyWriteRule): void {
    if (change.kind === 'increment') return this.#increment(change.amount);
    this.#append(change.suffix);
    if (this.#bytes > this.#limitBytes)
      throw this.#refusal(`would hold ${this.#bytes} bytes: the limit of a value is ${this.#limitBytes}`);
  }

  get bytes(): number {
    return CELL_BYTES + this.#name.family.length + this.#name.qualifier.length + this.#bytes;
  }

  /** True while its value is large and in several pieces. */
  get isLarge(): boolean {
    return this.#bytes > JOINED_BYTES && this.#pieces.length > 1;
  }

  async join(clock: Clock): Promise<void> {
    this.#pieces = [await joinInSlices(clock, this.#pieces)];
  }

  made(): Cell {
    return {
      family: this.#name.family,
      qualifier: this.#name.qualifier,
      timestamp: this.#timestamp,
      value: this.#value(),
    };
  }

  #value(): Uint8Array {
    assert(this.#pieces.length > 0, 'a cell that rules make has a value');
    assert(!this.isLarge, 'a large value is joined before it is taken');
    return this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces, this.#bytes);
  }

  #append(bytes: Uint8Array): void {
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
  }

  #increment(amount: Int64): void {
    // an absent cell counts as 0; a present one must hold 8 bytes, as the API says: an empty value is not a number
    const isAbsent = this.#pieces.length === 0;
    if (!isAbsent && this.#bytes !== 8) {
      throw this.#refusal(`holds ${this.#bytes} bytes: only a value of 8 bytes (big-endian int64) can be incremented`);
    }
    const sum = isAbsent ? amount : addWrapping(readInt64BE(asBuffer(this.#value()), 0), amount);
    this.#pieces = [];
    this.#bytes = 0;
    this.#append(int64Bytes(sum));
  }

  #refusal(problem: string): BigtableError {
    return new BigtableError(
      Code.FAILED_PRECONDITION,
      `column ${this.#name.family}:${quote(this.#name.qualifier)} ${problem}`,
    );
  }
}
