/**
 * Backups of tables, their copies, and tables that are restored from them (docs/decisions/0101-backups.md). A backup is
 * rows of METADATA under an id of its own, which list the files of the table's tablets, and a file of the lock service.
 * Restoring makes rows of a new table that list the same files.
 *
 * Invariants: the rows of a backup, or of a table from one, are committed between two sweeps, together with the look at
 * what they list. The file is there before the rows, and is removed before them: so rows without a file are left over.
 */
import { assert, BigtableError, Code, notFound, toBigtableError, unavailable } from '../base/index.ts';
import {
  type Env,
  listFiles,
  type LockHandle,
  removeSettled,
  type RequestContext,
  sleep,
  writeSettled,
} from '../env/index.ts';
import type { SchemaCache } from '../locator/index.ts';
import {
  type BackupFile,
  backupPath,
  continues,
  decodeBackup,
  encodeBackup,
  keyOfRow,
  type MetadataRow,
} from '../metadata/index.ts';
import {
  type ExportedBackup,
  isBackupName,
  type NewBackup,
  type NewImport,
  type SourcePolicy,
  type TableSchema,
} from '../model/index.ts';
import { BACKUP_POLICY, type MasterCalls, type TabletBackup, type TabletRef } from '../protocol/index.ts';
import { mergePolicies, policiesOfTable } from '../resources/index.ts';
import type { Assignment } from './assignment.ts';
import { withoutQuotas } from './family-changes.ts';
import type { ExportedBackups } from './exported-backups.ts';
import type { LiveServer } from './live-server.ts';
import type { Servers } from './servers.ts';
import { noTable, type TableAdmin } from './table-admin.ts';
import type { TableIds } from './table-ids.ts';
import { Turns } from './turns.ts';

/** The delay between attempts to back up a table whose tablets are on their way between servers, or are split. */
const ATTEMPT_MS = 500;
/** The attempts end after this. */
const ATTEMPTS_MS = 60_000;
/** A file of the lock service may have more, but for what clients change in it. */
const MAX_FILE_BYTES = 1_000_000;
/** Clients may change the times of a backup that is being deleted. */
const MAX_DELETIONS = 10;

export interface BackupsOptions {
  readonly env: Env;
  /** The master's. */
  readonly lock: LockHandle;
  readonly schemas: SchemaCache;
  readonly servers: Servers;
  readonly assignment: Assignment;
  readonly tables: TableAdmin;
  readonly ids: TableIds;
  readonly exports: ExportedBackups;
  /** Does the work while no sweep runs. */
  readonly betweenSweeps: <T>(work: () => Promise<T>) => Promise<T>;
  /** Called when rows of a deleted backup are left: `finish` is due. */
  readonly onRowsLeft: () => void;
}

/** What a backup is made of. */
interface Source {
  readonly table: string;
  readonly schema: TableSchema;
  /** The schema is of another database. */
  readonly isForeign?: true;
  readonly sourceBackup: string | undefined;
  readonly policies: () => Promise<readonly SourcePolicy[]>;
  /** Writes the rows of the backup of that id. Returns the size in bytes. */
  readonly keep: (id: string, context: RequestContext) => Promise<number>;
}

interface Known {
  readonly file: BackupFile;
  readonly version: number;
}

/** A file that cannot be decoded. */
interface Unreadable {
  readonly error: BigtableError;
  readonly version: number;
}

export class Backups {
  readonly #options: BackupsOptions;
  /** Work on one backup comes one after another. */
  readonly #turns = new Turns();
  /** Ids of backups that are being created. */
  readonly #creating = new Set<string>();
  /** Ids of backups that have rows, as the walks over all rows see them. */
  #seen = new Set<string>();

  constructor(options: BackupsOptions) {
    this.#options = options;
  }

  /** A row of the backup of that id was seen in METADATA. */
  seen(id: string): void {
    this.#seen.add(id);
  }

  /** True when there may be something to finish, or to delete because it has expired. */
  get anySeen(): boolean {
    return this.#seen.size > 0;
  }

  /** ALREADY_EXISTS where there is one of that name, unless its creation was cut short. */
  create(wanted: NewBackup, context: RequestContext): Promise<void> {
    return this.#create(wanted, () => this.#source(wanted, context.deadlineMs), context);
  }

  /** As `create`, of a backup in the backup store. */
  import({ from, ...rest }: NewImport, context: RequestContext): Promise<void> {
    return this.#create({ ...rest, kind: 'standard' }, () => this.#exported(from), context);
  }

  /** Copies the backup to the backup store. NOT_FOUND without it, FAILED_PRECONDITION where it is not ready. */
  async export(name: string, id: string, context: RequestContext): Promise<ExportedBackup> {
    const { assignment, exports } = this.#options;
    const { file } = await this.#ready(name);
    const rows = await assignment.rowsOf(file.id, context);
    checkRows(file, rows, await this.#read(name));
    return exports.export(file, rows, id, context).catch(async (thrown: unknown) => {
      if ((await this.#read(name))?.file.id !== file.id) throw noBackup(name);
      throw thrown;
    });
  }

  #create(
    wanted: Omit<NewBackup, 'source'>,
    sourceOf: () => Promise<Source>,
    { deadlineMs: _callers, ...rest }: RequestContext,
  ): Promise<void> {
    // what was begun is finished, or taken back, also after the caller's deadline
    const context = { ...rest, deadlineMs: Number.POSITIVE_INFINITY };
    return this.#turns.inTurn(wanted.name, async () => {
      const before = await this.#find(wanted.name);
      if (before !== undefined && 'error' in before) throw exists(wanted.name, ', and cannot be read: delete it first');
      if (before?.file.state === 'ready') throw exists(wanted.name);
      if (before !== undefined) await this.#remove(before, context);
      const { env, lock, ids } = this.#options;
      const source = await sourceOf();
      const id = await ids.next();
      this.#creating.add(id);
      try {
        const { name, kind, expireMicros, hotToStandardMicros } = wanted;
        const { table, sourceBackup } = source;
        // a table here that has the same id by chance is another
        const schema = source.isForeign ? { ...source.schema, id } : source.schema;
        const created: BackupFile = {
          ...{ id, name, table, sourceBackup, kind, expireMicros, hotToStandardMicros, schema },
          policies: await source.policies(),
          state: 'creating',
          startMicros: env.clock.nowMicros(),
          sizeBytes: 0,
          write: env.random.uniqueName(),
        };
        const path = backupPath(name);
        const version = await writeSettled(env, path, contentsOf(created), { version: 0, lock });
        try {
          const sizeBytes = await source.keep(id, context);
          const policies = mergePolicies(created.policies, await source.policies());
          const ready = { ...created, state: 'ready', endMicros: env.clock.nowMicros(), sizeBytes, policies } as const;
          assert(this.#creating.has(id), 'a backup is ready while it is being created');
          assert(sizeBytes >= 0, 'a backup has a size');
          const contents = contentsOf({ ...ready, write: env.random.uniqueName() });
          await writeSettled(env, path, contents, { version, lock });
        } catch (thrown) {
          await this.#remove({ file: created, version }, context).catch(() => this.#options.onRowsLeft());
          throw thrown;
        }
      } finally {
        this.#creating.delete(id);
      }
    });
  }

  /** NOT_FOUND where there is none. */
  delete(name: string, context: RequestContext): Promise<void> {
    return this.#turns.inTurn(name, async () => {
      for (let attempt = 1; ; attempt++) {
        const known = await this.#find(name);
        if (known === undefined) throw noBackup(name);
        try {
          if (!('error' in known)) return await this.#remove(known, context);
          // nothing says which its rows are: the next look at all rows finds them without a file
          return await this.#removeFile(name, known);
        } catch (thrown) {
          // its times were changed since it was read
          if (toBigtableError(thrown).code !== Code.ABORTED || attempt === MAX_DELETIONS) throw thrown;
        }
      }
    });
  }

  /** The new table. NOT_FOUND without the backup, FAILED_PRECONDITION where it is not ready. */
  async restore(
    { name, backup }: MasterCalls['restoreTable']['message'],
    context: RequestContext,
  ): Promise<TableSchema> {
    const { tables } = this.#options;
    const { file } = await this.#ready(backup);
    const { name: from, table, sourceBackup, startMicros, endMicros } = file;
    const restoredFrom = {
      name: from,
      table,
      ...(sourceBackup !== undefined && { sourceBackup }),
      startMicros,
      endMicros,
    };
    const schemaOf = (id: string): TableSchema => {
      const { extra, changeStream: _notRestored, ...schema } = withoutQuotas(file.schema);
      // it is set for a table, not for its contents
      const kept = Object.entries(extra ?? {}).filter(([field]) => field !== BACKUP_POLICY);
      return {
        ...schema,
        id,
        name,
        deletionProtection: false,
        restoredFrom,
        ...(extra && { extra: Object.fromEntries(kept) }),
      };
    };
    const createRows = (id: string): Promise<MetadataRow[]> => this.#copyRows(file, id, false, context);
    return tables.restoreTable(name, { schemaOf, createRows }, context);
  }

  /** Removes rows that no backup owns, what creations that were cut short left, and backups that have expired. */
  async finish(context: RequestContext): Promise<void> {
    const { env, assignment } = this.#options;
    const seen = this.#seen;
    this.#seen = new Set();
    const files = await listFiles(env.lockService, backupPath(''));
    const known: BackupFile[] = [];
    let isWhole = true;
    for (const { path, contents } of files) {
      try {
        known.push(decodeBackup(path, contents));
      } catch (thrown) {
        // its rows, whichever they are, stay
        isWhole = false;
        env.logger.error('a backup cannot be read', { path, error: toBigtableError(thrown).message });
      }
    }
    for (const { id } of known) seen.delete(id);
    if (isWhole) for (const id of seen) if (!this.#creating.has(id)) await assignment.removeAllRows(id, context);
    const now = env.clock.nowMicros();
    for (const { id, name, state, expireMicros } of known) {
      const isLeft = state === 'creating' && !this.#creating.has(id);
      if (!isLeft && expireMicros > now) continue;
      await this.#turns.inTurn(name, async () => {
        // one that was being created when the files were listed may be finished since then
        const again = await this.#read(name);
        if (again?.file.id !== id) return;
        const isUnfinished = again.file.state === 'creating';
        if (!isUnfinished && again.file.expireMicros > now) return;
        assert(!this.#creating.has(id), 'a backup that is being created is not deleted');
        env.logger.info('a backup is deleted', {
          backup: name,
          because: isUnfinished ? 'it was not finished' : 'it expired',
        });
        await this.#remove(again, context);
      });
    }
  }

  async #source({ source }: NewBackup, deadlineMs: number): Promise<Source> {
    const { schemas, env } = this.#options;
    if (isBackupName(source)) {
      const { file } = await this.#ready(source);
      const keep = async (id: string, context: RequestContext): Promise<number> => {
        await this.#copyRows(file, id, true, context);
        return file.sizeBytes;
      };
      const policies = async (): Promise<readonly SourcePolicy[]> => file.policies;
      return { table: file.table, schema: file.schema, policies, sourceBackup: source, keep };
    }
    const known = await schemas.read(source);
    if (known === undefined) throw noTable(source);
    const { schema } = known;
    const keep = (id: string, context: RequestContext): Promise<number> =>
      this.#keepTable(schema, id, deadlineMs, context);
    const policies = (): Promise<readonly SourcePolicy[]> => policiesOfTable(env.lockService, schema);
    return { table: source, schema, policies, sourceBackup: undefined, keep };
  }

  async #exported(exportId: string): Promise<Source> {
    const { exports, assignment, betweenSweeps } = this.#options;
    const manifest = await exports.read(exportId);
    const { table, backup: sourceBackup, schema, policies, sizeBytes } = manifest;
    const keep = async (id: string, context: RequestContext): Promise<number> => {
      const commit = (rows: readonly MetadataRow[]): Promise<unknown> =>
        betweenSweeps(() =>
          assignment.createRows(
            rows.map((row) => ({ ...row, version: 0, commitId: '' })),
            context,
          ),
        );
      await exports.import(manifest, id, commit, context);
      return sizeBytes;
    };
    return { table, schema, isForeign: true, policies: async () => policies, sourceBackup, keep };
  }

  /** Tries again while tablets are on their way between servers, or are split or merged. Returns the size in bytes. */
  async #keepTable(schema: TableSchema, id: string, deadlineMs: number, context: RequestContext): Promise<number> {
    const { env, schemas } = this.#options;
    const untilMs = Math.min(deadlineMs, env.clock.monotonicMs() + ATTEMPTS_MS) - ATTEMPT_MS;
    for (;;) {
      try {
        return await this.#keepTableOnce(schema, id, context);
      } catch (thrown) {
        const now = await schemas.read(schema.name);
        if (now?.schema.id !== schema.id) throw noTable(schema.name);
        if (env.clock.monotonicMs() >= untilMs)
          throw unavailable(`table ${schema.name} could not be backed up: try again`, thrown);
        await sleep(env.clock, ATTEMPT_MS);
      }
    }
  }

  async #keepTableOnce(schema: TableSchema, id: string, context: RequestContext): Promise<number> {
    const { servers, assignment, betweenSweeps } = this.#options;
    const tablets = await this.#tabletsOf(schema.id, context);
    // the most of it: no sweep waits for this
    await Promise.all(
      [...tablets].map(([server, refs]) =>
        servers.caller.callUntilDone(server, 'flush', { keys: refs.map(({ key }) => key) }, context),
      ),
    );
    return betweenSweeps(async () => {
      const answers = await Promise.all(
        [...tablets].map(([server, refs]) =>
          servers.caller.callUntilDone(server, 'backUpTablets', { tablets: refs }, context),
        ),
      );
      const kept = answers.flat().sort(byStart);
      if (!isWhole(kept.map(({ row }) => row))) throw unavailable('tablets were split or merged meanwhile');
      const rows = kept.map(({ row }) => ({ ...row, tableId: id }));
      assert(
        rows.every(({ isOfBackup, server, logs }) => isOfBackup && server === undefined && logs.length === 0),
        'the row of a backup names no server and no log',
      );
      assert(this.#creating.has(id), 'rows of a backup are committed while it is created');
      await assignment.createRows(rows, context);
      return kept.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    });
  }

  /** The tablets of the table, by their servers. UNAVAILABLE where one has none that answers. */
  async #tabletsOf(tableId: string, context: RequestContext): Promise<ReadonlyMap<LiveServer, TabletRef[]>> {
    const { assignment, servers } = this.#options;
    const byServer = new Map<LiveServer, TabletRef[]>();
    for (const row of await assignment.rowsOf(tableId, context)) {
      const server = row.server && servers.get(row.server.name);
      if (server === undefined) throw unavailable('a tablet is served by no server that answers');
      const refs = byServer.get(server) ?? [];
      refs.push({ key: keyOfRow(row), epoch: row.epoch });
      byServer.set(server, refs);
    }
    return byServer;
  }

  /** Rows of a backup, or of a table, that list what those of the backup list. */
  #copyRows(
    { id, name }: BackupFile,
    newId: string,
    isOfBackup: boolean,
    context: RequestContext,
  ): Promise<MetadataRow[]> {
    const { assignment, betweenSweeps } = this.#options;
    return betweenSweeps(async () => {
      const rows = await assignment.rowsOf(id, context);
      checkRows({ id, name }, rows, await this.#read(name));
      const copies = rows.map((row) => ({
        ...row,
        tableId: newId,
        version: 0,
        commitId: '',
        isOfBackup: isOfBackup || undefined,
      }));
      return assignment.createRows(copies, context);
    });
  }

  async #ready(name: string): Promise<Known> {
    const known = await this.#read(name);
    if (known === undefined) throw noBackup(name);
    if (known.file.state !== 'ready')
      throw new BigtableError(Code.FAILED_PRECONDITION, `backup ${name} is not finished yet`);
    assert(known.file.endMicros !== undefined, 'a backup that is ready has an end');
    return known;
  }

  /** DATA_LOSS where it cannot be read. */
  async #read(name: string): Promise<Known | undefined> {
    const found = await this.#find(name);
    if (found !== undefined && 'error' in found) throw found.error;
    return found;
  }

  async #find(name: string): Promise<Known | Unreadable | undefined> {
    const found = await this.#options.env.lockService.read(backupPath(name));
    if (found === undefined) return undefined;
    const { path, contents, version } = found;
    try {
      return { file: decodeBackup(path, contents), version };
    } catch (thrown) {
      return { error: toBigtableError(thrown), version };
    }
  }

  #removeFile(name: string, { version }: Known | Unreadable): Promise<void> {
    const { env, lock } = this.#options;
    assert(version > 0, 'a file that was read has a version');
    return removeSettled(env, backupPath(name), { version, lock });
  }

  async #remove(known: Known, context: RequestContext): Promise<void> {
    const { env, assignment, onRowsLeft } = this.#options;
    const { file } = known;
    await this.#removeFile(file.name, known);
    // it is gone: the rows are removed later otherwise
    await assignment.removeAllRows(file.id, context).catch((thrown: unknown) => {
      const error = toBigtableError(thrown).message;
      env.logger.warn('rows of a deleted backup are left, and will be removed later', { backup: file.name, error });
      this.#seen.add(file.id);
      onRowsLeft();
    });
  }
}

/** RESOURCE_EXHAUSTED where the policies make it too long for a file of the lock service. */
function contentsOf(file: BackupFile): Buffer {
  const contents = encodeBackup(file);
  if (contents.length > MAX_FILE_BYTES)
    throw new BigtableError(
      Code.RESOURCE_EXHAUSTED,
      `the schema and the policies of ${file.table} take ${contents.length} bytes, and a backup may keep ${MAX_FILE_BYTES}`,
    );
  return contents;
}

/**
 * NOT_FOUND where the backup was deleted since the rows were read, DATA_LOSS where these are not all of its rows.
 * `now`: the backup of that name after that.
 */
function checkRows(
  { id, name }: Pick<BackupFile, 'id' | 'name'>,
  rows: readonly MetadataRow[],
  now: Known | undefined,
): void {
  // a deletion removes the file first: as long as it exists all rows do
  if (now?.file.id !== id) throw noBackup(name);
  assert(
    rows.every(({ isOfBackup: is, epoch }) => is && epoch === 0),
    'a backup is read from rows that no server has had',
  );
  if (!isWhole(rows))
    throw new BigtableError(Code.DATA_LOSS, `backup ${name} has lost rows of METADATA: it cannot be used`);
}

function byStart(a: TabletBackup, b: TabletBackup): number {
  return a.row.range.start < b.row.range.start ? -1 : 1;
}

/** True where the ranges, in order, make up the whole table. */
function isWhole(rows: readonly MetadataRow[]): boolean {
  const last = rows.at(-1);
  return last !== undefined && last.range.end === undefined && rows.every((row, i) => continues(row, rows[i - 1]));
}

function exists(backup: string, more = ''): BigtableError {
  return new BigtableError(Code.ALREADY_EXISTS, `backup ${backup} exists already${more}`);
}

function noBackup(name: string): BigtableError {
  return notFound(`backup ${name} does not exist`);
}
