/**
 * Changes of a schema as pure functions. A family that is dropped and created again gets the next generation, under
 * which tablets store its cells: so no cell of the old family is ever seen again, without a change of any row.
 */
import { assert, BigtableError, Code, invalidArgument, notFound, ownOf } from '../base/index.ts';
import { DEFAULT_GROUP, familyOfTable, type FamilySchema, type TableSchema } from '../model/index.ts';
import type { FamilyChange, QuotaChange } from '../protocol/index.ts';

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

/** The schema with that quota of the table or of one of its families, or without. NOT_FOUND for a missing family. */
export function withQuota(schema: TableSchema, { family: name, quotaBytes }: QuotaChange): TableSchema {
  if (name === undefined) return limitedTable(schema, quotaBytes);
  const family = familyOfTable(schema, name);
  if (family === undefined) throw notFound(`table ${schema.name} has no column family "${name}"`);
  const families = Object.values(schema.families).map((each) =>
    each === family ? limitedFamily(each, quotaBytes) : each,
  );
  return { ...schema, families: Object.fromEntries(families.map((each) => [each.name, each])) };
}

/** The schema without any quota. */
export function withoutQuotas(schema: TableSchema): TableSchema {
  const families = Object.entries(schema.families).map(([name, family]) => [name, limitedFamily(family, undefined)]);
  return { ...limitedTable(schema, undefined), families: Object.fromEntries(families) };
}

function limitedTable({ quotaBytes: _, ...schema }: TableSchema, quotaBytes: number | undefined): TableSchema {
  return { ...schema, ...(quotaBytes !== undefined && { quotaBytes }) };
}

function limitedFamily({ quotaBytes: _, ...family }: FamilySchema, quotaBytes: number | undefined): FamilySchema {
  return { ...family, ...(quotaBytes !== undefined && { quotaBytes }) };
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
  const { name, generation, group, quotaBytes } = family;
  const updated = newFamily(
    { name, ...(gcRule && { gcRule }), ...(valueType && { valueType }), ...(group !== undefined && { group }) },
    generation,
  );
  return quotaBytes === undefined ? updated : { ...updated, quotaBytes };
}
