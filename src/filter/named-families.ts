/** The families that a filter needs by name: a read with such a filter means families that exist. */
import type { ByteString } from '../base/index.ts';
import type { RowFilter } from './filter.ts';

/** A family's name as a regular expression that matches nothing else: its characters, perhaps quoted. */
const LITERAL = /^(?:[-_a-zA-Z0-9]|\\[-_.])+$/;

/**
 * Every cell that passes the filter is of each of these families. Alternatives (interleave, condition) name none: they
 * may be for families of several tables.
 */
export function namedFamilies(filter: RowFilter): readonly string[] {
  switch (filter.kind) {
    case 'columnRange':
      return [filter.family];
    case 'familyNameRegex':
      return literalOf(filter.regex);
    case 'chain':
      return filter.filters.flatMap(namedFamilies);
    default:
      return [];
  }
}

function literalOf(regex: ByteString): readonly string[] {
  return LITERAL.test(regex) ? [regex.replaceAll('\\', '')] : [];
}
