/**
 * Row filters as plain frozen data: the twenty kinds of google.bigtable.v2.RowFilter. This file only names them; the
 * interpreter (compile.ts) defines their meaning. Regular expressions have RE2 syntax over bytes and are byte strings.
 */
import type { ByteString } from '../base/index.ts';
import type { TimestampRange } from '../model/index.ts';

/** One end of a range of byte strings; undefined = open to that side. */
export interface Bound {
  readonly value: ByteString;
  readonly closed: boolean;
}

export type RowFilter =
  | { readonly kind: 'chain'; readonly filters: readonly RowFilter[] }
  | { readonly kind: 'interleave'; readonly filters: readonly RowFilter[] }
  | {
      readonly kind: 'condition';
      readonly predicate: RowFilter;
      readonly whenTrue?: RowFilter | undefined;
      readonly whenFalse?: RowFilter | undefined;
    }
  | { readonly kind: 'sink' }
  | { readonly kind: 'passAll' }
  | { readonly kind: 'blockAll' }
  | { readonly kind: 'rowKeyRegex'; readonly regex: ByteString }
  | { readonly kind: 'rowSample'; readonly probability: number }
  | { readonly kind: 'familyNameRegex'; readonly regex: ByteString }
  | { readonly kind: 'columnQualifierRegex'; readonly regex: ByteString }
  | {
      readonly kind: 'columnRange';
      readonly family: string;
      readonly start?: Bound | undefined;
      readonly end?: Bound | undefined;
    }
  | { readonly kind: 'timestampRange'; readonly range: TimestampRange }
  | { readonly kind: 'valueRegex'; readonly regex: ByteString }
  | { readonly kind: 'valueRange'; readonly start?: Bound | undefined; readonly end?: Bound | undefined }
  | { readonly kind: 'valueBitmask'; readonly mask: ByteString }
  | { readonly kind: 'cellsPerRowOffset'; readonly cells: number }
  | { readonly kind: 'cellsPerRowLimit'; readonly cells: number }
  | { readonly kind: 'cellsPerColumnLimit'; readonly cells: number }
  | { readonly kind: 'stripValue' }
  | { readonly kind: 'applyLabel'; readonly label: string };
