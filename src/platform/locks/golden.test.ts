import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goldenFile } from '../../../test/golden/golden-file.ts';
import { MemoryFileSystem } from '../../env/index.ts';
import { openLocalLockService } from './local-lock-service.ts';

/** The names hold the hash of a path and a version: docs/formats/lock-service.md. */
const GOLDEN = [
  'lock-service/files/1185f37d33b0f89e331f101a51bb8e51-0000000000000004',
  'lock-service/files/4813494d137e1631bba301d5acab6e7b-0000000000000001',
  'lock-service/files/53ec9e8555612b9a33a5e91ccf9978ce-0000000000000003',
  'lock-service/numbers/0000000000100001',
];

async function readAll(fileSystem: MemoryFileSystem): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  for (const { path, sizeBytes } of await fileSystem.list('lock-service/')) {
    files.set(path, await fileSystem.read(path, 0, sizeBytes));
  }
  return files;
}

test('the files of the lock service are the golden ones, byte for byte, and are read back', async () => {
  const fileSystem = new MemoryFileSystem();
  const service = await openLocalLockService(fileSystem);
  await service.write('root', Buffer.from('{"format":1}'));
  await service.write('deleted', Buffer.from('for a while'));
  await service.write('schemas/größe/🏺', Buffer.from([0, 255, 128]));
  await service.remove('deleted');
  await service.write('ephemeral', Buffer.from('never a file'), { sessionId: await service.openSession() });

  const golden = new MemoryFileSystem();
  const names: string[] = [];
  for (const [path, written] of await readAll(fileSystem)) {
    const bytes = goldenFile(path.replace('lock-service', 'lock-service-v1'), written);
    assert.equal(written.toString('hex'), bytes.toString('hex'), path);
    const writer = await golden.create(path);
    await writer.append(bytes);
    await writer.close();
    names.push(path);
  }
  assert.deepEqual(names, GOLDEN);
  const again = await openLocalLockService(golden);
  const files = (await again.list('')).map(({ path, contents }) => [path, Buffer.from(contents).toString('hex')]);
  assert.deepEqual(files, [
    ['root', Buffer.from('{"format":1}').toString('hex')],
    ['schemas/größe/🏺', '00ff80'],
  ]);
});
