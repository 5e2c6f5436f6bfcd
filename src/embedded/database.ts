/**
 * An open database: tables by name. One process owns a directory; a second `open` of it fails with FAILED_PRECONDITION.
 */
import {
  BigtableError,
  checkOptions,
  Code,
  describeValue,
  invalidArgument,
  isObjectOfNames,
  type OptionTable,
} from '../base/index.ts';
import { type DatabaseSettings, filePathOf, openDatabase, KeepAlive } from '../boot/index.ts';
import {
  type Backup,
  DEFAULT_PARENT,
  type DeletedTable,
  type Instance as ModelInstance,
  type ListedBackup,
} from '../model/index.ts';
import {
  type BackupService,
  type CompactionProgress,
  forgetResources,
  type InstanceChange,
  type InstanceService,
  partOf,
  type Service,
} from '../service/index.ts';
import { BackupStore } from './backup-store.ts';
import { CALL_OPTIONS, type CallOptions, callOptionsOf, takeOptions, type ThenOptions } from './calls/call-options.ts';
import { forCaller } from './calls/caller-error.ts';
import { Calls } from './calls/calls.ts';
import { asked, boundOf, type Bytes, textOf } from './values/input.ts';
import { fullBackupName, fullInstanceName, fullTableName } from './values/names.ts';
import {
  askedBackup,
  askedBackupChange,
  askedCopy,
  type BackupOptions,
  type BackupUpdate,
  type CopyBackupOptions,
  ownBackup,
} from './schema/backups.ts';
import {
  type AppProfile,
  type AppProfileOptions,
  type AppProfileUpdate,
  askedAppProfile,
  askedAppProfileDeletion,
  askedAppProfileUpdate,
  type DeleteAppProfileOptions,
  ownAppProfile,
} from './schema/app-profiles.ts';
import {
  askedCluster,
  askedClusterDeletion,
  askedClusterUpdate,
  askedInstance,
  askedInstanceUpdate,
  askedProject,
  type Cluster,
  type ClusterOptions,
  type ClusterUpdate,
  type Instance,
  type InstanceOptions,
  type InstanceUpdate,
  type ListInstancesOptions,
  ownCluster,
  ownInstance,
} from './schema/instances.ts';
import { bringTo, isOvertaken, MAX_ATTEMPTS } from './schema/open-table.ts';
import { INSPECT, type Inspect, type InspectOptions, inspected } from './values/show.ts';
import { Table } from './table.ts';
import { type AskedTable, askedTable, type TableOptions } from './schema/table-options.ts';

/** The parts of a database other than its service. */
export interface DatabaseHooks {
  /** A directory, ':memory:' or the address of a server. */
  readonly where: string;
  close(): Promise<void>;
}

/** Cancellation stops compactions that have not begun. Those that have begun end in the background. */
export interface CompactOptions extends CallOptions {
  /**
   * Called first with the number of tablets, then after each tablet, and at least every ten seconds. If it throws, the
   * call ends.
   */
  readonly onProgress?: ((progress: CompactionProgress) => void) | undefined;
}

export interface DeleteTableOptions extends CallOptions {
  /**
   * The table is not kept. If there is none of that name, the one that was deleted last is removed. Default: false.
   */
  readonly atOnce?: boolean | undefined;
}

const DELETE_TABLE_OPTIONS = { ...CALL_OPTIONS, atOnce: 'free' } satisfies OptionTable<DeleteTableOptions>;
const COMPACT_OPTIONS = { ...CALL_OPTIONS, onProgress: 'free' } satisfies OptionTable<CompactOptions>;

export class Database {
  /** Where backups are exported to, and imported from. */
  readonly backupStore: BackupStore;
  readonly #calls: Calls;
  readonly #hooks: DatabaseHooks;

  /** Made by `open` and `connect`. */
  constructor(calls: Calls, hooks: DatabaseHooks) {
    this.#calls = calls;
    this.#hooks = hooks;
    this.backupStore = new BackupStore(calls);
  }

  /** Creates a table. ALREADY_EXISTS if there is one of that name; INVALID_ARGUMENT for an unknown option. */
  async createTable(name: string, options: TableOptions = {}): Promise<Table> {
    const [{ table }, call] = this.#asked(name, options, 'createTable');
    await this.#calls.write((service, context) => service.createTable(context, table), call);
    return new Table(table.name, this.#calls);
  }

  /**
   * Opens a table. Creates it if it is missing, and the missing families of the options. Never changes existing parts:
   * FAILED_PRECONDITION if the table contradicts the options (another GC rule, aggregate, granularity or locality
   * group). A rule that is left out matches any; `splits` apply to a new table only. Concurrent calls are safe.
   */
  async openTable(name: string, options: TableOptions = {}): Promise<Table> {
    const [wanted, call] = this.#asked(name, options, 'openTable');
    await this.#calls.write(async (service, context) => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await bringTo(service, context, wanted);
        } catch (error) {
          if (attempt === MAX_ATTEMPTS || !isOvertaken(error)) throw error;
        }
      }
    }, call);
    return new Table(wanted.table.name, this.#calls);
  }

  /**
   * The table of that name, without a check: its calls fail with NOT_FOUND if it does not exist. A full resource name
   * is used unchanged.
   */
  table(name: string): Table {
    return new Table(this.#fullName(name), this.#calls);
  }

  async hasTable(name: string, options?: CallOptions): Promise<boolean> {
    try {
      await this.table(name).schema(options);
      return true;
    } catch (error) {
      if (error instanceof BigtableError && error.code === Code.NOT_FOUND) return false;
      throw error;
    }
  }

  /** Ids of the tables that were made by their id alone; `listTableNames` has those of other instances too. */
  async listTables(options?: CallOptions): Promise<readonly string[]> {
    const prefix = `${this.#calls.parent}/tables/`;
    return (await this.listTableNames(prefix, options)).map((name) => name.slice(prefix.length));
  }

  /**
   * Full resource names of the tables, of all or of those that start with the prefix. Servers that are not Edubba's
   * list those of one instance alone: there the prefix must name it (projects/P/instances/I/tables/), or it is
   * UNIMPLEMENTED.
   */
  async listTableNames(...more: ThenOptions<string>): Promise<readonly string[]> {
    const [prefix, options] = takeOptions<string>(more);
    const start = prefix.length === 0 ? '' : textOf(prefix[0], 'prefix');
    if (prefix.length > 0 && start === '') {
      throw invalidArgument('prefix must not be empty; leave it out to list all tables');
    }
    return this.#calls.read((service, context) => service.listTableNames(context, start), options);
  }

  /**
   * Deletes a table. A database that keeps deleted tables (`keepDeletedMs`) can restore it for so long. `atOnce`: it is
   * not kept; if there is no table of that name, the one that was deleted last is removed.
   */
  async deleteTable(name: string, options: DeleteTableOptions = {}): Promise<void> {
    const fullName = this.#fullName(name);
    const { atOnce } = asked(() => {
      checkOptions(options, DELETE_TABLE_OPTIONS, 'deleteTable');
      return options;
    });
    if (atOnce !== undefined && typeof atOnce !== 'boolean')
      throw invalidArgument(`deleteTable: atOnce must be true or false, not ${describeValue(atOnce)}`);
    await this.#calls.write(async (service, context) => {
      const isKept = await service.deleteTable(context, fullName, atOnce);
      // what belongs to a table that is kept is kept with it
      if (!isKept) await forgetResources(service, context, fullName);
    }, callOptionsOf(options));
  }

  /**
   * Restores the table of that name that was deleted last, as it was. NOT_FOUND if none is kept; ALREADY_EXISTS if
   * there is a table of the name.
   */
  async undeleteTable(name: string, options?: CallOptions): Promise<Table> {
    const fullName = this.#fullName(name);
    await this.#calls.write((service, context) => service.undeleteTable(context, fullName), options);
    return new Table(fullName, this.#calls);
  }

  /**
   * The deleted tables that are kept, by name, and of one name the last deletion first. Their names are full resource
   * names.
   */
  async listDeletedTables(options?: CallOptions): Promise<readonly DeletedTable[]> {
    return this.#calls.read((service, context) => service.listDeletedTables(context, ''), options);
  }

  /** Writes what is in memory to SSTables, so that the next open has nothing to replay. Never needed for durability. */
  flush(options?: CallOptions): Promise<void> {
    return this.#calls.read((service, context) => service.flush(context), options);
  }

  /**
   * Major compactions of a table, or of all: afterwards every locality group of a tablet is one SSTable without deleted
   * data and without versions that garbage collection drops. They also run by themselves, every `majorCompactionMs`.
   * Concurrent calls share the work. NOT_FOUND for a table that does not exist; INVALID_ARGUMENT for undefined.
   */
  async compact(...more: ThenOptions<string, CompactOptions>): Promise<void> {
    const [table, options = {}] = takeOptions<string, CompactOptions>(more);
    const fullName = table.length === 0 ? undefined : this.#fullName(table[0]);
    const { onProgress } = asked(() => {
      checkOptions(options, COMPACT_OPTIONS, 'compact');
      return options;
    });
    if (onProgress !== undefined && typeof onProgress !== 'function')
      throw invalidArgument(`compact: onProgress must be a function, not ${describeValue(onProgress)}`);
    let fault: { readonly thrown: unknown } | undefined;
    await this.#calls.read(async (service, context) => {
      for await (const progress of service.compactTables(context, fullName)) {
        try {
          onProgress?.(progress);
        } catch (thrown) {
          fault = { thrown };
          return;
        }
      }
    }, callOptionsOf(options));
    // the caller's own error is thrown unchanged
    if (fault !== undefined) throw (fault as { readonly thrown: unknown }).thrown;
  }

  /**
   * Splits the tablet that holds the row before it, so that it begins a tablet; without a row every tablet of the
   * table near its middle. Tablets split by themselves too, when they have grown above `tabletBytes`. Reads and
   * writes go on. FAILED_PRECONDITION where a tablet of one row is all there is; INVALID_ARGUMENT for a row that is
   * undefined or empty.
   */
  async split(table: string, ...more: ThenOptions<Bytes>): Promise<void> {
    const [row, options] = takeOptions<Bytes>(more);
    const fullName = this.#fullName(table);
    const bound = row.length === 0 ? undefined : boundOf(row[0], 'a row key');
    return this.#calls.write((service, context) => service.splitTablets(context, fullName, bound), options);
  }

  /**
   * Makes one tablet of the two that meet at that row, with which the second begins. FAILED_PRECONDITION where none do.
   */
  async merge(table: string, row: Bytes, options?: CallOptions): Promise<void> {
    const fullName = this.#fullName(table);
    const bound = boundOf(row, 'a row key');
    return this.#calls.write((service, context) => service.mergeTablets(context, fullName, bound), options);
  }

  /**
   * Backs a table up, and answers when it is done. Each row of the backup is as it was at one instant of the call;
   * reads and writes go on. Nothing is copied: the backup keeps the files of the table. It lies in the instance of the
   * table, and is named by an id there, or by its full resource name. ALREADY_EXISTS where there is one of that name.
   */
  async createBackup(table: string, backup: string, options: BackupOptions = {}): Promise<Backup> {
    const [wanted, call] = asked(() => {
      const [name, source] = [this.#fullBackupName(backup), this.#fullName(table)];
      const { nowMicros } = this.#calls;
      return [askedBackup({ name, source, nowMicros }, options), callOptionsOf(options)] as const;
    });
    return this.#own(
      await this.#calls.write((service, context) => backupsOf(service).createBackup(context, wanted), call),
    );
  }

  /** Copies a backup, which may be deleted then. The copy has the rows of the backup, and expires by itself. */
  async copyBackup(backup: string, copy: string, options: CopyBackupOptions = {}): Promise<Backup> {
    const [wanted, call] = asked(() => {
      const [name, source] = [this.#fullBackupName(copy), this.#fullBackupName(backup)];
      const { nowMicros } = this.#calls;
      return [askedCopy({ name, source, nowMicros }, options), callOptionsOf(options)] as const;
    });
    return this.#own(
      await this.#calls.write((service, context) => backupsOf(service).createBackup(context, wanted), call),
    );
  }

  /** NOT_FOUND where there is none, DATA_LOSS where it cannot be read. */
  async getBackup(backup: string, options?: CallOptions): Promise<Backup> {
    const name = this.#fullBackupName(backup);
    return this.#own(
      await this.#calls.read((service, context) => backupsOf(service).getBackup(context, name), options),
    );
  }

  /**
   * The backups of the database's instance by name, also those that are not finished, and those that cannot be read: of
   * these only the name is known.
   */
  async listBackups(options?: CallOptions): Promise<readonly ListedBackup[]> {
    const prefix = `${this.#calls.parent}/clusters/`;
    const all = await this.#calls.read((service, context) => backupsOf(service).listBackups(context, prefix), options);
    return all.map((backup) => this.#own(backup));
  }

  /** Changes when a backup is deleted, or when it becomes a standard one. */
  async updateBackup(backup: string, update: BackupUpdate): Promise<Backup> {
    const [name, change, call] = asked(
      () => [this.#fullBackupName(backup), askedBackupChange(update), callOptionsOf(update)] as const,
    );
    return this.#own(
      await this.#calls.write((service, context) => backupsOf(service).updateBackup(context, name, change), call),
    );
  }

  /** Also one that cannot be read. Tables that were restored from it, and its copies, stay. */
  async deleteBackup(backup: string, options?: CallOptions): Promise<void> {
    const name = this.#fullBackupName(backup);
    return this.#calls.write((service, context) => backupsOf(service).deleteBackup(context, name), options);
  }

  /**
   * Creates a table with the rows and the schema of a backup. Nothing is copied: it begins with the backup's files.
   * ALREADY_EXISTS where there is a table of that name.
   */
  async restoreTable(backup: string, table: string, options?: CallOptions): Promise<Table> {
    const [name, source] = [this.#fullName(table), this.#fullBackupName(backup)];
    await this.#calls.write((service, context) => backupsOf(service).restoreTable(context, name, source), options);
    return new Table(name, this.#calls);
  }

  /**
   * Creates an instance with its clusters and the app profile `default`. An instance also comes with its first table;
   * ALREADY_EXISTS then, too. Instances of the database's project are named by their id, here and in the calls below,
   * others by their full resource name.
   */
  async createInstance(instance: string, options: InstanceOptions = {}): Promise<Instance> {
    const [wanted, call] = asked(
      () => [askedInstance(this.#fullInstanceName(instance), options), callOptionsOf(options)] as const,
    );
    return this.#shown(
      await this.#calls.write((service, context) => instancesOf(service).createInstance(context, wanted), call),
    );
  }

  /** An instance with its clusters and app profiles. NOT_FOUND where there is none. */
  async getInstance(instance: string, options?: CallOptions): Promise<Instance> {
    const name = this.#fullInstanceName(instance);
    return this.#shown(
      await this.#calls.read((service, context) => instancesOf(service).getInstance(context, name), options),
    );
  }

  /** The instances of the database's project, or of the one in the options, by name. */
  async listInstances(options: ListInstancesOptions = {}): Promise<readonly Instance[]> {
    const [project, call] = asked(() => [askedProject(options, this.#calls.parent), callOptionsOf(options)] as const);
    const all = await this.#calls.read(
      (service, context) => instancesOf(service).listInstances(context, project),
      call,
    );
    return all.map((instance) => this.#shown(instance));
  }

  /** Changes the instance's own name for people, type, edition or labels. */
  async updateInstance(instance: string, update: InstanceUpdate): Promise<Instance> {
    return this.#shown(await this.#changeInstance(instance, (name) => askedInstanceUpdate(name, update), update));
  }

  /**
   * Deletes an instance with all of its tables, which are not kept. FAILED_PRECONDITION, and nothing is deleted, for
   * the default instance, and where a table is protected or a backup is left.
   */
  async deleteInstance(instance: string, options?: CallOptions): Promise<void> {
    const name = this.#fullInstanceName(instance);
    await this.#calls.write(async (service, context) => {
      await instancesOf(service).deleteInstance(context, name);
      await forgetResources(service, context, name);
    }, options);
  }

  /** Adds a cluster to an instance. ALREADY_EXISTS where it has one of that id. */
  async createCluster(instance: string, cluster: string, options: ClusterOptions = {}): Promise<Cluster> {
    const changed = await this.#changeInstance(instance, (name) => askedCluster(name, cluster, options), options);
    return ownCluster(partOf(changed, 'clusters', cluster));
  }

  /** Changes the number of nodes of a cluster, or its autoscaling. */
  async updateCluster(instance: string, cluster: string, update: ClusterUpdate): Promise<Cluster> {
    const changed = await this.#changeInstance(instance, (name) => askedClusterUpdate(name, cluster, update), update);
    return ownCluster(partOf(changed, 'clusters', cluster));
  }

  /** FAILED_PRECONDITION for the last cluster of an instance, and where an app profile names it or it has a backup. */
  async deleteCluster(instance: string, cluster: string, options: CallOptions = {}): Promise<void> {
    await this.#changeInstance(instance, () => askedClusterDeletion(cluster, options), options);
  }

  /** ALREADY_EXISTS where the instance has an app profile of that id; FAILED_PRECONDITION for an unknown cluster. */
  async createAppProfile(instance: string, profile: string, options: AppProfileOptions): Promise<AppProfile> {
    const changed = await this.#changeInstance(instance, (name) => askedAppProfile(name, profile, options), options);
    return ownAppProfile(partOf(changed, 'appProfiles', profile));
  }

  /** Changes what the update gives; it is in force at all servers when this returns. */
  async updateAppProfile(instance: string, profile: string, update: AppProfileUpdate): Promise<AppProfile> {
    const changed = await this.#changeInstance(
      instance,
      (name) => askedAppProfileUpdate(name, profile, update),
      update,
    );
    return ownAppProfile(partOf(changed, 'appProfiles', profile));
  }

  /** FAILED_PRECONDITION for the app profile `default`, unless `ignoreWarnings` is true. */
  async deleteAppProfile(instance: string, profile: string, options: DeleteAppProfileOptions = {}): Promise<void> {
    await this.#changeInstance(instance, () => askedAppProfileDeletion(profile, options), options);
  }

  /**
   * Counters since the database was opened, or its servers were started, by name: blocks read, cache hits, bytes
   * logged, compactions.
   */
  counters(options?: CallOptions): Promise<Readonly<Record<string, number>>> {
    return this.#calls.read((service, context) => service.counters(context), options);
  }

  /** Ends everything in order: what was acknowledged stays. May be called again. */
  close(): Promise<void> {
    this.#calls.close();
    return this.#calls.awaited(this.#hooks.close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  [INSPECT](depth: number, options: InspectOptions, inspect: Inspect): string {
    return inspected('Database', { where: this.#hooks.where, closed: this.#calls.isClosed }, depth, options, inspect);
  }

  #asked(name: string, options: TableOptions, call: string): readonly [AskedTable, CallOptions | undefined] {
    return asked(() => [askedTable(this.#fullName(name), options, call), callOptionsOf(options)]);
  }

  #changeInstance(
    instance: string,
    change: (name: string) => InstanceChange,
    options: CallOptions,
  ): Promise<ModelInstance> {
    const [name, wanted, call] = asked(() => {
      const fullName = this.#fullInstanceName(instance);
      return [fullName, change(fullName), callOptionsOf(options)] as const;
    });
    return this.#calls.write((service, context) => instancesOf(service).changeInstance(context, name, wanted), call);
  }

  #shown(instance: ModelInstance): Instance {
    return ownInstance(instance, this.#calls.parent);
  }

  #fullInstanceName(name: string): string {
    return fullInstanceName(name, this.#calls.parent);
  }

  #own<B extends ListedBackup>(backup: B): B {
    return ownBackup(backup, this.#calls.parent);
  }

  #fullBackupName(name: string): string {
    return fullBackupName(name, this.#calls.parent);
  }

  #fullName(name: string): string {
    return fullTableName(name, this.#calls.parent);
  }
}

function backupsOf({ backups }: Service): BackupService {
  if (backups === undefined) throw new BigtableError(Code.UNIMPLEMENTED, 'there are no backups here');
  return backups;
}

function instancesOf({ instances }: Service): InstanceService {
  if (instances === undefined) throw new BigtableError(Code.UNIMPLEMENTED, 'there are no instances here');
  return instances;
}

export interface OpenOptions extends Partial<DatabaseSettings> {
  /**
   * Opens for reading only: no byte of the directory is written, even if its last writer was killed, and every call
   * that would change something fails with FAILED_PRECONDITION. Any number of programs may read concurrently while none
   * has it open for writing. NOT_FOUND if there is no database. Default: false.
   */
  readonly readOnly?: boolean | undefined;
}

/**
 * Opens the database in a directory (created with its parents if missing), or an empty one in memory with ':memory:'. A
 * directory is a path or a `file:` URL. FAILED_PRECONDITION if another process or this one has the directory open, or
 * if the path is a file; INVALID_ARGUMENT for invalid settings.
 */
export async function open(directory: string | URL, options: OpenOptions = {}): Promise<Database> {
  const path = asked(() => pathOf(directory));
  const { readOnly, ...settings } = asked(() => objectOf(options));
  if (readOnly !== undefined && typeof readOnly !== 'boolean')
    throw invalidArgument(`readOnly must be true or false, not ${describeValue(readOnly)}`);
  const where = path === ':memory:' ? ({ memory: true } as const) : { directory: path };
  const keepAlive = new KeepAlive();
  const { service, env, close } = await forCaller(
    openDatabase({ ...where, readOnly, settings }),
    DEFAULT_PARENT,
    keepAlive,
  );
  return new Database(new Calls(service, env, keepAlive), { where: path, close });
}

function objectOf(options: OpenOptions): OpenOptions {
  if (!isObjectOfNames(options)) throw invalidArgument(`the settings must be an object, not ${describeValue(options)}`);
  for (const name in options)
    if (name !== 'readOnly' && name.toLowerCase() === 'readonly')
      throw invalidArgument(`unknown setting "${name}"; did you mean readOnly?`);
  return { ...options };
}

function pathOf(directory: string | URL): string {
  if (directory instanceof URL) return filePathOf(directory);
  if (typeof directory !== 'string')
    throw invalidArgument(`the directory must be a path, a file: URL or ':memory:', not ${describeValue(directory)}`);
  if (directory === '') throw invalidArgument("the directory must not be empty: './' is the current one");
  if (directory.startsWith('file:'))
    throw invalidArgument(
      `the directory ${JSON.stringify(directory)} is text that begins like a URL: write new URL(…) or a path`,
    );
  if (directory.includes('\0'))
    throw invalidArgument(`the directory ${JSON.stringify(directory)} must not have a NUL character`);
  return directory;
}
