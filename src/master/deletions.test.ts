import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Env, MemoryLockService } from '../env/index.ts';
import { deletionPath } from '../metadata/index.ts';
import { Deletions } from './deletions.ts';

test('a deletion ends once: a mark that was not made is not removed', async () => {
  const lockService = new MemoryLockService();
  const lock = await lockService.tryAcquire('master', await lockService.openSession());
  assert.ok(lock);
  const deletions = new Deletions({ lockService } as unknown as Env, lock);
  await assert.rejects(deletions.end('00000010'), /a deletion ends once, after it has begun/);
  await deletions.begin('00000010', 't');
  assert.ok(await lockService.read(deletionPath('00000010')));
  await deletions.end('00000010');
  assert.equal(await lockService.read(deletionPath('00000010')), undefined);
  await assert.rejects(deletions.end('00000010'), /a deletion ends once, after it has begun/);
});
