/**
 * Checks the form of a filter before it is compiled, for any table. Regular expressions are checked when they are
 * compiled, the serialized size when the filter is decoded. The rules and the names of fields are those of
 * google.bigtable.v2.RowFilter. Every failure is INVALID_ARGUMENT and names the part of the filter.
 */
import { type BigtableError, invalidArgument, isInt64, quote } from '../base/index.ts';
import type { Limits } from '../model/index.ts';
import { fanOutOf } from './fan-out.ts';
import type { RowFilter } from './filter.ts';

/** True if the filter is of this kind or contains one. */
export function containsKind(filter: RowFilter | undefined, kind: RowFilter['kind']): boolean {
  if (filter === undefined) return false;
  if (filter.kind === kind) return true;
  switch (filter.kind) {
    case 'chain':
    case 'interleave':
      return filter.filters.some((part) => containsKind(part, kind));
    case 'condition':
      return (
        containsKind(filter.predicate, kind) ||
        containsKind(filter.whenTrue, kind) ||
        containsKind(filter.whenFalse, kind)
      );
    default:
      return false;
  }
}

/** Throws INVALID_ARGUMENT if the filter breaks a rule. */
export function checkFilter(filter: RowFilter, limits: Limits): void {
  new Checker(limits).check(filter, 'filter', 0, false);
  const { pushes, stages } = fanOutOf(filter);
  if (stages > limits.filterStages) {
    throw invalidArgument(
      `the filter passes a cell through ${stages} parts one after another; the limit is ${limits.filterStages}`,
    );
  }
  if (pushes > limits.filterPushes) {
    const many = pushes < 1e15 ? String(pushes) : 'more than 1e15';
    throw invalidArgument(
      `the filter takes up to ${many} steps for one cell, since interleaves in a chain multiply the cells that they copy; the limit is ${limits.filterPushes}`,
    );
  }
}

class Checker {
  readonly #limits: Limits;
  #parts = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** `depth` is the number of filters around this one. */
  check(filter: RowFilter, where: string, depth: number, inCondition: boolean): void {
    // filters of the wire have fewer, by their serialized size; those of the library may repeat one part many times
    if (++this.#parts > this.#limits.filterBytes)
      throw invalidArgument(
        `a filter may have ${this.#limits.filterBytes} parts at most, each counted wherever it stands`,
      );
    if (depth > this.#limits.filterDepth)
      throw invalidArgument(`filters are nested more than ${this.#limits.filterDepth} deep: ${where}`);
    switch (filter.kind) {
      case 'chain':
      case 'interleave':
        return this.#composite(filter, `${where}.${filter.kind}`, depth, inCondition);
      case 'condition': {
        this.check(filter.predicate, `${where}.condition.predicate_filter`, depth + 1, true);
        if (filter.whenTrue) this.check(filter.whenTrue, `${where}.condition.true_filter`, depth + 1, true);
        if (filter.whenFalse) this.check(filter.whenFalse, `${where}.condition.false_filter`, depth + 1, true);
        return;
      }
      case 'sink':
        if (inCondition) throw invalidArgument(`${where}: sink cannot be used within a condition`);
        return;
      default:
        return this.#simple(filter, where);
    }
  }

  #composite(
    filter: RowFilter & { kind: 'chain' | 'interleave' },
    where: string,
    depth: number,
    inCondition: boolean,
  ): void {
    const count = filter.filters.length;
    if (count < 2) throw invalidArgument(`${where}: must contain at least two filters, not ${count}`);
    filter.filters.forEach((part, i) => {
      this.check(part, `${where}[${i}]`, depth + 1, inCondition);
    });
    if (filter.kind === 'interleave') return;
    const labelling = filter.filters.filter((part) => containsKind(part, 'applyLabel')).length;
    if (labelling > 1)
      throw invalidArgument(
        `${where}: only one filter of a chain may contain an apply_label_transformer, not ${labelling}`,
      );
  }

  #simple(filter: RowFilter, where: string): void {
    switch (filter.kind) {
      case 'rowKeyRegex':
        if (filter.regex === '') throw invalidArgument(`${where}: row_key_regex_filter must not be empty`);
        return;
      case 'familyNameRegex':
        if (filter.regex.includes(':'))
          throw invalidArgument(`${where}: family_name_regex_filter must not contain ":": ${quote(filter.regex)}`);
        return;
      case 'rowSample':
        if (!(filter.probability > 0 && filter.probability < 1)) {
          throw invalidArgument(`${where}: row_sample_filter must be above 0 and below 1, not ${filter.probability}`);
        }
        return;
      case 'columnRange':
        if (filter.family === '') throw invalidArgument(`${where}: column_range_filter must name a family`);
        return;
      case 'timestampRange':
        if (filter.range.start !== undefined && !isInt64(filter.range.start)) throw notInt64(where, filter.range.start);
        if (filter.range.end !== undefined && !isInt64(filter.range.end)) throw notInt64(where, filter.range.end);
        return;
      case 'valueBitmask':
        if (filter.mask === '') throw invalidArgument(`${where}: value_bitmask_filter must have a mask`);
        return;
      case 'cellsPerRowOffset':
        return atLeast(0, filter.cells, `${where}: cells_per_row_offset_filter`);
      case 'cellsPerRowLimit':
        return atLeast(1, filter.cells, `${where}: cells_per_row_limit_filter`);
      case 'cellsPerColumnLimit':
        return atLeast(1, filter.cells, `${where}: cells_per_column_limit_filter`);
      case 'applyLabel':
        if (!/^[a-z0-9-]+$/.test(filter.label) || filter.label.length > this.#limits.labelChars) {
          throw invalidArgument(
            `${where}: apply_label_transformer ${JSON.stringify(filter.label)} must be 1 to ${this.#limits.labelChars} characters of [a-z0-9-]`,
          );
        }
        return;
      case 'passAll':
      case 'blockAll':
      case 'columnQualifierRegex':
      case 'valueRegex':
      case 'valueRange':
      case 'stripValue':
        return;
      default:
        throw invalidArgument(
          `${where}: unknown filter ${JSON.stringify((filter as { readonly kind: unknown }).kind)}`,
        );
    }
  }
}

function atLeast(least: number, value: number, what: string): void {
  if (!Number.isSafeInteger(value) || value < least)
    throw invalidArgument(`${what} must be an integer of at least ${least}, not ${value}`);
}

function notInt64(where: string, value: unknown): BigtableError {
  return invalidArgument(`${where}: timestamp_range_filter: invalid timestamp ${String(value)}: expected an int64`);
}
