import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CorruptionError } from '../base/index.ts';
import { type BackupFile, backupPath, decodeBackup, encodeBackup } from './backup-file.ts';

const NAME = 'projects/p/instances/i/clusters/c/backups/b';
const file: BackupFile = {
  id: '00000012',
  name: NAME,
  table: 'projects/p/instances/i/tables/t',
  state: 'ready',
  kind: 'standard',
  startMicros: 1,
  endMicros: 2,
  expireMicros: 3,
  sizeBytes: 4,
  schema: {
    name: 'projects/p/instances/i/tables/t',
    id: '00000011',
    granularity: 'millis',
    families: { f: { name: 'f' } },
    deletionProtection: false,
  },
  policies: [],
  write: 'w',
};
const policies = [
  { bindings: [{ role: 'roles/bigtable.reader', members: ['token:a', 'allUsers'] }] },
  { family: 'f', bindings: [] },
];

const requiresOf = (contents: Buffer): number =>
  (JSON.parse(contents.toString()) as { readonly requires: number }).requires;

describe('the file of a backup', () => {
  test('is read as it was written, with policies and without', () => {
    // maps of names have no prototype
    for (const one of [file, { ...file, policies }])
      assert.deepEqual(structuredClone(decodeBackup(backupPath(NAME), encodeBackup(one))), one);
  });

  test('with policies is refused by readers that do not know them', () => {
    assert.equal(requiresOf(encodeBackup(file)), 0);
    assert.equal(requiresOf(encodeBackup({ ...file, policies })), 16);
  });

  test('with policies that are none is corrupt', () => {
    const document = JSON.parse(encodeBackup({ ...file, policies }).toString()) as Record<string, unknown>;
    for (const wrong of ['x', [1], [{}], [{ bindings: [{ role: 'r' }] }], [{ family: 1, bindings: [] }]])
      assert.throws(
        () => decodeBackup(backupPath(NAME), Buffer.from(JSON.stringify({ ...document, policies: wrong }))),
        CorruptionError,
      );
  });
});
