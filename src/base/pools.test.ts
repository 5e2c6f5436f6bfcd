import assert from 'node:assert/strict';
import { test } from 'node:test';
import { once, Pool } from './pools.ts';

test('a pool returns its items, the last first, and keeps no more than its limit', () => {
  const pool = new Pool<string>(2);
  assert.equal(pool.take(), undefined);
  assert.deepEqual(
    ['a', 'b', 'c'].map((item) => pool.give(item)),
    [true, true, false],
  );
  assert.deepEqual([pool.take(), pool.take(), pool.take()], ['b', 'a', undefined]);
});

test('a constant is made on its first use, once', () => {
  let made = 0;
  const constant = once(() => ++made);
  assert.deepEqual([made, constant(), constant(), made], [0, 1, 1, 1]);
});
