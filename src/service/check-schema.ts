/**
 * The checks of a write that need the schema: its families exist and take such mutations, and its timestamps are
 * multiples of the table's granularity. Used by the tablet's server, which has the schema.
 *
 * NOT_FOUND: the family does not exist. INVALID_ARGUMENT: the family's type or the granularity forbids it.
 */
import { BigtableError, Code, type Int64, invalidArgument, quote } from '../base/index.ts';
import {
  type AddToCell,
  type CellColumn,
  type CellRun,
  checkAggregateInput,
  checkAggregateState,
  columnAt,
  familyOfTable,
  type FamilySchema,
  isCellRun,
  type MergeToCell,
  type Mutation,
  type Mutations,
  type ReadModifyWriteRule,
  type TableSchema,
  timestampAt,
} from '../model/index.ts';

export function checkMutations(schema: TableSchema, mutations: Mutations): void {
  if (isCellRun(mutations)) return checkCells(schema, mutations);
  // a batch names few families, over and over
  let family: FamilySchema | undefined;
  for (const mutation of mutations) {
    if (mutation.kind === 'deleteFromRow') continue;
    if (family === undefined || family.name !== mutation.family) family = familyOf(schema, mutation.family);
    checkMutation(schema, family, mutation);
  }
}

/** Checks the same cells as checkMutations, as objects. */
function checkCells(schema: TableSchema, run: CellRun): void {
  let checked: CellColumn | undefined;
  for (let at = run.from; at < run.from + run.length; at++) {
    const column = columnAt(run, at);
    if (column !== checked) checkPlain(schema, familyOf(schema, column.family), 'SetCell');
    checked = column;
    const timestamp = timestampAt(run, at);
    if (timestamp !== undefined) checkGranularity(schema, timestamp);
  }
}

/** Rules of a read-modify-write: their families exist and hold plain cells. */
export function checkRules(schema: TableSchema, rules: readonly ReadModifyWriteRule[]): void {
  for (const { family } of rules) checkPlain(schema, familyOf(schema, family), 'ReadModifyWriteRow');
}

/**
 * The mutations without those that have no effect, which are merges of NULL: the same array if there is none, as nearly
 * always.
 */
export function effectiveMutations<M extends Mutations>(mutations: M): M;
export function effectiveMutations(mutations: Mutations): Mutations {
  if (isCellRun(mutations) || !mutations.some(isMergeOfNull)) return mutations;
  return mutations.filter((mutation) => !isMergeOfNull(mutation));
}

function isMergeOfNull(mutation: Mutation): boolean {
  return mutation.kind === 'mergeToCell' && mutation.state === undefined;
}

const MILLI_MICROS = 1000;

function checkMutation(
  schema: TableSchema,
  family: FamilySchema,
  mutation: Exclude<Mutation, { kind: 'deleteFromRow' }>,
): void {
  switch (mutation.kind) {
    case 'setCell':
      checkPlain(schema, family, 'SetCell');
      if (mutation.timestamp !== undefined) checkGranularity(schema, mutation.timestamp);
      return;
    case 'addToCell':
    case 'mergeToCell':
      checkAggregate(schema, family, mutation);
      return checkGranularity(schema, mutation.timestamp);
    case 'deleteFromColumn':
      if (mutation.range?.start !== undefined) checkGranularity(schema, mutation.range.start);
      if (mutation.range?.end !== undefined) checkGranularity(schema, mutation.range.end);
      return;
    case 'deleteFromFamily':
      return;
  }
}

function familyOf(schema: TableSchema, name: string): FamilySchema {
  const family = familyOfTable(schema, name);
  if (family === undefined)
    throw new BigtableError(Code.NOT_FOUND, `table ${schema.name} has no column family ${quote(name)}`);
  return family;
}

function checkPlain(schema: TableSchema, family: FamilySchema, call: string): void {
  const aggregate = family.valueType?.aggregate;
  if (!aggregate) return;
  throw invalidArgument(
    `column family ${quote(family.name)} of ${schema.name} holds aggregates (${aggregate.kind}), which ${call} cannot change`,
  );
}

function checkAggregate(schema: TableSchema, family: FamilySchema, mutation: AddToCell | MergeToCell): void {
  const aggregate = family.valueType?.aggregate;
  if (!aggregate) {
    const call = mutation.kind === 'addToCell' ? 'AddToCell' : 'MergeToCell';
    throw invalidArgument(
      `column family ${quote(family.name)} of ${schema.name} holds no aggregates, and ${call} is for those`,
    );
  }
  if (mutation.kind === 'addToCell') checkAggregateInput(aggregate.kind, mutation.input, aggregate.input);
  else if (mutation.state !== undefined) checkAggregateState(aggregate.kind, mutation.state, aggregate.input);
}

function checkGranularity(schema: TableSchema, timestamp: Int64): void {
  if (schema.granularity === 'micros') return;
  const aligned = typeof timestamp === 'number' ? timestamp % MILLI_MICROS === 0 : timestamp % 1000n === 0n;
  if (!aligned)
    throw invalidArgument(
      `Timestamp granularity mismatch. Expected a multiple of 1000 (millisecond granularity), but got ${timestamp}`,
    );
}
