/**
 * Set-cells of a batch of rows, or of one row that is given many, as they lie in the bytes that brought them: what
 * nearly all batches of writes consist of. A row's mutations are a list of `Mutation` objects, or a run of such cells.
 *
 * Why not objects alone: a batch waits for its log's sync as long as thousands of other rows come in. An object a
 * mutation and a view a value (some 300 bytes of heap) outlived every young collection of that time; here a cell is
 * five numbers. Code that handles mutations takes both forms, and tests hold them to the same outcome. What is rare
 * (another kind of mutation, an entry of a batch with very many) comes as objects. A request of one row with very many
 * cells comes as a run, too: 100,000 objects with their views were more than young collections could move in good time.
 *
 * Plain data: it may cross from thread to thread. Never changed once it is handed on.
 */
import { asBuffer, type ByteString, type Int64, viewOf } from '../base/index.ts';
import { type Mutation, setCell } from './mutation.ts';

export interface CellColumn {
  readonly family: string;
  readonly qualifier: ByteString;
}

/** The cells of all rows of a batch. Values are parts of `bytes`. */
export interface CellBatch {
  readonly bytes: Uint8Array;
  /** The first of those that occur; neighbours mostly share one, and batches a few. */
  readonly columns: readonly CellColumn[];
  /**
   * The others: each one's family, and where its qualifier begins and ends in `bytes`. A row of very many
   * columns has a name a cell; made all together, and kept until the log is synced, they would be more than a young
   * collection can move in good time.
   */
  readonly moreFamilies: readonly string[];
  readonly moreQualifiers: readonly number[];
  /** By cell: index of its column, its timestamp (NaN = the server's time), where its value begins and ends. */
  readonly columnOf: readonly number[];
  readonly timestamps: readonly Int64[];
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

/** Cells [from, from + length) of a batch, which one row is given. */
export interface CellRun {
  readonly batch: CellBatch;
  readonly from: number;
  readonly length: number;
  /** The server's time, once it is filled in. */
  readonly serverMicros: number | undefined;
}

/** What one row is given, in order. */
export type Mutations = readonly Mutation[] | CellRun;

/** A row and the mutations that it is given, in order and atomically. */
export interface RowMutations<M extends Mutations = Mutations> {
  readonly row: ByteString;
  readonly mutations: M;
}

export function isCellRun(mutations: Mutations): mutations is CellRun {
  return !Array.isArray(mutations);
}

/** The same as objects. */
export function mutationList(mutations: Mutations): readonly Mutation[] {
  if (!isCellRun(mutations)) return mutations;
  return Array.from({ length: mutations.length }, (_, i) => {
    const at = mutations.from + i;
    const { family, qualifier } = columnAt(mutations, at);
    return setCell(family, qualifier, timestampAt(mutations, at), valueAt(mutations, at));
  });
}

/** Mutations [from, to) of them, in the same form. */
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

/** Undefined: the server's time, not filled in yet. */
export function timestampAt({ batch, serverMicros }: CellRun, at: number): Int64 | undefined {
  const timestamp = batch.timestamps[at]!;
  return Number.isNaN(timestamp) ? serverMicros : timestamp;
}

/** The same object for the same column where a batch has few. */
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

/** A view. */
export function valueAt({ batch }: CellRun, at: number): Uint8Array {
  return viewOf(batch.bytes, batch.starts[at]!, batch.ends[at]!);
}

export function valueLengthAt({ batch }: CellRun, at: number): number {
  return batch.ends[at]! - batch.starts[at]!;
}
