/**
 * A service as callers with rights have it: each call is refused, narrowed or passed on, by the policies of what it
 * names (docs/decisions/0100-rights.md). It stands between a front door and its database, so that no call passes it by.
 */
import type { BigtableError, ByteString } from '../base/index.ts';
import type { Clock, Logger, RequestContext } from '../env/index.ts';
import type {
  Cell,
  DeletedTable,
  FamilyUsage,
  ReadBatch,
  ReadModifyWriteRule,
  RowMutations,
  RowRange,
  TableSchema,
  TableUsage,
  TabletHistory,
  TabletStatistics,
} from '../model/index.ts';
import {
  type AppProfileRules,
  type AuthorizedViewSource,
  type BackupService,
  type ChangeService,
  checkMember,
  type CheckAndMutateRequest,
  type CompactionProgress,
  type FamilyChange,
  type HotTabletService,
  type InstanceService,
  type KeySample,
  type MemoryLayerService,
  type NewTable,
  type OperationStore,
  parseResourceName,
  type PolicySource,
  type PolicyStore,
  type QuotaChange,
  type RawCallPasser,
  type ExportService,
  type ReadRequest,
  type ResourceStore,
  type Service,
  type TableChange,
} from '../service/index.ts';
import { Audit, isRefusal } from './audit.ts';
import { Gate } from './gate.ts';
import { GuardedBackups } from './guarded-backups.ts';
import { GuardedChanges } from './guarded-changes.ts';
import { GuardedExports } from './guarded-exports.ts';
import { GuardedHotTablets } from './guarded-hot-tablets.ts';
import { GuardedInstances } from './guarded-instances.ts';
import { GuardedMemoryLayers } from './guarded-memory-layers.ts';
import { GuardedOperations } from './guarded-operations.ts';
import { GuardedPasser } from './guarded-passer.ts';
import { GuardedPolicies } from './guarded-policies.ts';
import { GuardedResources } from './guarded-resources.ts';
import { coversFamily, denied, Rights } from './rights.ts';
import { RowGuard, type UnreadableFamilies } from './row-guard.ts';

export interface GuardOptions {
  readonly service: Service;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Members who may do everything, as in a policy. Without any, what has no policy is everyone's. */
  readonly owners?: readonly string[] | undefined;
  /** Default: refuse. */
  readonly unreadableFamilies?: UnreadableFamilies | undefined;
}

/**
 * INVALID_ARGUMENT for an owner that is no member. Undefined where the service has no policies: then it has no rights
 * that could be checked.
 */
export function guardOf(options: GuardOptions): GuardedService | undefined {
  const { policySource } = options.service;
  for (const owner of options.owners ?? []) checkMember(owner);
  return policySource && new GuardedService(options, policySource);
}

export class GuardedService implements Service {
  readonly operations: OperationStore | undefined;
  readonly backups: BackupService | undefined;
  readonly exports: ExportService | undefined;
  readonly changes: ChangeService | undefined;
  readonly instances: InstanceService | undefined;
  readonly hotTablets: HotTabletService | undefined;
  readonly memoryLayers: MemoryLayerService | undefined;
  readonly resources: ResourceStore | undefined;
  readonly authorizedViews: AuthorizedViewSource | undefined;
  readonly appProfiles: AppProfileRules | undefined;
  readonly policies: PolicyStore | undefined;
  readonly policySource: PolicySource;
  readonly #service: Service;
  readonly #rights: Rights;
  readonly #gate: Gate;
  readonly #rows: RowGuard;
  readonly #audit: Audit;

  constructor(options: GuardOptions, source: PolicySource) {
    const { service, clock, logger, owners = [], unreadableFamilies = 'refuse' } = options;
    this.#service = service;
    const rights = new Rights(source, owners);
    this.#rights = rights;
    this.#audit = new Audit(logger, clock);
    this.#rows = new RowGuard({ service, rights, clock, unreadableFamilies });
    this.#gate = new Gate(rights, this.#audit);
    this.policySource = source;
    this.authorizedViews = service.authorizedViews;
    this.appProfiles = service.appProfiles;
    this.operations = service.operations && new GuardedOperations(service.operations, rights);
    this.backups = service.backups && new GuardedBackups(service.backups, this.#gate);
    this.exports = service.exports && new GuardedExports(service.exports, this.#gate);
    this.changes = service.changes && new GuardedChanges(service.changes, this.#gate);
    this.instances = service.instances && new GuardedInstances(service.instances, this.#gate);
    this.hotTablets = service.hotTablets && new GuardedHotTablets(service.hotTablets, this.#gate);
    this.memoryLayers = service.memoryLayers && new GuardedMemoryLayers(service.memoryLayers, this.#gate);
    this.resources = service.resources && new GuardedResources(service.resources, this.#gate);
    this.policies = service.policies && new GuardedPolicies(service.policies, this.#gate);
  }

  /** A passer that passes on the calls of callers with rights on all families; the others are decoded here. */
  passerOf(passer: RawCallPasser): RawCallPasser {
    return new GuardedPasser(passer, this.#rows);
  }

  mutateRow(context: RequestContext, table: string, mutations: RowMutations): Promise<void> {
    if (this.#rows.hasAll(context, 'write', table)) return this.#service.mutateRow(context, table, mutations);
    return this.#noted(context, 'MutateRow', table, this.#rows.mutateRow(context, table, mutations));
  }

  mutateRows(
    context: RequestContext,
    table: string,
    entries: readonly RowMutations[],
  ): Promise<readonly (BigtableError | undefined)[]> {
    if (this.#rows.hasAll(context, 'write', table)) return this.#service.mutateRows(context, table, entries);
    return this.#rows.mutateRows(context, table, entries).then((outcomes) => {
      if (outcomes.some(isRefusal)) this.#audit.refusal(context, 'MutateRows', table);
      return outcomes;
    });
  }

  readRows(context: RequestContext, request: ReadRequest): AsyncIterable<ReadBatch> {
    if (this.#rows.hasAll(context, 'read', request.table)) return this.#service.readRows(context, request);
    return this.#notedRead(context, request);
  }

  sampleRowKeys(context: RequestContext, table: string): Promise<readonly KeySample[]> {
    return this.#noted(context, 'SampleRowKeys', table, this.#rows.sampleRowKeys(context, table));
  }

  checkAndMutateRow(context: RequestContext, request: CheckAndMutateRequest): Promise<boolean> {
    const { table } = request;
    if (this.#rows.hasAll(context, 'read', table) && this.#rows.hasAll(context, 'write', table))
      return this.#service.checkAndMutateRow(context, request);
    return this.#noted(context, 'CheckAndMutateRow', table, this.#rows.checkAndMutateRow(context, request));
  }

  readModifyWriteRow(
    context: RequestContext,
    table: string,
    row: ByteString,
    rules: readonly ReadModifyWriteRule[],
    maxAnswerBytes?: number,
  ): Promise<readonly Cell[]> {
    if (this.#rows.hasAll(context, 'readModifyWrite', table))
      return this.#service.readModifyWriteRow(context, table, row, rules, maxAnswerBytes);
    const call = this.#rows.readModifyWriteRow(context, table, row, rules, maxAnswerBytes);
    return this.#noted(context, 'ReadModifyWriteRow', table, call);
  }

  createTable(context: RequestContext, table: NewTable): Promise<TableSchema> {
    return this.#gate.change(
      context,
      'CreateTable',
      'bigtable.tables.create',
      parseResourceName(table.name)?.instance ?? '',
      () => this.#service.createTable(context, table),
    );
  }

  /** Those that the caller may see. PERMISSION_DENIED where the instance is closed to it, and none is seen. */
  async listTables(context: RequestContext, prefix: string): Promise<readonly TableSchema[]> {
    const all = await this.#service.listTables(context, prefix);
    const seen = all.flatMap((schema) => this.#seen(context, schema) ?? []);
    if (seen.length === 0) this.#checkList(context, prefix);
    return seen;
  }

  async listTableNames(context: RequestContext, prefix: string): Promise<readonly string[]> {
    if (this.#rights.isOpen) return this.#service.listTableNames(context, prefix);
    return (await this.listTables(context, prefix)).map(({ name }) => name);
  }

  /** To a caller who may see the table by rights on families alone, with these. */
  async getTable(context: RequestContext, name: string): Promise<TableSchema> {
    const schema = await this.#service.getTable(context, name).catch((thrown: unknown) => {
      // what is missing is nobody's: only who may see the table may know that
      this.#gate.check(context, 'GetTable', 'bigtable.tables.get', name);
      throw thrown;
    });
    const seen = this.#seen(context, schema);
    if (seen === undefined) this.#gate.check(context, 'GetTable', 'bigtable.tables.get', name);
    return seen ?? schema;
  }

  updateTable(context: RequestContext, name: string, change: TableChange): Promise<TableSchema> {
    return this.#gate.change(context, 'UpdateTable', 'bigtable.tables.update', name, () =>
      this.#service.updateTable(context, name, change),
    );
  }

  /** A family with a policy that keeps the caller out is not deleted with its table. */
  deleteTable(context: RequestContext, name: string, atOnce?: boolean): Promise<boolean> {
    return this.#gate.change(context, 'DeleteTable', 'bigtable.tables.delete', name, () => {
      const { kind, families } = this.#rights.onFamilies(context.principal, 'admin', name, '');
      if (kind === 'allBut')
        throw denied(context.principal, 'bigtable.tables.update', `${name}/columnFamilies/${[...families].join(', ')}`);
      return this.#service.deleteTable(context, name, atOnce);
    });
  }

  /** The policies of the table are in force again before it is; until then the instance's say who may restore it. */
  undeleteTable(context: RequestContext, name: string): Promise<TableSchema> {
    return this.#gate.change(context, 'UndeleteTable', 'bigtable.tables.undelete', name, () =>
      this.#service.undeleteTable(context, name),
    );
  }

  /** Those that the caller could see if they were there. */
  async listDeletedTables(context: RequestContext, prefix: string): Promise<readonly DeletedTable[]> {
    const all = await this.#service.listDeletedTables(context, prefix);
    const seen = all.filter(({ name }) => this.#rights.allows(context.principal, 'bigtable.tables.get', name));
    if (seen.length === 0) this.#checkList(context, prefix);
    return seen;
  }

  /** Who may administer a family may change and drop it; new ones are the table's matter. */
  modifyFamilies(context: RequestContext, name: string, changes: readonly FamilyChange[]): Promise<TableSchema> {
    return this.#audit.change(context, 'ModifyColumnFamilies', name, async () => {
      const rights = this.#rights.onFamilies(context.principal, 'admin', name, '');
      if (changes.length === 0) this.#rights.check(context, 'bigtable.tables.update', name);
      for (const change of changes) {
        const family = change.kind === 'drop' ? change.name : change.family.name;
        if (change.kind === 'create') this.#rights.check(context, 'bigtable.tables.update', name);
        else if (!coversFamily(rights, family))
          throw denied(context.principal, 'bigtable.tables.update', `${name}/columnFamilies/${family}`);
      }
      return this.#service.modifyFamilies(context, name, changes);
    });
  }

  dropRowRange(context: RequestContext, name: string, range: RowRange): Promise<void> {
    return this.#gate.change(context, 'DropRowRange', 'bigtable.tables.mutateRows', name, () => {
      if (!this.#rows.hasAll(context, 'write', name))
        throw denied(context.principal, 'bigtable.tables.mutateRows', name);
      return this.#service.dropRowRange(context, name, range);
    });
  }

  async generateConsistencyToken(context: RequestContext, name: string): Promise<string> {
    this.#gate.check(context, 'GenerateConsistencyToken', 'bigtable.tables.generateConsistencyToken', name);
    return this.#service.generateConsistencyToken(context, name);
  }

  async checkConsistency(context: RequestContext, name: string, token: string): Promise<boolean> {
    this.#gate.check(context, 'CheckConsistency', 'bigtable.tables.checkConsistency', name);
    return this.#service.checkConsistency(context, name, token);
  }

  async *compactTables(context: RequestContext, table?: string): AsyncGenerator<CompactionProgress, void> {
    if (table === undefined) this.#gate.checkOperator(context, 'CompactTables');
    else this.#gate.check(context, 'CompactTables', 'bigtable.tables.update', table);
    yield* this.#service.compactTables(context, table);
  }

  async flush(context: RequestContext): Promise<void> {
    this.#gate.checkOperator(context, 'Flush');
    return this.#service.flush(context);
  }

  splitTablets(context: RequestContext, table: string, row?: ByteString): Promise<void> {
    return this.#gate.change(context, 'SplitTablets', 'bigtable.tables.update', table, () =>
      this.#service.splitTablets(context, table, row),
    );
  }

  mergeTablets(context: RequestContext, table: string, row: ByteString): Promise<void> {
    return this.#gate.change(context, 'MergeTablets', 'bigtable.tables.update', table, () =>
      this.#service.mergeTablets(context, table, row),
    );
  }

  /** Tablets begin and end at keys of rows: who may sample these may see them. */
  async listTablets(context: RequestContext, table: string): Promise<readonly TabletStatistics[]> {
    this.#checkKeys(context, 'ListTablets', table);
    return this.#service.listTablets(context, table);
  }

  async *listTabletEvents(context: RequestContext, table: string): AsyncGenerator<TabletHistory, void> {
    this.#checkKeys(context, 'ListTabletEvents', table);
    yield* this.#service.listTabletEvents(context, table);
  }

  async familyUsage(context: RequestContext, table: string): Promise<readonly FamilyUsage[]> {
    const { families } = await this.getTable(context, table);
    const usage = await this.#service.familyUsage(context, table);
    return this.#rights.isOpen ? usage : usage.filter(({ family }) => Object.hasOwn(families, family));
  }

  /** Sizes and counts tell something of the data: of the families that the caller may read or administer. */
  async tableUsage(context: RequestContext, table: string): Promise<TableUsage> {
    await this.getTable(context, table);
    const usage = await this.#service.tableUsage(context, table);
    const rights = (['read', 'admin'] as const).map((right) =>
      this.#rights.onFamilies(context.principal, right, table, ''),
    );
    if (rights.some(({ kind }) => kind === 'all')) return usage;
    const families = usage.families.filter(({ family }) => rights.some((each) => coversFamily(each, family)));
    if (families.length === 0) this.#gate.refuse(context, 'GetTableUsage', 'bigtable.tables.readRows', table);
    return { families };
  }

  setQuota(context: RequestContext, table: string, change: QuotaChange): Promise<void> {
    return this.#audit.change(context, 'SetQuota', table, async () => {
      const { family } = change;
      if (family === undefined) this.#rights.check(context, 'bigtable.tables.update', table);
      else if (!coversFamily(this.#rights.onFamilies(context.principal, 'admin', table, ''), family))
        throw denied(context.principal, 'bigtable.tables.update', `${table}/columnFamilies/${family}`);
      return this.#service.setQuota(context, table, change);
    });
  }

  async counters(context: RequestContext): Promise<Readonly<Record<string, number>>> {
    this.#gate.checkOperator(context, 'GetCounters');
    return this.#service.counters(context);
  }

  /** The table as the caller may see it. */
  #seen(context: RequestContext, schema: TableSchema): TableSchema | undefined {
    if (this.#rights.allows(context.principal, 'bigtable.tables.get', schema.name)) return schema;
    const { authorizedView: view = '' } = context;
    const names = Object.keys(schema.families).filter((family) =>
      (['read', 'write', 'readModifyWrite', 'admin'] as const).some((right) =>
        coversFamily(this.#rights.onFamilies(context.principal, right, schema.name, view), family),
      ),
    );
    if (names.length === 0) return undefined;
    const families = Object.fromEntries(names.map((name) => [name, schema.families[name]!]));
    return { ...schema, families };
  }

  #checkList(context: RequestContext, prefix: string): void {
    const end = prefix.indexOf('/tables/');
    if (end >= 0) this.#gate.check(context, 'ListTables', 'bigtable.tables.list', prefix.slice(0, end));
  }

  #checkKeys(context: RequestContext, call: string, table: string): void {
    this.#gate.check(context, call, 'bigtable.tables.sampleRowKeys', table);
    if (!this.#rows.hasAll(context, 'read', table)) this.#gate.refuse(context, call, 'bigtable.tables.readRows', table);
  }

  /** Notes refusals of calls on data. */
  #noted<T>(context: RequestContext, call: string, table: string, work: Promise<T>): Promise<T> {
    return work.catch((thrown: unknown) => {
      if (isRefusal(thrown)) this.#audit.refusal(context, call, table);
      throw thrown;
    });
  }

  async *#notedRead(context: RequestContext, request: ReadRequest): AsyncGenerator<ReadBatch, void> {
    try {
      yield* this.#rows.readRows(context, request);
    } catch (thrown) {
      if (isRefusal(thrown)) this.#audit.refusal(context, 'ReadRows', request.table);
      throw thrown;
    }
  }
}
