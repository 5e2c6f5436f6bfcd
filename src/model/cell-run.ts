/**
 * Set-cells of a batch of rows, or of one row with many, as positions in the bytes that brought them: nearly all
 * batches of writes consist of them. A row's mutations are a list of `Mutation` objects, or a run of such cells.
 *
 * Why not objects alone: a batch waits for its log's sync while thousands of other rows come in. An object for each
 * mutation and a view for each value outlived every young collection of that time; here a cell is five numbers. Code
 * that handles mutations takes both forms, and tests hold them to the same outcome. Rare mutations (another kind, an
 * entry of a batch with very many) come as objects. A request of one row with very many cells comes as a run, too:
 * young collections could not move 100,000 objects with their views in good time.
 *
 * Plain data: it may cross from thread to thread. Never changed once it is handed on.
 */
import { asBuffer, type ByteString, type Int64, viewOf } from '../base/index.ts';
import type { Idempotency } from './idempotency.ts';
import { type Mutation, setCell } from './mutation.ts';

export interface CellColumn {
  readonly family: string;
  readonly qualifier: ByteString;
}

/** The cells of all rows of a batch. Values are ranges of `bytes`. */
export interface CellBatch {
  readonly bytes: Uint8Array;
  /** The first columns that occur; neighbours mostly share one, and a batch has a few. */
  readonly columns: readonly CellColumn[];
  /**
   * The other columns: the family of each, and the begin and end of its qualifier in `bytes`. A row of very many
   * columns has a name for each cell; made all together, and kept until the log is synced, they would be more than a
   * young collection can move in good time.
   */
  readonly moreFamilies: readonly string[];
  readonly moreQualifiers: readonly number[];
  /** By cell: index of its column, its timestamp (NaN = the server's time), begin and end of its value. */
  readonly columnOf: readonly number[];
  readonly timestamps: readonly Int64[];
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

/** Cells [from, from + length) of a batch: the mutations of one row. */
export interface CellRun {
  readonly batch: CellBatch;
  readonly from: number;
  readonly length: number;
  /** The server's time, once it is filled in. */
  readonly serverMicros: number | undefined;
}

/** The mutations of one row, in order. */
export type Mutations = readonly Mutation[] | CellRun;

/** A row and its mutations, applied in order and atomically. */
export interface RowMutations<M extends Mutations = Mutations> {
  readonly row: ByteString;
  readonly mutations: M;
  /** Left out: the write is made each time it arrives. */
  readonly idempotency?: Idempotency | undefined;
}

export function isCellRun(mutations: Mutations): mutations is CellRun {
  return !Array.isArray(mutations);
}

/** The mutations as objects. */
export function mutationList(mutations: Mutations): readonly Mutation[] {
  if (!isCellRun(mutations)) return mutations;
  return Array.from({ length: mutations.length }, (_, i) => {
    const at = mutations.from + i;
    const { family, qualifier } = columnAt(mutations, at);
    return setCell(family, qualifier, timestampAt(mutations, at), valueAt(mutations, at));
  });
}

/** Mutations [from, to), in the same form. */
export function sliceMutations(mutations: Mutations, from: number, to: number): Mutations {
  if (!isCellRun(mutations)) return mutations.slice(from, to);
  const end = Math.min(to, mutations.length);
  return {
    batch: mutations.batch,
    from: mutations.from + from,
    length: end - from,
    serverMicros: mutations.serverMicros,
  };
}

/** The cell's timestamp. Undefined: the server's time, not filled in yet. */
export function timestampAt({ batch, serverMicros }: CellRun, at: number): Int64 | undefined {
  const timestamp = batch.timestamps[at]!;
  return Number.isNaN(timestamp) ? serverMicros : timestamp;
}

/** The cell's column: the same object for the same column where a batch has few. */
export function columnAt({ batch }: CellRun, at: number): CellColumn {
  const { columns } = batch;
  const index = batch.columnOf[at]!;
  if (index < columns.length) return columns[index]!;
  const more = index - columns.length;
  const { bytes, moreFamilies, moreQualifiers } = batch;
  return {
    family: moreFamilies[more]!,
    qualifier: asBuffer(bytes).latin1Slice(moreQualifiers[2 * more], moreQualifiers[2 * more + 1]),
  };
}

/** The cell's value, as a view of the batch's bytes. */
export function valueAt({ batch }: CellRun, at: number): Uint8Array {
  return viewOf(batch.bytes, batch.starts[at]!, batch.ends[at]!);
}

export function valueLengthAt({ batch }: CellRun, at: number): number {
  return batch.ends[at]! - batch.starts[at]!;
}
