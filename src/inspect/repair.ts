/**
 * Rebuilds METADATA after it was lost: from SSTables, which state their lineage, and from the logs, which are replayed
 * into new ones. Nothing is written before all is planned, and the root tablet's location is written last: until then
 * the database is as it was.
 *
 * Memory: the logs' bytes, which the log limit bounds, as for any recovery; and some words on each SSTable. Method and
 * limits: docs/REPAIR.md.
 */
import { type ByteString, BigtableError, toBigtableError } from '../base/index.ts';
import { type EncodedRecord, isAfter, readEncodedAppends, type RedoPoint } from '../commitlog/index.ts';
import { type LockService, Pacer, readPieces, writePieces } from '../env/index.ts';
import {
  commitOfRow,
  decodeSchema,
  encodeNextTableId,
  encodeRootFile,
  encodeSchema,
  FIRST_TABLE_ID,
  keyOfRow,
  METADATA_SCHEMA,
  METADATA_TABLE_ID,
  type MetadataRow,
  mutationsOf,
  NEXT_TABLE_ID_PATH,
  PlainObject,
  ROOT_RANGE,
  schemaPath,
  USER_RANGE,
} from '../metadata/index.ts';
import { DEFAULT_PARENT, type RowRange, storageFamily, type TableSchema } from '../model/index.ts';
import { describeSsTable, isImportedPath, type SsTableLayout } from '../sstable/index.ts';
import type { CheckComponents, LockFilesChecked } from './check.ts';
import { keptTables } from './kept-tables.ts';
import { type FileTarget, RebuiltTablet } from './rebuilt-tablet.ts';
import { rebuildSchema } from './rebuilt-schema.ts';
import { overlaps, placedFile, planTablets, type PlannedTablet } from './repair-plan.ts';

interface PlannedTable {
  readonly schema: TableSchema;
  /** It was deleted and can be restored: it gets rows of METADATA, and no schema. */
  readonly isKept: boolean;
  readonly tablets: readonly PlannedTablet[];
  readonly records: readonly EncodedRecord[];
}

export interface RepairPlan {
  readonly tables: readonly PlannedTable[];
  readonly lockFiles: LockFilesChecked;
  /** Descriptions of data that is lost, or is not where it was. */
  readonly unsaved: readonly string[];
  /** Descriptions of guesses. */
  readonly notes: readonly string[];
  /** Files that the new METADATA will not list: others hold all that they hold. */
  readonly superfluous: readonly string[];
  /** SSTables of the former METADATA. */
  readonly metadataFiles: readonly string[];
  /** The greatest epoch of METADATA itself. */
  readonly metadataEpoch: number;
}

export interface RepairTarget {
  readonly fileSystem: FileTarget['fileSystem'];
  readonly lockService: LockService;
  /** True if the target is another place than the source: files are copied there. */
  readonly isElsewhere: boolean;
  uniqueName(): string;
}

export interface RepairResult {
  readonly tables: readonly {
    readonly id: string;
    readonly name: string;
    readonly tablets: number;
    readonly files: number;
    readonly replayedRecords: number;
  }[];
  /** More items for `RepairPlan.unsaved`, found on the way. */
  readonly unsaved: readonly string[];
}

const SSTABLES = 'sstables/';
const ROOT_PATH = 'root';
const COPY_BYTES = 1 << 20;
/** Replayed records are written to files at this size. */
const FLUSH_BYTES = 64 << 20;
/** The interval at which memtables are measured, in records. */
const MEASURED_RECORDS = 256;

export async function planRepair(components: CheckComponents): Promise<RepairPlan> {
  const unsaved: string[] = [];
  const notes: string[] = [];
  const lockFiles = await components.readAllLockFiles();
  const schemas = readSchemas(lockFiles, unsaved);
  const layouts = await readLayouts(components, unsaved);
  const records = await readRecords(components, unsaved);
  const parent = [...schemas.values()][0]?.name.replace(/\/tables\/.*$/, '') ?? DEFAULT_PARENT;
  const tables: PlannedTable[] = [];
  const superfluous: string[] = [];
  const kept = keptTables(lockFiles.files);
  for (const id of [...new Set([...schemas.keys(), ...kept.keys(), ...layouts.keys()])].sort()) {
    if (id === METADATA_TABLE_ID) continue;
    const ofTable = layouts.get(id) ?? [];
    const copy = kept.get(id)?.schema;
    const isKept = !schemas.has(id) && copy !== undefined && !(copy instanceof BigtableError);
    let schema = isKept ? copy : schemas.get(id);
    if (schema === undefined) {
      const rebuilt = await rebuildSchema(components, id, parent, ofTable);
      schema = rebuilt.schema;
      notes.push(...rebuilt.notes);
    }
    const files = ofTable.flatMap((layout) => placedFile(layout) ?? []);
    const stored = new Set(
      Object.values(schema.families).map(({ name, generation }) => storageFamily(name, generation)),
    );
    const tablets = planTablets(files, stored);
    for (const [a, b] of tablets.flatMap(overlaps))
      unsaved.push(
        `${a.path} and ${b.path} of table ${id} hold some of the same records: what was added up in them may count twice`,
      );
    const listed = new Set(tablets.flatMap((tablet) => tablet.files.map(({ path }) => path)));
    superfluous.push(...files.filter(({ path }) => !listed.has(path)).map(({ path }) => path));
    tables.push({ schema, isKept, tablets, records: sorted(records.get(id) ?? []) });
  }
  for (const [id, list] of records) {
    if (id === METADATA_TABLE_ID || schemas.has(id) || kept.has(id) || layouts.has(id)) continue;
    unsaved.push(
      `${list.length} records of table ${id}, which has neither a schema nor SSTables: it was deleted, or its schema file is gone`,
    );
  }
  const metadataFiles = (layouts.get(METADATA_TABLE_ID) ?? []).map(({ path }) => path);
  const epochs = [
    ...(layouts.get(METADATA_TABLE_ID) ?? []).map(({ properties }) => properties.newest?.epoch ?? 0),
    ...(records.get(METADATA_TABLE_ID) ?? []).map(({ epoch }) => epoch),
  ];
  return {
    tables,
    lockFiles,
    unsaved,
    notes,
    superfluous,
    metadataFiles,
    metadataEpoch: epochs.reduce((most, epoch) => Math.max(most, epoch), 0),
  };
}

/** Writes the plan's METADATA, and the files it needs. */
export async function carryOutRepair(
  components: CheckComponents,
  plan: RepairPlan,
  target: RepairTarget,
): Promise<RepairResult> {
  const unsaved: string[] = [];
  const prefix = `${SSTABLES}${target.uniqueName()}`;
  let files = 0;
  const fileTarget: FileTarget = {
    fileSystem: target.fileSystem,
    codecs: components.codecs,
    clock: components.clock,
    newFilePath: () => `${prefix}-${files++}`,
  };
  const rows: MetadataRow[] = [];
  const tables: RepairResult['tables'][number][] = [];
  for (const table of plan.tables) {
    const tablets = table.tablets.map((tablet) => new RebuiltTablet(table.schema, tablet));
    if (target.isElsewhere)
      for (const path of new Set(tablets.flatMap((tablet) => Object.values(tablet.files).flat())))
        await writePieces(target.fileSystem, path, readPieces(components.fileSystem, path, COPY_BYTES));
    await replay(components, fileTarget, table.records, tablets, unsaved);
    const epoch = tablets.reduce((most, { redo }) => Math.max(most, redo.epoch), 0) + 1;
    for (const tablet of tablets) rows.push(rowOf(table.schema.id, tablet, epoch));
    const { id, name } = table.schema;
    const listed = new Set(tablets.flatMap((tablet) => Object.values(tablet.files).flat()));
    tables.push({
      id,
      name,
      tablets: tablets.length,
      files: listed.size,
      replayedRecords: tablets.reduce((sum, { replayed }) => sum + replayed, 0),
    });
  }
  const epoch = plan.metadataEpoch + 1;
  const usersRow = rowOf(METADATA_TABLE_ID, await metadataTablet(fileTarget, target, USER_RANGE, rows, epoch), epoch);
  const rootRow = rowOf(
    METADATA_TABLE_ID,
    await metadataTablet(fileTarget, target, ROOT_RANGE, [usersRow], epoch),
    epoch,
  );
  await writeLockFiles(plan, target);
  await target.lockService.write(ROOT_PATH, encodeRootFile({ ...rootRow, version: 1, commitId: target.uniqueName() }));
  if (!target.isElsewhere) for (const path of plan.metadataFiles) await target.fileSystem.delete(path);
  return { tables, unsaved };
}

function readSchemas({ files, damages }: LockFilesChecked, unsaved: string[]): Map<string, TableSchema> {
  for (const { name, error } of damages)
    unsaved.push(`a file of the lock service, maybe the schema of a table: ${name}: ${error.message}`);
  const schemas = new Map<string, TableSchema>();
  for (const { path, contents } of files.filter((file) => file.path.startsWith(schemaPath('')))) {
    try {
      const schema = decodeSchema(path, contents);
      schemas.set(schema.id, schema);
    } catch (error) {
      unsaved.push(`a schema: ${toBigtableError(error).message}`);
    }
  }
  return schemas;
}

/** By table. */
async function readLayouts(components: CheckComponents, unsaved: string[]): Promise<Map<string, SsTableLayout[]>> {
  const layouts = new Map<string, SsTableLayout[]>();
  const lose = (path: string, why: string): void => void unsaved.push(`an SSTable: ${path}: ${why}`);
  for (const { path } of await components.fileSystem.list(SSTABLES)) {
    try {
      const layout = await describeSsTable(components, path);
      const { lineage } = layout.properties;
      if (lineage === undefined || placedFile(layout) === undefined)
        lose(path, 'it does not name the table it belongs to');
      else if (isImportedPath(path)) lose(path, 'it was imported with a backup, and names the table that it had there');
      else if (lineage.path !== path)
        lose(path, `it was written as ${lineage.path} and stands in another file's place`);
      // blocks are read once, in order, where entries are read, so the cache is small
      else layouts.set(lineage.tableId, [...(layouts.get(lineage.tableId) ?? []), { ...layout, blocks: [] }]);
    } catch (error) {
      lose(path, toBigtableError(error).message);
    }
  }
  return layouts;
}

/** By table. Records after damage in a log are lost. */
async function readRecords(
  { fileSystem, clock }: CheckComponents,
  unsaved: string[],
): Promise<Map<string, EncodedRecord[]>> {
  const records = new Map<string, EncodedRecord[]>();
  const pacer = new Pacer(clock);
  for (const path of await fileSystem.listLogs('')) {
    let last: RedoPoint | undefined;
    try {
      for await (const append of readEncodedAppends(fileSystem, path)) {
        for (const record of append.records) {
          const list = records.get(record.tableId);
          if (list) list.push(record);
          else records.set(record.tableId, [record]);
          last = record;
        }
        if (pacer.due()) await pacer.pause();
      }
    } catch (thrown) {
      const error: BigtableError = toBigtableError(thrown);
      unsaved.push(
        `${last === undefined ? 'all records' : `records after number ${last.sequence}`} of log ${path}: ${error.message}`,
      );
    }
  }
  return records;
}

/** Each record once. */
function sorted(records: readonly EncodedRecord[]): EncodedRecord[] {
  const all = [...records].sort((a, b) => a.epoch - b.epoch || a.sequence - b.sequence);
  return all.filter((record, i) => i === 0 || isAfter(record, all[i - 1]!));
}

async function replay(
  { clock }: CheckComponents,
  target: FileTarget,
  records: readonly EncodedRecord[],
  tablets: readonly RebuiltTablet[],
  unsaved: string[],
): Promise<void> {
  const pacer = new Pacer(clock);
  const addUnsaved = (what: string | undefined): void => void (what !== undefined && unsaved.push(what));
  for (const [i, encoded] of records.entries()) {
    const record = encoded.decode();
    const { body } = record;
    const touched = body.kind === 'rows' ? new Set(body.rows.map(({ row }) => tabletOf(tablets, row))) : tablets;
    for (const tablet of touched) addUnsaved(tablet.apply(record));
    if (pacer.due()) await pacer.pause();
    const isFull =
      i % MEASURED_RECORDS === 0 && tablets.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0) > FLUSH_BYTES;
    if (isFull) for (const tablet of tablets) await tablet.flush(target);
  }
  for (const tablet of tablets) await tablet.flush(target);
}

function tabletOf(tablets: readonly RebuiltTablet[], row: ByteString): RebuiltTablet {
  let [low, high] = [0, tablets.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tablets[middle]!.range.start <= row) low = middle;
    else high = middle - 1;
  }
  return tablets[low]!;
}

function rowOf(tableId: string, { range, files, redo, lastServerMicros }: RebuiltTablet, epoch: number): MetadataRow {
  return {
    tableId,
    range,
    server: undefined,
    epoch,
    version: 0,
    commitId: '',
    files,
    redo,
    logs: [],
    lastServerMicros,
  };
}

/** A tablet of METADATA with these rows in it. */
async function metadataTablet(
  files: FileTarget,
  target: RepairTarget,
  range: RowRange,
  rows: readonly MetadataRow[],
  epoch: number,
): Promise<RebuiltTablet> {
  const tablet = new RebuiltTablet(METADATA_SCHEMA, { range, files: [], redo: new Map() });
  const atMicros = files.clock.nowMicros();
  for (const [i, row] of rows.entries()) {
    const commit = commitOfRow(target.uniqueName(), { kind: 'created', atMicros }, keyOfRow(row), undefined, row);
    const changes = mutationsOf(commit).map(([key, mutations]) => ({ row: key, mutations }));
    tablet.apply({
      tableId: METADATA_TABLE_ID,
      epoch,
      sequence: i + 1,
      commitMicros: atMicros,
      origin: 0,
      body: { kind: 'rows', rows: changes },
    });
  }
  await tablet.flush(files);
  return tablet;
}

/** All but the root tablet's location. */
async function writeLockFiles(
  { tables, lockFiles }: RepairPlan,
  { lockService, isElsewhere }: RepairTarget,
): Promise<void> {
  const known = new Set(lockFiles.files.map(({ path }) => path));
  if (isElsewhere)
    for (const { path, contents } of lockFiles.files) if (path !== ROOT_PATH) await lockService.write(path, contents);
  for (const { schema, isKept } of tables)
    if (!isKept && !known.has(schemaPath(schema.name)))
      await lockService.write(schemaPath(schema.name), encodeSchema(schema));
  const nextId = tables.reduce(
    (most, { schema }) => Math.max(most, Number.parseInt(schema.id, 16) + 1),
    FIRST_TABLE_ID,
  );
  const file = lockFiles.files.find(({ path }) => path === NEXT_TABLE_ID_PATH);
  // not decodeNextTableId, which refuses a number that is too small: that is mended here
  if (file === undefined || PlainObject.parse(NEXT_TABLE_ID_PATH, file.contents).count('next') < nextId)
    await lockService.write(NEXT_TABLE_ID_PATH, encodeNextTableId(nextId));
}
