/**
 * The form of table administration: new tables, changes of families, GC rules, dropped ranges. The master checks them
 * against the existing table (a family to create that exists, an aggregate's type that would change). All throw
 * INVALID_ARGUMENT.
 */
import { invalidArgument, quote, varintLength } from '../base/index.ts';
import type { ChangeStream, FamilySchema, GcRule, Limits, RowRange } from '../model/index.ts';
import { checkGroupLayout } from './check-groups.ts';
import { checkFamilyName, checkRowKey, checkRowRange, checkTableName } from './check-names.ts';
import type { FamilyChange, NewTable, TableChange } from './service.ts';

const MILLI_MICROS = 1000;
const DAY_MICROS = 86_400e6;
/** How long changes of a table may be kept, days. */
const MIN_RETENTION_DAYS = 1;
const MAX_RETENTION_DAYS = 7;
/** Versions are an int32 in the API. */
const MAX_VERSIONS = 2 ** 31 - 1;

export function checkNewTable(table: NewTable, limits: Limits): void {
  checkTableName(table.name, limits);
  if (table.granularity !== 'millis' && table.granularity !== 'micros') {
    throw invalidArgument(`granularity ${JSON.stringify(table.granularity)} must be "millis" or "micros"`);
  }
  const names = new Set<string>();
  for (const family of table.families) {
    checkFamily(family, limits);
    if (names.has(family.name)) throw invalidArgument(`column family ${quote(family.name)} is given twice`);
    names.add(family.name);
  }
  if (table.groups) checkGroupLayout(table.groups, limits);
  checkChangeStream(table.changeStream);
  for (const split of table.splits) checkRowKey(split, limits, 'row to split at');
}

export function checkUpdateTable(table: string, { groups, changeStream }: TableChange, limits: Limits): void {
  checkTableName(table, limits);
  if (groups) checkGroupLayout(groups, limits);
  checkChangeStream(changeStream);
}

function checkChangeStream(stream: ChangeStream | 'none' | undefined): void {
  if (stream === undefined || stream === 'none') return;
  const { retentionMicros } = stream;
  const days = retentionMicros / DAY_MICROS;
  if (!Number.isSafeInteger(retentionMicros) || days < MIN_RETENTION_DAYS || days > MAX_RETENTION_DAYS)
    throw invalidArgument(
      `a change stream keeps changes for ${MIN_RETENTION_DAYS} to ${MAX_RETENTION_DAYS} days, not for ${retentionMicros / 1e6} s`,
    );
}

export function checkModifyFamilies(table: string, changes: readonly FamilyChange[], limits: Limits): void {
  checkTableName(table, limits);
  if (changes.length === 0) throw invalidArgument('a change of families must have at least one modification');
  for (const change of changes) {
    if (change.kind === 'drop') {
      checkFamilyName(change.name, limits);
      continue;
    }
    if (change.kind === 'update' && change.fields.length === 0) {
      throw invalidArgument(`the update of column family ${quote(change.family.name)} names no field to change`);
    }
    checkFamily(change.family, limits);
  }
}

/** DropRowRange: bounds no longer than row keys, the start not above the end. */
export function checkDropRowRange(table: string, range: RowRange, limits: Limits): void {
  checkTableName(table, limits);
  checkRowRange(range, limits);
}

function checkFamily(family: FamilySchema, limits: Limits): void {
  checkFamilyName(family.name, limits);
  if (family.gcRule) checkGcRule(family.gcRule, limits);
}

/**
 * Versions of 1 or more, ages of a millisecond or more, at most gcRuleBytes when serialized as
 * google.bigtable.admin.v2.GcRule.
 */
export function checkGcRule(rule: GcRule, limits: Limits): void {
  const size = checkedSize(rule, limits, 0);
  if (size > limits.gcRuleBytes)
    throw invalidArgument(`the GC rule takes ${size} bytes; the limit is ${limits.gcRuleBytes}`);
}

/** Checks the rule and returns its size as a protobuf message. */
function checkedSize(rule: GcRule, limits: Limits, depth: number): number {
  // a level takes at least two bytes
  if (depth * 2 > limits.gcRuleBytes)
    throw invalidArgument(`the GC rule is nested too deep: it takes more than ${limits.gcRuleBytes} bytes`);
  switch (rule.kind) {
    case 'maxVersions':
      if (!Number.isInteger(rule.versions) || rule.versions < 1 || rule.versions > MAX_VERSIONS) {
        throw invalidArgument(`a GC rule must keep 1 to ${MAX_VERSIONS} versions, not ${rule.versions}`);
      }
      return 1 + varintLength(rule.versions);
    case 'maxAge': {
      if (!Number.isSafeInteger(rule.ageMicros) || rule.ageMicros < MILLI_MICROS) {
        throw invalidArgument(
          `the age of a GC rule must be a millisecond (1000 microseconds) or more, not ${rule.ageMicros} microseconds`,
        );
      }
      const seconds = Math.floor(rule.ageMicros / 1e6);
      const nanos = (rule.ageMicros % 1e6) * 1000;
      return 2 + (seconds > 0 ? 1 + varintLength(seconds) : 0) + (nanos > 0 ? 1 + varintLength(nanos) : 0);
    }
    case 'union':
    case 'intersection': {
      let inner = 0;
      for (const part of rule.rules) {
        const size = checkedSize(part, limits, depth + 1);
        inner += 1 + varintLength(size) + size;
      }
      return 1 + varintLength(inner) + inner;
    }
    default:
      throw invalidArgument(`unknown GC rule ${JSON.stringify((rule as { readonly kind: unknown }).kind)}`);
  }
}
