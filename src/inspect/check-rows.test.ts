import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { MetadataRow } from '../metadata/index.ts';
import { keyOfRow, METADATA_TABLE_ID, USER_RANGE } from '../metadata/index.ts';
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

  test('those of METADATA must', () => {
    const { findings } = checked([rowOf(METADATA_TABLE_ID, USER_RANGE.start, 'k')]);
    assert.match(findings.list[0]?.message ?? '', /no tablet holds rows from "k" on/);
  });
});
