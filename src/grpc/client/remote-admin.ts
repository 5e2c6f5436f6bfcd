/** The admin half of a service over the Cloud API of any Bigtable server. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { BigtableError, Code, prefixEnd, toBytes, toText } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import { isEmptyRange, type RowRange, type TableSchema } from '../../model/index.ts';
import type {
  AdminService,
  BackupService,
  ExportService,
  ChangeService,
  HotTabletService,
  InstanceService,
  MemoryLayerService,
  FamilyChange,
  NewTable,
  PolicyStore,
  TableChange,
} from '../../service/index.ts';
import type { RpcClient } from '../../wire/index.ts';
import { applyExtra, changeStreamMessage, columnFamiliesOf, familyMessage, schemaOf } from '../convert/table.ts';
import {
  BigtableTableAdmin,
  type ModifyColumnFamiliesRequest_ModificationSchema as ModificationSchema,
} from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import {
  Table_TimestampGranularity as TimestampGranularity,
  Table_View as View,
  TableSchema as TableMessageSchema,
} from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { checkFinished } from './finished.ts';
import { call, RemoteControl } from './remote-control.ts';
import { RemoteBackups } from './remote-backups.ts';
import { RemoteExports } from './remote-exports.ts';
import { RemoteChanges } from './remote-changes.ts';
import { RemoteHotTablets } from './remote-hot-tablets.ts';
import { RemoteInstances } from './remote-instances.ts';
import { RemoteMemoryLayers } from './remote-memory-layers.ts';
import { RemotePolicies } from './remote-policies.ts';

const admin = BigtableTableAdmin.method;

export class RemoteAdmin extends RemoteControl implements AdminService {
  readonly backups: BackupService;
  readonly exports: ExportService;
  readonly changes: ChangeService;
  readonly hotTablets: HotTabletService;
  readonly instances: InstanceService;
  readonly memoryLayers: MemoryLayerService;
  readonly policies: PolicyStore;

  constructor(client: RpcClient) {
    super(client);
    this.backups = new RemoteBackups(client);
    this.exports = new RemoteExports(client);
    this.changes = new RemoteChanges(client);
    this.hotTablets = new RemoteHotTablets(client);
    this.instances = new RemoteInstances(client);
    this.memoryLayers = new RemoteMemoryLayers(client);
    this.policies = new RemotePolicies(client);
  }

  async createTable(context: RequestContext, table: NewTable): Promise<TableSchema> {
    const [parent, tableId] = parts(table.name);
    const message = create(TableMessageSchema, {
      columnFamilies: columnFamiliesOf(table.families),
      granularity: table.granularity === 'micros' ? TimestampGranularity.MICROS : TimestampGranularity.MILLIS,
      deletionProtection: table.deletionProtection,
      ...(table.changeStream && { changeStreamConfig: changeStreamMessage(table.changeStream) }),
    });
    if (table.groups) throw noGroups();
    applyExtra(message, table.extra ?? {});
    const initialSplits = table.splits.map((split) => ({ key: toBytes(split) }));
    return schemaOf(
      await call(this.client, context, admin.createTable, { parent, tableId, table: message, initialSplits }),
    );
  }

  /** Requests the schema of each table, since servers answer a list with names alone. */
  async listTables(context: RequestContext, prefix: string): Promise<readonly TableSchema[]> {
    const tables: TableSchema[] = [];
    for (const name of await this.listTableNames(context, prefix)) {
      try {
        tables.push(await this.getTable(context, name));
      } catch (error) {
        // deleted since it was listed
        if (!(error instanceof BigtableError) || error.code !== Code.NOT_FOUND) throw error;
      }
    }
    return tables;
  }

  /** A server that is not Edubba's lists one instance at a time. */
  async listTableNames(context: RequestContext, prefix: string): Promise<readonly string[]> {
    const names = prefix.includes('/tables/')
      ? await this.#namesOfInstance(context, prefix)
      : await this.tableNames(context, prefix);
    return names.sort();
  }

  async #namesOfInstance(context: RequestContext, prefix: string): Promise<string[]> {
    const [parent] = parts(prefix);
    const names: string[] = [];
    for (let pageToken = ''; ; ) {
      const page = await call(this.client, context, admin.listTables, { parent, view: View.NAME_ONLY, pageToken });
      names.push(...page.tables.map((table) => table.name).filter((name) => name.startsWith(prefix)));
      pageToken = page.nextPageToken;
      if (pageToken === '') return names;
    }
  }

  async getTable(context: RequestContext, name: string): Promise<TableSchema> {
    return schemaOf(await call(this.client, context, admin.getTable, { name, view: View.SCHEMA_VIEW }));
  }

  async updateTable(context: RequestContext, name: string, change: TableChange): Promise<TableSchema> {
    if (change.groups) throw noGroups();
    const table = create(TableMessageSchema, { name, deletionProtection: change.deletionProtection ?? false });
    const paths = applyExtra(table, change.extra ?? {});
    if (change.deletionProtection !== undefined) paths.push('deletion_protection');
    const { changeStream } = change;
    if (changeStream !== undefined) {
      paths.push('change_stream_config');
      if (changeStream !== 'none') table.changeStreamConfig = changeStreamMessage(changeStream);
    }
    const operation = await call(this.client, context, admin.updateTable, { table, updateMask: { paths } });
    checkFinished(operation, name);
    return this.getTable(context, name);
  }

  /** The API does not say whether the table is kept: false. */
  async deleteTable(context: RequestContext, name: string, atOnce?: boolean): Promise<boolean> {
    if (atOnce === true) await this.deleteTableAtOnce(context, name);
    else await call(this.client, context, admin.deleteTable, { name });
    return false;
  }

  async undeleteTable(context: RequestContext, name: string): Promise<TableSchema> {
    checkFinished(await call(this.client, context, admin.undeleteTable, { name }), name);
    return this.getTable(context, name);
  }

  async modifyFamilies(context: RequestContext, name: string, changes: readonly FamilyChange[]): Promise<TableSchema> {
    return schemaOf(
      await call(this.client, context, admin.modifyColumnFamilies, {
        name,
        modifications: changes.map(modificationOf),
      }),
    );
  }

  /** The API drops all rows or those with a prefix: other ranges are INVALID_ARGUMENT. */
  async dropRowRange(context: RequestContext, name: string, range: RowRange): Promise<void> {
    if (isEmptyRange(range)) {
      // nothing to drop, but the table must exist
      await this.getTable(context, name);
      return;
    }
    const all = range.start === '' && range.end === undefined;
    if (!all && (range.start === '' || prefixEnd(range.start) !== range.end)) {
      throw new BigtableError(
        Code.INVALID_ARGUMENT,
        'the Bigtable API drops all rows of a table or all with a prefix, no other range',
      );
    }
    const target = all
      ? ({ case: 'deleteAllDataFromTable', value: true } as const)
      : ({ case: 'rowKeyPrefix', value: toBytes(range.start) } as const);
    await call(this.client, context, admin.dropRowRange, { name, target });
  }

  async generateConsistencyToken(context: RequestContext, name: string): Promise<string> {
    return (await call(this.client, context, admin.generateConsistencyToken, { name })).consistencyToken;
  }

  async checkConsistency(context: RequestContext, name: string, consistencyToken: string): Promise<boolean> {
    return (await call(this.client, context, admin.checkConsistency, { name, consistencyToken })).consistent;
  }
}

function modificationOf(change: FamilyChange): MessageInitShape<typeof ModificationSchema> {
  if (change.kind === 'drop') return { id: toText(change.name), mod: { case: 'drop', value: true } };
  const id = toText(change.family.name);
  const value = familyMessage(change.family);
  if (change.kind === 'create') return { id, mod: { case: 'create', value } };
  const paths = change.fields.map((field) => (field === 'gcRule' ? 'gc_rule' : 'value_type'));
  return { id, mod: { case: 'update', value }, updateMask: { paths } };
}

/** projects/P/instances/I/tables/T -> [projects/P/instances/I, T]. */
function parts(name: string): [string, string] {
  const at = name.lastIndexOf('/tables/');
  if (at < 0)
    throw new BigtableError(
      Code.INVALID_ARGUMENT,
      `invalid table name ${JSON.stringify(name)}: expected projects/P/instances/I/tables/T`,
    );
  return [name.slice(0, at), name.slice(at + '/tables/'.length)];
}

/** The Cloud API cannot express them. */
function noGroups(): BigtableError {
  return new BigtableError(
    Code.UNIMPLEMENTED,
    'locality groups cannot be set over the Cloud API: set them where the directory is open',
  );
}
