/**
 * The messages, answers and items of all internal calls, by the calls' names. docs/formats/internal-calls.proto is made
 * of them.
 *
 * The number of a field never becomes that of another one. A field that is added is optional, so that messages of
 * earlier versions are read; a change that a reader must know is a feature bit (version.ts).
 */
import { Code, invalidArgument, isObjectOfNames } from '../../base/index.ts';
import type { PlainError, PlainThrown } from '../../env/index.ts';
import type { ExportedBackup, FamilyUsage } from '../../model/index.ts';
import {
  byteString,
  bytes,
  choice,
  type Codec,
  count,
  type FieldsOf,
  flag,
  list,
  listOf,
  longList,
  map,
  mapped,
  mappedMessage,
  maybe,
  type MessageCodec,
  message,
  nothing,
  number,
  optional,
  present,
  required,
  single,
  text,
} from '../../protobuf/index.ts';
import type {
  Addressed,
  FromMaster,
  Holdings,
  MasterCalls,
  NamedCounters,
  PassedRead,
  PassedWrite,
  ReadMessage,
  SchemaRef,
  ServerStatus,
  TabletRef,
  FileCopy,
  TabletBackup,
  TableFamilies,
  TabletServerCalls,
  TabletServerStreams,
} from '../messages.ts';
import type { ProtocolVersion } from '../version.ts';
import { changeBatch, changeStream, changeStreamOrNone, readChangesMessage } from './change-messages.ts';
import { commitOutcome, metadataCommit, metadataRow } from './metadata-messages.ts';
import {
  cell,
  extraFields,
  familyChange,
  familySchema,
  groupLayout,
  mutation,
  readModifyWriteRule,
  rowFilter,
  rowMutations,
  rowRange,
  tableMutations,
  tableSchema,
} from './model-messages.ts';
import { readBatch } from './read-batch.ts';

type Calls = TabletServerCalls & MasterCalls;

/** The message and the answer of each call. Masters and tablet servers have the same messages for calls of one name. */
export type CallMessages = {
  readonly [M in keyof Calls]: {
    readonly message: MessageCodec<Calls[M]['message']>;
    readonly answer: MessageCodec<Calls[M]['answer']>;
  };
};

export type StreamMessages = {
  readonly [M in keyof TabletServerStreams]: {
    readonly message: MessageCodec<TabletServerStreams[M]['message']>;
    readonly item: MessageCodec<TabletServerStreams[M]['item']>;
  };
};

// Fields 1 and 2 of every message that has them.
const addressed = { to: optional(1, text) };
const fromMaster = { ...addressed, masterEpoch: optional(2, count) };

const tabletFields = { key: required(1, byteString), epoch: required(2, count) };
const tabletRef: MessageCodec<TabletRef> = message('TabletRef', tabletFields);
const tabletStatus = message<ServerStatus['tablets'][number]>('TabletStatus', {
  ...tabletFields,
  sizeBytes: required(3, number),
  requests: optional(4, count),
});

export const protocolVersion: MessageCodec<ProtocolVersion> = message('ProtocolVersion', {
  version: required(1, count),
  requires: required(2, count),
  knows: required(3, count),
});

/** Facts of an error for programs: JSON, since any code may add to them. None where they cannot be written. */
const details: Codec<Readonly<Record<string, unknown>>> = mapped(text, writeDetails, readDetails);

const errorFields: FieldsOf<PlainError> = {
  code: required(
    1,
    mapped<PlainError['code'], number>(
      count,
      (code) => code,
      (value) => Object.values(Code).find((code) => code === value && code !== Code.OK) ?? Code.UNKNOWN,
    ),
  ),
  message: required(2, text),
  retry: required(3, flag),
  details: required(4, details),
};

const plainError: MessageCodec<PlainError> = message('PlainError', errorFields);

/** What a call threw. */
export const thrownError: MessageCodec<PlainThrown> = message('ThrownError', {
  ...errorFields,
  name: required(5, text),
  stack: required(6, text),
});

const outcome = maybe('Outcome', plainError);
const outcomes = (name: string): MessageCodec<readonly (PlainError | undefined)[]> => listOf(name, outcome);

const rangeFields = { tableId: required(1, text), range: required(2, rowRange) };
const nothingAsked = (name: string): MessageCodec<Record<string, never>> => message<Record<string, never>>(name, {});

const envelopeFields = { to: required(1, text), tableId: required(2, text), epoch: required(3, count) };

const namedCounters: MessageCodec<NamedCounters> = message('NamedCounters', {
  name: required(1, text),
  counters: map(2, number),
});

const familyUsage: MessageCodec<FamilyUsage> = message('FamilyUsage', {
  family: required(1, text),
  cells: required(2, number),
  logicalBytes: required(3, number),
  diskBytes: required(4, number),
  memoryBytes: required(5, number),
});

const tableFamilies: MessageCodec<TableFamilies> = message('TableFamilies', {
  tableId: required(1, text),
  families: list(2, familyUsage),
});

const passedWrite: MessageCodec<PassedWrite> = message('PassedWrite', {
  ...envelopeFields,
  method: required(4, choice('RowMethod', { mutateRow: 1, checkAndMutateRow: 2, readModifyWriteRow: 3 })),
  table: required(5, text),
  row: required(6, byteString),
  maxAnswerBytes: present(7, number),
  request: required(8, bytes),
  schemaVersion: optional(9, count),
});

const passedRead: MessageCodec<PassedRead> = message('PassedRead', {
  ...envelopeFields,
  table: required(4, text),
  range: required(5, rowRange),
  form: required(6, count),
  request: required(7, bytes),
  schemaVersion: optional(8, count),
});

type ReadPart = TabletServerStreams['passedRead']['item'];
type PartFields = Omit<ReadPart, 'message'> & { readonly buffers: readonly Uint8Array[] };

const readPart: MessageCodec<ReadPart> = mappedMessage(
  message<PartFields>('ReadPart', {
    buffers: list(1, bytes),
    rows: required(2, count),
    lastRow: present(3, byteString),
    isInsideRow: required(4, flag),
  }),
  // one for each row that is read: a spread would cost more than the rest
  ({ message: sent, rows, lastRow, isInsideRow }: ReadPart) => ({
    buffers: sent instanceof Uint8Array ? [sent] : sent,
    rows,
    lastRow,
    isInsideRow,
  }),
  ({ buffers, rows, lastRow, isInsideRow }) => ({
    message: buffers.length === 1 ? buffers[0]! : buffers,
    rows,
    lastRow,
    isInsideRow,
  }),
);

const exportedBackup: MessageCodec<ExportedBackup> = mappedMessage(
  message<Omit<ExportedBackup, 'state'>>('ExportedBackup', {
    id: required(1, text),
    backup: required(2, text),
    table: required(3, text),
    startMicros: required(4, count),
    endMicros: required(5, count),
    exportedMicros: required(6, count),
    files: required(7, count),
    sizeBytes: required(8, count),
  }),
  ({ state: _ready, ...fields }: ExportedBackup) => fields,
  (fields) => ({ ...fields, state: 'ready' }),
);

export const CALL_MESSAGES: CallMessages = {
  // answered by tablet servers
  status: {
    message: message<Calls['status']['message']>('StatusRequest', { ...fromMaster, brief: optional(3, flag) }),
    answer: message<ServerStatus>('StatusAnswer', {
      name: required(1, text),
      protocol: required(2, protocolVersion),
      locked: required(3, flag),
      tablets: list(4, tabletStatus),
    }),
  },
  load: {
    message: message<Calls['load']['message']>('LoadRequest', {
      ...fromMaster,
      tablets: list(3, tabletRef),
      schemas: optional(
        4,
        listOf(
          'SchemaRefs',
          message<SchemaRef>('SchemaRef', {
            tableId: required(1, text),
            tableName: required(2, text),
            version: required(3, count),
          }),
        ),
      ),
    }),
    answer: outcomes('LoadAnswer'),
  },
  unload: {
    message: message<Calls['unload']['message']>('UnloadRequest', {
      ...fromMaster,
      tablets: list(3, tabletRef),
      flush: required(4, flag),
    }),
    answer: outcomes('UnloadAnswer'),
  },
  mutateRow: { message: tableMutations, answer: nothing('MutateRowAnswer') },
  mutateRows: {
    message: message<Calls['mutateRows']['message']>('MutateRowsRequest', {
      tableId: required(1, text),
      entries: longList(2, rowMutations),
      schemaVersion: optional(3, count),
      asksWait: optional(4, flag),
    }),
    answer: message<Calls['mutateRows']['answer']>('MutateRowsAnswer', {
      outcomes: longList(1, outcome),
      waitedMs: optional(2, number),
    }),
  },
  checkAndMutateRow: {
    message: message<Calls['checkAndMutateRow']['message']>('CheckAndMutateRowRequest', {
      tableId: required(1, text),
      row: required(2, byteString),
      predicate: optional(3, rowFilter),
      whenTrue: longList(4, mutation),
      whenFalse: longList(5, mutation),
      schemaVersion: optional(6, count),
    }),
    answer: single('CheckAndMutateRowAnswer', flag),
  },
  readModifyWriteRow: {
    message: message<Calls['readModifyWriteRow']['message']>('ReadModifyWriteRowRequest', {
      tableId: required(1, text),
      row: required(2, byteString),
      rules: longList(3, readModifyWriteRule),
      maxAnswerBytes: optional(4, number),
      schemaVersion: optional(5, count),
    }),
    answer: listOf('ReadModifyWriteRowAnswer', cell),
  },
  passedWrite: { message: passedWrite, answer: single('PassedWriteAnswer', bytes) },
  sampleKeys: {
    message: message<Calls['sampleKeys']['message']>('SampleKeysRequest', {
      ...rangeFields,
      partBytes: required(3, number),
    }),
    answer: message<Calls['sampleKeys']['answer']>('SampleKeysAnswer', {
      samples: list(
        1,
        message<Calls['sampleKeys']['answer']['samples'][number]>('KeySample', {
          row: required(1, byteString),
          offsetBytes: required(2, number),
        }),
      ),
      sizeBytes: required(2, number),
    }),
  },
  split: {
    message: message<Calls['split']['message']>('SplitRequest', {
      tableId: required(1, text),
      row: required(2, byteString),
      near: required(3, choice('SplitPlace', { row: 1, middle: 2 })),
    }),
    answer: nothing('SplitAnswer'),
  },
  compact: {
    message: message<Calls['compact']['message']>('CompactRequest', rangeFields),
    answer: nothing('CompactAnswer'),
  },
  compactMetadata: { message: nothingAsked('CompactMetadataRequest'), answer: nothing('CompactMetadataAnswer') },
  tabletStatistics: {
    message: message<Calls['tabletStatistics']['message']>('TabletStatisticsRequest', rangeFields),
    answer: message<Calls['tabletStatistics']['answer']>('TabletStatisticsAnswer', {
      range: required(1, rowRange),
      server: required(2, text),
      files: required(3, count),
      fileBytes: required(4, number),
      memoryBytes: required(5, number),
    }),
  },
  counters: { message: nothingAsked('CountersRequest'), answer: namedCounters },
  hotTablets: {
    message: message<Calls['hotTablets']['message']>('HotTabletsRequest', {
      instance: required(1, text),
      startMicros: required(2, number),
      endMicros: required(3, number),
    }),
    answer: listOf(
      'HotTabletsAnswer',
      message<Calls['hotTablets']['answer'][number]>('HotTablet', {
        id: required(1, text),
        table: required(2, text),
        range: present(3, rowRange),
        startMicros: required(4, number),
        endMicros: required(5, number),
        cpuPercent: required(6, number),
      }),
    ),
  },
  familyUsage: {
    message: message<Calls['familyUsage']['message']>('FamilyUsageRequest', rangeFields),
    answer: listOf('FamilyUsageAnswer', familyUsage),
  },
  traffic: {
    message: message<Calls['traffic']['message']>('TrafficRequest', { tableId: required(1, text) }),
    answer: message<Calls['traffic']['answer']>('TrafficAnswer', {
      reads: required(1, number),
      writes: required(2, number),
      rowsWritten: required(3, number),
      rowsRead: required(4, number),
      families: list(
        5,
        message<Calls['traffic']['answer']['families'][number]>('FamilyTraffic', {
          family: required(1, text),
          rowsWritten: required(2, number),
          rowsRead: required(3, number),
          bytesIn: required(4, number),
          bytesOut: required(5, number),
        }),
      ),
    }),
  },
  measureUsage: {
    message: message<Calls['measureUsage']['message']>('MeasureUsageRequest', {
      ...fromMaster,
      tableIds: list(3, text),
    }),
    answer: listOf('MeasureUsageAnswer', tableFamilies),
  },
  usageCounted: {
    message: message<Calls['usageCounted']['message']>('UsageCountedRequest', {
      ...fromMaster,
      tables: list(3, tableFamilies),
    }),
    answer: nothing('UsageCountedAnswer'),
  },
  dropRows: {
    message: message<Calls['dropRows']['message']>('DropRowsRequest', rangeFields),
    answer: nothing('DropRowsAnswer'),
  },
  commit: {
    message: message<Calls['commit']['message']>('CommitRequest', { ...fromMaster, commits: list(3, metadataCommit) }),
    answer: listOf('CommitAnswer', commitOutcome),
  },
  flush: {
    message: message<Calls['flush']['message']>('FlushRequest', {
      ...fromMaster,
      keys: optional(3, listOf('MetadataKeys', byteString)),
    }),
    answer: nothing('FlushAnswer'),
  },
  holdings: {
    message: message<FromMaster>('HoldingsRequest', fromMaster),
    answer: message<Holdings>('HoldingsAnswer', { files: list(1, text), logs: list(2, text) }),
  },
  sortLog: {
    message: message<Calls['sortLog']['message']>('SortLogRequest', {
      ...fromMaster,
      server: required(3, text),
      start: required(4, count),
      end: optional(5, count),
      maxBytes: required(6, count),
    }),
    answer: nothing('SortLogAnswer'),
  },
  backUpTablets: {
    message: message<Calls['backUpTablets']['message']>('BackUpTabletsRequest', {
      ...fromMaster,
      tablets: list(3, tabletRef),
    }),
    answer: listOf(
      'BackUpTabletsAnswer',
      message<TabletBackup>('TabletBackup', { row: required(1, metadataRow), sizeBytes: required(2, count) }),
    ),
  },
  copyFile: {
    message: message<Calls['copyFile']['message']>('CopyFileRequest', {
      ...fromMaster,
      direction: required(3, choice('CopyDirection', { export: 1, import: 2 })),
      path: required(4, text),
      copyPath: required(5, text),
    }),
    answer: message<FileCopy>('CopyFileAnswer', { sizeBytes: required(1, count), checksum: required(2, count) }),
  },
  schemaChanged: {
    message: message<Calls['schemaChanged']['message']>('SchemaChangedRequest', {
      ...fromMaster,
      tableName: required(3, text),
    }),
    answer: nothing('SchemaChangedAnswer'),
  },
  doorFilesChanged: {
    message: message<Calls['doorFilesChanged']['message']>('DoorFilesChangedRequest', {
      ...fromMaster,
      paths: list(3, text),
    }),
    answer: nothing('DoorFilesChangedAnswer'),
  },

  // answered by masters
  createTable: {
    message: message<Calls['createTable']['message']>('CreateTableRequest', {
      name: required(1, text),
      families: list(2, familySchema),
      splits: list(3, byteString),
      granularity: required(4, choice('Granularity', { millis: 1, micros: 2 })),
      deletionProtection: required(5, flag),
      groups: optional(6, groupLayout),
      extra: optional(7, extraFields),
      changeStream: optional(8, changeStream),
    }),
    answer: tableSchema,
  },
  updateTable: {
    message: message<Calls['updateTable']['message']>('UpdateTableRequest', {
      name: required(1, text),
      deletionProtection: optional(2, flag),
      groups: optional(3, groupLayout),
      extra: optional(4, extraFields),
      changeStream: optional(5, changeStreamOrNone),
    }),
    answer: tableSchema,
  },
  deleteTable: {
    message: message<Calls['deleteTable']['message']>('DeleteTableRequest', {
      name: required(1, text),
      atOnce: optional(2, flag),
    }),
    answer: message<Calls['deleteTable']['answer']>('DeleteTableAnswer', { isKept: optional(1, flag) }),
  },
  undeleteTable: {
    message: message<Calls['undeleteTable']['message']>('UndeleteTableRequest', { name: required(1, text) }),
    answer: tableSchema,
  },
  modifyFamilies: {
    message: message<Calls['modifyFamilies']['message']>('ModifyFamiliesRequest', {
      name: required(1, text),
      changes: list(2, familyChange),
    }),
    answer: tableSchema,
  },
  setQuota: {
    message: message<Calls['setQuota']['message']>('SetQuotaRequest', {
      name: required(1, text),
      family: optional(2, text),
      quotaBytes: optional(3, count),
    }),
    answer: tableSchema,
  },
  mergeTablets: {
    message: message<Calls['mergeTablets']['message']>('MergeTabletsRequest', {
      name: required(1, text),
      row: required(2, byteString),
    }),
    answer: nothing('MergeTabletsAnswer'),
  },
  createBackup: {
    message: message<Calls['createBackup']['message']>('CreateBackupRequest', {
      name: required(1, text),
      source: required(2, text),
      kind: required(3, choice('BackupKind', { standard: 1, hot: 2 })),
      expireMicros: required(4, count),
      hotToStandardMicros: optional(5, count),
    }),
    answer: nothing('CreateBackupAnswer'),
  },
  deleteBackup: {
    message: message<Calls['deleteBackup']['message']>('DeleteBackupRequest', { name: required(1, text) }),
    answer: nothing('DeleteBackupAnswer'),
  },
  restoreTable: {
    message: message<Calls['restoreTable']['message']>('RestoreTableRequest', {
      name: required(1, text),
      backup: required(2, text),
    }),
    answer: tableSchema,
  },
  exportBackup: {
    message: message<Calls['exportBackup']['message']>('ExportBackupRequest', {
      backup: required(1, text),
      id: required(2, text),
    }),
    answer: exportedBackup,
  },
  importBackup: {
    message: message<Calls['importBackup']['message']>('ImportBackupRequest', {
      name: required(1, text),
      from: required(2, text),
      expireMicros: required(3, count),
    }),
    answer: nothing('ImportBackupAnswer'),
  },
  listExports: {
    message: nothingAsked('ListExportsRequest'),
    answer: message<Calls['listExports']['answer']>('ListExportsAnswer', {
      exports: list(1, exportedBackup),
      unreadable: list(2, text),
    }),
  },
  deleteExport: {
    message: message<Calls['deleteExport']['message']>('DeleteExportRequest', { id: required(1, text) }),
    answer: nothing('DeleteExportAnswer'),
  },
  tabletSplit: {
    message: message<Calls['tabletSplit']['message']>('TabletSplitRequest', {
      ...addressed,
      server: required(2, text),
      tablets: list(3, tabletStatus),
    }),
    answer: nothing('TabletSplitAnswer'),
  },
  filesLeft: { message: message<Addressed>('FilesLeftRequest', addressed), answer: nothing('FilesLeftAnswer') },
  confirmDoorFiles: {
    message: message<Calls['confirmDoorFiles']['message']>('ConfirmDoorFilesRequest', { paths: list(1, text) }),
    answer: nothing('ConfirmDoorFilesAnswer'),
  },
  clock: {
    message: nothingAsked('ClockRequest'),
    answer: message<Calls['clock']['answer']>('ClockAnswer', { nowMicros: required(1, number) }),
  },
  sweep: {
    message: nothingAsked('SweepRequest'),
    answer: message<Calls['sweep']['answer']>('SweepAnswer', { files: required(1, count), logs: required(2, count) }),
  },
};

export const STREAM_MESSAGES: StreamMessages = {
  read: {
    message: message<ReadMessage>('ReadRequest', {
      tableId: required(1, text),
      ranges: list(2, rowRange),
      filter: optional(3, rowFilter),
      rowsLimit: required(4, number),
      reversed: required(5, flag),
      schemaVersion: optional(6, count),
    }),
    item: readBatch,
  },
  passedRead: { message: passedRead, item: readPart },
  readChanges: { message: readChangesMessage, item: changeBatch },
};

function writeDetails(value: Readonly<Record<string, unknown>>): string {
  try {
    return JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? String(item) : item));
  } catch {
    // they contain themselves, or are too deep: the error itself counts more
    return '{}';
  }
}

function readDetails(json: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(json);
    if (isObjectOfNames(value)) return value as Readonly<Record<string, unknown>>;
  } catch {
    // said below
  }
  throw invalidArgument('invalid error of an internal call: its details are no JSON object');
}
