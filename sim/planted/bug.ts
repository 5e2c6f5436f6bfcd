import type { Meeting } from '../world/meetings.ts';

/** A mistake in the protocols, as a change of the text of the product. The product itself has no switch for it. */
export interface PlantedBug {
  /** As in sim/model: A serving, B logs, C splits and merges, F splits of METADATA; H hot rows; N found by review; S sorted logs; K backups and streams; R what is beside rows. */
  readonly name: string;
  /** What is wrong. */
  readonly title: string;
  /** In which it shows most: seeds of it are tried first. */
  readonly meeting?: Meeting;
  readonly changes: readonly TextChange[];
}

export interface TextChange {
  /** Path in src/. */
  readonly file: string;
  /** Stands in it exactly once. */
  readonly text: string;
  /** What stands there instead. */
  readonly wrong: string;
}
