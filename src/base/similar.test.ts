import assert from 'node:assert/strict';
import { test } from 'node:test';
import { didYouMean, similarName } from './similar.ts';

const NAMES = ['memtable-bytes', 'block-cache-bytes', 'scan-cache-bytes', 'durability', 'limits', 'dir'];

test('the similar name is found, whatever its case and separators', () => {
  for (const name of ['memtable-byte', 'memtableBytes', 'MEMTABLE_BYTES', 'mentable-bytes', 'memtable']) {
    assert.equal(similarName(name, NAMES), 'memtable-bytes', name);
  }
  assert.equal(similarName('durabilty', NAMES), 'durability');
  assert.equal(similarName('scan-cache', NAMES), 'scan-cache-bytes');
});

test('a slip of the finger is found in short names too', () => {
  const names = ['end', 'from', 'start', 'rows', 'prefix'];
  for (const [name, meant] of [
    ['ned', 'end'],
    ['en', 'end'],
    ['frmo', 'from'],
    ['satrt', 'start'],
    ['row', 'rows'],
    ['preffix', 'prefix'],
    ['PREFIX', 'prefix'],
  ] as const) {
    assert.equal(similarName(name, names), meant, name);
  }
});

test('a name without its unit is found', () => {
  assert.equal(similarName('blockSize', ['memtableBytes', 'blockCacheBytes', 'blockSizeBytes']), 'blockSizeBytes');
  assert.equal(similarName('timeout', ['signal', 'timeoutMs']), 'timeoutMs');
});

test('names that are like none have no similar one', () => {
  for (const name of ['', 'x', 'compression', 'a'.repeat(1_000_000)])
    assert.equal(similarName(name, NAMES), undefined, name.slice(0, 10));
  assert.equal(similarName('dir', []), undefined);
  assert.equal(similarName('f', ['g']), undefined);
});

test('a message names the similar one', () => {
  assert.equal(didYouMean('limit', NAMES), ' (did you mean limits?)');
  assert.equal(didYouMean('nothing', NAMES), '');
});
