/**
 * The schema of a table whose schema file is gone, as far as its files state it: families by the names they are stored
 * under, their locality groups, and whether they hold aggregates. Rules of garbage collection, types, and the table's
 * name are in no SSTable; the report names the guesses.
 */
import {
  DEFAULT_GROUP,
  TOKEN_GROUP,
  EntryKind,
  familyName,
  familyOf,
  type FamilySchema,
  type LocalityGroup,
  type TableSchema,
} from '../model/index.ts';
import type { SsTableLayout } from '../sstable/index.ts';
import { type SsTableComponents, ssTableEntries } from './ss-table.ts';

const INTEGER_BYTES = 8;

/** `layouts`: all files of the table. Returns the schema and the notes for the report. */
export async function rebuildSchema(
  components: SsTableComponents,
  id: string,
  parent: string,
  layouts: readonly SsTableLayout[],
): Promise<{ readonly schema: TableSchema; readonly notes: string[] }> {
  const families = new Map<string, FamilySchema>();
  const groups = new Map<string, LocalityGroup>();
  const nextGenerations = new Map<string, number>();
  const aggregates = await aggregateFamilies(components, layouts);
  const byAge = [...layouts].sort((a, b) => Number(a.properties.createdMicros) - Number(b.properties.createdMicros));
  for (const { properties } of byAge) {
    const { group, lineage } = properties;
    if (group === TOKEN_GROUP) continue;
    if (group !== DEFAULT_GROUP) groups.set(group, {});
    for (const stored of new Set([
      ...(lineage?.families ?? []),
      ...(properties.families ?? []).map(({ family }) => family),
    ])) {
      const name = familyName(stored);
      const generation = Number(stored.slice(name.length + 1));
      if (generation < (families.get(name)?.generation ?? 0)) continue;
      const aggregate = aggregates.get(stored);
      if (generation > 0) nextGenerations.set(name, generation + 1);
      families.set(name, {
        name,
        ...(generation > 0 && { generation }),
        ...(group !== DEFAULT_GROUP && { group }),
        ...(aggregate && {
          valueType: {
            aggregate: aggregate === INTEGER_BYTES ? { kind: 'sum', input: 'int64' } : { kind: 'hll', input: 'bytes' },
          },
        }),
      });
    }
  }
  const schema: TableSchema = {
    name: `${parent}/tables/recovered-${id}`,
    id,
    granularity: 'micros',
    families: Object.fromEntries(families),
    groups: Object.fromEntries(groups),
    deletionProtection: false,
    nextGenerations: Object.fromEntries(nextGenerations),
  };
  const notes = [
    `table ${id} has no schema: it is ${schema.name} now, with the families ${[...families.keys()].sort().join(', ')}, ` +
      'which keep all versions (a table deleted just before comes back so, too)',
  ];
  for (const name of [...aggregates.keys()].map(familyName)) {
    const taken = families.get(name)?.valueType?.aggregate?.kind;
    notes.push(`family ${name} of table ${id} holds aggregates of an unknown kind: ${taken} was assumed`);
  }
  return { schema, notes };
}

/** Stored families that hold merge operands, with the size of one. */
async function aggregateFamilies(
  components: SsTableComponents,
  layouts: readonly SsTableLayout[],
): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const { path, properties } of layouts) {
    if (properties.entries.merge === 0) continue;
    for await (const { kind, column, value } of ssTableEntries(components, path))
      if (kind === EntryKind.merge) found.set(familyOf(column), value.length);
  }
  return found;
}
