/** Column families in the library's words. */
import { invalidArgument } from '../base/index.ts';
import { type AggregateKind, DEFAULT_GROUP, type FamilySchema, type GcRule, type GroupLayout } from '../model/index.ts';

export interface FamilyOptions {
  /** Keep the newest n versions of a column. Default: all. */
  readonly maxVersions?: number;
  /** Drop versions older than this. With maxVersions as well, either rule drops a version. */
  readonly maxAgeMs?: number;
  /** Any rule, in place of the two above. */
  readonly gcRule?: GcRule;
  /**
   * Cells are merged and never overwritten: `RowMutation.add`. `sum`, `min` and `max` of int64; `hll` counts distinct texts or bytes, and a read answers
   * its sketch (docs/formats/aggregates.md). Fixed at creation.
   */
  readonly aggregate?: AggregateKind;
  /** The locality group it lies in, one that the table has. Default: `default`. */
  readonly group?: string;
}

export function familySchema(name: string, options: FamilyOptions): FamilySchema {
  const gcRule = ruleOf(options);
  return {
    name,
    ...(gcRule === undefined ? {} : { gcRule }),
    ...(options.group === undefined ? {} : { group: options.group }),
    ...(options.aggregate === undefined ? {} : { valueType: { aggregate: { kind: options.aggregate, input: options.aggregate === 'hll' ? 'bytes' : 'int64' } } }),
  };
}

/** The groups of a new table, whose families may be named in the groups, name their group themselves, or both alike. */
export function groupsOfTable(families: Readonly<Record<string, FamilyOptions>>, groups: GroupLayout | undefined): GroupLayout | undefined {
  const named = Object.entries(families).flatMap(([family, { group }]) => (group === undefined ? [] : [{ family, group }]));
  if (named.length === 0) return groups;
  const layout = new Map(Object.entries(groups ?? {}));
  for (const { family, group } of named) {
    const settings = layout.get(group);
    if (settings === undefined && group !== DEFAULT_GROUP) throw invalidArgument(`column family "${family}" names locality group "${group}", which is not among the table's groups`);
    layout.set(group, { ...settings, families: [...new Set([...(settings?.families ?? []), family])] });
  }
  return Object.fromEntries(layout);
}

function ruleOf({ maxVersions, maxAgeMs, gcRule }: FamilyOptions): GcRule | undefined {
  if (gcRule !== undefined) {
    if (maxVersions !== undefined || maxAgeMs !== undefined) throw invalidArgument('give either gcRule, or maxVersions and maxAgeMs');
    return gcRule;
  }
  const rules: GcRule[] = [];
  if (maxVersions !== undefined) rules.push({ kind: 'maxVersions', versions: maxVersions });
  if (maxAgeMs !== undefined) rules.push({ kind: 'maxAge', ageMicros: maxAgeMs * 1000 });
  return rules.length > 1 ? { kind: 'union', rules } : rules[0];
}
