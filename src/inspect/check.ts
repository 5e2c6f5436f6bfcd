/**
 * Checks a whole database: every file of every kind by itself, and then against one another. Only reads, takes no lock,
 * and may run next to a running server: a file that goes away or changes meanwhile is examined again before it is
 * called missing.
 *
 * It holds in memory one block, one append, one tablet of METADATA, and some words on each SSTable.
 */
import { BigtableError, Code, quote, toBigtableError } from '../base/index.ts';
import { isAfter, logOfSorted, SORTED_DIRECTORY } from '../commitlog/index.ts';
import type { FileInfo, LastingFile } from '../env/index.ts';
import {
  backupPath,
  decodeBackup,
  decodeDeletionMark,
  decodeRootFile,
  decodeSchema,
  deletionPath,
  METADATA_TABLE_ID,
  type MetadataRow,
  schemaPath,
} from '../metadata/index.ts';
import { intersectRanges, isEmptyRange, type TableSchema } from '../model/index.ts';
import { checkFile, type CheckedTable, type FileTally } from './check-files.ts';
import { type CheckedLog, checkLog } from './check-logs.ts';
import { RowCheck } from './check-rows.ts';
import { type Finding, Findings } from './findings.ts';
import { keptTables } from './kept-tables.ts';
import { type InspectedTablet, inspectMetadata, type MetadataComponents } from './metadata.ts';

/** Every file of the lock service that can be read, and the damage of the others. */
export interface LockFilesChecked {
  readonly files: readonly LastingFile[];
  readonly damages: readonly { readonly name: string; readonly error: BigtableError }[];
  readonly count: number;
}

export interface CheckComponents extends Omit<MetadataComponents, 'lockServiceFiles'> {
  readAllLockFiles(): Promise<LockFilesChecked>;
}

export interface CheckProgress {
  readonly doneBytes: number;
  /** Bytes of all SSTables. */
  readonly totalBytes: number;
}

export interface CheckReport {
  /** Damage. Empty: the whole database is as it was written. */
  readonly findings: readonly Finding[];
  /**
   * Files and logs without any reference; the next sweep of a server removes them. Undefined if METADATA cannot be
   * read, so that they are unknown.
   */
  readonly orphans: readonly string[] | undefined;
  /** Oddities that are no damage. */
  readonly notes: readonly string[];
  readonly counts: {
    readonly lockFiles: number;
    readonly tables: number;
    readonly tablets: number;
    readonly ssTables: number;
    readonly entries: number;
    readonly logs: number;
    readonly records: number;
    readonly bytes: number;
  };
}

export interface CheckOptions {
  /** Called after every SSTable. */
  readonly onProgress?: (progress: CheckProgress) => void | Promise<void>;
  /**
   * By path, the SSTables that earlier checks of the same database found whole: they are not read again, and those that
   * this one finds whole are added. Default: all are read.
   */
  readonly wholeFiles?: Map<string, WholeFile>;
  /** Called with each tablet, in the order of METADATA. */
  readonly onTablet?: (tablet: InspectedTablet) => void;
}

/** What a check has kept of an SSTable. */
export type WholeFile = CheckedTable;

const LOCK_FILES = 'lock-service/';
const SSTABLES = 'sstables/';
const LOGS = 'logs/';
const ROOT_PATH = 'root';

export function checkDatabase(components: CheckComponents, options: CheckOptions = {}): Promise<CheckReport> {
  return new Check(components, options).run();
}

class Check {
  readonly #components: CheckComponents;
  readonly #options: CheckOptions;
  readonly #findings = new Findings();
  readonly #notes: string[] = [];
  readonly #tally: FileTally = { ssTables: 0, entries: 0 };
  /** Undefined for one that is damaged. */
  readonly #tables = new Map<string, CheckedTable | undefined>();
  readonly #logs = new Map<string, CheckedLog>();
  /** The table that lists each file. */
  readonly #listed = new Map<string, string>();
  readonly #listedLogs = new Set<string>();
  /** Files that are listed and missing, with the table or tablet that lists them. */
  readonly #missing = new Map<string, string>();
  #tablets = 0;

  constructor(components: CheckComponents, options: CheckOptions) {
    this.#components = components;
    this.#options = options;
  }

  async run(): Promise<CheckReport> {
    const { fileSystem, clock } = this.#components;
    const lockFiles = await this.#components.readAllLockFiles();
    for (const { name, error } of lockFiles.damages) this.#findings.addError(error, name);
    const schemas = this.#schemas(lockFiles);
    const files = await fileSystem.list('');
    const ofLogs = new Map<string, Findings>();
    for (const path of await fileSystem.listLogs('')) {
      const findings = new Findings();
      ofLogs.set(path, findings);
      this.#logs.set(path, await checkLog(fileSystem, clock, path, findings));
    }
    const bytes = await this.#checkFiles(files.filter(({ path }) => path.startsWith(SSTABLES)));
    const sorted = files.map(({ path }) => path).filter((path) => path.startsWith(SORTED_DIRECTORY));
    for (const { path } of files)
      if (![SSTABLES, LOCK_FILES, SORTED_DIRECTORY].some((directory) => path.startsWith(directory)))
        this.#notes.push(`${path} is not a file of the database`);
    const isKnown = await this.#checkMetadata(lockFiles, schemas);
    for (const [path, { list }] of ofLogs) this.#judgeLog(path, list, isKnown);
    const unlisted = (paths: Iterable<string>, listed: { has(path: string): boolean }): string[] =>
      [...paths].filter((path) => !listed.has(path));
    return {
      findings: this.#findings.list,
      orphans: isKnown
        ? [
            ...unlisted(this.#tables.keys(), this.#listed),
            ...unlisted(this.#logs.keys(), this.#listedLogs),
            // a sorted log is there for the log itself
            ...sorted.filter((path) => !this.#logs.has(logOfSorted(path))),
          ]
        : undefined,
      notes: this.#notes,
      counts: {
        lockFiles: lockFiles.count,
        tables: schemas.size,
        tablets: this.#tablets,
        ...this.#tally,
        logs: this.#logs.size,
        records: [...this.#logs.values()].reduce((sum, { records }) => sum + records, 0),
        bytes,
      },
    };
  }

  /**
   * A log that no tablet lists holds nothing that is needed. It is damaged where appends of a server that could not
   * start, or that is dead, landed after its log was deleted.
   */
  #judgeLog(path: string, found: readonly Finding[], isKnown: boolean): void {
    if (isKnown && !this.#listedLogs.has(path)) {
      for (const { message } of found) this.#notes.push(`${message}; no tablet needs this log`);
      return;
    }
    for (const { file, offset, message } of found) this.#findings.add(file, offset, message);
  }

  async #checkFiles(files: readonly FileInfo[]): Promise<number> {
    const totalBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    let doneBytes = 0;
    for (const file of files) {
      this.#tables.set(file.path, await this.#checkFile(file));
      doneBytes += file.sizeBytes;
      await this.#options.onProgress?.({ doneBytes, totalBytes });
    }
    return totalBytes;
  }

  async #checkFile(file: FileInfo): Promise<CheckedTable | undefined> {
    const { wholeFiles } = this.#options;
    const known = wholeFiles?.get(file.path);
    if (known !== undefined) return known;
    const found = this.#findings.list.length;
    const table = await checkFile(this.#components, file, this.#findings, this.#tally);
    if (table !== undefined && this.#findings.list.length === found) wholeFiles?.set(file.path, table);
    return table;
  }

  /** By id. */
  #schemas({ files }: LockFilesChecked): Map<string, TableSchema> {
    const schemas = new Map<string, TableSchema>();
    for (const { path, contents } of files.filter((file) => file.path.startsWith(schemaPath('')))) {
      try {
        const schema = decodeSchema(path, contents);
        const other = schemas.get(schema.id);
        if (schemaPath(schema.name) !== path) this.#findings.add(path, 0, `the schema is that of ${schema.name}`);
        if (other) this.#findings.add(path, 0, `the schema has the id ${schema.id}, which is that of ${other.name}`);
        schemas.set(schema.id, schema);
      } catch (error) {
        this.#findings.addError(toBigtableError(error), path);
      }
    }
    return schemas;
  }

  /** False if not all rows can be read. */
  async #checkMetadata(lockFiles: LockFilesChecked, schemas: ReadonlyMap<string, TableSchema>): Promise<boolean> {
    if (!this.#checkRoot(lockFiles)) return false;
    const rows = new RowCheck(this.#findings, schemas);
    try {
      for await (const tablet of this.#tabletsOf()) {
        this.#tablets++;
        this.#options.onTablet?.(tablet);
        rows.add(tablet);
        await this.#checkReferences(tablet.row);
      }
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (!(thrown instanceof BigtableError)) throw thrown;
      this.#findings.addError(error, 'METADATA');
      return false;
    }
    rows.end();
    // one of the damaged files may be the schema
    if (lockFiles.damages.length === 0) {
      await this.#checkSchemaless(rows, lockFiles);
      await this.#checkBackups(rows, lockFiles);
    }
    await this.#confirmMissing();
    return true;
  }

  async *#tabletsOf() {
    const { readAllLockFiles, ...components } = this.#components;
    yield* (
      await inspectMetadata({
        ...components,
        lockServiceFiles: async () => (await readAllLockFiles()).files.filter(({ path }) => path === ROOT_PATH),
      })
    ).tablets();
  }

  /** True if there is a root tablet to begin with. */
  #checkRoot({ files, damages }: LockFilesChecked): boolean {
    const root = files.find(({ path }) => path === ROOT_PATH);
    if (root === undefined) {
      const hasData = this.#tables.size > 0 || [...this.#logs.values()].some(({ records }) => records > 1);
      const message = 'the root tablet’s location is gone: nothing in the database can be found without it';
      if (hasData || damages.length > 0) this.#findings.add(ROOT_PATH, undefined, message);
      return false;
    }
    try {
      decodeRootFile(root.contents);
      return true;
    } catch (thrown) {
      this.#findings.addError(toBigtableError(thrown), ROOT_PATH);
      return false;
    }
  }

  async #checkReferences(row: MetadataRow): Promise<void> {
    const where = `the tablet of table ${row.tableId} that begins at ${quote(row.range.start)}`;
    for (const [group, paths] of Object.entries(row.files)) {
      // by the rows they are listed for: a merge of two tablets joins their lists, each of which has its own order
      // of its own
      const newerOf = new Map<string, CheckedTable>();
      if (new Set(paths).size < paths.length) this.#findings.add('METADATA', undefined, `${where} lists a file twice`);
      for (const path of paths) {
        const other = this.#listed.get(path);
        // a file that says whose it is is judged by itself: backups and restored tables list those of others
        const isUnknown = this.#tables.get(path)?.lineage === undefined;
        if (other !== undefined && other !== row.tableId && isUnknown)
          this.#findings.add(path, undefined, `tables ${other} and ${row.tableId} both list the file`);
        this.#listed.set(path, row.tableId);
        if (!this.#tables.has(path) && (await this.#isMissing(path))) this.#missing.set(path, where);
        const table = this.#tables.get(path);
        if (table === undefined) continue;
        const rows = JSON.stringify(row.clips?.[path] ?? [row.range]);
        this.#checkFileOf(row, where, group, path, table, newerOf.get(rows));
        newerOf.set(rows, table);
      }
    }
    for (const path of row.logs) {
      this.#listedLogs.add(path);
      const log = this.#logs.get(path);
      if (log === undefined || (log.isWhole && log.appends === 0)) this.#missing.set(path, where);
      else this.#checkLogOf(row, where, path, log);
    }
    // those whose changes a stream may read. They may be gone: a stream keeps a limited number of bytes
    for (const { server } of row.pastOwners ?? []) this.#listedLogs.add(LOGS + server);
  }

  /**
   * Compares the facts that the file states about itself with the row. A backup, and a table that was restored from
   * one, list files of a table that was made before.
   */
  #checkFileOf(
    row: MetadataRow,
    where: string,
    group: string,
    path: string,
    table: CheckedTable,
    newer: CheckedTable | undefined,
  ): void {
    const { lineage, newest } = table;
    const wrong = (what: string): void => this.#findings.add(path, undefined, `${where} lists the file, which ${what}`);
    if (table.group !== group) wrong(`is of locality group ${table.group}, under group ${group}`);
    const isOfAnother = lineage !== undefined && lineage.tableId !== row.tableId;
    if (isOfAnother && (lineage.tableId > row.tableId || lineage.tableId === METADATA_TABLE_ID))
      wrong(`is of table ${lineage.tableId}`);
    if (lineage !== undefined && isEmptyRange(intersectRanges(lineage.range, row.range))) wrong('holds other rows');
    if (newest === undefined) return;
    if (isAfter(newest, row.redo))
      wrong(
        `holds records up to ${newest.sequence} of epoch ${newest.epoch}, after the redo point ${row.redo.sequence} of epoch ${row.redo.epoch}`,
      );
    if (newer?.newest !== undefined && isAfter(newest, newer.newest))
      wrong('is newer than the one before it, in a list that begins with the newest');
  }

  /** Checks the log of the tablet's present server. Its end is known in part: it contained the records in files. */
  #checkLogOf({ server, epoch, redo }: MetadataRow, where: string, path: string, log: CheckedLog): void {
    if (
      server === undefined ||
      !path.endsWith(`/${server.name}`) ||
      redo.epoch !== epoch ||
      !log.isWhole ||
      log.lastSequence >= redo.sequence
    )
      return;
    this.#findings.add(
      path,
      undefined,
      `the log ends with record ${log.lastSequence}, and ${where} had record ${redo.sequence} from it: its end is gone`,
    );
  }

  /** Empty if the schema is damaged, which is a finding of its own. */
  readonly #schemaIdOf = (path: string, contents: Uint8Array): string => {
    try {
      return decodeSchema(path, contents).id;
    } catch {
      return '';
    }
  };

  async #isMissing(path: string): Promise<boolean> {
    try {
      await this.#components.fileSystem.size(path);
      return false;
    } catch (error) {
      if (error instanceof BigtableError && error.code === Code.NOT_FOUND) return true;
      throw error;
    }
  }

  /** A file that a running server has replaced meanwhile is not missing. */
  async #confirmMissing(): Promise<void> {
    if (this.#missing.size === 0) return;
    const listed = new Set<string>();
    for await (const { row } of this.#tabletsOf())
      for (const path of [...Object.values(row.files).flat(), ...row.logs]) listed.add(path);
    for (const [path, where] of this.#missing)
      if (listed.has(path))
        this.#findings.add(path, undefined, `${path} is not there (or holds nothing), and ${where} lists it`);
  }

  /** Rows of backups whose files are gone, and backups whose rows are gone. */
  async #checkBackups({ backups }: RowCheck, before: LockFilesChecked): Promise<void> {
    // a running server may have created or deleted backups since the files were read
    const { files } = await this.#components.readAllLockFiles();
    const wereThere = new Set(before.files.map(({ path }) => path));
    const known = new Map<string, string>();
    for (const { path, contents } of files) {
      if (!path.startsWith(backupPath(''))) continue;
      try {
        const { id, name, state } = decodeBackup(path, contents);
        known.set(id, name);
        if (state !== 'ready' || !wereThere.has(path)) continue;
        const gaps = backups.get(id);
        if (gaps === undefined)
          this.#findings.add(path, undefined, `backup ${name} has no rows in METADATA: it cannot be restored`);
        for (const gap of gaps ?? []) this.#findings.add('METADATA', undefined, `backup ${name}, ${gap}`);
      } catch (thrown) {
        this.#findings.add(path, undefined, toBigtableError(thrown).message);
      }
    }
    for (const id of backups.keys())
      if (!known.has(id)) this.#notes.push(`rows of backup ${id} are left: its creation or deletion was not finished`);
  }

  /** Tables without schema, judged as the master does (docs/decisions/0021-tables-without-a-schema.md). */
  async #checkSchemaless(rows: RowCheck, before: LockFilesChecked): Promise<void> {
    if (rows.schemaless.size === 0 && !before.files.some(({ path }) => path.startsWith(deletionPath()))) return;
    // a running server may have created or deleted tables since the files were read
    const { files } = await this.#components.readAllLockFiles();
    const kept = keptTables(files);
    const wereThere = new Set(before.files.map(({ path }) => path));
    const idsIn = (directory: string, idOf: (path: string, contents: Uint8Array) => string): Set<string> =>
      new Set(files.flatMap(({ path, contents }) => (path.startsWith(directory) ? idOf(path, contents) : [])));
    const present = idsIn(schemaPath(''), this.#schemaIdOf);
    const deleted = idsIn(deletionPath(), (path, contents) => {
      try {
        return decodeDeletionMark(path, contents).tableId;
      } catch (thrown) {
        this.#findings.addError(toBigtableError(thrown), path);
        return '';
      }
    });
    for (const { tableId, tablets, files: count, wasServed, gaps } of rows.schemaless.values()) {
      if (present.has(tableId)) continue;
      if (kept.has(tableId)) {
        for (const gap of gaps) this.#findings.add('METADATA', undefined, `deleted ${gap}`);
        continue;
      }
      const what = `table ${tableId} has ${tablets} tablets with ${count} SSTables and no schema`;
      if (!wasServed) this.#notes.push(`${what}: its creation was not finished`);
      else if (deleted.has(tableId)) this.#notes.push(`${what}: its deletion was not finished`);
      else {
        const message = `${what}: its schema file is gone, so no server serves it; its files are kept`;
        for (const finding of [message, ...gaps]) this.#findings.add('METADATA', undefined, finding);
      }
    }
    for (const [tableId, { name, path, schema }] of kept) {
      if (present.has(tableId) || !wereThere.has(path)) continue;
      const what = `deleted table ${tableId} (${name})`;
      if (schema instanceof BigtableError)
        this.#findings.add(path, undefined, `${what} cannot be restored: ${schema.message}`);
      if (!rows.schemaless.has(tableId))
        this.#findings.add(path, undefined, `${what} cannot be restored: it has no rows in METADATA`);
      this.#notes.push(`${what} is kept, and can be restored`);
    }
  }
}
