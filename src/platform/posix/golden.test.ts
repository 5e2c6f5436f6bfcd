import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { goldenFile } from '../../../test/golden/golden-file.ts';
import { crc32c } from '../../base/index.ts';
import { silentLogger } from '../../env/index.ts';
import { Directories } from './posix-directories.ts';
import { openPosixFileSystem } from './posix-file-system.ts';
import { segmentName } from './posix-log-format.ts';
import { PosixLogWriter } from './posix-log-writer.ts';
import { DurableWrites } from './posix-durable-writes.ts';
import { nodeSyscalls } from './posix-syscalls.ts';

test('a log that was closed is the golden file, byte for byte, and is read back', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-golden-'));
  t.after(() => rm(directory, { recursive: true }));
  const appends = [
    goldenFile('commit-log-append-v1.bin'),
    Buffer.from('tablet'),
    Buffer.alloc(0),
    Buffer.alloc(900, 7),
  ];
  const at = join(directory, 'logs/log');
  await mkdir(at, { recursive: true });
  const setting = {
    syscalls: nodeSyscalls,
    durableWrites: new DurableWrites(nodeSyscalls, () => 0),
    directories: new Directories(directory, nodeSyscalls, 'golden'),
    checksum: crc32c,
    logger: silentLogger,
    segmentBytes: 1 << 20,
    pause: async () => {},
  };
  const log = await PosixLogWriter.create(setting, 'log', at, Buffer.from('0102030405060708', 'hex'));
  for (const payload of appends) await log.append([payload]);
  await log.close();

  const segment = join(at, segmentName(0));
  const written = await readFile(segment);
  const golden = goldenFile('log-segment-v1.segment', written);
  assert.equal(written.toString('hex'), golden.toString('hex'));

  await writeFile(segment, golden);
  const fileSystem = await openPosixFileSystem(directory, { checksum: crc32c });
  const read: string[] = [];
  for await (const { bytes } of fileSystem.readLog('log')) read.push(bytes.toString('hex'));
  await fileSystem.close();
  assert.deepEqual(
    read,
    appends.map((payload) => payload.toString('hex')),
  );
});
