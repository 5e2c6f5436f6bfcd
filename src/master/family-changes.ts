/**
 * Changes of a schema as pure functions. A family that is dropped and created again gets the next generation, under
 * which tablets store its cells: so no cell of the old family is ever seen again, without a change of any row.
 */
import { assert, BigtableError, Code, invalidArgument, notFound, ownOf } from '../base/index.ts';
import { DEFAULT_GROUP, type FamilySchema, type TableSchema } from '../model/index.ts';
import type { FamilyChange } from '../protocol/index.ts';

/**
 * All changes in order, or an error: ALREADY_EXISTS, NOT_FOUND, INVALID_ARGUMENT, FAILED_PRECONDITION (a protected
 * table loses no family).
 */
export function changeFamilies(schema: TableSchema, changes: readonly FamilyChange[]): TableSchema {
  const families = new Map(Object.entries(schema.families));
  const generations = new Map(Object.entries(schema.nextGenerations ?? {}));
  for (const change of changes) {
    const name = change.kind === 'drop' ? change.name : change.family.name;
    const family = families.get(name);
    if (change.kind === 'create') {
      if (family)
        throw new BigtableError(Code.ALREADY_EXISTS, `table ${schema.name} has a column family "${name}" already`);
      const { group } = change.family;
      if (group !== undefined && group !== DEFAULT_GROUP && ownOf(schema.groups, group) === undefined)
        throw notFound(`table ${schema.name} has no locality group "${group}"`);
      families.set(name, newFamily(change.family, generations.get(name)));
      continue;
    }
    if (!family) throw notFound(`table ${schema.name} has no column family "${name}"`);
    if (change.kind === 'update') {
      families.set(name, updatedFamily(family, change.family, change.fields));
    } else {
      if (schema.deletionProtection) throw protectedTable(schema.name, `column family "${name}" cannot be dropped`);
      families.delete(name);
      const next = (family.generation ?? 0) + 1;
      assert(next > (generations.get(name) ?? 0), 'the generation of a column family is new');
      generations.set(name, next);
    }
  }
  return {
    ...schema,
    families: Object.fromEntries(families),
    ...(generations.size > 0 && { nextGenerations: Object.fromEntries(generations) }),
  };
}

export function protectedTable(name: string, what: string): BigtableError {
  return new BigtableError(Code.FAILED_PRECONDITION, `table ${name} is protected against deletion: ${what}`);
}

function newFamily({ name, gcRule, valueType, group }: FamilySchema, generation: number | undefined): FamilySchema {
  return {
    name,
    ...(generation !== undefined && { generation }),
    ...(gcRule && { gcRule }),
    ...(valueType && { valueType }),
    ...(group !== undefined && { group }),
  };
}

function updatedFamily(
  family: FamilySchema,
  change: FamilySchema,
  fields: readonly ('gcRule' | 'valueType')[],
): FamilySchema {
  const gcRule = fields.includes('gcRule') ? change.gcRule : family.gcRule;
  const valueType = fields.includes('valueType') ? change.valueType : family.valueType;
  const [before, after] = [family.valueType?.aggregate, valueType?.aggregate];
  if (before?.kind !== after?.kind || before?.input !== after?.input) {
    throw invalidArgument(
      `Immutable fields 'value_type.aggregate_type.*' cannot be updated: column family "${family.name}" aggregates ${before?.kind ?? 'nothing'} for good`,
    );
  }
  return newFamily(
    {
      name: family.name,
      ...(gcRule && { gcRule }),
      ...(valueType && { valueType }),
      ...(family.group !== undefined && { group: family.group }),
    },
    family.generation,
  );
}
