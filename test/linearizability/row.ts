/**
 * A row as it is specified: the columns f:a and f:b, which hold texts, and g:n and g:t, a counter and a text that
 * read-modify-writes change. Each keeps one version.
 *
 * Its state is a string: the four values, ';' between them, an absent one empty.
 */
import type { Effect } from './checker.ts';
import type { Step } from './history.ts';

export const FAMILIES = { f: { maxVersions: 1 }, g: { maxVersions: 1 } };
export const EMPTY_ROW = ';;;';
/** The order of the values in a state. */
const COLUMNS = ['f:a', 'f:b', 'g:n', 'g:t'] as const;

export type Change =
  | { readonly kind: 'set'; readonly column: 'f:a' | 'f:b'; readonly value: string }
  | { readonly kind: 'deleteColumn'; readonly column: (typeof COLUMNS)[number] }
  | { readonly kind: 'deleteFamily'; readonly family: 'f' | 'g' }
  | { readonly kind: 'deleteRow' };

/** What a call does with one row. */
export type RowWork =
  | { readonly kind: 'read' }
  | { readonly kind: 'mutate'; readonly changes: readonly Change[] }
  /** A mutation that also names a family which does not exist. */
  | { readonly kind: 'mutateInvalidly'; readonly changes: readonly Change[] }
  /** An increment of g:n, and an append to g:t if there is a suffix. */
  | { readonly kind: 'readModifyWrite'; readonly amount: number; readonly suffix: string | undefined }
  | {
      readonly kind: 'checkAndMutate';
      /** The value that f:a must have; undefined: the row has any cell. */
      readonly expected: string | undefined;
      readonly whenTrue: readonly Change[];
      readonly whenFalse: readonly Change[];
    };

/** The state of a row that was read: its values by column. */
export const stateOf = (values: ReadonlyMap<string, string>): string =>
  COLUMNS.map((column) => values.get(column) ?? '').join(';');

/** The value of f:a in a state, empty if it is absent. */
export const firstValueOf = (state: string): string => state.slice(0, state.indexOf(';'));

/** The answer to a read-modify-write: the new values, that of g:n first. */
export const newValues = (...values: readonly string[]): string => values.join(';');

export class RowStep implements Step {
  readonly work: RowWork;

  constructor(work: RowWork) {
    this.work = work;
  }

  get isRead(): boolean {
    return this.work.kind === 'read';
  }

  apply(state: string): Effect {
    const { work } = this;
    switch (work.kind) {
      case 'read':
        return { state, answer: state };
      case 'mutate':
        return { state: changed(state, work.changes), answer: undefined };
      case 'mutateInvalidly':
        return { state, answer: 'INVALID' };
      case 'readModifyWrite': {
        const values = state.split(';');
        values[2] = String(Number(values[2]) + work.amount);
        values[3] += work.suffix ?? '';
        const answer = work.suffix === undefined ? newValues(values[2]) : newValues(values[2], values[3]!);
        return { state: values.join(';'), answer };
      }
      case 'checkAndMutate': {
        const { expected, whenTrue, whenFalse } = work;
        const matched = expected === undefined ? state !== EMPTY_ROW : firstValueOf(state) === expected;
        return { state: changed(state, matched ? whenTrue : whenFalse), answer: matched };
      }
    }
  }

  toString(): string {
    return JSON.stringify(this.work);
  }
}

function changed(state: string, changes: readonly Change[]): string {
  const values = state.split(';');
  for (const change of changes) {
    switch (change.kind) {
      case 'set':
        values[COLUMNS.indexOf(change.column)] = change.value;
        break;
      case 'deleteColumn':
        values[COLUMNS.indexOf(change.column)] = '';
        break;
      case 'deleteFamily':
        COLUMNS.forEach((column, at) => {
          if (column.startsWith(change.family)) values[at] = '';
        });
        break;
      case 'deleteRow':
        values.fill('');
    }
  }
  return values.join(';');
}
