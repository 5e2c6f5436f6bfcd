import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Attempts } from './attempts.ts';

/** The blocks of `count` that are tried, when none of them shrinks. */
function tries(attempts: Attempts, count: number): number[] {
  const tried: number[] = [];
  for (let i = 0; i < count; i++) {
    if (!attempts.shouldTry()) continue;
    tried.push(i);
    attempts.record(false);
  }
  return tried;
}

describe('Attempts', () => {
  test('after eight that did not shrink, one in sixteen is tried', () => {
    assert.deepEqual(tries(new Attempts(false), 60), [0, 1, 2, 3, 4, 5, 6, 7, 23, 39, 55]);
  });

  test('once one shrinks all are tried again', () => {
    const attempts = new Attempts(false);
    tries(attempts, 30);
    while (!attempts.shouldTry()) {
      // until the next of the sample
    }
    attempts.record(true);
    assert.deepEqual(tries(attempts, 10), [0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test('after files that did not shrink, the first block and one in 64 are tried, until one shrinks', () => {
    const attempts = new Attempts(true);
    assert.deepEqual(tries(attempts, 140), [0, 64, 128]);
    while (!attempts.shouldTry()) {
      // until the next of the sample
    }
    attempts.record(true);
    assert.deepEqual(tries(attempts, 60), [0, 1, 2, 3, 4, 5, 6, 7, 23, 39, 55]);
  });

  test('one that shrinks among others keeps all tried', () => {
    const attempts = new Attempts(false);
    for (let i = 0; i < 100; i++) {
      assert.ok(attempts.shouldTry(), `block ${i}`);
      attempts.record(i % 8 === 7);
    }
  });
});
