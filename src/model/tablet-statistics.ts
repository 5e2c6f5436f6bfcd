/** The size of a tablet. */
import type { RowRange } from './row-set.ts';

export interface TabletStatistics {
  readonly range: RowRange;
  /** Name of the tablet server. */
  readonly server: string;
  readonly files: number;
  readonly fileBytes: number;
  /** Bytes that are not in files yet, with overheads. */
  readonly memoryBytes: number;
}
