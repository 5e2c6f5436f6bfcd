import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Places } from './places.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('as many pieces of work run as there are places, and the others begin in order', async () => {
  const places = new Places(2);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const work = [0, 1, 2, 3].map((i) =>
    places.take(async () => {
      begun.push(i);
      await new Promise<void>((resolve) => {
        ends[i] = resolve;
      });
      return i;
    }),
  );
  await turn();
  assert.deepEqual(begun, [0, 1]);
  ends[1]!();
  assert.equal(await work[1], 1);
  await turn();
  assert.deepEqual(begun, [0, 1, 2]);
  for (const i of [0, 2]) ends[i]!();
  await turn();
  ends[3]!();
  assert.deepEqual(await Promise.all(work), [0, 1, 2, 3]);
});

test('work that fails frees its place', async () => {
  const places = new Places(1);
  const failure = places.take(() => Promise.reject(new Error('no')));
  const later = places.take(() => Promise.resolve('yes'));
  await assert.rejects(failure, /no/);
  assert.equal(await later, 'yes');
});
