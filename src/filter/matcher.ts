/**
 * What asks whether an input matches a pattern: at once where that is cheap, else in parts with pauses between them
 * (docs/decisions/0023-work-of-filters.md).
 */
import type { ByteString } from '../base/index.ts';

/**
 * What may still be done in the present step. A unit is some 10 ns: a cell pushed into a stage, an instruction of an
 * expression tried on a byte.
 */
export interface Allowance {
  units: number;
}

export interface Matcher {
  /** The only inputs that match, where they are a few literals. */
  readonly literals?: readonly ByteString[];
  /** What every matching input starts with; may be empty. */
  readonly prefix: ByteString;
  /** What a byte of input may cost. 0: an answer never costs more than comparing the pattern. */
  readonly unitsPerByte: number;
  matches(text: ByteString): boolean;
  matchesBytes(bytes: Uint8Array): boolean;
  /** The question in parts, for inputs that are long for this pattern. */
  begin(bytes: Uint8Array): Matching;
}

export interface Matching {
  /**
   * Goes on until the answer is known or the allowance is spent (then undefined); it may overdraw the allowance by one
   * small part. RESOURCE_EXHAUSTED where the answer would take too much altogether.
   */
  goOn(allowance: Allowance): boolean | undefined;
}
