/** Paths of imported files, and the paths at which they were written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importedPath, isImportedPath, writtenPath } from './imported-path.ts';

test('an imported file has the path at which it was written after the id of its backup', () => {
  const path = importedPath('sstables/54352d7f-8', '0000001f');
  assert.equal(path, 'sstables/imported-0000001f-54352d7f-8');
  assert.equal(writtenPath(path), 'sstables/54352d7f-8');
  assert.deepEqual([isImportedPath(path), isImportedPath('sstables/54352d7f-8')], [true, false]);
});

test('one that is imported again forgets the backup before', () => {
  const once = importedPath('sstables/54352d7f-8', '0000001f');
  assert.equal(importedPath(once, '00000020'), 'sstables/imported-00000020-54352d7f-8');
});

test('the path of another file stays as it is', () => {
  assert.equal(writtenPath('sstables/54352d7f-8'), 'sstables/54352d7f-8');
  assert.equal(writtenPath('sstables/imported-1-8'), 'sstables/imported-1-8');
});
