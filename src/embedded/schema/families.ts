/** Column families in the library's words. */
import {
  checkOptions,
  describeValue,
  invalidArgument,
  isObjectOfNames,
  type OptionTable,
  ownOf,
} from '../../base/index.ts';
import {
  type AggregateKind,
  DEFAULT_GROUP,
  type FamilySchema,
  type GcRule,
  type GroupLayout as ModelLayout,
  LIMITS,
} from '../../model/index.ts';
import { checkGcRule } from '../../service/index.ts';
import { checkedLayout, type GroupLayout, layoutOf } from './groups.ts';
import { listOf, numberOf, textOf } from '../values/input.ts';

export interface FamilyOptions {
  /** Keep the newest n versions of a column. Default: all. */
  readonly maxVersions?: number;
  /** Drop versions older than this. With maxVersions as well, either rule drops a version. */
  readonly maxAgeMs?: number;
  /** Any rule, in place of the two above; `never` says that all versions are kept, as they are without any rule. */
  readonly gcRule?: GcRule | 'never';
  /**
   * Cells are merged and never overwritten: `RowMutation.add`. `sum`, `min` and `max` of int64; `hll` counts distinct
   * texts or bytes, and a read answers its sketch (docs/formats/aggregates.md). Fixed at creation.
   */
  readonly aggregate?: AggregateKind;
  /** The locality group it lies in, one that the table has. Default: `default`. */
  readonly group?: string;
}

const FAMILY = {
  maxVersions: 'bound',
  maxAgeMs: 'bound',
  gcRule: 'bound',
  aggregate: 'bound',
  group: 'free',
} satisfies OptionTable<FamilyOptions>;
const AGGREGATES: readonly AggregateKind[] = ['sum', 'min', 'max', 'hll'];

/** A family as a program asks for it. */
export interface AskedFamily {
  readonly schema: FamilySchema;
  /** True when a rule is given. Otherwise any existing rule is accepted. */
  readonly saysRule: boolean;
}

/** The families in the order given, without their groups. INVALID_ARGUMENT where they are not options by name. */
export function askedFamilies(families: Readonly<Record<string, FamilyOptions>>): AskedFamily[] {
  if (!isObjectOfNames(families)) {
    throw invalidArgument(
      'families must be an object with the options of each family by its name, such as { f: {} }, ' +
        `not ${describeValue(families)}`,
    );
  }
  return Object.entries(families).map(([name, options]) => {
    const { group: _group, ...schema } = familySchema(name, options);
    return { schema, saysRule: 'gcRule' in options || 'maxVersions' in options || 'maxAgeMs' in options };
  });
}

export function familySchema(name: string, options: FamilyOptions): FamilySchema {
  const what = `family "${name}"`;
  checkOptions(options, FAMILY, what);
  const { group, aggregate } = options;
  if (aggregate !== undefined && !AGGREGATES.includes(aggregate)) {
    throw invalidArgument(
      `${what}: aggregate must be one of ${AGGREGATES.join(', ')}, not ${describeValue(aggregate)}`,
    );
  }
  if (group !== undefined && group !== null) textOf(group, `${what}: group`);
  const gcRule = ruleOf(options, what);
  if (gcRule !== undefined) checkGcRule(gcRule, LIMITS.default);
  return {
    name,
    ...(gcRule === undefined ? {} : { gcRule }),
    ...(group === undefined ? {} : { group }),
    ...(aggregate === undefined
      ? {}
      : { valueType: { aggregate: { kind: aggregate, input: aggregate === 'hll' ? 'bytes' : 'int64' } } }),
  };
}

/** The groups of a new table, whose families may be named in the groups, name their group themselves, or both alike. */
export function groupsOfTable(
  families: Readonly<Record<string, FamilyOptions>>,
  groups: GroupLayout | undefined,
): ModelLayout | undefined {
  const named = Object.entries(families).flatMap(([family, { group }]) =>
    group === undefined ? [] : [{ family, group }],
  );
  const asked = groups === undefined ? undefined : layoutOf(groups);
  if (named.length === 0) return asked && checkedLayout(asked);
  const layout = new Map(Object.entries(asked ?? {}));
  for (const { family, group } of named) {
    const settings = layout.get(group);
    if (settings === undefined && group !== DEFAULT_GROUP)
      throw invalidArgument(
        `column family "${family}" names locality group "${group}", which is not among the table's groups`,
      );
    layout.set(group, { ...settings, families: [...new Set([...(settings?.families ?? []), family])] });
  }
  return checkedLayout(Object.fromEntries(layout));
}

function ruleOf({ maxVersions, maxAgeMs, gcRule }: FamilyOptions, what: string): GcRule | undefined {
  if (gcRule !== undefined) {
    if (maxVersions !== undefined || maxAgeMs !== undefined)
      throw invalidArgument(`${what}: give either gcRule, or maxVersions and maxAgeMs`);
    return gcRuleOf(gcRule, `${what}: gcRule`);
  }
  const rules: GcRule[] = [];
  if (maxVersions !== undefined)
    rules.push({ kind: 'maxVersions', versions: numberOf(maxVersions, `${what}: maxVersions`) });
  if (maxAgeMs !== undefined) rules.push({ kind: 'maxAge', ageMicros: numberOf(maxAgeMs, `${what}: maxAgeMs`) * 1000 });
  return rules.length > 1 ? { kind: 'union', rules } : rules[0];
}

const RULES: Readonly<Record<GcRule['kind'], Readonly<Record<string, 'bound'>>>> = {
  maxVersions: { kind: 'bound', versions: 'bound' },
  maxAge: { kind: 'bound', ageMicros: 'bound' },
  union: { kind: 'bound', rules: 'bound' },
  intersection: { kind: 'bound', rules: 'bound' },
};

/** A rule takes two bytes at the least. */
const MAX_RULES = LIMITS.default.gcRuleBytes / 2;

/** The rule, undefined for `never`. INVALID_ARGUMENT if it is malformed; the service checks its numbers. */
export function gcRuleOf(rule: GcRule | 'never', what: string): GcRule | undefined {
  if (rule === 'never') return undefined;
  let count = 0;
  const check = (part: GcRule, where: string): void => {
    if (++count > MAX_RULES)
      throw invalidArgument(
        `${what} has more than ${MAX_RULES} rules, and takes more than ${LIMITS.default.gcRuleBytes} bytes`,
      );
    const kinds = Object.keys(RULES).join(', ');
    if (!isObjectOfNames(part))
      throw invalidArgument(
        `${where} must be ${part === rule ? "'never' or " : ''}an object whose kind is one of ${kinds}, ` +
          `not ${describeValue(part)}`,
      );
    const fields = typeof part.kind === 'string' ? ownOf(RULES, part.kind) : undefined;
    if (fields === undefined)
      throw invalidArgument(`${where}: unknown kind of rule ${describeValue(part.kind)}; known: ${kinds}`);
    checkOptions(part, fields, where, 'field');
    if (part.kind === 'maxVersions') numberOf(part.versions, `${where}.versions`);
    if (part.kind === 'maxAge') numberOf(part.ageMicros, `${where}.ageMicros`);
    if (part.kind !== 'union' && part.kind !== 'intersection') return;
    const rules = listOf(part.rules, `${where}.rules`);
    if (rules.length === 0) throw invalidArgument(`${where}.rules must not be empty`);
    rules.forEach((inner, i) => check(inner, `${where}.rules[${i}]`));
  };
  check(rule, what);
  checkGcRule(rule, LIMITS.default);
  return rule;
}
