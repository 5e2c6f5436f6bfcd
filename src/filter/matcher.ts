/**
 * Decides whether an input matches a pattern: immediately if that is cheap, otherwise in slices with pauses between
 * them (docs/decisions/0023-work-of-filters.md).
 */
import type { ByteString } from '../base/index.ts';

/**
 * Work that is left in the present slice. A unit is roughly a cell pushed into a stage, or an instruction of an
 * expression tried on a byte.
 */
export interface Allowance {
  units: number;
}

export interface Matcher {
  /** The only inputs that match, if they are a few literals. */
  readonly literals?: readonly ByteString[];
  /** Prefix of every matching input; may be empty. */
  readonly prefix: ByteString;
  /** Most units for a byte of input. 0: an answer never costs more than comparing the pattern. */
  readonly unitsPerByte: number;
  matches(text: ByteString): boolean;
  matchesBytes(bytes: Uint8Array): boolean;
  /** Begins to match in slices, for inputs that are long for this pattern. */
  begin(bytes: Uint8Array): Matching;
}

export interface Matching {
  /**
   * Continues until the answer is known or the allowance is spent (then undefined). It may overdraw the allowance by
   * one small part. RESOURCE_EXHAUSTED if the answer would take too much altogether.
   */
  resume(allowance: Allowance): boolean | undefined;
}
