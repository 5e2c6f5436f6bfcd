import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { goldenFile } from '../../test/golden/golden-file.ts';
import type { TableSchema } from '../model/index.ts';
import { decodeDeletionMark, deletionPath, encodeDeletionMark } from './deletion-mark.ts';
import { cellsOf } from './fixtures.ts';
import { METADATA_TABLE_ID, ROOT_KEY, ROOT_RANGE } from './keys.ts';
import {
  decodeRootFile,
  decodeRow,
  encodeRootFile,
  encodeRow,
  keyOfRow,
  type MetadataRow,
  type TabletEvent,
} from './metadata-row.ts';
import { decodeSchema, encodeSchema, schemaPath } from './schema-file.ts';

const CREATED: MetadataRow = {
  tableId: '00000010',
  range: { start: '', end: undefined },
  server: undefined,
  epoch: 0,
  version: 1,
  commitId: 'ce4c72aa8b5bb5b3be372fbc49c33f52',
  files: {},
  redo: { epoch: 0, sequence: 0 },
  logs: [],
};
/** Every field, with bytes that are not text in its rows. */
const SERVED: MetadataRow = {
  ...CREATED,
  tableId: '0000002a',
  range: { start: 'a\xff', end: 'm\0\x80' },
  server: { name: '54352d7f6ac202360768dd4c75560a43', address: 'tablet-server-0' },
  epoch: 3,
  version: 7,
  files: { default: ['sstables/n-2', 'sstables/n-1'], größe: ['sstables/n-3'] },
  clips: {
    'sstables/n-1': [
      { start: 'a\xff', end: 'c' },
      { start: 'k', end: 'm\0\x80' },
    ],
  },
  redo: { epoch: 2, sequence: Number.MAX_SAFE_INTEGER },
  logs: ['logs/54352d7f6ac202360768dd4c75560a43'],
  lastServerMicros: 1_704_067_200_000_001,
};
/** The row of a tablet whose table has a change stream. */
const STREAMED: MetadataRow = {
  ...CREATED,
  tableId: '0000002b',
  epoch: 4,
  pastOwners: [{ server: '54352d7f6ac202360768dd4c75560a43', epoch: 3, untilMicros: 1_704_067_200_000_003 }],
};
const { clips: _, ...UNCLIPPED } = SERVED;
const ROOT: MetadataRow = { ...UNCLIPPED, tableId: METADATA_TABLE_ID, range: ROOT_RANGE };
const ROWS: readonly (readonly [MetadataRow, TabletEvent])[] = [
  [CREATED, { kind: 'created', atMicros: 1_704_067_200_000_000 }],
  [SERVED, { kind: 'compacted', atMicros: 1_704_067_200_000_002 }],
  [STREAMED, { kind: 'released', atMicros: 1_704_067_200_000_003 }],
];
const SCHEMA: TableSchema = {
  name: 'projects/p/instances/i/tables/t',
  id: '0000002a',
  granularity: 'millis',
  deletionProtection: true,
  families: {
    f: { name: 'f' },
    g: {
      name: 'g',
      generation: 2,
      group: 'hot',
      gcRule: {
        kind: 'union',
        rules: [
          { kind: 'maxVersions', versions: 3 },
          { kind: 'maxAge', ageMicros: 864e8 },
        ],
      },
    },
    n: { name: 'n', valueType: { aggregate: { kind: 'sum', input: 'int64' } } },
  },
  groups: {
    hot: { blockSizeBytes: 4096, compression: { kind: 'zstd', level: 3 }, bloomFilter: 'row', inMemory: true },
  },
  nextGenerations: { h: 1 },
  extra: { changeStream: 'AQI=' },
};
const STREAMED_SCHEMA: TableSchema = {
  name: 'projects/p/instances/i/tables/s',
  id: '0000002b',
  granularity: 'micros',
  deletionProtection: false,
  families: {},
  changeStream: { retentionMicros: 86_400e6 },
};

const BACKUPS = 'projects/p/instances/i/clusters/c/backups/';
const RESTORED_SCHEMA: TableSchema = {
  name: 'projects/p/instances/i/tables/u',
  id: '0000002c',
  granularity: 'micros',
  deletionProtection: false,
  families: {},
  restoredFrom: {
    name: `${BACKUPS}copy`,
    table: 'projects/p/instances/i/tables/t',
    sourceBackup: `${BACKUPS}b`,
    startMicros: 1_700_000_000_000_000,
    endMicros: 1_700_000_000_250_000,
  },
};

/** With ordinary prototypes: decoded records have none. */
const plain = <T>(decoded: T): T => structuredClone(decoded);

/** As a text, so that a change shows in a diff: the documents are text, and keys are shown as JSON shows them. */
function textOfRow(row: MetadataRow, event: TabletEvent): string {
  const cells = cellsOf(encodeRow(row, event)).map(
    ({ family, qualifier, timestamp, value }) =>
      `${family}:${qualifier} ${timestamp} ${Buffer.from(value).toString()}\n`,
  );
  return `${JSON.stringify(keyOfRow(row))}\n${cells.join('')}`;
}

describe('the golden files of METADATA', () => {
  test('rows have the same keys, timestamps and documents, and are read back', () => {
    const written = ROWS.map(([row, event]) => textOfRow(row, event)).join('\n');
    const golden = goldenFile('metadata-rows-v1.txt', Buffer.from(written)).toString();
    assert.equal(written, golden);
    for (const [i, text] of golden.split('\n\n').entries()) {
      const [key = '', ...lines] = text.trim().split('\n');
      const cells = lines.map((line) => {
        const [, family = '', qualifier = '', timestamp = '', value = ''] = /^(\w+):(\w+) (\d+) (.*)$/.exec(line) ?? [];
        return { family, qualifier, timestamp: Number(timestamp), value: Buffer.from(value) };
      });
      assert.deepEqual(plain(decodeRow(JSON.parse(key), cells)), ROWS[i]?.[0]);
    }
  });

  test('the root file is the same, byte for byte, and is read back', () => {
    const written = encodeRootFile(ROOT);
    const golden = goldenFile('root-file-v1.json', written);
    assert.equal(keyOfRow(ROOT), ROOT_KEY);
    assert.equal(Buffer.from(written).toString(), golden.toString());
    assert.deepEqual(plain(decodeRootFile(golden)), ROOT);
  });

  test('a schema is the same, byte for byte, and is read back', () => {
    const written = encodeSchema(SCHEMA);
    const golden = goldenFile('schema-v1.json', written);
    assert.equal(Buffer.from(written).toString(), golden.toString());
    assert.deepEqual(plain(decodeSchema(schemaPath(SCHEMA.name), golden)), SCHEMA);
  });

  test('so is that of a table with a change stream', () => {
    const written = encodeSchema(STREAMED_SCHEMA);
    const golden = goldenFile('schema-with-change-stream-v1.json', written);
    assert.equal(Buffer.from(written).toString(), golden.toString());
    assert.deepEqual(plain(decodeSchema(schemaPath(STREAMED_SCHEMA.name), golden)), STREAMED_SCHEMA);
  });

  test('so is that of a table that was restored from a backup', () => {
    const written = encodeSchema(RESTORED_SCHEMA);
    const golden = goldenFile('schema-restored-v1.json', written);
    assert.equal(Buffer.from(written).toString(), golden.toString());
    assert.deepEqual(plain(decodeSchema(schemaPath(RESTORED_SCHEMA.name), golden)), RESTORED_SCHEMA);
  });

  test('the mark of a deletion is the same, byte for byte, and is read back', () => {
    const { id: tableId, name } = SCHEMA;
    const written = encodeDeletionMark({ name });
    const golden = goldenFile('deletion-mark-v1.json', written);
    assert.equal(Buffer.from(written).toString(), golden.toString());
    assert.deepEqual(decodeDeletionMark(deletionPath(tableId), golden), { tableId, name });
  });
});
