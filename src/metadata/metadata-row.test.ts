import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CorruptionError } from '../base/index.ts';
import type { Cell } from '../model/index.ts';
import { cellsOf, metadataRow } from './fixtures.ts';
import { METADATA_TABLE_ID } from './keys.ts';
import {
  decodeLocation,
  decodeRootFile,
  decodeRow,
  encodeRootFile,
  encodeRow,
  keyOfRow,
  LOCATION_FAMILY,
  METADATA_SCHEMA,
  type MetadataRow,
} from './metadata-row.ts';

const event = { kind: 'created', atMicros: 1_704_067_200_000_000 } as const;
const plain: MetadataRow = {
  tableId: '0000002a',
  range: { start: 'a', end: 'm\0\xff' },
  server: { name: 'n', address: 'h:1' },
  epoch: 3,
  version: 7,
  commitId: 'c',
  files: { default: ['sstables/n-2', 'sstables/n-1'] },
  redo: { epoch: 2, sequence: 9 },
  logs: ['logs/n'],
};

/** The plain row's cells with one family's document changed. */
function withDocument(family: string, change: (document: Record<string, unknown>) => void): Cell[] {
  return cellsOf(encodeRow(plain, event)).map((cell) => {
    if (cell.family !== family) return cell;
    const document = JSON.parse(Buffer.from(cell.value).toString()) as Record<string, unknown>;
    change(document);
    return { ...cell, value: Buffer.from(JSON.stringify(document)) };
  });
}

describe('rows of METADATA', () => {
  test('come back from their cells', () => {
    fc.assert(
      fc.property(metadataRow, (row) => {
        const cells = cellsOf(encodeRow(row, event));
        assert.deepEqual(decodeRow(keyOfRow(row), cells), row);
        const { files, redo, logs, lastServerMicros, pastOwners, changesFrom, changesUntil, ...location } = row;
        assert.deepEqual(
          decodeLocation(
            keyOfRow(row),
            cells.filter((cell) => cell.family === LOCATION_FAMILY),
          ),
          location,
        );
        assert.ok(cells.every((cell) => cell.timestamp === row.version && METADATA_SCHEMA.families[cell.family]));
      }),
    );
  });

  test('the root tablet comes back from its file', () => {
    fc.assert(
      fc.property(
        metadataRow,
        fc.string({ unit: 'binary-ascii' }),
        ({ pastOwners: _, changesFrom: __, changesUntil: ___, ...row }, end) => {
          const root = { ...row, tableId: METADATA_TABLE_ID, range: { start: row.range.start, end } };
          assert.deepEqual(decodeRootFile(encodeRootFile(root)), root);
        },
      ),
    );
  });

  test('a row without cells does not exist', () => {
    assert.equal(decodeRow(keyOfRow(plain), []), undefined);
  });

  test('the bytes are those that docs/formats/metadata.md shows', () => {
    const server = { name: '54352d7f6ac202360768dd4c75560a43', address: 'tablet-server-0' };
    const row = {
      ...plain,
      range: { start: '', end: undefined },
      server,
      epoch: 1,
      version: 1,
      commitId: 'ce4c72aa8b5bb5b3be372fbc49c33f52',
    };
    assert.equal(
      Buffer.from(cellsOf(encodeRow(row, event))[0]?.value ?? []).toString(),
      '{"format":1,"requires":0,"start":"","server":{"name":"54352d7f6ac202360768dd4c75560a43","address":"tablet-server-0"},"epoch":1,"version":1,"commitId":"ce4c72aa8b5bb5b3be372fbc49c33f52"}',
    );
  });

  test('the newest time that a server gave is next to the redo point; rows of earlier versions have none', () => {
    const filesOf = (row: MetadataRow): string =>
      Buffer.from(cellsOf(encodeRow(row, event))[1]?.value ?? []).toString();
    const before =
      '{"format":1,"requires":0,"files":{"default":["sstables/n-2","sstables/n-1"]},"redo":{"epoch":2,"sequence":9},"logs":["logs/n"]}';
    assert.equal(filesOf(plain), before, 'as it was before there was such a field');
    assert.equal(
      filesOf({ ...plain, lastServerMicros: 1_704_067_200_000_001 }),
      before.replace(/}$/, ',"lastServerMicros":1704067200000001}'),
    );
  });

  test('unknown fields are skipped', () => {
    assert.deepEqual(
      decodeRow(
        keyOfRow(plain),
        withDocument('location', (document) => (document['later'] = [1])),
      ),
      decodeRow(keyOfRow(plain), cellsOf(encodeRow(plain, event))),
    );
  });

  const broken: [string, string, (document: Record<string, unknown>) => void, RegExp][] = [
    ['a later format', 'location', (document) => (document['format'] = 2), /format 2 is not known/],
    [
      'unknown features',
      'files',
      (document) => (document['requires'] = 2 ** 40 + 2 ** 20),
      /needs features 0x10000100000/,
    ],
    ['a missing field', 'location', (document) => delete document['epoch'], /epoch should be a count, not undefined/],
    ['a negative count', 'location', (document) => (document['version'] = -1), /version should be a count/],
    [
      'a number that is not exact',
      'files',
      (document) => (document['redo'] = { epoch: 2 ** 53, sequence: 0 }),
      /epoch should be a count/,
    ],
    [
      'a row key that is not of bytes',
      'location',
      (document) => (document['start'] = '€'),
      /start should be a byte string/,
    ],
    ['a list of something else', 'files', (document) => (document['logs'] = [1]), /logs should be a list of texts/],
    [
      'files that are not lists',
      'files',
      (document) => (document['files'] = { default: 'x' }),
      /default should be a list of texts/,
    ],
    [
      'a server that is none',
      'location',
      (document) => (document['server'] = 'n'),
      /server should be an object|should be an object/,
    ],
  ];
  for (const [what, family, change, message] of broken) {
    test(`${what} is refused with a message`, () => {
      assert.throws(
        () => decodeRow(keyOfRow(plain), withDocument(family, change)),
        (error) => error instanceof CorruptionError && message.test(error.message),
      );
    });
  }

  test('bytes that are not a document are corruption', () => {
    for (const value of ['', '{', '[]', 'null', '"x"', '\xff\xfe', '{}']) {
      const cells = cellsOf(encodeRow(plain, event)).map((cell) => ({ ...cell, value: Buffer.from(value, 'latin1') }));
      assert.throws(() => decodeRow(keyOfRow(plain), cells), CorruptionError);
    }
    assert.throws(
      () => decodeRow(keyOfRow(plain), cellsOf(encodeRow(plain, event)).slice(0, 1)),
      /a location and no files/,
    );
  });
});
