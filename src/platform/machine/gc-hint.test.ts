import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { collectYoungObjects } from './gc-hint.ts';

test('young objects are collected once there are many of them', () => {
  // before the first call, which finds V8's function
  setFlagsFromString('--expose-gc');
  const kept: object[] = [];
  let collections = 0;
  for (let i = 0; i < 200_000; i++) {
    kept.push({ i });
    if (i % 1000 === 0 && collectYoungObjects()) collections++;
  }
  // 5 MB and more of objects, 2 MiB at a time
  assert.ok(collections >= 1, `${collections} collections`);
  assert.equal(collectYoungObjects() && collectYoungObjects(), false);
});
