/**
 * A table's locality groups as a pure function of its schema and the requested groups. Tablets use the new schema
 * immediately; compactions bring their files over.
 */
import { assert, notFound } from '../base/index.ts';
import {
  DEFAULT_GROUP,
  familyOfTable,
  type FamilySchema,
  type GroupLayout,
  type LocalityGroup,
  type TableSchema,
} from '../model/index.ts';

/**
 * The schema with these groups in place of its former ones; families that no group names lie in `default`. NOT_FOUND
 * for a missing family.
 */
export function withGroups(schema: TableSchema, layout: GroupLayout): TableSchema {
  const groupOf = new Map<string, string>();
  const groups = new Map<string, LocalityGroup>();
  for (const [name, { families = [], ...tuning }] of Object.entries(layout)) {
    groups.set(name, tuning);
    for (const family of families) {
      if (familyOfTable(schema, family) === undefined)
        throw notFound(`locality group "${name}": table ${schema.name} has no column family "${family}"`);
      groupOf.set(family, name);
    }
  }
  const families = Object.values(schema.families).map(({ group: _, ...family }): FamilySchema => {
    const group = groupOf.get(family.name) ?? DEFAULT_GROUP;
    return group === DEFAULT_GROUP ? family : { ...family, group };
  });
  assert(families.length === Object.keys(schema.families).length, 'new locality groups keep every column family');
  assert(
    families.every(({ group }) => group === undefined || groups.has(group)),
    'a column family lies in an existing group',
  );
  const { groups: _, ...rest } = schema;
  return {
    ...rest,
    families: Object.fromEntries(families.map((family) => [family.name, family])),
    ...(groups.size > 0 && { groups: Object.fromEntries(groups) }),
  };
}
