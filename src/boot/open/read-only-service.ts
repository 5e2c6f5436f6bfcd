/**
 * A service that refuses every change, for a database that was opened read-only. It passes other calls on to the
 * service under it.
 */
import { BigtableError, Code } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type {
  DeletedTable,
  FamilyUsage,
  ReadBatch,
  TableSchema,
  TableUsage,
  TabletHistory,
  TabletStatistics,
} from '../../model/index.ts';
import type {
  BackupService,
  ExportService,
  CompactionProgress,
  InstanceService,
  KeySample,
  ReadRequest,
  Service,
} from '../../service/index.ts';

async function refused(): Promise<never> {
  throw new BigtableError(Code.FAILED_PRECONDITION, 'the database was opened read-only: nothing in it can be changed');
}

export class ReadOnlyService implements Service {
  readonly #service: Service;

  constructor(service: Service) {
    this.#service = service;
  }

  readRows(context: RequestContext, request: ReadRequest): AsyncIterable<ReadBatch> {
    return this.#service.readRows(context, request);
  }

  sampleRowKeys(context: RequestContext, table: string): Promise<readonly KeySample[]> {
    return this.#service.sampleRowKeys(context, table);
  }

  listTables(context: RequestContext, prefix: string): Promise<readonly TableSchema[]> {
    return this.#service.listTables(context, prefix);
  }

  listTableNames(context: RequestContext, prefix: string): Promise<readonly string[]> {
    return this.#service.listTableNames(context, prefix);
  }

  getTable(context: RequestContext, name: string): Promise<TableSchema> {
    return this.#service.getTable(context, name);
  }

  generateConsistencyToken(context: RequestContext, name: string): Promise<string> {
    return this.#service.generateConsistencyToken(context, name);
  }

  checkConsistency(context: RequestContext, name: string, token: string): Promise<boolean> {
    return this.#service.checkConsistency(context, name, token);
  }

  listTablets(context: RequestContext, table: string): Promise<readonly TabletStatistics[]> {
    return this.#service.listTablets(context, table);
  }

  listTabletEvents(context: RequestContext, table: string): AsyncIterable<TabletHistory> {
    return this.#service.listTabletEvents(context, table);
  }

  listDeletedTables(context: RequestContext, prefix: string): Promise<readonly DeletedTable[]> {
    return this.#service.listDeletedTables(context, prefix);
  }

  familyUsage(context: RequestContext, table: string): Promise<readonly FamilyUsage[]> {
    return this.#service.familyUsage(context, table);
  }

  tableUsage(context: RequestContext, table: string): Promise<TableUsage> {
    return this.#service.tableUsage(context, table);
  }

  counters(context: RequestContext): Promise<Readonly<Record<string, number>>> {
    return this.#service.counters(context);
  }

  /** Undefined where the service under it has none. */
  get backups(): BackupService | undefined {
    const { backups } = this.#service;
    return (
      backups && {
        getBackup: (context, name) => backups.getBackup(context, name),
        listBackups: (context, prefix) => backups.listBackups(context, prefix),
        createBackup: refused,
        updateBackup: refused,
        deleteBackup: refused,
        restoreTable: refused,
      }
    );
  }

  /** Undefined where the service under it has none. */
  get exports(): ExportService | undefined {
    const { exports } = this.#service;
    return (
      exports && {
        exportBackup: (context, backup, id) => exports.exportBackup(context, backup, id),
        listExports: (context) => exports.listExports(context),
        importBackup: refused,
        deleteExport: refused,
      }
    );
  }

  /** Undefined where the service under it has none. */
  get instances(): InstanceService | undefined {
    const { instances } = this.#service;
    return (
      instances && {
        getInstance: (context, name) => instances.getInstance(context, name),
        listInstances: (context, project) => instances.listInstances(context, project),
        createInstance: refused,
        changeInstance: refused,
        deleteInstance: refused,
      }
    );
  }

  readonly mutateRow = refused;
  readonly mutateRows = refused;
  readonly checkAndMutateRow = refused;
  readonly readModifyWriteRow = refused;
  readonly createTable = refused;
  readonly updateTable = refused;
  readonly deleteTable = refused;
  readonly undeleteTable = refused;
  readonly modifyFamilies = refused;
  readonly dropRowRange = refused;
  readonly flush = refused;
  readonly splitTablets = refused;
  readonly mergeTablets = refused;
  readonly setQuota = refused;

  compactTables(): AsyncIterable<CompactionProgress> {
    return { [Symbol.asyncIterator]: () => ({ next: refused }) };
  }
}
