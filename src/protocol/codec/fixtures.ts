/** Messages, answers and items of every internal call, for tests and the golden file. */
import { BigtableError, Code } from '../../base/index.ts';
import { asRefusal, type PlainError, toPlainError } from '../../env/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import type { MetadataRow } from '../../metadata/index.ts';
import type { FamilySchema, Mutation, TableSchema } from '../../model/index.ts';
import type { MasterCalls, TabletServerCalls, TabletServerStreams } from '../messages.ts';

type Calls = TabletServerCalls & MasterCalls;

type Samples = {
  readonly [M in keyof Calls]: {
    readonly messages: readonly Calls[M]['message'][];
    readonly answers: readonly Calls[M]['answer'][];
  };
} & {
  readonly [M in keyof TabletServerStreams]: {
    readonly messages: readonly TabletServerStreams[M]['message'][];
    readonly answers: readonly TabletServerStreams[M]['item'][];
  };
};

const bytes = (...values: number[]): Buffer => Buffer.from(values);
const range = { start: 'a\0\xff', end: undefined };
const tableId = '0000001f';
const tableName = 'projects/p/instances/i/tables/t';
const backup = 'projects/p/instances/i/clusters/c/backups/b';
const exported = {
  id: 'monday',
  state: 'ready',
  backup,
  table: 'projects/p/instances/i/tables/t',
  startMicros: 1_700_000_000_000_000,
  endMicros: 1_700_000_000_100_000,
  exportedMicros: 1_700_000_009_000_000,
  files: 3,
  sizeBytes: 12_345,
} as const;
const key = `${tableId}\0m`;
const master = { to: '54352d7f', masterEpoch: 2 ** 53 - 1 };
const tablets = [
  { key, epoch: 7 },
  { key: `${tableId}\x01`, epoch: 0 },
];
const refused: PlainError = toPlainError(
  asRefusal(
    new BigtableError(Code.UNAVAILABLE, 'the row "\u00fc" is not served', { details: { notServing: true, n: 1.5 } }),
  ),
);

const row: MetadataRow = {
  tableId,
  range: { start: 'a', end: 'm' },
  server: { name: '54352d7f', address: '192.0.2.1:8087' },
  epoch: 7,
  version: 12,
  commitId: 'c1',
  files: Object.assign(Object.create(null), { default: ['sstables/1', 'sstables/2'], __proto__: undefined }),
  clips: Object.assign(Object.create(null), { 'sstables/2': [{ start: 'b', end: 'c' }] }),
  redo: { epoch: 6, sequence: 99 },
  logs: ['logs/x', 'logs/y'],
  lastServerMicros: 1_700_000_000_000_000,
};

const released: MetadataRow = {
  tableId,
  range,
  server: undefined,
  epoch: 0,
  version: 1,
  commitId: '',
  files: Object.create(null),
  redo: { epoch: 0, sequence: 0 },
  logs: [],
};

const streamed: MetadataRow = { ...released, pastOwners: [{ server: '54352d7f', epoch: 3, untilMicros: 2 ** 50 }] };
const following: MetadataRow = {
  ...released,
  pastOwners: [{ server: '54352d7f', epoch: 3, untilMicros: 2 ** 50, changesFrom: 7 }],
  changesFrom: 2 ** 40,
};
const left: MetadataRow = {
  ...following,
  pastOwners: [{ server: '54352d7f', epoch: 3, untilMicros: 2 ** 50, changesFrom: 7, changesUntil: 2 ** 41 }],
  changesUntil: 2 ** 41 + 1,
};

const mutations: readonly Mutation[] = [
  { kind: 'setCell', family: 'f', qualifier: 'q\xff', timestamp: 5, value: bytes(0, 255) },
  { kind: 'setCell', family: 'f', qualifier: '', timestamp: undefined, value: bytes() },
  { kind: 'addToCell', family: 'sum', qualifier: 'q', timestamp: -(2n ** 63n), input: 2n ** 63n - 1n },
  { kind: 'addToCell', family: 'hll', qualifier: 'q', timestamp: 0, input: bytes(1) },
  { kind: 'mergeToCell', family: 'sum', qualifier: 'q', timestamp: 1, state: bytes(8) },
  { kind: 'mergeToCell', family: 'sum', qualifier: 'q', timestamp: 1, state: undefined },
  { kind: 'deleteFromColumn', family: 'f', qualifier: 'q', range: { start: 1, end: 2n ** 60n } },
  { kind: 'deleteFromColumn', family: 'f', qualifier: 'q' },
  { kind: 'deleteFromFamily', family: 'f' },
  { kind: 'deleteFromRow' },
];

const filter: RowFilter = {
  kind: 'condition',
  predicate: {
    kind: 'chain',
    filters: [
      { kind: 'rowKeyRegex', regex: 'a.*\xff' },
      { kind: 'familyNameRegex', regex: 'f' },
      { kind: 'columnQualifierRegex', regex: 'q' },
      { kind: 'valueRegex', regex: 'v' },
      { kind: 'rowSample', probability: 0.25 },
      { kind: 'columnRange', family: 'f', start: { value: 'a', closed: true } },
      { kind: 'timestampRange', range: { end: 9 } },
      { kind: 'valueRange', end: { value: 'z', closed: false } },
      { kind: 'valueBitmask', mask: '\x01' },
      { kind: 'cellsPerRowOffset', cells: -1 },
      { kind: 'cellsPerRowLimit', cells: 2 },
      { kind: 'cellsPerColumnLimit', cells: 2 ** 31 - 1 },
    ],
  },
  whenTrue: {
    kind: 'interleave',
    filters: [{ kind: 'sink' }, { kind: 'passAll' }, { kind: 'stripValue' }, { kind: 'applyLabel', label: 'l' }],
  },
  whenFalse: { kind: 'blockAll' },
};

const families: readonly FamilySchema[] = [
  { name: 'f' },
  {
    name: 'sum',
    generation: 3,
    gcRule: {
      kind: 'union',
      rules: [
        { kind: 'maxVersions', versions: 2 },
        { kind: 'intersection', rules: [{ kind: 'maxAge', ageMicros: 1e18 }] },
      ],
    },
    valueType: { aggregate: { kind: 'hll', input: 'bytes' }, encoded: 'AQ==' },
    group: 'g',
  },
];

const groups = Object.assign(Object.create(null), {
  g: {
    blockSizeBytes: 4096,
    compression: { kind: 'zstd-dict', level: 3 },
    bloomFilter: 'row-column',
    inMemory: true,
    families: ['sum'],
  },
  h: { compression: { kind: 'lz4' } },
});
const extra = Object.assign(Object.create(null), { changeStreamConfig: 'AQ==' });

const schema: TableSchema = {
  name: tableName,
  id: tableId,
  granularity: 'millis',
  families: Object.assign(Object.create(null), { f: { name: 'f' } }),
  deletionProtection: false,
};

const familyUsage = { family: 'f', cells: 1, logicalBytes: 2, diskBytes: 0.5, memoryBytes: 0 };
const envelope = { to: '54352d7f', tableId, epoch: 7, table: tableName };
const schemaVersion = 2 ** 40;
const tabletRange = { tableId, range: { start: '', end: 'm' } };
const nothing = { messages: [{}], answers: [undefined] };

const place = { server: '54352d7f', epoch: 7, position: 2 ** 40, record: 3, row: 1 };

export const SAMPLES: Samples = {
  status: {
    messages: [{}, master, { ...master, brief: true }],
    answers: [
      {
        name: '54352d7f',
        protocol: { version: 1, requires: 0, knows: 2 ** 52 },
        locked: true,
        tablets: tablets.map((tablet) => ({ ...tablet, sizeBytes: 1234.5 })),
      },
      {
        name: '54352d7f',
        protocol: { version: 1, requires: 0, knows: 0 },
        locked: true,
        tablets: tablets.map((tablet) => ({ ...tablet, sizeBytes: 0, requests: 2 ** 40 })),
      },
    ],
  },
  load: {
    messages: [
      { tablets: [] },
      { ...master, tablets, schemas: [{ tableId, tableName, version: 4 }] },
      { tablets, schemas: [] },
    ],
    answers: [[], [undefined, refused]],
  },
  unload: { messages: [{ ...master, tablets, flush: true }], answers: [[refused, undefined]] },
  mutateRow: {
    messages: [
      { row: 'r\0', mutations, tableId },
      { row: 'r', mutations: [], tableId, schemaVersion },
      { row: 'r', mutations, tableId, idempotency: { token: 'token\xff01', startMs: 1_700_000_000_000.5 } },
    ],
    answers: [undefined],
  },
  mutateRows: {
    messages: [
      {
        tableId,
        entries: [
          { row: 'r', mutations: [] },
          { row: 's', mutations },
        ],
      },
      { tableId, entries: [], schemaVersion },
      { tableId, entries: [], asksWait: true },
      { tableId, entries: [{ row: 'r', mutations, idempotency: { token: 'token-01' } }] },
    ],
    answers: [{ outcomes: [undefined, refused, undefined] }, { outcomes: [undefined], waitedMs: 12.5 }],
  },
  checkAndMutateRow: {
    messages: [
      { tableId, row: 'r', predicate: filter, whenTrue: mutations, whenFalse: [] },
      { tableId, row: 'r', whenTrue: [], whenFalse: [] },
      { tableId, row: 'r', whenTrue: [], whenFalse: [], schemaVersion },
    ],
    answers: [true, false],
  },
  readModifyWriteRow: {
    messages: [
      {
        tableId,
        row: 'r',
        rules: [
          { family: 'f', qualifier: 'q', change: { kind: 'append', suffix: bytes(1, 2) } },
          { family: 'f', qualifier: 'q', change: { kind: 'increment', amount: -(2n ** 63n) } },
        ],
        maxAnswerBytes: 1000,
      },
      { tableId, row: 'r', rules: [], schemaVersion },
    ],
    answers: [[], [{ family: 'f', qualifier: 'q', timestamp: -1, value: bytes(7), labels: ['l', ''] }]],
  },
  passedWrite: {
    messages: [
      { ...envelope, method: 'mutateRow', row: 'r', maxAnswerBytes: undefined, request: bytes(1, 2, 3) },
      { ...envelope, method: 'readModifyWriteRow', row: 'r', maxAnswerBytes: 5, request: bytes() },
      { ...envelope, method: 'mutateRow', row: 'r', maxAnswerBytes: undefined, request: bytes(1), schemaVersion },
    ],
    answers: [bytes(), bytes(9)],
  },
  sampleKeys: {
    messages: [{ ...tabletRange, partBytes: 1e6 }],
    answers: [{ samples: [{ row: 'c', offsetBytes: 10.5 }], sizeBytes: 20 }],
  },
  split: {
    messages: [
      { tableId, row: 'r', near: 'middle' },
      { tableId, row: 'r', near: 'row' },
    ],
    answers: [undefined],
  },
  compact: { messages: [tabletRange], answers: [undefined] },
  compactMetadata: nothing,
  tabletStatistics: {
    messages: [tabletRange],
    answers: [{ range, server: '54352d7f', files: 3, fileBytes: 1.5, memoryBytes: 0 }],
  },
  counters: {
    messages: [{}],
    answers: [{ name: 'thread 1', counters: Object.assign(Object.create(null), { 'tablet.reads': 2 ** 60 }) }],
  },
  hotTablets: {
    messages: [{ instance: 'projects/p/instances/i', startMicros: 1_700_000_000_000_000, endMicros: 2e15 }],
    answers: [
      [{ id: 'a1', table: tableName, range, startMicros: 1_700_000_000_000_000, endMicros: 1.8e15, cpuPercent: 12.5 }],
      [{ id: 'a2', table: tableName, range: undefined, startMicros: 0, endMicros: 1, cpuPercent: 100 }],
    ],
  },
  familyUsage: {
    messages: [tabletRange],
    answers: [[familyUsage]],
  },
  traffic: {
    messages: [{ tableId }],
    answers: [
      { reads: 0, writes: 0, rowsWritten: 0, rowsRead: 0, families: [] },
      {
        reads: 1,
        writes: 2 ** 40,
        rowsWritten: 3,
        rowsRead: 4,
        families: [{ family: 'f', rowsWritten: 5, rowsRead: 6, bytesIn: 7, bytesOut: 2 ** 50 }],
      },
    ],
  },
  measureUsage: {
    messages: [{ ...master, tableIds: [tableId] }, { tableIds: [] }],
    answers: [[], [{ tableId, families: [familyUsage] }]],
  },
  usageCounted: {
    messages: [{ ...master, tables: [{ tableId, families: [familyUsage] }] }, { tables: [] }],
    answers: [undefined],
  },
  dropRows: { messages: [tabletRange], answers: [undefined] },
  commit: {
    messages: [
      {
        ...master,
        commits: [
          {
            id: 'c2',
            event: { kind: 'split', atMicros: 1_700_000_000_000_000 },
            rows: [
              { key, expected: undefined, row },
              { key, expected: { epoch: 7, version: 11 }, row: released },
              { key, expected: { epoch: 7, version: 11 }, row: undefined },
            ],
          },
        ],
      },
    ],
    answers: [[{ kind: 'done' }, { kind: 'refused', rows: [undefined, row] }]],
  },
  flush: { messages: [{}, { ...master, keys: [] }, { keys: [key] }], answers: [undefined] },
  holdings: { messages: [master], answers: [{ files: ['sstables/1'], logs: [] }] },
  sortLog: {
    messages: [
      { ...master, server: 's2', start: 0, end: 70_000, maxBytes: 67_108_864 },
      { server: 's2', start: 70_000, maxBytes: 1 },
    ],
    answers: [undefined],
  },
  backUpTablets: {
    messages: [{ ...master, tablets }],
    answers: [
      [{ row: { ...released, isOfBackup: true }, sizeBytes: 12_345 }],
      [{ row: streamed, sizeBytes: 0 }],
      [],
      [{ row: following, sizeBytes: 0 }],
      [{ row: left, sizeBytes: 0 }],
    ],
  },
  copyFile: {
    messages: [
      { ...master, direction: 'export', path: 'sstables/s1-7', copyPath: 'files/monday/w7/s1-7' },
      { ...master, direction: 'import', path: 'files/monday/w7/s1-7', copyPath: 'sstables/imported-0000001f-0' },
    ],
    answers: [{ sizeBytes: 12_345, checksum: 0xffffffff }],
  },
  schemaChanged: { messages: [{ ...master, tableName }], answers: [undefined] },
  doorFilesChanged: { messages: [{ ...master, paths: ['policies/projects/p/instances/i'] }], answers: [undefined] },
  createTable: {
    messages: [
      {
        name: tableName,
        families,
        splits: ['m\xff', ''],
        granularity: 'micros',
        deletionProtection: true,
        groups,
        extra,
        changeStream: { retentionMicros: 86_400e6 },
      },
      { name: tableName, families: [], splits: [], granularity: 'millis', deletionProtection: false },
    ],
    answers: [schema],
  },
  updateTable: {
    messages: [
      { name: tableName },
      { name: tableName, deletionProtection: true, groups, extra, changeStream: 'none' },
      { name: tableName, changeStream: { retentionMicros: 86_400e6 } },
    ],
    answers: [schema],
  },
  deleteTable: {
    messages: [{ name: tableName }, { name: tableName, atOnce: true }],
    answers: [{}, { isKept: true }],
  },
  undeleteTable: { messages: [{ name: tableName }], answers: [schema] },
  modifyFamilies: {
    messages: [
      {
        name: tableName,
        changes: [
          { kind: 'create', family: families[1]! },
          { kind: 'update', family: families[0]!, fields: ['gcRule', 'valueType'] },
          { kind: 'drop', name: 'f' },
        ],
      },
    ],
    answers: [schema],
  },
  setQuota: {
    messages: [
      { name: tableName, quotaBytes: 2 ** 40 },
      { name: tableName, family: 'f' },
    ],
    answers: [schema],
  },
  mergeTablets: { messages: [{ name: tableName, row: 'm' }], answers: [undefined] },
  createBackup: {
    messages: [
      { name: backup, source: tableName, kind: 'hot', expireMicros: 1_700_000_000_000_000, hotToStandardMicros: 5 },
      { name: `${backup}2`, source: backup, kind: 'standard', expireMicros: 1 },
    ],
    answers: [undefined],
  },
  deleteBackup: { messages: [{ name: backup }], answers: [undefined] },
  restoreTable: { messages: [{ name: tableName, backup }], answers: [schema] },
  exportBackup: { messages: [{ backup, id: 'monday' }], answers: [exported] },
  listExports: { messages: [{}], answers: [{ exports: [exported], unreadable: ['tuesday'] }] },
  importBackup: {
    messages: [{ name: backup, from: 'monday', expireMicros: 1_700_000_000_000_000 }],
    answers: [undefined],
  },
  deleteExport: { messages: [{ id: 'monday' }], answers: [undefined] },
  tabletSplit: {
    messages: [{ to: 'm1', server: 's1', tablets: [{ key, epoch: 7, sizeBytes: 0 }] }],
    answers: [undefined],
  },
  filesLeft: { messages: [{ to: 'm1' }, {}], answers: [undefined] },
  confirmDoorFiles: { messages: [{ paths: ['policies/projects/p/instances/i'] }], answers: [undefined] },
  clock: { messages: [{}], answers: [{ nowMicros: 1_700_000_000_000_000.5 }] },
  sweep: { messages: [{}], answers: [{ files: 0, logs: 2 }] },
  read: {
    messages: [
      { tableId, ranges: [range, { start: 'r', end: 'r\0' }], filter, rowsLimit: 10, reversed: true },
      { tableId, ranges: [], rowsLimit: 0, reversed: false },
      { tableId, ranges: [], rowsLimit: 0, reversed: false, schemaVersion },
    ],
    answers: [
      { fragments: [], scannedTo: 'z' },
      {
        fragments: [
          {
            row: 'r',
            last: false,
            cells: [
              { family: 'f', qualifier: 'q', timestamp: 2n ** 62n, value: bytes(1) },
              { family: 'f', qualifier: 'p', timestamp: 1, value: bytes(), labels: ['l'] },
              { family: 'f', qualifier: 'q', timestamp: 0, value: bytes(2) },
            ],
          },
          { row: 'r', last: true, cells: [] },
        ],
      },
    ],
  },
  readChanges: {
    messages: [
      {
        tableId,
        range,
        progress: [{ range, fromMicros: 5, after: undefined }],
        endMicros: undefined,
        heartbeatMs: 5000,
      },
      {
        tableId,
        range,
        progress: [{ range, fromMicros: 0, after: place }],
        endMicros: 2 ** 50,
        heartbeatMs: 100,
        schemaVersion,
      },
    ],
    answers: [
      { changes: [], position: undefined, watermarkMicros: 0, isEnd: true },
      {
        changes: [
          { row: 'r\xff', mutations, commitMicros: 2 ** 50, origin: 'user', position: place },
          { row: '', mutations: [], commitMicros: 0, origin: 'garbageCollection', position: place },
        ],
        position: place,
        watermarkMicros: 2 ** 50,
        isEnd: false,
      },
    ],
  },
  passedRead: {
    messages: [
      { ...envelope, range, form: 1, request: bytes(4) },
      { ...envelope, range, form: 1, request: bytes(4), schemaVersion },
    ],
    answers: [
      { message: bytes(1), rows: 0, lastRow: undefined, isInsideRow: true },
      { message: [bytes(1), bytes(), bytes(3)], rows: 5, lastRow: 'r', isInsideRow: false },
    ],
  },
};
