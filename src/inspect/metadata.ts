/**
 * Reads METADATA without a server: the root tablet's row from the lock service's files, METADATA's tablets from their
 * SSTables and logs, and from their rows every tablet. Formats: docs/formats/metadata.md.
 *
 * Invariant: next to a running server each tablet of METADATA is shown as it was at some instant of the reading. Its
 * row is read before its files and logs and again after them; if it has changed meanwhile (files may be gone, logs
 * trimmed) all is read anew. One that is split meanwhile is shown as its parts.
 */
import { BigtableError, type ByteString, Code, CorruptionError, unavailable } from '../base/index.ts';
import { isAfter, type LogRecord } from '../commitlog/index.ts';
import { type Clock, type Codecs, type FileSystem, type LastingFile, Pacer } from '../env/index.ts';
import {
  decodeEvents,
  decodeRootFile,
  decodeRow,
  decodeSchema,
  keyOfRow,
  lookupKey,
  METADATA_TABLE_ID,
  type MetadataKey,
  type MetadataRow,
  ROOT_KEY,
  schemaPath,
  USER_RANGE,
} from '../metadata/index.ts';
import type { Entry, PastEvent, RowRangeDeletion, TableSchema } from '../model/index.ts';
import { MetadataLogs } from './metadata-logs.ts';
import { OfflineRows } from './offline-rows.ts';
import { entriesOf, openTable } from './ss-table.ts';

export interface MetadataComponents {
  readonly fileSystem: FileSystem;
  readonly codecs: Codecs;
  readonly clock: Clock;
  /** The lasting files of the lock service as they are now. */
  lockServiceFiles(): Promise<readonly LastingFile[]>;
  /**
   * By path, the SSTables of METADATA that earlier inspections of the same database have read: they are not read again,
   * and those that this one reads are added. Default: all are read.
   */
  readonly metadataFiles?: Map<string, FileContents>;
}

/** What an SSTable of METADATA holds. */
export interface FileContents {
  readonly deletions: readonly RowRangeDeletion[];
  readonly entries: readonly Entry[];
}

export interface InspectedTablet {
  readonly key: MetadataKey;
  /** The location of its row: the file `root`, the root tablet, or another tablet of METADATA. */
  readonly rowIn: 'root file' | 'root tablet' | 'METADATA';
  readonly row: MetadataRow;
  /** Newest first; the root tablet has none. */
  readonly events: readonly PastEvent[];
}

export interface MetadataInspection {
  /** Files of the lock service by path, schemas and `root` among them. */
  readonly lockFiles: readonly { readonly path: string; readonly version: number; readonly sizeBytes: number }[];
  readonly schemas: readonly TableSchema[];
  /**
   * Every tablet: the root tablet, METADATA's, then users' by table id and row. Empty if no database was ever started
   * here.
   */
  tablets(): AsyncIterable<InspectedTablet>;
}

const ROOT_PATH = 'root';
/** The number of times that a tablet is read anew because it changes meanwhile. */
const ATTEMPTS = 50;

/** CorruptionError names the file, the log or METADATA's row that is damaged. */
export async function inspectMetadata(components: MetadataComponents): Promise<MetadataInspection> {
  const files = await components.lockServiceFiles();
  const schemaFiles = files.filter(({ path }) => path.startsWith(schemaPath('')));
  return {
    lockFiles: files.map(({ path, version, contents }) => ({ path, version, sizeBytes: contents.length })),
    schemas: schemaFiles.map(({ path, contents }) => decodeSchema(path, contents)),
    tablets: () => new OfflineMetadata(components).tablets(),
  };
}

interface TabletContents {
  readonly row: MetadataRow;
  readonly rows: OfflineRows;
}

/** The contents of the root tablet, and what they were made of. */
interface KnownRoot extends TabletContents {
  readonly logs: readonly KnownRecords[];
}

interface KnownRecords {
  readonly path: string;
  readonly records: readonly LogRecord[];
  /** Records that there were: more come, next to a running server. */
  readonly count: number;
}

class OfflineMetadata {
  readonly #components: MetadataComponents;
  readonly #logs: MetadataLogs;
  /** The root tablet is requested before and after each tablet of METADATA. */
  #knownRoot: KnownRoot | undefined;

  constructor(components: MetadataComponents) {
    this.#components = components;
    this.#logs = new MetadataLogs(components.fileSystem);
  }

  async *tablets(): AsyncIterable<InspectedTablet> {
    const root = await this.#root();
    if (!root) return;
    yield { key: keyOfRow(root.row), rowIn: 'root file', row: root.row, events: [] };
    yield* tabletsIn(root.rows, 'root tablet');
    let from: ByteString | undefined = USER_RANGE.start;
    while (from !== undefined) {
      const tablet = await this.#metadataTablet(from);
      if (tablet === undefined) return;
      yield* tabletsIn(tablet.rows, 'METADATA');
      from = tablet.row.range.end;
    }
  }

  /** The root tablet's row and contents; undefined if there is no database yet. */
  async #root(): Promise<TabletContents | undefined> {
    const row = await this.#rootRow();
    if (!row) return undefined;
    return this.#settled(row, () => this.#rootRow());
  }

  async #rootRow(): Promise<MetadataRow | undefined> {
    const file = (await this.#components.lockServiceFiles()).find(({ path }) => path === ROOT_PATH);
    return file && decodeRootFile(file.contents);
  }

  /** The tablet of METADATA that holds that row, or the next one if none does; undefined if there is none. */
  async #metadataTablet(holds: ByteString): Promise<TabletContents | undefined> {
    const below = lookupKey(METADATA_TABLE_ID, holds);
    const readRow = async (): Promise<MetadataRow | undefined> => {
      for (const { row: key, cells } of (await this.#root())?.rows.rows(below) ?? []) {
        const row = decodeRow(key, cells);
        if (row !== undefined) return row;
      }
      return undefined;
    };
    const row = await readRow();
    return row && this.#settled(row, readRow);
  }

  /** The contents of the tablet while its row was one and the same. */
  async #settled(first: MetadataRow, readRow: () => Promise<MetadataRow | undefined>): Promise<TabletContents> {
    let row = first;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const rows = await this.#read(row).catch((error: unknown) => {
        if (error instanceof BigtableError && (error.code === Code.NOT_FOUND || error.code === Code.UNAVAILABLE))
          return error;
        throw error;
      });
      const now = await readRow();
      if (now === undefined) break;
      if (now.version !== row.version || now.epoch !== row.epoch || keyOfRow(now) !== keyOfRow(row)) row = now;
      else if (rows instanceof OfflineRows) return { row, rows };
      else if (rows.code === Code.NOT_FOUND)
        throw new CorruptionError('METADATA', 0, `a listed file is missing: ${rows.message}`, rows);
    }
    throw unavailable('METADATA changes faster than it can be read: try again');
  }

  async #read(row: MetadataRow): Promise<OfflineRows> {
    const logs: KnownRecords[] = [];
    for (const path of row.logs) {
      const records = await this.#logs.records(path);
      logs.push({ path, records, count: records.length });
    }
    const isRoot = keyOfRow(row) === ROOT_KEY;
    const known = isRoot ? this.#knownRoot : undefined;
    if (known !== undefined && isSame(known, row, logs)) return known.rows;
    const rows = new OfflineRows(row.range);
    for (const files of Object.values(row.files)) {
      // a row deletion in a file is about the files of its locality group alone
      const group = new OfflineRows(row.range);
      for (const path of files.toReversed()) await this.#addFile(group, path);
      rows.addAll(group);
    }
    await this.#addRecords(rows, row, logs);
    if (isRoot) this.#knownRoot = { row, rows, logs };
    return rows;
  }

  async #addRecords(rows: OfflineRows, { redo }: MetadataRow, logs: readonly KnownRecords[]): Promise<void> {
    const all: { readonly path: string; readonly record: LogRecord }[] = [];
    for (const { path, records } of logs)
      for (const record of records) if (isAfter(record, redo) && rows.concerns(record)) all.push({ path, record });
    all.sort((a, b) => a.record.epoch - b.record.epoch || a.record.sequence - b.record.sequence);
    const pacer = new Pacer(this.#components.clock);
    let last = redo;
    for (const { path, record } of all) {
      // a record that was written twice counts once
      if (!isAfter(record, last)) continue;
      last = record;
      rows.applyRecord(path, record);
      if (pacer.due()) await pacer.pause();
    }
  }

  async #addFile(rows: OfflineRows, path: string): Promise<void> {
    const { metadataFiles } = this.#components;
    const contents = metadataFiles?.get(path) ?? (await this.#readFile(path));
    metadataFiles?.set(path, contents);
    for (const deletion of contents.deletions) rows.dropRows(deletion);
    for (const entry of contents.entries) rows.applyEntry(path, entry);
  }

  async #readFile(path: string): Promise<FileContents> {
    const table = await openTable(this.#components, path);
    try {
      const entries: Entry[] = [];
      for await (const entry of entriesOf(table, this.#components.clock)) entries.push(entry);
      return { deletions: table.rowRangeDeletions(), entries };
    } finally {
      table.close();
    }
  }
}

/** True if the root tablet was made of the same row and the same records. */
function isSame(known: KnownRoot, { version, epoch }: MetadataRow, logs: readonly KnownRecords[]): boolean {
  return (
    known.row.version === version &&
    known.row.epoch === epoch &&
    known.logs.length === logs.length &&
    known.logs.every(({ records, count }, i) => records === logs[i]?.records && count === logs[i].count)
  );
}

function tabletsIn(rows: OfflineRows, rowIn: InspectedTablet['rowIn']): InspectedTablet[] {
  const tablets: InspectedTablet[] = [];
  for (const { row: key, cells } of rows.rows()) {
    const row = decodeRow(key, cells);
    if (!row) continue;
    const events = decodeEvents(key, cells);
    tablets.push({ key, rowIn, row, events });
  }
  return tablets;
}
