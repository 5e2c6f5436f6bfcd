/**
 * What a compiled filter offers to a read: static bounds by which the read seeks past what cannot pass, and a run that
 * takes a row's cells one by one and gives out those that pass.
 */
import type { ByteString } from '../base/index.ts';
import type { Cell, ColumnKey, TimestampRange } from '../model/index.ts';

/**
 * What the read may skip after a cell, by what the filter already knows. Never wrong: nothing that would pass is
 * skipped.
 */
export const Hint = {
  next: 0,
  /** No further version of this column gives output. */
  skipColumn: 1,
  /** No further cell of this row gives output. */
  skipRow: 2,
  /** The step was long enough: the rest is done by `goOn`, which answers in its turn. */
  busy: 3,
} as const;
export type Hint = (typeof Hint)[keyof typeof Hint];

export interface ColumnSpan {
  readonly start: ColumnKey;
  /** Exclusive; undefined = to the end of the row. */
  readonly end: ColumnKey | undefined;
}

/**
 * One read's state. Rows come one after another: startRow, its cells in order (`push` each), endRow. Whatever answers
 * `busy` is to be followed by `goOn`, with pauses in between as the reader likes, until that answers something else.
 *
 * Invariant: the work of one call is bounded, whatever the filter and the cell are
 * (docs/decisions/0023-work-of-filters.md).
 */
export interface FilterRun {
  /** `skipRow`: no cell of this row can pass, skip it (neither push nor endRow is called then). Else `next`. */
  startRow(row: ByteString): Hint;
  /**
   * Cells that pass are added to `out`, in order, perhaps later than the cell that made them but by endRow at the
   * latest.
   */
  push(cell: Cell, out: Cell[]): Hint;
  endRow(out: Cell[]): Hint;
  /** After `busy`: more of the same call. */
  goOn(out: Cell[]): Hint;
  /**
   * Bytes of cells held back inside the run now, their objects counted at a flat rate (conditions wait for their
   * predicate).
   */
  readonly heldBytes: number;
}

export interface FilterProgram {
  /** A superset of the columns that can give output, ascending and disjoint; undefined = all. */
  readonly columnSpans: readonly ColumnSpan[] | undefined;
  /** A superset of the timestamps that can give output. */
  readonly timestamps: TimestampRange | undefined;
  /** No row can give output. */
  readonly blocksAll: boolean;
  /**
   * Units of work that a cell may cost, at most, but for long inputs of expressions; the limit is Limits.filterPushes.
   */
  readonly unitsPerCell: number;
  /** Counts up the units that expressions took inside of pushes, of all runs together. */
  readonly work: { readonly units: number };
  /** Whether a cell may leave more than once. */
  readonly copies: boolean;
  run(): FilterRun;
}
