/** Calls of the data API as plain data, which can be sent to another process, and what came of them on each row. */
import assert from 'node:assert/strict';
import {
  BatchError,
  BigtableError,
  CallEndedError,
  type CallOptions,
  type CodeName,
  type Database,
  type Mutations,
  RowMutation,
  type Table,
} from '../../src/embedded/index.ts';
import { type Change, EMPTY_ROW, FAMILIES, newValues, type RowWork, stateOf } from './row.ts';

export const TABLE = 'linearizability';

/** The method that is called with the work on each of its rows; of an operator's calls none has rows. */
export interface Call {
  readonly method:
    | 'readRow'
    | 'readRows'
    | 'scan'
    | 'mutateRow'
    | 'mutateRows'
    | 'readModifyWriteRow'
    | 'checkAndMutateRow'
    | 'flush'
    | 'compact'
    | 'split'
    | 'merge'
    | 'openTable';
  readonly rows: readonly { readonly row: string; readonly work: RowWork }[];
  /** The row at which tablets are split or merged, or at which a new table is split. */
  readonly at?: string | undefined;
  /** The caller cancels the call after this many turns of its event loop. */
  readonly cancelAfter?: number | undefined;
}

/** The outcome of the work on one row. */
export type Outcome =
  | { readonly kind: 'answered'; readonly answer: string | boolean | undefined }
  /** `failed`: it surely had no effect. `unknown`: it may have taken effect, or may later. */
  | { readonly kind: 'failed' | 'unknown'; readonly code: string; readonly message: string };

/** Makes the call; returns the outcomes in the order of its rows. `timeoutMs`: none by default. */
export async function perform(database: Database, call: Call, timeoutMs?: number): Promise<readonly Outcome[]> {
  const cancel = new AbortController();
  if (call.cancelAfter !== undefined) void cancelAfter(call.cancelAfter, cancel);
  const options = { timeoutMs, ...(call.cancelAfter !== undefined && { signal: cancel.signal }) };
  try {
    const answers = await answersTo(database, call, options);
    return call.rows.map((_, i) => ({ kind: 'answered', answer: answers[i] }));
  } catch (error) {
    if (!(error instanceof BatchError)) return call.rows.map(() => outcomeOf(error));
    const failures = new Map(error.failures.map((failure) => [failure.index, failure.error]));
    return call.rows.map((_, i) =>
      failures.has(i) ? outcomeOf(failures.get(i)) : { kind: 'answered', answer: undefined },
    );
  }
}

/** The outcome of a call, or of an entry of a batch, that failed. */
export function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof BigtableError)) throw error;
  const { codeName: code, message } = error;
  const isKnown =
    error instanceof CallEndedError
      ? !error.outcomeUnknown
      : SURELY_FAILED.has(code) || error.details.notReached === true;
  return { kind: isKnown ? 'failed' : 'unknown', code, message };
}

/** A mutation of a family that does not exist: nothing was written. */
const SURELY_FAILED: ReadonlySet<string> = new Set(['NOT_FOUND', 'INVALID_ARGUMENT'] satisfies CodeName[]);

async function cancelAfter(turns: number, cancel: AbortController): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
  cancel.abort();
}

async function answersTo(
  database: Database,
  { method, rows, at = '' }: Call,
  options: CallOptions,
): Promise<readonly (string | boolean | undefined)[]> {
  const table = database.table(TABLE);
  const [first] = rows;
  switch (method) {
    case 'flush':
      await database.flush(options);
      return [];
    case 'compact':
      await database.compact(TABLE, options);
      return [];
    case 'split':
      await database.split(TABLE, at, options);
      return [];
    case 'merge':
      await database.merge(TABLE, at, options);
      return [];
    case 'openTable':
      await database.openTable(TABLE, { families: FAMILIES, splits: [at], ...options });
      return [];
    case 'scan': {
      const states = new Map<string, string>();
      let last = '';
      for await (const row of table.scan(options)) {
        assert.ok(row.name > last, `a scan went from row ${last} to row ${row.name}: rows ascend, and come once`);
        states.set(row.name, stateOfCells(row.cells));
        last = row.name;
      }
      return rows.map(({ row }) => states.get(row) ?? EMPTY_ROW);
    }
    case 'readRows': {
      const found = await table.getMany(
        rows.map(({ row }) => row),
        options,
      );
      return found.map((row) => stateOfCells(row?.cells ?? []));
    }
    case 'mutateRows':
      await table.applyAll(
        rows.map(({ row, work }) => mutationOf(row, work)),
        options,
      );
      return [];
    default:
      return [await answerOfRow(table, first!.row, first!.work, options)];
  }
}

async function answerOfRow(
  table: Table,
  row: string,
  work: RowWork,
  options: CallOptions,
): Promise<string | boolean | undefined> {
  switch (work.kind) {
    case 'read':
      return stateOfCells((await table.get(row, options))?.cells ?? []);
    case 'mutate':
    case 'mutateInvalidly':
      await table.apply(mutationOf(row, work), options);
      return undefined;
    case 'readModifyWrite': {
      const { amount, suffix } = work;
      const increment = { family: 'g', qualifier: 'n', change: { kind: 'increment', amount } } as const;
      if (suffix === undefined)
        return newValues(...(await table.readModifyWrite(row, [increment], options)).map(({ int }) => String(int)));
      const append = { family: 'g', qualifier: 't', change: { kind: 'append', suffix } } as const;
      const [count, text] = await table.readModifyWrite(row, [increment, append], options);
      return newValues(String(count!.int), text!.text);
    }
    case 'checkAndMutate': {
      const predicate =
        work.expected === undefined
          ? { filter: { kind: 'passAll' } as const }
          : { column: 'f:a', equals: work.expected };
      const outcomes = {
        then: (steps: Mutations) => addChanges(steps, work.whenTrue),
        otherwise: (steps: Mutations) => addChanges(steps, work.whenFalse),
      };
      return table.checkAndMutate(row, predicate, outcomes, options);
    }
  }
}

function mutationOf(row: string, work: RowWork): RowMutation {
  const mutation = new RowMutation(row);
  if (work.kind === 'mutate' || work.kind === 'mutateInvalidly') addChanges(mutation, work.changes);
  if (work.kind === 'mutateInvalidly') mutation.set('missing:x', 'x');
  return mutation;
}

function addChanges(steps: Mutations, changes: readonly Change[]): void {
  for (const change of changes) {
    if (change.kind === 'set') steps.set(change.column, change.value);
    else if (change.kind === 'deleteColumn') steps.delete(change.column);
    else if (change.kind === 'deleteFamily') steps.deleteFamily(change.family);
    else steps.deleteRow();
  }
}

function stateOfCells(
  cells: readonly { readonly column: string; readonly text: string; readonly int: bigint }[],
): string {
  return stateOf(new Map(cells.map((cell) => [cell.column, cell.column === 'g:n' ? String(cell.int) : cell.text])));
}
