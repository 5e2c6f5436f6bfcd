import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KnownFiles } from './known-files.ts';

describe('the files that a read cache knows', () => {
  test('the file that was used for longest is evicted, unless it is being fetched', () => {
    const files = new KnownFiles(3);
    const [a, b, c] = [files.of('a'), files.of('b'), files.of('c')];
    a.fetches.set(0, Promise.resolve(Buffer.alloc(0)));
    assert.equal(files.of('b'), b);
    files.of('d');
    assert.equal(files.of('a'), a);
    assert.equal(files.of('b'), b);
    assert.notEqual(files.of('c'), c);
  });

  test('a deleted file is another one', () => {
    const files = new KnownFiles(3);
    const before = files.of('a');
    assert.equal(files.delete('a'), before);
    assert.equal(before.isDeleted, true);
    assert.notEqual(files.of('a'), before);
    assert.deepEqual(files.of('a').key, before.key);
  });

  test('reads that go on are followed in both directions, several at the same time', () => {
    const file = new KnownFiles(3).of('a');
    assert.equal(file.noteRead(100, 10), 0);
    assert.equal(file.noteRead(110, 20), 10);
    assert.equal(file.noteRead(500, 10), 0);
    assert.equal(file.noteRead(490, 10), 10);
    assert.equal(file.noteRead(130, 5), 30);
    assert.equal(file.noteRead(470, 20), 20);
    assert.equal(file.noteRead(136, 5), 0);
    assert.equal(file.noteRead(0, 5), 0);
  });
});
