/**
 * google.bigtable.admin.v2.Table and ColumnFamily to schemas and back.
 *
 * What the API lets a client set on a table and Edubba does not act upon yet (`KEPT`) is kept as serialized fields and
 * returned.
 */
import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import type { Duration } from '@bufbuild/protobuf/wkt';
import { toText, utf8, invalidArgument } from '../../base/index.ts';
import type { ChangeStream, FamilySchema, Granularity, TableSchema } from '../../model/index.ts';
import {
  type ChangeStreamConfig,
  ChangeStreamConfigSchema,
  type ColumnFamily,
  ColumnFamilySchema,
  RestoreInfoSchema,
  RestoreSourceType,
  type Table,
  Table_AutomatedBackupPolicySchema,
  Table_ClusterState_ReplicationState as ReplicationState,
  Table_ClusterStateSchema as ClusterStateSchema,
  Table_TimestampGranularity as TimestampGranularity,
  Table_View as View,
  TableSchema as TableMessageSchema,
  TieredStorageConfigSchema,
} from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { Type_StructSchema } from '../generated/google/bigtable/admin/v2/types_pb.ts';
import { backupInfo, restoredFromOf } from './backup.ts';
import { gcRuleMessage, gcRuleOf } from './gc-rule.ts';
import { valueTypeMessage, valueTypeOf } from './value-type.ts';

export function familyOf(name: string, message: ColumnFamily): FamilySchema {
  const gcRule = gcRuleOf(message.gcRule);
  const valueType = valueTypeOf(message.valueType);
  return { name: utf8(name), ...(gcRule && { gcRule }), ...(valueType && { valueType }) };
}

export function familyMessage(family: FamilySchema): ColumnFamily {
  return create(ColumnFamilySchema, {
    ...(family.gcRule && { gcRule: gcRuleMessage(family.gcRule) }),
    ...(family.valueType && { valueType: valueTypeMessage(family.valueType) }),
  });
}

/** The map of the API, which may have any name in it. */
export function columnFamiliesOf(families: readonly FamilySchema[]): { [name: string]: ColumnFamily } {
  return Object.fromEntries(families.map((family) => [toText(family.name), familyMessage(family)]));
}

export function granularityOf(message: TimestampGranularity): Granularity {
  switch (message) {
    case TimestampGranularity.TIMESTAMP_GRANULARITY_UNSPECIFIED:
    case TimestampGranularity.MILLIS:
      return 'millis';
    case TimestampGranularity.MICROS:
      return 'micros';
    default:
      throw invalidArgument(`granularity ${message} is unknown`, { field: 'table.granularity' });
  }
}

/**
 * Fields of a Table that are kept as they are, also the backup policy, on which the master acts: their name in the API,
 * and how one is read and written.
 */
interface KeptField {
  readonly name: string;
  encode(table: Table): string | undefined;
  decode(table: Table, encoded: string): void;
}

function kept<Desc extends DescMessage>(
  name: string,
  schema: Desc,
  get: (table: Table) => MessageShape<Desc> | undefined,
  set: (table: Table, value: MessageShape<Desc>) => void,
): KeptField {
  return {
    name,
    encode: (table) => {
      const value = get(table);
      return value && Buffer.from(toBinary(schema, value)).toString('base64');
    },
    decode: (table, encoded) => set(table, fromBinary(schema, Buffer.from(encoded, 'base64'))),
  };
}

const KEPT: readonly KeptField[] = [
  kept(
    'automated_backup_policy',
    Table_AutomatedBackupPolicySchema,
    (table) =>
      table.automatedBackupConfig.case === 'automatedBackupPolicy' ? table.automatedBackupConfig.value : undefined,
    (table, value) => {
      table.automatedBackupConfig = { case: 'automatedBackupPolicy', value };
    },
  ),
  kept(
    'tiered_storage_config',
    TieredStorageConfigSchema,
    (table) => table.tieredStorageConfig,
    (table, value) => {
      table.tieredStorageConfig = value;
    },
  ),
  kept(
    'row_key_schema',
    Type_StructSchema,
    (table) => table.rowKeySchema,
    (table, value) => {
      table.rowKeySchema = value;
    },
  ),
];

/** Names of the fields that `extraOf` keeps. */
export const KEPT_FIELDS: readonly string[] = KEPT.map((field) => field.name);

/** The kept fields that are set on the message, by name, base64; undefined where there are none. */
export function extraOf(table: Table): Record<string, string> | undefined {
  const extra: Record<string, string> = {};
  for (const field of KEPT) {
    const value = field.encode(table);
    if (value !== undefined) extra[field.name] = value;
  }
  return Object.keys(extra).length === 0 ? undefined : extra;
}

const DAY_SECONDS = 86_400;

/** INVALID_ARGUMENT where the table wishes for backups that the API does not know. */
export function checkBackupPolicy({ automatedBackupConfig: config }: Table): void {
  if (config.case !== 'automatedBackupPolicy') return;
  const { retentionPeriod, frequency, keepHotDuration, disabled } = config.value;
  const refuse = (name: string, words: string): never => {
    const field = `table.automated_backup_policy.${name}`;
    throw invalidArgument(`${field} must be ${words}`, { field });
  };
  if (disabled && retentionPeriod === undefined) return;
  const retentionSeconds = retentionPeriod === undefined ? 0 : secondsOf(retentionPeriod);
  if (!(retentionSeconds >= 3 * DAY_SECONDS && retentionSeconds <= 90 * DAY_SECONDS))
    refuse('retention_period', 'from 3 to 90 days');
  if (frequency !== undefined && secondsOf(frequency) !== DAY_SECONDS) refuse('frequency', '24 hours');
  if (keepHotDuration === undefined) return;
  const hotSeconds = secondsOf(keepHotDuration);
  if (!(hotSeconds >= DAY_SECONDS && hotSeconds <= 10 * DAY_SECONDS))
    refuse('keep_hot_duration', 'from 24 hours to 10 days');
  if (hotSeconds > retentionSeconds) refuse('keep_hot_duration', 'no longer than the retention_period');
}

function secondsOf({ seconds, nanos }: Duration): number {
  return Number(seconds) + nanos / 1e9;
}

/** Views that show the table's clusters. */
export function showsClusters(view: View): boolean {
  return view === View.REPLICATION_VIEW || view === View.ENCRYPTION_VIEW || view === View.FULL;
}

/** The table as the API shows it in a view. `clusters`: those of its instance, in views that show them. */
export function tableMessage(schema: TableSchema, view: View, clusters: readonly string[] = []): Table {
  const table = create(TableMessageSchema, { name: schema.name });
  if (view === View.NAME_ONLY) return table;
  table.granularity = schema.granularity === 'micros' ? TimestampGranularity.MICROS : TimestampGranularity.MILLIS;
  table.deletionProtection = schema.deletionProtection;
  const state = view === View.ENCRYPTION_VIEW ? {} : { replicationState: ReplicationState.READY };
  if (showsClusters(view))
    table.clusterStates = Object.fromEntries(clusters.map((id) => [id, create(ClusterStateSchema, state)]));
  if (view === View.REPLICATION_VIEW || view === View.ENCRYPTION_VIEW) return table;
  table.columnFamilies = columnFamiliesOf(Object.values(schema.families));
  if (schema.changeStream !== undefined) table.changeStreamConfig = changeStreamMessage(schema.changeStream);
  if (schema.restoredFrom !== undefined)
    table.restoreInfo = create(RestoreInfoSchema, {
      sourceType: RestoreSourceType.BACKUP,
      sourceInfo: { case: 'backupInfo', value: backupInfo(schema.restoredFrom) },
    });
  applyExtra(table, schema.extra ?? {});
  if (table.automatedBackupConfig.case === 'automatedBackupPolicy')
    table.effectiveAutomatedBackupPolicy = table.automatedBackupConfig.value;
  return table;
}

/** Undefined where the message sets none. INVALID_ARGUMENT for one without a retention period. */
export function changeStreamOf(config: ChangeStreamConfig | undefined): ChangeStream | undefined {
  if (config === undefined) return undefined;
  const { retentionPeriod } = config;
  if (retentionPeriod === undefined)
    throw invalidArgument('change_stream_config must have a retention_period', {
      field: 'table.change_stream_config.retention_period',
    });
  return { retentionMicros: Number(retentionPeriod.seconds) * 1e6 + Math.floor(retentionPeriod.nanos / 1000) };
}

export function changeStreamMessage({ retentionMicros }: ChangeStream): ChangeStreamConfig {
  const seconds = Math.floor(retentionMicros / 1e6);
  const nanos = (retentionMicros - seconds * 1e6) * 1000;
  return create(ChangeStreamConfigSchema, { retentionPeriod: { seconds: BigInt(seconds), nanos } });
}

/** Sets the kept fields on the message ('' leaves one unset); returns the names of those given. */
export function applyExtra(table: Table, extra: Readonly<Record<string, string>>): string[] {
  const given = KEPT.filter((field) => extra[field.name] !== undefined);
  for (const field of given) {
    const encoded = extra[field.name];
    if (encoded) field.decode(table, encoded);
  }
  return given.map((field) => field.name);
}

/** A table of the API as a schema; the API does not carry the id, which is left empty. */
export function schemaOf(table: Table): TableSchema {
  const extra = extraOf(table);
  const changeStream = changeStreamOf(table.changeStreamConfig);
  const backup = table.restoreInfo?.sourceInfo.value;
  return {
    name: table.name,
    id: '',
    granularity: granularityOf(table.granularity),
    families: Object.fromEntries(
      Object.entries(table.columnFamilies).map(([name, family]) => [utf8(name), familyOf(name, family)]),
    ),
    deletionProtection: table.deletionProtection,
    ...(changeStream && { changeStream }),
    ...(backup && { restoredFrom: restoredFromOf(backup) }),
    ...(extra && { extra }),
  };
}
