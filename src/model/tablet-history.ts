/** What has happened to a tablet: entries of the log of events in its row of METADATA (paper section 5.1). */
import type { RowRange } from './row-set.ts';

export interface PastEvent {
  /** What happened: `created`, `assigned`, `compacted`, `released`, `split`, `merged`. Later versions may have more. */
  readonly kind: string;
  /** Real time, microseconds, by the clock of the one that has noted it. */
  readonly atMicros: number;
  /** The tablet's epoch since then: it grows with every assignment and release. */
  readonly epoch: number;
  /** Name of the tablet server that the tablet is assigned to since then; undefined: none. */
  readonly server: string | undefined;
}

export interface TabletHistory {
  readonly range: RowRange;
  /** Newest first, 20 at most. */
  readonly events: readonly PastEvent[];
}
