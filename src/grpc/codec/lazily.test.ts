import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lazily } from './lazily.ts';

test('is loaded once for all who ask, and not before', async () => {
  let loads = 0;
  const load = lazily(async () => ++loads);
  assert.equal(loads, 0);
  assert.deepEqual(await Promise.all([load(), load()]), [1, 1]);
  assert.equal(await load(), 1);
});

test('what failed is told, and tried again for who asks next', async () => {
  let loads = 0;
  const load = lazily(async () => {
    if (++loads === 1) throw new Error('no such file');
    return loads;
  });
  const first = [load(), load()];
  for (const each of first) await assert.rejects(each, /no such file/);
  assert.equal(await load(), 2);
  assert.equal(await load(), 2);
});
