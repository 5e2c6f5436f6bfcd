/**
 * The form of data requests: the checks that need no schema of the table (check-schema.ts has the others). All throw
 * INVALID_ARGUMENT (never NOT_FOUND). Filters are checked where they are compiled, by the room filter. Hot path of
 * every write: no allocation.
 */
import { BigtableError, type ByteString, invalidArgument, isInt64 } from '../base/index.ts';
import {
  type CellColumn,
  type CellRun,
  columnAt,
  type Idempotency,
  isCellRun,
  type Limits,
  MAX_TOKEN_BYTES,
  MIN_TOKEN_BYTES,
  type Mutation,
  type Mutations,
  type ReadModifyWriteRule,
  type RowMutations,
  type RowRange,
  sliceMutations,
  timestampAt,
  type TimestampRange,
  valueLengthAt,
} from '../model/index.ts';
import {
  checkFamilyName,
  checkQualifier,
  checkRowKey,
  checkRowRange,
  checkTableName,
  checkTimestamp,
  checkValue,
  checkValueLength,
} from './check-names.ts';
import type { CheckAndMutateRequest, ReadRequest } from './service.ts';

/** Walks `count` items in slices [from, to); pauses between them if it returns a promise. */
export type Slicer = (count: number, work: (from: number, to: number) => void) => Promise<void> | undefined;

const whole: Slicer = (count, work) => {
  work(0, count);
  return undefined;
};

/** MutateRow: 1..mutationsPerRequest mutations of one row. */
export function checkMutateRow(
  table: string,
  { row, mutations, idempotency }: RowMutations,
  limits: Limits,
  slicer = whole,
): Promise<void> | undefined {
  checkTableName(table, limits);
  checkRowKey(row, limits);
  if (idempotency !== undefined) checkIdempotency(idempotency);
  if (mutations.length === 0) throw invalidArgument('a MutateRow request must have at least one mutation');
  checkCount(mutations.length, limits);
  return slicer(mutations.length, (from, to) =>
    checkMutations(to - from === mutations.length ? mutations : sliceMutations(mutations, from, to), limits),
  );
}

/**
 * MutateRows: at least one entry, at most mutationsPerRequest mutations altogether: else the whole request fails. An
 * error of one entry, which has at least one mutation, fails that entry alone and goes to `fail`.
 */
export function checkMutateRows(
  table: string,
  entries: readonly RowMutations[],
  limits: Limits,
  fail: (index: number, error: BigtableError) => void,
  slicer = whole,
): Promise<void> | undefined {
  checkTableName(table, limits);
  if (entries.length === 0) throw invalidArgument('a MutateRows request must have at least one entry');
  let total = 0;
  for (const { mutations } of entries) total += mutations.length;
  checkCount(total, limits);
  return slicer(entries.length, (from, to) => {
    for (let i = from; i < to; i++) {
      try {
        checkEntry(entries[i]!, i, limits);
      } catch (error) {
        if (!(error instanceof BigtableError)) throw error;
        fail(i, error);
      }
    }
  });
}

function checkEntry({ row, mutations, idempotency }: RowMutations, index: number, limits: Limits): void {
  checkRowKey(row, limits, `row key of entry ${index}`);
  if (idempotency !== undefined) checkIdempotency(idempotency);
  if (mutations.length === 0) throw invalidArgument(`entry ${index} of the MutateRows request has no mutation`);
  checkMutations(mutations, limits);
}

function checkIdempotency({ token }: Idempotency): void {
  if (token.length < MIN_TOKEN_BYTES || token.length > MAX_TOKEN_BYTES)
    throw invalidArgument(
      `an idempotency token has ${MIN_TOKEN_BYTES} to ${MAX_TOKEN_BYTES} bytes; this one has ${token.length}`,
    );
}

function checkMutations(mutations: Mutations, limits: Limits): void {
  if (isCellRun(mutations)) checkCells(mutations, limits);
  else checkForms(mutations, limits);
}

/** CheckAndMutateRow: mutationsPerRequest in each list, and not both of them empty. */
export function checkCheckAndMutateRow(request: CheckAndMutateRequest, limits: Limits): void {
  checkTableName(request.table, limits);
  checkRowKey(request.row, limits);
  if (request.whenTrue.length === 0 && request.whenFalse.length === 0) {
    throw invalidArgument('No mutations provided: a CheckAndMutateRow request must have true or false mutations');
  }
  for (const mutations of [request.whenTrue, request.whenFalse]) {
    checkCount(mutations.length, limits);
    checkForms(mutations, limits);
  }
}

/** ReadModifyWriteRow: 1..mutationsPerRequest rules. */
export function checkReadModifyWriteRow(
  table: string,
  row: ByteString,
  rules: readonly ReadModifyWriteRule[],
  limits: Limits,
): void {
  checkTableName(table, limits);
  checkRowKey(row, limits);
  if (rules.length === 0) throw invalidArgument('a ReadModifyWriteRow request must have at least one rule');
  checkCount(rules.length, limits);
  for (const { family, qualifier, change } of rules) {
    checkFamilyName(family, limits);
    checkQualifier(qualifier, limits);
    if (change.kind === 'append') checkValue(change.suffix, limits, 'value to append');
    else if (!isInt64(change.amount))
      throw invalidArgument(`increment ${String(change.amount)} must be a whole number within int64`);
  }
}

/** Ranges with start <= end, their keys within the limit. */
export function checkReadRanges(ranges: readonly RowRange[], limits: Limits): void {
  for (const range of ranges) checkRowRange(range, limits);
}

/** ReadRows: a limit of 0 or more. checkReadRanges checks its ranges, which may be very many. */
export function checkReadRows(request: ReadRequest, limits: Limits): void {
  checkTableName(request.table, limits);
  const most = request.rowsLimit ?? 0;
  if (!Number.isSafeInteger(most) || most < 0)
    throw invalidArgument(`rows limit ${most} must be a whole number of 0 (none) or more`);
}

function checkCount(count: number, limits: Limits): void {
  if (count > limits.mutationsPerRequest) {
    throw invalidArgument(
      `a request may have ${limits.mutationsPerRequest} mutations at most; this one has ${count} or more`,
    );
  }
}

function checkForms(mutations: readonly Mutation[], limits: Limits): void {
  // a batch names few families, over and over
  let checkedFamily: string | undefined;
  for (const mutation of mutations) {
    if (mutation.kind === 'deleteFromRow') continue;
    if (mutation.family !== checkedFamily) {
      checkFamilyName(mutation.family, limits);
      checkedFamily = mutation.family;
    }
    checkForm(mutation, limits);
  }
}

/** Checks the same cells as checkForms, as objects. */
function checkCells(run: CellRun, limits: Limits): void {
  let checked: CellColumn | undefined;
  for (let at = run.from; at < run.from + run.length; at++) {
    const column = columnAt(run, at);
    if (column !== checked) {
      checkFamilyName(column.family, limits);
      checkQualifier(column.qualifier, limits);
      checked = column;
    }
    const timestamp = timestampAt(run, at);
    if (timestamp !== undefined) checkTimestamp(timestamp, limits);
    checkValueLength(valueLengthAt(run, at), limits);
  }
}

function checkForm(mutation: Exclude<Mutation, { kind: 'deleteFromRow' }>, limits: Limits): void {
  if (mutation.kind === 'deleteFromFamily') return;
  checkQualifier(mutation.qualifier, limits);
  switch (mutation.kind) {
    case 'setCell':
      if (mutation.timestamp !== undefined) checkTimestamp(mutation.timestamp, limits);
      return checkValue(mutation.value, limits);
    case 'addToCell':
      checkTimestamp(mutation.timestamp, limits);
      if (mutation.input instanceof Uint8Array) return checkValue(mutation.input, limits, 'input of an aggregate');
      if (!isInt64(mutation.input))
        throw invalidArgument(`input ${String(mutation.input)} of an aggregate must be a whole number within int64`);
      return;
    case 'mergeToCell':
      checkTimestamp(mutation.timestamp, limits);
      return mutation.state === undefined ? undefined : checkValue(mutation.state, limits, 'state of an aggregate');
    case 'deleteFromColumn':
      return checkTimestampRange(mutation.range, limits);
    default:
      throw invalidArgument(`unknown mutation ${JSON.stringify((mutation as { readonly kind: unknown }).kind)}`);
  }
}

function checkTimestampRange(range: TimestampRange | undefined, limits: Limits): void {
  if (range === undefined) return;
  const { start, end } = range;
  if (start !== undefined) checkTimestamp(start, limits);
  if (end !== undefined) checkTimestamp(end, limits);
  if (start !== undefined && end !== undefined && start > end)
    throw invalidArgument(`timestamp range starts at ${start}, above its end ${end}`);
}
