/**
 * The internal calls of master and tablet servers, as types: for each method its message and its answer. All of it is
 * plain cloneable data. Rows, tablets and tables are named by table id, row and METADATA key, never by objects of one
 * side.
 *
 * Messages are extensible: a reader skips fields it does not know; a change that it must know is a feature bit
 * (version.ts).
 */
import type { ByteString } from '../base/index.ts';
import type { PlainError } from '../env/index.ts';
import type { RowFilter } from '../filter/index.ts';
import type { MetadataCommit, MetadataKey, MetadataRow } from '../metadata/index.ts';
import type {
  Cell,
  ChangeBatch,
  ExportedBackup,
  FamilyUsage,
  HotTablet,
  NewBackup,
  NewImport,
  ReadBatch,
  ReadModifyWriteRule,
  RowMutations,
  RowRange,
  StreamProgress,
  TableSchema,
  TableTraffic,
  TabletStatistics,
} from '../model/index.ts';
import type {
  CheckAndMutateRequest,
  FamilyChange,
  KeySample,
  NewTable,
  QuotaChange,
  RawRead,
  RawWrite,
  ReadPart,
  TableChange,
  TimeSpan,
} from '../service/index.ts';
import type { ProtocolVersion } from './version.ts';

/**
 * In the calls between masters and tablet servers: the name of the incarnation that the call is meant for. Another one
 * at its address refuses the call as "not reached". A caller that means the address leaves it out.
 */
export interface Addressed {
  readonly to?: string;
}

/**
 * In the calls of a master: the epoch of its lock. A server that a later master has called refuses the call, so that a
 * master which has lost its lock and does not know it changes nothing more.
 */
export interface FromMaster extends Addressed {
  readonly masterEpoch?: number;
}

/** A tablet under one assignment. */
export interface TabletRef {
  readonly key: MetadataKey;
  readonly epoch: number;
}

/** A version of a table's schema. */
export interface SchemaRef {
  readonly tableId: string;
  readonly tableName: string;
  /** That of the schema's file. */
  readonly version: number;
}

/**
 * In calls on rows: the version of the schema's file that the caller knows. A server that knows an earlier one reads
 * the file before it carries out the call (docs/decisions/0052-confirmed-changes.md).
 */
export interface OfSchema {
  readonly schemaVersion?: number | undefined;
}

export interface TabletStatus extends TabletRef {
  /** Approximate size of its files and memtables. */
  readonly sizeBytes: number;
  /** Calls of clients about its rows since it was loaded. Undefined: the server does not count them. */
  readonly requests?: number;
}

export interface ServerStatus {
  readonly name: string;
  readonly protocol: ProtocolVersion;
  /** True when the server's lock surely holds. */
  readonly locked: boolean;
  readonly tablets: readonly TabletStatus[];
}

export interface ReadMessage extends OfSchema {
  readonly tableId: string;
  /** Inside one tablet of the server: sorted, disjoint, not empty. */
  readonly ranges: readonly RowRange[];
  readonly filter?: RowFilter | undefined;
  /** 0 = none. */
  readonly rowsLimit: number;
  readonly reversed: boolean;
}

/** Reads the changes of rows of one tablet of the server, on and on. */
export interface ReadChangesMessage extends OfSchema {
  readonly tableId: string;
  readonly range: RowRange;
  /** The parts together are the range. */
  readonly progress: readonly StreamProgress[];
  /** The reading ends when it has come beyond this time, microseconds. Left out: never. */
  readonly endMicros?: number | undefined;
  /** A batch comes after this time at the latest, empty if there are no changes. */
  readonly heartbeatMs: number;
}

export interface CheckAndMutateMessage extends Omit<CheckAndMutateRequest, 'table'>, OfSchema {
  readonly tableId: string;
}

/**
 * The address on a call that is passed on as bytes (docs/decisions/0047-calls-passed-on-as-bytes.md): the incarnation
 * that is to answer it, and the tablet as the sender knows it. Any other server, and this one at another epoch, answers
 * "not serving". Deadline, principal, app profile, priority and trace are in the context.
 */
export interface Envelope extends Addressed, OfSchema {
  readonly to: string;
  readonly tableId: string;
  readonly epoch: number;
}

export type PassedWrite = Envelope & RawWrite;
export type PassedRead = Envelope & RawRead;

/** Keys that cut a tablet into parts, with the bytes before each, and the bytes of the whole. */
export interface TabletSamples {
  readonly samples: readonly KeySample[];
  readonly sizeBytes: number;
}

/** Counters since their start. Peers of one thread may share them: they then report them under the same name. */
export interface NamedCounters {
  readonly name: string;
  readonly counters: Readonly<Record<string, number>>;
}

export type CommitOutcome =
  | { readonly kind: 'done' }
  /** Some row is no longer as the commit expected; the rows as they are now, undefined for a missing one. */
  | { readonly kind: 'refused'; readonly rows: readonly (MetadataRow | undefined)[] };

export interface BatchAnswer {
  /** By entry: undefined = done. */
  readonly outcomes: readonly (PlainError | undefined)[];
  /** How long writes of the batch waited for memory or compactions. Left out: not at all, or the caller did not ask. */
  readonly waitedMs?: number | undefined;
}

/** What a backup keeps of a tablet. */
export interface TabletBackup {
  /** As in METADATA, but for the table's id. */
  readonly row: MetadataRow;
  readonly sizeBytes: number;
}

/** A file that was copied. */
export interface FileCopy {
  readonly sizeBytes: number;
  /** CRC-32C of the whole file. */
  readonly checksum: number;
}

/** What the families of a table take. */
export interface TableFamilies {
  readonly tableId: string;
  readonly families: readonly FamilyUsage[];
}

/** The files that a sweep must spare because a server needs them. */
export interface Holdings {
  readonly files: readonly string[];
  readonly logs: readonly string[];
}

/** Calls answered by tablet servers. */
export interface TabletServerCalls {
  status: {
    /** `brief`: the caller needs to know only that the server is there, and the answer may leave out the tablets. */
    message: FromMaster & { readonly brief?: boolean };
    answer: ServerStatus;
  };
  /**
   * Serves tablets whose rows name this server and the epoch. Answers by tablet: undefined = serving, else why not.
   * Repeating it is harmless.
   */
  load: {
    message: FromMaster & {
      readonly tablets: readonly TabletRef[];
      /** Schemas of the tablets' tables: the server reads those of which it knows an earlier version. */
      readonly schemas?: readonly SchemaRef[];
    };
    answer: readonly (PlainError | undefined)[];
  };
  /**
   * Releases tablets at their epochs, for ever, with nothing left to replay. Without `flush` the contents of memory are
   * dropped if the tablet's row is gone. Answers as load does.
   */
  unload: {
    message: FromMaster & { readonly tablets: readonly TabletRef[]; readonly flush: boolean };
    answer: readonly (PlainError | undefined)[];
  };
  mutateRow: { message: RowMutations & OfSchema & { readonly tableId: string }; answer: undefined };
  /** Rows of one tablet, each atomic by itself. */
  mutateRows: {
    message: OfSchema & {
      readonly tableId: string;
      readonly entries: readonly RowMutations[];
      /** The caller wants to know how long writes wait. Left out: no. */
      readonly asksWait?: boolean | undefined;
    };
    answer: BatchAnswer;
  };
  checkAndMutateRow: { message: CheckAndMutateMessage; answer: boolean };
  readModifyWriteRow: {
    /**
     * RESOURCE_EXHAUSTED with the detail `answerBytes`, and nothing written, if the new cells take more than
     * `maxAnswerBytes`.
     */
    message: OfSchema & {
      readonly tableId: string;
      readonly row: ByteString;
      readonly rules: readonly ReadModifyWriteRule[];
      readonly maxAnswerBytes?: number | undefined;
    };
    answer: readonly Cell[];
  };
  /** A client's call as bytes, answered as bytes. */
  passedWrite: { message: PassedWrite; answer: Uint8Array };
  /** For the tablet of exactly that range. */
  sampleKeys: {
    message: { readonly tableId: string; readonly range: RowRange; readonly partBytes: number };
    answer: TabletSamples;
  };
  /**
   * Splits the tablet that holds `row`: before it, or, with `near: 'middle'`, near its middle by bytes. Does nothing if
   * the tablet begins there. FAILED_PRECONDITION if it has one row only.
   */
  split: {
    message: { readonly tableId: string; readonly row: ByteString; readonly near: 'row' | 'middle' };
    answer: undefined;
  };
  /**
   * A major compaction of the tablet of exactly that range. Answers when it is done; a caller that cancels takes back a
   * compaction that has not begun.
   */
  compact: { message: { readonly tableId: string; readonly range: RowRange }; answer: undefined };
  /** The same for the tablets of METADATA that the server has, if any. */
  compactMetadata: { message: Record<string, never>; answer: undefined };
  /** For the tablet of exactly that range. */
  tabletStatistics: { message: { readonly tableId: string; readonly range: RowRange }; answer: TabletStatistics };
  counters: { message: Record<string, never>; answer: NamedCounters };
  /** The hottest tablets of the instance's tables, measured since `startMicros` and before `endMicros`. */
  hotTablets: {
    message: TimeSpan & {
      /** Its full name. */
      readonly instance: string;
    };
    answer: readonly HotTablet[];
  };
  /** The usage of each family, for the tablet of exactly that range. */
  familyUsage: { message: { readonly tableId: string; readonly range: RowRange }; answer: readonly FamilyUsage[] };
  /** What calls have read and written of the table's tablets that this server has, or had, since its start. */
  traffic: { message: { readonly tableId: string }; answer: TableTraffic };
  /** What these tables take on this server. A count of tables with a quota begins. */
  measureUsage: { message: FromMaster & { readonly tableIds: readonly string[] }; answer: readonly TableFamilies[] };
  /** The count is over: what all tables with a quota take on all servers. */
  usageCounted: { message: FromMaster & { readonly tables: readonly TableFamilies[] }; answer: undefined };
  /** Inside one tablet. */
  dropRows: { message: { readonly tableId: string; readonly range: RowRange }; answer: undefined };
  /** Conditional commits on rows of one METADATA tablet, each by itself. */
  commit: {
    message: FromMaster & { readonly commits: readonly MetadataCommit[] };
    answer: readonly CommitOutcome[];
  };
  /** Writes all memtables of the tablets named (all tablets, when left out) to SSTables. */
  flush: { message: FromMaster & { readonly keys?: readonly MetadataKey[] }; answer: undefined };
  holdings: { message: FromMaster; answer: Holdings };
  /**
   * Sorts a part of the fenced log of a dead server into files, for recovery. `start`: position of the first append,
   * 0 = the beginning; `end`: that of the first append that is not part of it, left out = the log's end. Repeating it
   * is harmless.
   */
  sortLog: {
    message: FromMaster & {
      readonly server: string;
      readonly start: number;
      readonly end?: number;
      /** Most bytes that it keeps in memory: more become several files. */
      readonly maxBytes: number;
    };
    answer: undefined;
  };
  /**
   * Writes the memtables of these tablets to files, and answers with the rows of METADATA that a backup of them has.
   * The files stay until a sweep. Fails if one of the tablets is not served at its epoch.
   */
  backUpTablets: {
    message: FromMaster & { readonly tablets: readonly TabletRef[] };
    answer: readonly TabletBackup[];
  };
  /**
   * Copies an SSTable to the backup store, where the whole of it is verified, or from there. Repeating it is harmless:
   * `copyPath` is the name of one copy of one file. DATA_LOSS where the file is damaged, NOT_FOUND where there is none.
   */
  copyFile: {
    message: FromMaster & {
      readonly direction: 'export' | 'import';
      readonly path: string;
      readonly copyPath: string;
    };
    answer: FileCopy;
  };
  /** The schema file was changed: answers once the server has read it. */
  schemaChanged: { message: FromMaster & { readonly tableName: string }; answer: undefined };
  /** Files of the lock service that front doors follow were changed: answers once the server's own has read them. */
  doorFilesChanged: { message: FromMaster & { readonly paths: readonly string[] }; answer: undefined };
}

/** Streams answered by tablet servers. */
export interface TabletServerStreams {
  read: { message: ReadMessage; item: ReadBatch };
  /** A client's read as bytes, answered as bytes. */
  passedRead: { message: PassedRead; item: ReadPart };
  /** OUT_OF_RANGE where changes that were not read are no longer kept. */
  readChanges: { message: ReadChangesMessage; item: ChangeBatch };
}

/** Calls answered by the master. */
export interface MasterCalls {
  createTable: { message: NewTable; answer: TableSchema };
  updateTable: { message: TableChange & { readonly name: string }; answer: TableSchema };
  /**
   * Answers whether the table is kept. `atOnce`: it is not; where there is no table of the name, the one that was
   * deleted last is removed.
   */
  deleteTable: { message: { readonly name: string; readonly atOnce?: boolean }; answer: { readonly isKept?: boolean } };
  /** Restores the table of that name that was deleted last. */
  undeleteTable: { message: { readonly name: string }; answer: TableSchema };
  modifyFamilies: {
    message: { readonly name: string; readonly changes: readonly FamilyChange[] };
    answer: TableSchema;
  };
  /** Sets or removes a quota, and has the usage counted on all servers. */
  setQuota: { message: QuotaChange & { readonly name: string }; answer: TableSchema };
  /** Merges the two tablets that meet at `row`. FAILED_PRECONDITION if none do. */
  mergeTablets: { message: { readonly name: string; readonly row: ByteString }; answer: undefined };
  /** The server has split a tablet, and serves these now. The notice may get lost: METADATA says the same. */
  tabletSplit: {
    message: Addressed & { readonly server: string; readonly tablets: readonly TabletStatus[] };
    answer: undefined;
  };
  /** Some files are no longer needed by one tablet, and perhaps by none: a sweep is worthwhile. */
  filesLeft: { message: Addressed; answer: undefined };
  counters: { message: Record<string, never>; answer: NamedCounters };
  /** Its wall clock, µs since 1970, at some instant within the call. */
  clock: { message: Record<string, never>; answer: { readonly nowMicros: number } };
  /**
   * Answers when the front doors of all servers have read the files of the lock service since the call. UNAVAILABLE,
   * naming a server, if one has not by the deadline (docs/decisions/0052-confirmed-changes.md).
   */
  confirmDoorFiles: { message: { readonly paths: readonly string[] }; answer: undefined };
  /** Backs up a table, or copies a backup. Repeating it after a failure goes on. */
  createBackup: { message: NewBackup; answer: undefined };
  deleteBackup: { message: { readonly name: string }; answer: undefined };
  /** Creates a table from a backup. */
  restoreTable: { message: { readonly name: string; readonly backup: string }; answer: TableSchema };
  /**
   * Copies a backup to the backup store, under that id. Repeating it after a failure goes on. ALREADY_EXISTS where
   * another backup has that id there.
   */
  exportBackup: { message: { readonly backup: string; readonly id: string }; answer: ExportedBackup };
  /** Makes a backup of an exported one. */
  importBackup: { message: NewImport; answer: undefined };
  /** Lists the backups of the backup store, by id. */
  listExports: {
    message: Record<string, never>;
    answer: {
      readonly exports: readonly ExportedBackup[];
      /** The ids of those that cannot be read. */
      readonly unreadable: readonly string[];
    };
  };
  /** Removes a backup from the backup store. */
  deleteExport: { message: { readonly id: string }; answer: undefined };
  /** Deletes files and logs that nothing refers to. Answers how many. */
  sweep: { message: Record<string, never>; answer: { readonly files: number; readonly logs: number } };
}
