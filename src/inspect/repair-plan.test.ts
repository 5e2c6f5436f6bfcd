/** The files that a rebuilt tablet lists, after splits and merges. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PlacedFile, planTablets } from './repair-plan.ts';

const FAMILIES = new Set(['f']);
const WHOLE = { start: '', end: undefined };
const LOW = { start: '', end: 'm' };
const HIGH = { start: 'm', end: undefined };

function file(path: string, range: PlacedFile['range'], since: number, newest: number): PlacedFile {
  return {
    path,
    group: 'default',
    range,
    families: ['f'],
    held: ['f'],
    since: { epoch: 1, sequence: since },
    newest: { epoch: 1, sequence: newest },
    createdMicros: newest,
    lastServerMicros: 0,
  };
}

const plan = (...files: PlacedFile[]): (readonly [unknown, string[]])[] =>
  planTablets(files, FAMILIES).map(({ range, files: listed }) => [range, listed.map(({ path }) => path)] as const);

test('a file that was shared at a split is not listed if a major one of a part holds all of it', () => {
  assert.deepEqual(plan(file('shared', WHOLE, 0, 10), file('major', HIGH, 0, 20)), [
    [LOW, ['shared']],
    [HIGH, ['major']],
  ]);
});

test('nor is it after a merge, which flushes for the whole range show', () => {
  const files = [file('shared', WHOLE, 0, 10), file('major', HIGH, 0, 20), file('merged', WHOLE, 20, 30)];
  assert.deepEqual(plan(...files), [
    [LOW, ['merged', 'shared']],
    [HIGH, ['merged', 'major']],
  ]);
  assert.deepEqual(plan(...files, file('everything', WHOLE, 0, 30)), [[WHOLE, ['everything']]]);
});

test('a part that only flushed keeps the shared files', () => {
  assert.deepEqual(plan(file('shared', WHOLE, 0, 10), file('flushed', HIGH, 10, 20)), [
    [LOW, ['shared']],
    [HIGH, ['flushed', 'shared']],
  ]);
});
