/** Column families in the library's words. */
import type { AggregateKind, FamilySchema, GcRule } from '../model/index.ts';
import { invalidArgument } from '../base/index.ts';

export interface FamilyOptions {
  /** Keep the newest n versions of a column. Default: all. */
  readonly maxVersions?: number;
  /** Drop versions older than this. With maxVersions as well, either rule drops a version. */
  readonly maxAgeMs?: number;
  /** Any rule, in place of the two above. */
  readonly gcRule?: GcRule;
  /** Cells are merged and never overwritten: `RowMutation.add`. Fixed at creation. */
  readonly aggregate?: Exclude<AggregateKind, 'hll'>;
}

export function familySchema(name: string, options: FamilyOptions): FamilySchema {
  const gcRule = ruleOf(options);
  return {
    name,
    ...(gcRule === undefined ? {} : { gcRule }),
    ...(options.aggregate === undefined ? {} : { valueType: { aggregate: { kind: options.aggregate, input: 'int64' } } }),
  };
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
