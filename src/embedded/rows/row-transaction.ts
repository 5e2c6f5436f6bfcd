/** Single-row transactions in the library's words: what is asked of a row, and what is then done to it. */
import {
  BigtableError,
  type ByteString,
  Code,
  checkOptions,
  describeValue,
  type Int64,
  int64,
  invalidArgument,
  isInt64,
  isObjectOfNames,
  type OptionTable,
  toBigtableError,
} from '../../base/index.ts';
import type { RowFilter as ModelFilter } from '../../filter/index.ts';
import type { ReadModifyWriteRule as ModelRule, Mutation } from '../../model/index.ts';
import { type RowFilter, rowFilterOf } from './filter.ts';
import { type Bytes, type Column, columnOf, keyOf, type Value, valueOf } from '../values/input.ts';
import { Mutations } from './row-mutation.ts';

/** The condition of a `checkAndMutate`: an existing column, a column with a value, or any filter of the API. */
export type Predicate =
  | { readonly column: Column; readonly equals?: Value; readonly filter?: never }
  | { readonly filter: RowFilter; readonly column?: never; readonly equals?: never };

const PREDICATE = { column: 'bound', equals: 'bound', filter: 'bound' } satisfies OptionTable<Predicate>;

export interface CheckAndMutateOutcomes {
  /**
   * Adds the steps to apply if the predicate matched, before it returns. If it throws, the call fails with that as its
   * cause.
   */
  readonly then?: (row: Mutations) => unknown;
  /** The same, if the predicate did not match. */
  readonly otherwise?: (row: Mutations) => unknown;
}

const OUTCOMES = { then: 'free', otherwise: 'free' } satisfies OptionTable<CheckAndMutateOutcomes>;

/** Appends to a column's value (absent = empty), or adds to the 8-byte integer in it (absent = 0). */
export interface ReadModifyWriteRule {
  readonly family: string;
  readonly qualifier: Bytes;
  readonly change:
    | { readonly kind: 'append'; readonly suffix: Bytes }
    | { readonly kind: 'increment'; readonly amount: number | bigint };
}

const RULE = { family: 'bound', qualifier: 'bound', change: 'bound' } satisfies OptionTable<ReadModifyWriteRule>;
const APPEND = { kind: 'bound', suffix: 'bound' } as const;
const INCREMENT = { kind: 'bound', amount: 'bound' } as const;

export function predicateFilter(predicate: Predicate): ModelFilter {
  checkOptions(predicate, PREDICATE, 'a predicate');
  const { column, equals, filter } = predicate;
  if (filter !== undefined) {
    if (column !== undefined || equals !== undefined)
      throw invalidArgument('a predicate must have either a filter, or a column and perhaps equals');
    return rowFilterOf(filter);
  }
  if (column === undefined) throw invalidArgument('a predicate must have a column or a filter');
  const { family, qualifier } = columnOf(column);
  const filters: ModelFilter[] = [
    { kind: 'columnRange', family, ...only(qualifier) },
    { kind: 'cellsPerColumnLimit', cells: 1 },
  ];
  if (equals !== undefined) filters.push({ kind: 'valueRange', ...only(keyOf(valueOf(equals), 'equals')) });
  return { kind: 'chain', filters };
}

function only(value: ByteString): Pick<ModelFilter & { readonly kind: 'valueRange' }, 'start' | 'end'> {
  const bound = { value, closed: true };
  return { start: bound, end: bound };
}

/** The mutations that the outcomes fill in. */
export function mutationsOf(outcomes: CheckAndMutateOutcomes): {
  readonly whenTrue: readonly Mutation[];
  readonly whenFalse: readonly Mutation[];
} {
  checkOptions(outcomes, OUTCOMES, 'the outcomes of a check', 'outcome');
  return { whenTrue: filledBy(outcomes.then, 'then'), whenFalse: filledBy(outcomes.otherwise, 'otherwise') };
}

function filledBy(fill: ((row: Mutations) => unknown) | undefined, name: string): readonly Mutation[] {
  const steps = new Mutations();
  if (fill === undefined || fill === null) return [];
  if (typeof fill !== 'function')
    throw invalidArgument(`outcome ${name} must be a function of the row's mutations, not ${describeValue(fill)}`);
  let result: unknown;
  try {
    result = fill(steps);
  } catch (error) {
    if (error instanceof BigtableError) throw error;
    throw new BigtableError(Code.INVALID_ARGUMENT, `outcome ${name} threw: ${toBigtableError(error).message}`, {
      cause: error,
    });
  }
  if (result instanceof Promise) {
    result.catch(() => {});
    throw invalidArgument(`outcome ${name} must not be an async function: what it adds after an await would be lost`);
  }
  return steps.mutations;
}

/** INVALID_ARGUMENT where the rule is not built as one. */
export function ruleOf(rule: ReadModifyWriteRule): ModelRule {
  checkOptions(rule, RULE, 'a read-modify-write rule', 'field');
  const { change } = rule;
  if (!isObjectOfNames(change))
    throw invalidArgument(`the change of a rule must be an object with a kind, not ${describeValue(change)}`);
  const column = columnOf({ family: rule.family, qualifier: rule.qualifier });
  switch (change.kind) {
    case 'append':
      checkOptions(change, APPEND, 'an append', 'field');
      return { ...column, change: { kind: 'append', suffix: valueOf(change.suffix) } };
    case 'increment':
      checkOptions(change, INCREMENT, 'an increment', 'field');
      return { ...column, change: { kind: 'increment', amount: amountOf(change.amount) } };
    default:
      throw invalidArgument(
        'the change of a rule must be of kind append or increment, not ' +
          describeValue((change as { readonly kind: unknown }).kind),
      );
  }
}

export function amountOf(amount: number | bigint): Int64 {
  if (!isInt64(amount))
    throw invalidArgument(`an amount must be a whole number within int64, not ${describeValue(amount)}`);
  return int64(amount);
}
