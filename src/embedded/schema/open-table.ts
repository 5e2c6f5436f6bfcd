/**
 * The difference between an existing table and the schema that a program requests. Existing parts are never changed:
 * options that contradict them are refused, and options that are left out are not compared
 * (docs/decisions/0028-the-library-explains-itself.md).
 */
import { BigtableError, Code, ownOf } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import {
  DEFAULT_GROUP,
  familyOfTable,
  type FamilySchema,
  type GcRule,
  type GroupLayout,
  type LocalityGroup,
  type TableSchema,
} from '../../model/index.ts';
import type { Service } from '../../service/index.ts';
import type { AskedTable } from './table-options.ts';

/**
 * Another program may create or delete the same things concurrently. More attempts than this point to another cause.
 */
export const MAX_ATTEMPTS = 10;

/** True when another program changed the table since it was read. */
export function isOvertaken(error: unknown): boolean {
  return error instanceof BigtableError && (error.code === Code.ALREADY_EXISTS || error.code === Code.NOT_FOUND);
}

/** One attempt: reads the table, or creates it, and creates its missing families. */
export async function bringTo(service: Service, context: RequestContext, asked: AskedTable): Promise<void> {
  let there: TableSchema;
  try {
    there = await service.getTable(context, asked.table.name);
  } catch (error) {
    if (!(error instanceof BigtableError && error.code === Code.NOT_FOUND)) throw error;
    await service.createTable(context, asked.table);
    return;
  }
  const missing = missingFamilies(there, asked);
  if (missing.length === 0) return;
  await service.modifyFamilies(
    context,
    asked.table.name,
    missing.map((family) => ({ kind: 'create', family })),
  );
}

/**
 * The families to create. FAILED_PRECONDITION if the table contradicts the options; the message names the call that
 * changes it.
 */
export function missingFamilies(table: TableSchema, asked: AskedTable): readonly FamilySchema[] {
  const {
    granularity,
    table: { groups = {} },
  } = asked;
  if (granularity !== undefined && granularity !== table.granularity)
    throw otherwise(table, `has timestamps in ${table.granularity}`, granularity, 'a granularity is fixed at creation');
  for (const [name, group] of Object.entries(groups)) checkGroup(table, name, group);
  const missing: FamilySchema[] = [];
  for (const { schema, saysRule } of asked.families) {
    const group = groupOf(schema.name, groups);
    const there = familyOfTable(table, schema.name);
    if (there === undefined) missing.push(group === undefined ? schema : { ...schema, group });
    else checkFamily(table, there, schema, saysRule);
  }
  for (const [group, { families = [] }] of Object.entries(groups))
    for (const family of families) checkPlace(table, family, group);
  return missing;
}

function checkFamily(table: TableSchema, there: FamilySchema, asked: FamilySchema, saysRule: boolean): void {
  const [kind, askedKind] = [kindOf(there), kindOf(asked)];
  const name = JSON.stringify(there.name);
  const has = `has column family ${name} `;
  if (kind !== askedKind)
    throw otherwise(table, `${has}of ${kind}`, askedKind, "what a family's cells are is fixed when it is created");
  if (saysRule && canonical(there.gcRule) !== canonical(asked.gcRule))
    throw otherwise(
      table,
      `${has}with the GC rule ${ruleText(there.gcRule)}`,
      ruleText(asked.gcRule),
      `setGcRule(${name}, …) changes it`,
    );
}

/** A family that is not there yet is created in its group. */
function checkPlace(table: TableSchema, family: string, asked: string): void {
  const there = familyOfTable(table, family);
  const group = there?.group ?? DEFAULT_GROUP;
  if (there !== undefined && group !== asked)
    throw otherwise(
      table,
      `has column family ${JSON.stringify(family)} in locality group "${group}"`,
      `"${asked}"`,
      'setGroups(…) moves it',
    );
}

/** Every family of a table lies in one group. */
function groupOf(family: string, groups: GroupLayout): string | undefined {
  return Object.entries(groups).find(([, { families }]) => families?.includes(family))?.[0];
}

/** The default options of groups. The size of a block is the server's setting. */
const TUNING = { compression: { kind: 'lz4' }, bloomFilter: 'row', inMemory: false } as const satisfies LocalityGroup;

function checkGroup(table: TableSchema, name: string, { families: _, ...asked }: GroupLayout[string]): void {
  const there = name === DEFAULT_GROUP ? (ownOf(table.groups, name) ?? {}) : ownOf(table.groups, name);
  if (there === undefined)
    throw otherwise(
      table,
      `has no locality group "${name}"`,
      'one',
      'setGroups(…) makes groups of a table that exists',
    );
  const tuning: LocalityGroup = { ...TUNING, ...there };
  for (const [option, value] of Object.entries(asked)) {
    const own: unknown = tuning[option as keyof LocalityGroup];
    if (value !== undefined && !agrees(own, value))
      throw otherwise(
        table,
        `has locality group "${name}" with ${option} ${JSON.stringify(own) ?? 'of the server'}`,
        JSON.stringify(value),
        'setGroups(…) changes it',
      );
  }
}

/** Compares only the given fields. */
function agrees(there: unknown, asked: unknown): boolean {
  if (typeof asked !== 'object' || asked === null || typeof there !== 'object' || there === null)
    return there === asked;
  return Object.entries(asked).every(
    ([field, value]) => value === undefined || (there as Readonly<Record<string, unknown>>)[field] === value,
  );
}

function kindOf({ valueType }: FamilySchema): string {
  return valueType?.aggregate === undefined ? 'plain cells' : `aggregate ${valueType.aggregate.kind}`;
}

function ruleText(rule: GcRule | undefined): string {
  return rule === undefined ? 'never' : JSON.stringify(rule);
}

/** Equal for rules that say the same in another order. */
function canonical(rule: GcRule | undefined): string {
  if (rule === undefined) return 'never';
  if (rule.kind === 'maxVersions') return `versions ${rule.versions}`;
  if (rule.kind === 'maxAge') return `age ${rule.ageMicros}`;
  const parts = [...new Set(rule.rules.map(canonical))].sort();
  return parts.length === 1 ? parts[0]! : `${rule.kind} (${parts.join(', ')})`;
}

function otherwise({ name }: TableSchema, is: string, asked: string, remedy: string): BigtableError {
  return new BigtableError(
    Code.FAILED_PRECONDITION,
    `table ${name} ${is}, and openTable asks for ${asked}: it changes nothing that exists; ${remedy}`,
  );
}
