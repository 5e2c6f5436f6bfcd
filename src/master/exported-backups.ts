/**
 * Backups that are copied to the backup store, and back from there as backups of this database
 * (docs/decisions/0111-exported-backups.md). The master directs the tablet servers, which copy the files.
 *
 * Invariants: the manifest is written when all other files of an exported backup are there, and removed before them. An
 * attempt writes to a directory of its own, so that what a former one still writes does no harm. Files that are being
 * imported are listed by no row yet: the sweeps of this master spare them, and former masters sweep no more, since each
 * server has been called by this one.
 */
import { assert, BigtableError, Code, inParallel, notFound, toBigtableError, unavailable } from '../base/index.ts';
import { type Env, openBackupStore, type RequestContext, sleep, type StoredFiles, writePieces } from '../env/index.ts';
import {
  type BackupFile,
  decodeExportedRows,
  encodeExport,
  encodeExportedRows,
  type ExportedFile,
  exportFilesPath,
  type ExportManifest,
  exportPath,
  type MetadataRow,
} from '../metadata/index.ts';
import type { ExportedBackup, ListedExport } from '../model/index.ts';
import { FILES_DIRECTORY, type FileCopy, isDeposed } from '../protocol/index.ts';
import { importedPath } from '../sstable/index.ts';
import { exportedBackupOf, hasFile, listExports, readExport, readWhole } from './export-store.ts';
import type { Servers } from './servers.ts';
import { Turns } from './turns.ts';

/** Files that a server copies at the same time. */
const COPIES_PER_SERVER = 2;
/** Files that are deleted at the same time. */
const DELETED_AT_ONCE = 16;
/** Servers may die, and come anew. */
const ATTEMPTS = 20;
const ATTEMPT_MS = 500;
/** Another server may succeed after these. */
const OTHERS_MAY_SUCCEED: ReadonlySet<Code> = new Set([Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.UNIMPLEMENTED]);

interface Copy {
  readonly direction: 'export' | 'import';
  readonly path: string;
  readonly copyPath: string;
}

export interface ExportedBackupsOptions {
  readonly env: Env;
  readonly servers: Servers;
}

export class ExportedBackups {
  readonly #env: Env;
  readonly #servers: Servers;
  /** Work on one exported backup comes one after another. */
  readonly #turns = new Turns();
  /** The ids of backups that are being imported. */
  readonly #importing = new Set<string>();

  constructor({ env, servers }: ExportedBackupsOptions) {
    this.#env = env;
    this.#servers = servers;
  }

  /** True for a file that is being imported: no row lists it yet, and it must stay. */
  isArriving(path: string): boolean {
    for (const id of this.#importing) if (path.startsWith(importedFiles(id))) return true;
    return false;
  }

  /** `rows`: of the backup. ALREADY_EXISTS where another backup is there under that id. */
  export(file: BackupFile, rows: readonly MetadataRow[], id: string, context: RequestContext): Promise<ExportedBackup> {
    return this.#turns.inTurn(id, async () => {
      const store = await openBackupStore(this.#env);
      const before = await readExportOf(store, file, id);
      if (before !== undefined) return exportedBackupOf(before);
      const directory = `${exportFilesPath(id)}${this.#env.random.uniqueName()}/`;
      const leave = (error: unknown): void => this.#logLeft(id, error);
      let manifest: ExportManifest | undefined;
      try {
        manifest = await this.#copyOut(store, file, { rows, id, directory }, context);
        // one that was replaced may have been cut short, and its files deleted
        await this.#servers.checkMastership();
      } catch (thrown) {
        await this.#deleteAll(store, directory).catch(leave);
        throw thrown;
      }
      // one of unknown outcome may land later: its files stay
      await writePieces(store, exportPath(id), [encodeExport(manifest)]).catch(async (thrown: unknown) => {
        if (toBigtableError(thrown).code !== Code.ALREADY_EXISTS) throw thrown;
        const landed = await readExportOf(store, file, id).catch(async (error: unknown) => {
          await this.#deleteAll(store, directory).catch(leave);
          throw error;
        });
        manifest = landed ?? manifest;
      });
      const { rows: written, files, sizeBytes } = manifest;
      this.#env.logger.info('a backup was exported', { backup: file.name, id, files, sizeBytes });
      // of attempts that were cut short; none of them can end any more
      const kept = written.path.slice(0, written.path.lastIndexOf('/') + 1);
      await this.#deleteAll(store, exportFilesPath(id), (path) => path.startsWith(kept)).catch(leave);
      return exportedBackupOf(manifest);
    });
  }

  async list(): Promise<readonly ListedExport[]> {
    return listExports(await openBackupStore(this.#env));
  }

  /** Also what attempts that failed have left. NOT_FOUND where there is nothing. */
  delete(id: string): Promise<void> {
    return this.#turns.inTurn(id, async () => {
      const store = await openBackupStore(this.#env);
      const path = exportPath(id);
      const isThere = await hasFile(store, path);
      if (isThere) await store.delete(path);
      const deleted = await this.#deleteAll(store, exportFilesPath(id));
      if (!isThere && deleted === 0) throw noExport(id);
    });
  }

  /** NOT_FOUND where there is none, DATA_LOSS where it cannot be read. */
  async read(id: string): Promise<ExportManifest> {
    const manifest = await readExport(await openBackupStore(this.#env), id);
    if (manifest === undefined) throw noExport(id);
    return manifest;
  }

  /**
   * Copies the files of an exported backup here, for a backup of that id, and has `commit` write the rows that list
   * them. A sweep takes what is left of a failure.
   */
  async import(
    manifest: ExportManifest,
    backupId: string,
    commit: (rows: readonly MetadataRow[]) => Promise<unknown>,
    context: RequestContext,
  ): Promise<void> {
    assert(!this.#importing.has(backupId), 'a backup is imported once');
    this.#importing.add(backupId);
    try {
      const { rows, files } = await this.#readRows(manifest, backupId);
      const paths = new Map(files.map(({ path }) => [path, importedPath(pathHere(path), backupId)]));
      if (new Set(paths.values()).size < files.length) throw lost(`${manifest.rows.path} has a file under two names`);
      const copies = await this.#copyAll(
        files.map(({ path }) => ({ direction: 'import', path, copyPath: paths.get(path)! })),
        context,
      );
      for (const [i, file] of files.entries()) checkCopy(file, copies[i]!);
      const here = await this.#env.fileSystem.list(importedFiles(backupId));
      if (here.length !== files.length) throw unavailable('files that were imported are gone: import the backup anew');
      await commit(rows.map((row) => withPaths(row, (path) => paths.get(path)!)));
    } finally {
      this.#importing.delete(backupId);
    }
  }

  /** Copies all files, and the rows. Returns the manifest, which is to be written. */
  async #copyOut(
    store: StoredFiles,
    file: BackupFile,
    { rows, id, directory }: { readonly rows: readonly MetadataRow[]; readonly id: string; readonly directory: string },
    context: RequestContext,
  ): Promise<ExportManifest> {
    const paths = [...new Set(rows.flatMap((row) => Object.values(row.files).flat()))];
    const pathThere = (path: string): string => directory + lastPart(path);
    const wanted = paths.map((path): Copy => ({ direction: 'export', path, copyPath: pathThere(path) }));
    assert(
      new Set(wanted.map(({ copyPath }) => copyPath)).size === paths.length,
      'files differ in the last part of their paths',
    );
    const copies = await this.#copyAll(wanted, context);
    const files = wanted.map(({ copyPath }, i): ExportedFile => ({ path: copyPath, ...copies[i]! }));
    const listed = encodeExportedRows({ rows: rows.map((row) => withPaths(row, pathThere)), files });
    const rowsPath = `${directory}rows`;
    await writePieces(store, rowsPath, [listed]);
    const { id: backupId, name: backup, table, startMicros, endMicros, schema, policies } = file;
    assert(endMicros !== undefined, 'a backup that is ready has an end');
    const sizeBytes = files.reduce((sum, one) => sum + one.sizeBytes, 0);
    return {
      ...{ id, backupId, backup, table, startMicros, endMicros, schema, policies, sizeBytes },
      exportedMicros: this.#env.clock.nowMicros(),
      files: files.length,
      rows: { path: rowsPath, sizeBytes: listed.length, checksum: this.#env.codecs.checksum(listed) },
    };
  }

  async #readRows({ id, rows: { path, sizeBytes, checksum }, files }: ExportManifest, tableId: string) {
    const store = await openBackupStore(this.#env);
    const bytes = await readWhole(store, path).catch((thrown: unknown) => {
      if (toBigtableError(thrown).code !== Code.NOT_FOUND) throw thrown;
      throw lost(`exported backup ${id} has lost its file ${path}`);
    });
    checkCopy({ path, sizeBytes, checksum }, { sizeBytes: bytes.length, checksum: this.#env.codecs.checksum(bytes) });
    const read = decodeExportedRows(path, bytes, tableId);
    if (read.files.length !== files) throw lost(`${path} has ${read.files.length} files, and the manifest ${files}`);
    return read;
  }

  /** The servers share the work. In the order of what is wanted. */
  async #copyAll(wanted: readonly Copy[], context: RequestContext): Promise<FileCopy[]> {
    const copies: FileCopy[] = [];
    const atOnce = COPIES_PER_SERVER * Math.max(1, this.#servers.all().length);
    await inParallel(wanted.entries(), atOnce, async ([i, one]) => {
      copies[i] = await this.#copy(one, i, context);
    });
    assert(
      wanted.every((_, i) => copies[i] !== undefined),
      'all files were copied',
    );
    return copies;
  }

  async #copy(wanted: Copy, turn: number, context: RequestContext): Promise<FileCopy> {
    for (let attempt = 1; ; attempt++) {
      const servers = this.#servers.all();
      const server = servers[(turn + attempt) % servers.length];
      try {
        if (server === undefined) throw unavailable('there is no tablet server that could copy files');
        return await this.#servers.caller.callUntilDone(server, 'copyFile', wanted, context);
      } catch (thrown) {
        const error = toBigtableError(thrown);
        const { code, message } = error;
        if (isDeposed(error)) throw error;
        if (code === Code.FAILED_PRECONDITION)
          throw new BigtableError(code, `tablet server ${server?.name} at ${server?.address}: ${message}`);
        if (code === Code.NOT_FOUND) throw lost(`${wanted.path}, which was to be copied, is gone`);
        if (!OTHERS_MAY_SUCCEED.has(code) || attempt === ATTEMPTS) throw thrown;
        await this.#servers.checkMastership();
        await sleep(this.#env.clock, ATTEMPT_MS, context.signal);
      }
    }
  }

  /** Returns how many. */
  async #deleteAll(store: StoredFiles, prefix: string, isSpared?: (path: string) => boolean): Promise<number> {
    const found = await store.list(prefix);
    const left = found.filter(({ path }) => !isSpared?.(path));
    await inParallel(left, DELETED_AT_ONCE, ({ path }) => store.delete(path));
    return left.length;
  }

  #logLeft(id: string, thrown: unknown): void {
    const error = toBigtableError(thrown).message;
    this.#env.logger.warn('files are left in the backup store; they go with the exported backup', { id, error });
  }
}

/** The backup as it is exported there. ALREADY_EXISTS where another one has that id, or one that cannot be read. */
async function readExportOf(
  store: StoredFiles,
  { id: backupId, name }: BackupFile,
  id: string,
): Promise<ExportManifest | undefined> {
  const found = await readExport(store, id).catch((thrown: unknown) => {
    if (toBigtableError(thrown).code !== Code.DATA_LOSS) throw thrown;
    throw exists(id, ', and cannot be read: delete it first');
  });
  if (found === undefined || (found.backupId === backupId && found.backup === name)) return found;
  throw exists(id);
}

/** The beginning of the paths of all files that are imported for the backup of that id. */
function importedFiles(backupId: string): string {
  return importedPath(FILES_DIRECTORY, backupId);
}

/** The path here of a file in the backup store, before it is imported. */
function pathHere(path: string): string {
  return FILES_DIRECTORY + lastPart(path);
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function withPaths(row: MetadataRow, pathOf: (path: string) => string): MetadataRow {
  const { files, clips } = row;
  const named = Object.entries(files).map(([group, paths]) => [group, paths.map(pathOf)] as const);
  return {
    ...row,
    files: Object.fromEntries(named),
    ...(clips && { clips: Object.fromEntries(Object.entries(clips).map(([path, ranges]) => [pathOf(path), ranges])) }),
  };
}

/** DATA_LOSS where the copy is not what was exported. */
function checkCopy({ path, sizeBytes, checksum }: ExportedFile, copy: FileCopy): void {
  if (copy.sizeBytes === sizeBytes && copy.checksum === checksum) return;
  throw lost(
    `${path} is damaged: it has ${copy.sizeBytes} bytes with checksum ${copy.checksum}, and had ${sizeBytes} with ${checksum}`,
  );
}

function lost(message: string): BigtableError {
  return new BigtableError(Code.DATA_LOSS, message);
}

function exists(id: string, more = ''): BigtableError {
  return new BigtableError(Code.ALREADY_EXISTS, `the backup store has a backup ${id} already${more}`);
}

function noExport(id: string): BigtableError {
  return notFound(`the backup store has no backup ${id}`);
}
