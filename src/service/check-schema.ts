/**
 * What only the schema tells of a write: whether its families exist and take such mutations, and whether its timestamps are
 * multiples of the table's granularity; and the server's time, filled in. For whoever has the schema at hand: the tablet's server.
 *
 * NOT_FOUND: the family is not there. INVALID_ARGUMENT: the family's type or the granularity forbids it.
 */
import { BigtableError, Code, type Int64, invalidArgument, quote } from '../base/index.ts';
import {
  type AddToCell, checkAggregateInput, checkAggregateState, type FamilySchema, type Granularity, type MergeToCell, type Mutation, type ReadModifyWriteRule, type TableSchema,
} from '../model/index.ts';

export function checkMutations(schema: TableSchema, mutations: readonly Mutation[]): void {
  // a batch names few families, over and over
  let family: FamilySchema | undefined;
  for (const mutation of mutations) {
    if (mutation.kind === 'deleteFromRow') continue;
    if (family === undefined || family.name !== mutation.family) family = familyOf(schema, mutation.family);
    checkMutation(schema, family, mutation);
  }
}

/** Rules of a read-modify-write: their families exist and hold plain cells. */
export function checkRules(schema: TableSchema, rules: readonly ReadModifyWriteRule[]): void {
  for (const { family } of rules) checkPlain(schema, familyOf(schema, family), 'ReadModifyWriteRow');
}

/** The mutations with the server's time where a cell has none: the same array where nothing had to be filled in. */
export function resolveTimestamps(mutations: readonly Mutation[], nowMicros: number, granularity: Granularity): readonly Mutation[] {
  let resolved: Mutation[] | undefined;
  for (let i = 0; i < mutations.length; i++) {
    const mutation = mutations[i] as Mutation;
    if (mutation.kind !== 'setCell' || mutation.timestamp !== undefined) continue;
    resolved ??= mutations.slice();
    resolved[i] = { ...mutation, timestamp: serverTime(nowMicros, granularity) };
  }
  return resolved ?? mutations;
}

/** `nowMicros` as a cell of the table may carry it: rounded down to the granularity. */
export function serverTime(nowMicros: number, granularity: Granularity): number {
  return granularity === 'micros' ? nowMicros : Math.floor(nowMicros / MILLI_MICROS) * MILLI_MICROS;
}

const MILLI_MICROS = 1000;

function checkMutation(schema: TableSchema, family: FamilySchema, mutation: Exclude<Mutation, { kind: 'deleteFromRow' }>): void {
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
  // "constructor" is a good name for a family and no sign that there is one
  const family = Object.hasOwn(schema.families, name) ? schema.families[name] : undefined;
  if (family === undefined) throw new BigtableError(Code.NOT_FOUND, `table ${schema.name} has no column family ${quote(name)}`);
  return family;
}

function checkPlain(schema: TableSchema, family: FamilySchema, call: string): void {
  const aggregate = family.valueType?.aggregate;
  if (!aggregate) return;
  throw invalidArgument(`column family ${quote(family.name)} of ${schema.name} holds aggregates (${aggregate.kind}), which ${call} cannot change`);
}

function checkAggregate(schema: TableSchema, family: FamilySchema, mutation: AddToCell | MergeToCell): void {
  const aggregate = family.valueType?.aggregate;
  if (!aggregate) {
    const call = mutation.kind === 'addToCell' ? 'AddToCell' : 'MergeToCell';
    throw invalidArgument(`column family ${quote(family.name)} of ${schema.name} holds no aggregates, and ${call} is for those`);
  }
  if (mutation.kind === 'addToCell') checkAggregateInput(aggregate.kind, mutation.input, aggregate.input);
  else checkAggregateState(aggregate.kind, mutation.state, aggregate.input);
}

function checkGranularity(schema: TableSchema, timestamp: Int64): void {
  if (schema.granularity === 'micros') return;
  const aligned = typeof timestamp === 'number' ? timestamp % MILLI_MICROS === 0 : timestamp % 1000n === 0n;
  if (!aligned) throw invalidArgument(`Timestamp granularity mismatch. Expected a multiple of 1000 (millisecond granularity), but got ${timestamp}`);
}
