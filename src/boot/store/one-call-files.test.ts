import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { MemoryFileSystem } from '../../env/index.ts';
import { oneCallFiles } from './one-call-files.ts';

/** Threads of Node's pool, by default. */
const POOL_THREADS = 4;

test('a second store that hangs leaves the files of the database threads of the pool', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-'));
  const pipe = join(directory, 'pipe');
  const own = join(directory, 'own');
  await writeFile(own, 'own');
  execFileSync('mkfifo', [pipe]);
  let calls = 0;
  // a pipe without a writer is opened no sooner than a directory that is gone
  const hang = async (): Promise<never> => {
    calls++;
    await (await open(pipe)).close();
    throw new Error('the store is back');
  };
  const files = oneCallFiles({ create: hang, size: hang, read: hang, list: hang, delete: hang });
  const hanging = Array.from({ length: POOL_THREADS }, (_, i) => files.size(`${i}`).catch(() => i));
  assert.equal(await readFile(own, 'utf8'), 'own');
  assert.equal(calls, 1);
  // with both ends open nothing waits any more
  const ends = await open(pipe, 'r+');
  assert.deepEqual(await Promise.all(hanging), [0, 1, 2, 3]);
  assert.equal(calls, POOL_THREADS);
  await ends.close();
  await rm(directory, { recursive: true });
});

test('all calls reach the store, those of its writers too', async () => {
  const store = new MemoryFileSystem();
  const files = oneCallFiles(store);
  const [writer, other] = await Promise.all([files.create('a'), files.create('b')]);
  await Promise.all([writer.append(Buffer.from('abc')), other.append(Buffer.from('x'))]);
  await Promise.all([writer.close(), other.abort()]);
  assert.deepEqual(await files.list(''), [{ path: 'a', sizeBytes: 3 }]);
  assert.equal(await files.size('a'), 3);
  assert.equal((await files.read('a', 1, 2)).toString(), 'bc');
  await files.delete('a');
  assert.deepEqual(await store.list(''), []);
});
