/**
 * The client library: the service in terms of the internal calls. Row calls go directly to the server of the row; calls
 * on tables go to the master; schemas are read from the lock service. The form of requests is checked here; the server
 * checks the conditions that depend on the schema.
 */
import { type BigtableError, type ByteString, notFound, ownOf, quote } from '../base/index.ts';
import { type Env, inSlices, listFiles, type RequestContext, within } from '../env/index.ts';
import { Locator, loggingSchemaCache, MetadataClient, type SchemaCache } from '../locator/index.ts';
import { decodeDeletionMark, deletionPath, schemaPath } from '../metadata/index.ts';
import type {
  Cell,
  DeletedTable,
  FamilyUsage,
  Limits,
  ReadBatch,
  ReadModifyWriteRule,
  RowMutations,
  RowRange,
  TableSchema,
  TableUsage,
  TabletHistory,
  TabletStatistics,
} from '../model/index.ts';
import { callServer, type MasterCalls } from '../protocol/index.ts';
import {
  AppProfileCache,
  Instances,
  type MemoryLayerCache,
  MemoryLayers,
  ownerText,
  Policies,
  PolicyCache,
  Resources,
  ViewCache,
} from '../resources/index.ts';
import {
  checkDropRowRange,
  checkModifyFamilies,
  checkMutateRows,
  checkNewTable,
  checkUpdateTable,
  checkTableName,
} from '../service/index.ts';
import type {
  CheckAndMutateRequest,
  CompactionProgress,
  FamilyChange,
  KeySample,
  NamedKind,
  NamedResource,
  NewTable,
  QuotaChange,
  RawCallPasser,
  ReadRequest,
  ResourceKind,
  RowService,
  Service,
  Slicer,
  TableChange,
} from '../service/index.ts';
import { Backups } from './backups.ts';
import { Exports } from './exports.ts';
import { CallPasser } from './call-passer.ts';
import { ChangeStreams } from './change-streams.ts';
import { checkConsistencyToken, consistencyToken } from './consistency-token.ts';
import { Control } from './control.ts';
import { eachTablet, ofEachTablet } from './each-tablet.ts';
import { HotTablets } from './hot-tablets.ts';
import { MasterCaller } from './master-caller.ts';
import { mutateRows } from './mutate-rows.ts';
import { type ReadRowsParts, readRows } from './read-rows.ts';
import { OperationFiles } from './operation-files.ts';
import { Router } from './router.ts';
import { RowWrites } from './row-writes.ts';
import { ServerRows } from './server-rows.ts';

export interface ClientOptions {
  readonly env: Env;
  readonly limits: Limits;
  /** Most locations of tablets that are kept. Default: the locator's. */
  readonly cacheEntries?: number;
  /** False while the front door over this client may have missed changes of policies. Default: it misses none. */
  readonly isDoorCurrent?: () => boolean;
  /** What the tablet server of this process follows: it is read again with the files of the door. Default: nothing. */
  readonly memoryLayers?: MemoryLayerCache | undefined;
}

/** Named resources that are kept as they are. */
const KEPT_KINDS: Readonly<Partial<Record<NamedKind, ResourceKind>>> = {
  authorizedView: 'authorizedViews',
  schemaBundle: 'schemaBundles',
  logicalView: 'logicalViews',
  materializedView: 'materializedViews',
};

/** The approximate distance between two samples. */
const SAMPLE_PART_BYTES = 8 * 1024 * 1024;

export class Client implements Service {
  readonly operations: OperationFiles;
  readonly backups: Backups;
  readonly exports: Exports;
  readonly changes: ChangeStreams;
  readonly hotTablets: HotTablets;
  readonly instances: Instances;
  readonly memoryLayers: MemoryLayers;
  readonly appProfiles: AppProfileCache;
  readonly resources: Resources;
  readonly authorizedViews: ViewCache;
  readonly policies: Policies;
  readonly policySource: PolicyCache;
  readonly #followedLayers: MemoryLayerCache | undefined;
  readonly #env: Env;
  readonly #limits: Limits;
  /** Large requests are checked in slices. */
  readonly #slicer: Slicer;
  readonly #schemas: SchemaCache;
  readonly #router: Router;
  readonly #reads: ReadRowsParts;
  readonly #writes: RowWrites;
  readonly #control: Control;
  readonly #master: MasterCaller;

  private constructor({ env, limits, cacheEntries, isDoorCurrent = () => true, memoryLayers }: ClientOptions) {
    this.#env = env;
    this.#limits = limits;
    this.operations = new OperationFiles(env);
    const onChange = this.#confirmDoorFiles.bind(this);
    this.instances = new Instances({
      ...env,
      deleteTable: (context, name) => this.deleteTable(context, name, true),
      onChange,
    });
    this.memoryLayers = new MemoryLayers(this.instances);
    this.#followedLayers = memoryLayers;
    this.appProfiles = new AppProfileCache(env);
    this.resources = new Resources({
      ...env,
      ownerOf: async (context, kind, parent) =>
        kind === 'schemaBundles' || kind === 'authorizedViews'
          ? (await this.getTable(context, parent)).id
          : String((await this.instances.getInstance(context, parent)).createdMicros ?? 0),
      onChange,
    });
    const schemaOf = (table: string): TableSchema | undefined => this.#schemas.byName(table);
    this.authorizedViews = new ViewCache({ ...env, schemaOf });
    this.policySource = new PolicyCache({ ...env, schemaOf, isCurrent: isDoorCurrent });
    this.policies = new Policies({ ...env, ownerOf: this.#ownerOf.bind(this), onChange });
    this.#slicer = (count, work) => inSlices(env.clock, count, work);
    this.#schemas = loggingSchemaCache(env);
    const locator = new Locator(cacheEntries === undefined ? env : { ...env, cacheEntries });
    this.#router = new Router({ ...env, schemas: this.#schemas, locator });
    this.#master = new MasterCaller({ env, router: this.#router });
    this.backups = new Backups({
      env,
      limits,
      master: this.#master,
      policies: this.policies,
      checkCluster: this.#checkCluster.bind(this),
      restored: (name) => this.#schemas.refresh(name),
    });
    this.exports = new Exports({ clock: env.clock, master: this.#master, backups: this.backups });
    this.changes = new ChangeStreams({ ...env, router: this.#router, limits });
    this.hotTablets = new HotTablets({ env, checkCluster: this.#checkCluster.bind(this) });
    this.#reads = { router: this.#router, transport: env.transport, clock: env.clock, random: env.random, limits };
    this.#writes = new RowWrites({ ...env, router: this.#router, limits });
    this.#control = new Control({
      env,
      limits,
      router: this.#router,
      schemas: this.#schemas,
      master: this.#master,
      metadata: new MetadataClient({ ...env, locator, stopped: () => false }),
    });
  }

  static async open(options: ClientOptions): Promise<Client> {
    const client = new Client(options);
    await client.#schemas.start();
    return client;
  }

  close(): void {
    this.#router.close();
    this.#schemas.stop();
  }

  /**
   * Reads these files of the lock service again: schemas, and what the front door over this client follows besides.
   */
  async doorFilesChanged(paths: readonly string[]): Promise<void> {
    const schemas = schemaPath('');
    await Promise.all(
      paths.flatMap((path) => [
        ...this.#doorFiles().map((files) => files.changed(path)),
        ...(path.startsWith(schemas) ? [this.#schemas.refresh(path.slice(schemas.length))] : []),
      ]),
    );
  }

  /** Reads all files again that the front door over this client follows. */
  async readDoorFilesAgain(): Promise<void> {
    await Promise.all(this.#doorFiles().map((files) => files.readAgain()));
  }

  #doorFiles() {
    const layers = this.#followedLayers;
    return [this.appProfiles, this.authorizedViews, this.policySource, ...(layers === undefined ? [] : [layers])];
  }

  /** Passes calls for rows of other servers than `ownAddress` on as bytes. */
  callPasser(ownAddress: string): RawCallPasser {
    return new CallPasser({ router: this.#router, transport: this.#env.transport, ownAddress });
  }

  /** The rows of the server at that address alone, for calls that were passed on to it. */
  rowsOf(address: string): RowService {
    const getTable = this.getTable.bind(this);
    return new ServerRows({ ...this.#env, address, limits: this.#limits, schemas: this.#schemas, getTable });
  }

  mutateRow(context: RequestContext, table: string, entry: RowMutations): Promise<void> {
    return this.#writes.mutateRow(context, table, entry);
  }

  async mutateRows(
    context: RequestContext,
    table: string,
    entries: readonly RowMutations[],
  ): Promise<readonly (BigtableError | undefined)[]> {
    const outcomes: (BigtableError | undefined)[] = new Array(entries.length).fill(undefined);
    const fail = (index: number, error: BigtableError): void => void (outcomes[index] = error);
    const checking = checkMutateRows(table, entries, this.#limits, fail, this.#slicer);
    if (checking !== undefined) await checking;
    return mutateRows(
      { router: this.#router, transport: this.#env.transport, clock: this.#env.clock },
      context,
      table,
      entries,
      outcomes,
    );
  }

  readRows(context: RequestContext, request: ReadRequest): AsyncIterable<ReadBatch> {
    return readRows(this.#reads, context, request);
  }

  async sampleRowKeys(context: RequestContext, table: string): Promise<readonly KeySample[]> {
    checkTableName(table, this.#limits);
    const parts = await ofEachTablet(this.#router, context, table, async ({ id }, { server, range }) => {
      const message = { tableId: id, range, partBytes: SAMPLE_PART_BYTES };
      const answer = await callServer(this.#env.transport, server.address, 'sampleKeys', message, context);
      return { ...answer, end: range.end ?? '' };
    });
    const samples: KeySample[] = [];
    let offsetBytes = 0;
    for (const part of parts) {
      for (const sample of part.samples)
        samples.push({ row: sample.row, offsetBytes: offsetBytes + sample.offsetBytes });
      offsetBytes += part.sizeBytes;
      samples.push({ row: part.end, offsetBytes });
    }
    return samples;
  }

  checkAndMutateRow(context: RequestContext, request: CheckAndMutateRequest): Promise<boolean> {
    return this.#writes.checkAndMutateRow(context, request);
  }

  readModifyWriteRow(
    context: RequestContext,
    table: string,
    row: ByteString,
    rules: readonly ReadModifyWriteRule[],
    maxAnswerBytes?: number,
  ): Promise<readonly Cell[]> {
    return this.#writes.readModifyWriteRow(context, table, row, rules, maxAnswerBytes);
  }

  async createTable(context: RequestContext, table: NewTable): Promise<TableSchema> {
    checkNewTable(table, this.#limits);
    return this.#changeTable('createTable', table, context);
  }

  async listTables(_context: RequestContext, prefix: string): Promise<readonly TableSchema[]> {
    return this.#schemas.list(prefix);
  }

  async listTableNames(_context: RequestContext, prefix: string): Promise<readonly string[]> {
    return (await this.#schemas.list(prefix)).map(({ name }) => name);
  }

  async getTable(context: RequestContext, name: string): Promise<TableSchema> {
    checkTableName(name, this.#limits);
    const schema = await this.#router.readSchema(name, context);
    if (schema === undefined) throw notFound(`table ${name} does not exist`);
    return schema;
  }

  async updateTable(context: RequestContext, name: string, change: TableChange): Promise<TableSchema> {
    checkUpdateTable(name, change, this.#limits);
    return this.#changeTable('updateTable', { name, ...change }, context);
  }

  async deleteTable(context: RequestContext, name: string, atOnce?: boolean): Promise<boolean> {
    checkTableName(name, this.#limits);
    const message = atOnce === true ? { name, atOnce } : { name };
    return (await this.#changeTable('deleteTable', message, context)).isKept ?? false;
  }

  async undeleteTable(context: RequestContext, name: string): Promise<TableSchema> {
    checkTableName(name, this.#limits);
    return this.#changeTable('undeleteTable', { name }, context);
  }

  async listDeletedTables(context: RequestContext, prefix: string): Promise<readonly DeletedTable[]> {
    const { clock, lockService } = this.#env;
    const files = await within(listFiles(lockService, deletionPath()), context, clock);
    const now = clock.nowMicros();
    return files
      .map(({ path, contents }) => decodeDeletionMark(path, contents))
      .flatMap(({ tableId, name, kept }) => {
        // one that is being deleted, or was restored, has a mark and a schema
        const isListed = name.startsWith(prefix) && this.#schemas.byId(tableId) === undefined;
        if (!isListed || kept === undefined || kept.keptUntilMicros <= now) return [];
        return [{ tableId, name, deletedMicros: kept.deletedMicros, keptUntilMicros: kept.keptUntilMicros }];
      })
      .sort((a, b) => (a.name === b.name ? (a.tableId < b.tableId ? 1 : -1) : a.name < b.name ? -1 : 1))
      .map(({ tableId: _, ...table }) => table);
  }

  async modifyFamilies(context: RequestContext, name: string, changes: readonly FamilyChange[]): Promise<TableSchema> {
    checkModifyFamilies(name, changes, this.#limits);
    return this.#changeTable('modifyFamilies', { name, changes }, context);
  }

  async dropRowRange(context: RequestContext, name: string, range: RowRange): Promise<void> {
    checkDropRowRange(name, range, this.#limits);
    await eachTablet(this.#router, context, name, range, ({ id }, { server }, part) =>
      callServer(this.#env.transport, server.address, 'dropRows', { tableId: id, range: part }, context),
    );
  }

  compactTables(context: RequestContext, table?: string): AsyncIterable<CompactionProgress> {
    return this.#control.compactTables(context, table);
  }

  flush(context: RequestContext): Promise<void> {
    return this.#control.flush(context);
  }

  splitTablets(context: RequestContext, table: string, row?: ByteString): Promise<void> {
    return this.#control.splitTablets(context, table, row);
  }

  mergeTablets(context: RequestContext, table: string, row: ByteString): Promise<void> {
    return this.#control.mergeTablets(context, table, row);
  }

  listTablets(context: RequestContext, table: string): Promise<readonly TabletStatistics[]> {
    return this.#control.listTablets(context, table);
  }

  listTabletEvents(context: RequestContext, table: string): AsyncIterable<TabletHistory> {
    return this.#control.listTabletEvents(context, table);
  }

  familyUsage(context: RequestContext, table: string): Promise<readonly FamilyUsage[]> {
    return this.#control.familyUsage(context, table);
  }

  tableUsage(context: RequestContext, table: string): Promise<TableUsage> {
    return this.#control.tableUsage(context, table);
  }

  setQuota(context: RequestContext, table: string, change: QuotaChange): Promise<void> {
    return this.#control.setQuota(context, table, change);
  }

  counters(context: RequestContext): Promise<Readonly<Record<string, number>>> {
    return this.#control.counters(context);
  }

  async generateConsistencyToken(context: RequestContext, name: string): Promise<string> {
    const { id } = await this.getTable(context, name);
    return consistencyToken(id, this.#env.clock.nowMicros());
  }

  async checkConsistency(context: RequestContext, name: string, token: string): Promise<boolean> {
    const { id } = await this.getTable(context, name);
    checkConsistencyToken(token, name, id);
    return true;
  }

  /** What tells a resource with a policy from a later one of that name. NOT_FOUND where there is none. */
  async #ownerOf(context: RequestContext, { kind, name, instance, table, id }: NamedResource): Promise<string> {
    const kept = KEPT_KINDS[kind];
    if (kept !== undefined) await this.resources.find(context, kept, name);
    if (kind === 'backup') return this.backups.ownerOf(context, name);
    if (table === '') {
      await this.instances.getInstance(context, instance);
      return '';
    }
    const schema = await this.getTable(context, table);
    if (kind !== 'columnFamily') return ownerText(schema);
    const family = ownOf(schema.families, id);
    if (family === undefined) throw notFound(`table ${table} has no family ${quote(id)}`);
    return ownerText(schema, family);
  }

  async #checkCluster(context: RequestContext, instance: string, cluster: string): Promise<void> {
    const { clusters } = await this.instances.getInstance(context, instance);
    if (!clusters.some(({ id }) => id === cluster)) throw notFound(`${instance} has no cluster ${quote(cluster)}`);
  }

  /**
   * Resolves when the front doors of all servers know the files as they are now. UNAVAILABLE, naming a server, where
   * one may not: the change stands.
   */
  async #confirmDoorFiles(context: RequestContext, paths: readonly string[]): Promise<void> {
    await this.doorFilesChanged(paths);
    await this.#master.call('confirmDoorFiles', { paths }, context);
  }

  /** Calls the master, and reads the new schema before it answers. */
  async #changeTable<M extends 'createTable' | 'updateTable' | 'deleteTable' | 'undeleteTable' | 'modifyFamilies'>(
    method: M,
    message: MasterCalls[M]['message'],
    context: RequestContext,
  ): Promise<MasterCalls[M]['answer']> {
    try {
      return await this.#master.call(method, message, context);
    } finally {
      await within(this.#schemas.refresh(message.name), context, this.#env.clock);
    }
  }
}
