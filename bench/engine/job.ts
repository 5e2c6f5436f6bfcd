/**
 * The job of one child process of the engine bench: one line of the table for one system, over rows that a seed gives.
 * Plain data: it is sent to the child as JSON, and its outcome comes back the same way.
 */
/** `edubba-8k`: with blocks of 8 KiB, as the paper tunes tables that are read at random (section 7). */
export type SystemName = 'edubba' | 'edubba-8k' | 'classic-level' | 'rocksdb-native' | 'lmdb' | 'better-sqlite3';

/** One cell of 1000 bytes a row, or 20 cells of 50. */
export type Shape = 'value' | 'cells';

export interface Job {
  readonly system: SystemName;
  readonly line: string;
  readonly shape: Shape;
  readonly rows: number;
  readonly directory: string;
  /** Bytes of its data that the system may keep in memory. */
  readonly cacheBytes: number;
}

export interface Outcome {
  readonly operations: number;
  readonly seconds: number;
  /** All threads of the process. */
  readonly cpuMicrosPerOperation: number;
  /** Bytes that the process wrote to files for each byte of keys and values, logs and compactions included. */
  readonly writtenPerUserByte: number;
  /** After the line, when nothing runs any more. */
  readonly residentBytes: number;
  readonly diskBytes: number;
  /** From the call of open to the answer of a first read; for loaded directories. */
  readonly openMs: number;
  /** Figures of a line's own, by name. */
  readonly extra: Readonly<Record<string, number>>;
}

export const VALUE_BYTES = 1000;
export const CELLS_A_ROW = 20;
export const CELL_BYTES = VALUE_BYTES / CELLS_A_ROW;

const KEY_DIGITS = 12;

export const rowKey = (index: number): string => `row${String(index).padStart(KEY_DIGITS, '0')}`;
export const cellName = (index: number): string => `c${String(index).padStart(2, '0')}`;

/** Bytes of keys and values, as a user counts them: the row key once a row, names of cells with the cells. */
export function userBytes({ shape, rows }: Pick<Job, 'shape' | 'rows'>): number {
  const row = rowKey(0).length + VALUE_BYTES;
  return rows * (shape === 'value' ? row : row + CELLS_A_ROW * cellName(0).length);
}
