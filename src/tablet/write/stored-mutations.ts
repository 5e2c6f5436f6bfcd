/**
 * Mutations as they are logged and stored: with the names under which families are stored (FamilySchema.generation).
 */
import { assert } from '../../base/index.ts';
import {
  familyOfTable,
  type Mutation,
  mutationList,
  type RowMutations,
  setCell,
  storageFamily,
  type TableSchema,
} from '../../model/index.ts';
import { isRenamed } from '../read/read-families.ts';

/** Returns the same array if no family of the table was ever created a second time, which is nearly always so. */
export function storedMutations(schema: TableSchema, mutations: readonly Mutation[]): readonly Mutation[] {
  if (!isRenamed(schema)) return mutations;
  return mutations.map((mutation) => {
    if (mutation.kind === 'deleteFromRow') return mutation;
    const family = familyOfTable(schema, mutation.family);
    assert(family !== undefined, 'a family that reaches the tablet is in the schema');
    const stored = storageFamily(family.name, family.generation);
    return mutation.kind === 'setCell'
      ? setCell(stored, mutation.qualifier, mutation.timestamp, mutation.value)
      : { ...mutation, family: stored };
  });
}

/** The same for changes of rows. */
export function storedChanges(schema: TableSchema, changes: readonly RowMutations[]): readonly RowMutations[] {
  if (!isRenamed(schema)) return changes;
  return changes.map(({ row, mutations }) => ({ row, mutations: storedMutations(schema, mutationList(mutations)) }));
}
