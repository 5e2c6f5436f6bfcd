/**
 * A table's schema as a file of the lock service, `schemas/<full name of the table>`. The table exists from the instant
 * the file is created to the instant it is removed. Format: docs/formats/metadata.md.
 */
import { assert, CorruptionError } from '../base/index.ts';
import type {
  FamilySchema,
  GcRule,
  GroupCompression,
  LocalityGroup,
  RestoredFrom,
  TableSchema,
  ValueType,
} from '../model/index.ts';
import { encodeDocument, PlainObject } from './plain-json.ts';

const SCHEMA_DIRECTORY = 'schemas/';
/** Deeper rules are corrupt: the API bounds them to some hundred bytes. */
const MAX_RULE_DEPTH = 64;

export function schemaPath(tableName: string): string {
  return SCHEMA_DIRECTORY + tableName;
}

export function encodeSchema(schema: TableSchema): Buffer {
  for (const [name, family] of Object.entries(schema.families)) {
    assert(family.name === name, 'a column family is written under its own name');
  }
  return encodeDocument({ ...schema });
}

/** Checks every field: CorruptionError names the one that is wrong. */
export function decodeSchema(path: string, contents: Uint8Array): TableSchema {
  const object = PlainObject.parse(path, contents);
  const id = object.text('id');
  if (!/^[0-9a-f]{8}$/.test(id)) throw object.wrong('id', 'eight hexadecimal digits', id);
  const families = object.object('families').record((all, name) => readFamily(all.object(name)));
  for (const [name, family] of Object.entries(families)) {
    if (family.name !== name) throw new CorruptionError(path, 0, `family ${family.name} is stored under ${name}`);
  }
  return {
    name: object.text('name'),
    id,
    granularity: object.oneOf('granularity', ['millis', 'micros']),
    families,
    ...(object.has('groups') && { groups: object.object('groups').record((all, name) => readGroup(all.object(name))) }),
    deletionProtection: object.flag('deletionProtection'),
    ...(object.has('changeStream') && {
      changeStream: { retentionMicros: object.object('changeStream').count('retentionMicros') },
    }),
    ...(object.has('quotaBytes') && { quotaBytes: object.count('quotaBytes') }),
    ...(object.has('restoredFrom') && { restoredFrom: readRestoredFrom(object.object('restoredFrom')) }),
    ...(object.has('nextGenerations') && {
      nextGenerations: object.object('nextGenerations').record((all, name) => all.count(name)),
    }),
    ...(object.has('extra') && { extra: object.object('extra').record((all, name) => all.text(name)) }),
  };
}

/** The fields that a backup has, too. */
export function readRestoredFrom(object: PlainObject): RestoredFrom {
  return {
    name: object.text('name'),
    table: object.text('table'),
    ...(object.has('sourceBackup') && { sourceBackup: object.text('sourceBackup') }),
    startMicros: object.count('startMicros'),
    ...(object.has('endMicros') && { endMicros: object.count('endMicros') }),
  };
}

function readFamily(object: PlainObject): FamilySchema {
  return {
    name: object.text('name'),
    ...(object.has('generation') && { generation: object.count('generation') }),
    ...(object.has('gcRule') && { gcRule: readRule(object.object('gcRule'), 0) }),
    ...(object.has('valueType') && { valueType: readValueType(object.object('valueType')) }),
    ...(object.has('group') && { group: object.text('group') }),
    ...(object.has('quotaBytes') && { quotaBytes: object.count('quotaBytes') }),
  };
}

function readGroup(object: PlainObject): LocalityGroup {
  return {
    ...(object.has('blockSizeBytes') && { blockSizeBytes: object.count('blockSizeBytes') }),
    ...(object.has('compression') && { compression: readCompression(object.object('compression')) }),
    ...(object.has('bloomFilter') && { bloomFilter: object.oneOf('bloomFilter', ['none', 'row', 'row-column']) }),
    ...(object.has('inMemory') && { inMemory: object.flag('inMemory') }),
  };
}

function readCompression(object: PlainObject): GroupCompression {
  const kind = object.oneOf('kind', ['none', 'lz4', 'zstd', 'zstd-dict', 'two-pass']);
  return { kind, ...(object.has('level') && { level: object.count('level') }) };
}

function readRule(object: PlainObject, depth: number): GcRule {
  if (depth > MAX_RULE_DEPTH) throw object.wrong('rules', `nested at most ${MAX_RULE_DEPTH} deep`, depth);
  const kind = object.oneOf('kind', ['maxVersions', 'maxAge', 'union', 'intersection']);
  switch (kind) {
    case 'maxVersions':
      return { kind, versions: object.whole('versions') };
    case 'maxAge':
      return { kind, ageMicros: object.whole('ageMicros') };
    default:
      return { kind, rules: object.objects('rules').map((rule) => readRule(rule, depth + 1)) };
  }
}

function readValueType(object: PlainObject): ValueType {
  const aggregate = object.has('aggregate') ? object.object('aggregate') : undefined;
  return {
    ...(aggregate && {
      aggregate: {
        kind: aggregate.oneOf('kind', ['sum', 'min', 'max', 'hll']),
        input: aggregate.oneOf('input', ['int64', 'bytes']),
      },
    }),
    ...(object.has('encoded') && { encoded: object.text('encoded') }),
  };
}
