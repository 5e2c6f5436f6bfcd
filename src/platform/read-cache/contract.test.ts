/** The contract of file systems, with a read cache over memory and over a directory that many machines share. */
import * as fs from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { fileSystemContract, type FileSystemUnderTest } from '../../../test/contracts/file-system-contract.ts';
import { crc32c } from '../../base/index.ts';
import { type FileSystem, MemoryFileSystem } from '../../env/index.ts';
import { withoutSyncs } from '../fixtures.ts';
import { systemClock } from '../machine/system-clock.ts';
import { systemRandom } from '../machine/system-random.ts';
import { nodeSyscalls } from '../posix/posix-syscalls.ts';
import { openSharedDirectory } from '../shared/shared-directory.ts';
import type { SharedStore } from '../shared/shared-store.ts';
import { budgetOf, IDENTITY, temporaryDirectory } from './fixtures.ts';
import { openReadCache, type ReadCache } from './read-cache.ts';

// timers of the system's clock do not keep the process alive
const alive = setInterval(() => undefined, 1000);
after(() => clearInterval(alive));

const CHUNK_BYTES = 64 * 1024;
const clock = systemClock;

/** A cache of that many chunks, which is closed and opened again with each store. */
function cacheBefore(slots: number): {
  readonly directory: string;
  over(fileSystem: FileSystem): Promise<FileSystem>;
  close(): Promise<void>;
} {
  const directory = temporaryDirectory();
  let cache: ReadCache | undefined;
  return {
    directory,
    over: async (fileSystem) => {
      await cache?.close();
      const sizes = { budgetBytes: budgetOf(slots, CHUNK_BYTES), chunkBytes: CHUNK_BYTES };
      const path = join(directory, 'cache');
      cache = await openReadCache(path, { fileSystem, identity: IDENTITY, ...sizes, checksum: crc32c, clock });
      return cache.fileSystem;
    },
    close: async () => {
      await cache?.close();
      fs.rmSync(directory, { recursive: true });
    },
  };
}

fileSystemContract('a read cache of few chunks over memory', async () => {
  const cache = cacheBefore(8);
  const store = new MemoryFileSystem();
  return {
    fileSystem: await cache.over(store),
    reopen: async () => cache.over(store.crash('nothing')),
    setFreeBytes: (bytes) => (store.freeBytes = bytes),
    close: () => cache.close(),
  };
});

const overDirectory = async (): Promise<FileSystemUnderTest> => {
  const cache = cacheBefore(40);
  const opened: SharedStore[] = [];
  const open = async (): Promise<FileSystem> => {
    const options = { clock, random: systemRandom, syscalls: withoutSyncs(nodeSyscalls) };
    const store = await openSharedDirectory(join(cache.directory, 'store'), options);
    opened.push(store);
    return cache.over(store.fileSystem);
  };
  return {
    fileSystem: await open(),
    reopen: open,
    setFreeBytes: () => undefined,
    close: async () => {
      for (const store of opened) await store.close();
      await cache.close();
    },
  };
};
// its full disk is the matter of its own tests
fileSystemContract('a read cache over a shared directory', overDirectory, { isLimited: false });
