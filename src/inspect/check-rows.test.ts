import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { MetadataRow } from '../metadata/index.ts';
import { boundaryAfter, keyOfRow, METADATA_TABLE_ID, metadataKey, USER_RANGE } from '../metadata/index.ts';
import { RowCheck } from './check-rows.ts';
import { Findings } from './findings.ts';

function rowOf(tableId: string, start: string, end: string | undefined, epoch = 1): MetadataRow {
  const redo = { epoch: 0, sequence: 0 };
  return {
    tableId,
    range: { start, end },
    server: undefined,
    epoch,
    version: 1,
    commitId: '',
    files: {},
    redo,
    logs: [],
  };
}

function checked(rows: readonly MetadataRow[]): { findings: Findings; check: RowCheck } {
  const findings = new Findings();
  const check = new RowCheck(findings, new Map());
  for (const row of rows) check.add({ key: keyOfRow(row), rowIn: 'METADATA', row, events: [] });
  check.end();
  return { findings, check };
}

describe('the check of the rows of METADATA', () => {
  test('rows of a table without a schema, which may be going, need not partition it', () => {
    const metadata = rowOf(METADATA_TABLE_ID, USER_RANGE.start, undefined);
    const { findings, check } = checked([metadata, rowOf('00000010', 'k', 't')]);
    assert.deepEqual(findings.list, []);
    assert.deepEqual(check.schemaless.get('00000010')?.gaps, [
      'table 00000010: no tablet holds rows from "" to "k"',
      'table 00000010: no tablet holds rows from "t" on',
    ]);
  });

  test('rows of a backup, which may be going, need not be whole', () => {
    const metadata = rowOf(METADATA_TABLE_ID, USER_RANGE.start, undefined);
    const { findings, check } = checked([metadata, { ...rowOf('00000010', '', 'k'), isOfBackup: true }]);
    assert.deepEqual(findings.list, []);
    assert.deepEqual([...check.backups], [['00000010', ['table 00000010: no tablet holds rows from "k" on']]]);
  });

  test('a tablet must not lie across two tablets of METADATA, nor could its parts', () => {
    const last = rowOf('00000010', 'm', undefined);
    const rows = [rowOf('00000010', '', 'm'), last, rowOf('00000011', '', undefined)];
    const found = (boundary: string): readonly string[] => {
      const metadata = [
        rowOf(METADATA_TABLE_ID, USER_RANGE.start, boundary),
        rowOf(METADATA_TABLE_ID, boundary, undefined),
      ];
      return checked([...metadata, ...rows]).findings.list.map(({ message }) => message);
    };
    for (const row of rows) assert.deepEqual(found(boundaryAfter(keyOfRow(row))), []);
    for (const [boundary, start] of [
      [keyOfRow(last), 'm'],
      [boundaryAfter(metadataKey('00000010', 'z')), 'm'],
      [boundaryAfter(metadataKey('00000010', 'a')), ''],
    ] as const) {
      const [message = ''] = found(boundary);
      assert.ok(message.includes(`begins at "${start}" lies across a boundary of METADATA's tablets`), message);
    }
  });

  test('those of METADATA must', () => {
    const { findings } = checked([rowOf(METADATA_TABLE_ID, USER_RANGE.start, 'k')]);
    assert.match(findings.list[0]?.message ?? '', /no tablet holds rows from "k" on/);
  });
});
