/**
 * A compiled filter as a read uses it: static bounds, by which the read seeks past what cannot pass, and a run that
 * takes a row's cells one by one and outputs those that pass.
 */
import type { ByteString } from '../base/index.ts';
import type { Cell, ColumnKey, TimestampRange } from '../model/index.ts';

/** The entries that the read may skip after a cell. Never wrong: no cell that would pass is skipped. */
export const Hint = {
  next: 0,
  /** No further version of this column yields output. */
  skipColumn: 1,
  /** No further cell of this row yields output. */
  skipRow: 2,
  /** The call has used up its slice: `resume` continues it and returns its answer. */
  busy: 3,
} as const;
export type Hint = (typeof Hint)[keyof typeof Hint];

export interface ColumnSpan {
  readonly start: ColumnKey;
  /** Exclusive; undefined = to the end of the row. */
  readonly end: ColumnKey | undefined;
}

/**
 * The state of one read. Rows come one after another: startRow, `push` for each cell in order, endRow. After a call
 * that returns `busy`, call `resume`, with pauses in between at will, until it returns another hint.
 *
 * Invariant: the work of one call is bounded for every filter and cell (docs/decisions/0023-work-of-filters.md).
 */
export interface FilterRun {
  /** `skipRow`: no cell of this row can pass; do not call push and endRow for it. Otherwise `next`. */
  startRow(row: ByteString): Hint;
  /** Adds cells that pass to `out`, in order; a cell may be added by a later call, by endRow at the latest. */
  push(cell: Cell, out: Cell[]): Hint;
  endRow(out: Cell[]): Hint;
  /** Continues the call that returned `busy`. */
  resume(out: Cell[]): Hint;
  /**
   * Bytes of cells that the run holds back (conditions wait for their predicate), with a flat rate for their objects.
   */
  readonly heldBytes: number;
}

export interface FilterProgram {
  /** A superset of the columns that can yield output, ascending and disjoint; undefined = all. */
  readonly columnSpans: readonly ColumnSpan[] | undefined;
  /** A superset of the timestamps that can yield output. */
  readonly timestamps: TimestampRange | undefined;
  /** No row can yield output. */
  readonly blocksAll: boolean;
  /** Most units of work for a cell, without expressions on long inputs. The limit is Limits.filterPushes. */
  readonly unitsPerCell: number;
  /** Units that expressions took inside pushes, of all runs together. */
  readonly work: { readonly units: number };
  /** True if a cell may leave more than once. */
  readonly copies: boolean;
  run(): FilterRun;
}
