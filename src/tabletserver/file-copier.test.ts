/** Copies of files between two file systems: joined, repeated, refused. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { rejectsWith } from '../../test/tables.ts';
import { Code, crc32c } from '../base/index.ts';
import { type Env, type FileSystem, ManualClock, MemoryFileSystem, Metrics } from '../env/index.ts';
import { nativeCodecs } from '../platform/index.ts';
import { FileCopier } from './file-copier.ts';

const COPY = 'sstables/imported-0000001f-1-1';
/** More than two pieces. */
const CONTENTS = Buffer.alloc(5 << 20, 'some bytes that are not all the same');

async function write(fileSystem: FileSystem, path: string, contents: Buffer): Promise<void> {
  const writer = await fileSystem.create(path);
  await writer.append(contents);
  await writer.close();
}

function copierOf(options: { readonly backupStore?: MemoryFileSystem; readonly fileSystem?: MemoryFileSystem } = {}) {
  const { backupStore = new MemoryFileSystem(), fileSystem = new MemoryFileSystem() } = options;
  const env = {
    ...{ fileSystem, backupStore: async () => backupStore, codecs: nativeCodecs() },
    ...{ metrics: new Metrics(), clock: new ManualClock() },
  } as unknown as Env;
  return { copier: new FileCopier(env), backupStore, fileSystem };
}

describe('a copy of a file', () => {
  test('has all bytes, and its sum', async () => {
    const { copier, backupStore, fileSystem } = copierOf();
    await write(backupStore, 'files/x/1', CONTENTS);
    const made = await copier.copy({ direction: 'import', path: 'files/x/1', copyPath: COPY });
    assert.deepEqual(made, { sizeBytes: CONTENTS.length, checksum: crc32c(CONTENTS) });
    assert.ok((await fileSystem.read(COPY, 0, CONTENTS.length)).equals(CONTENTS));
  });

  test('is made once by calls at the same time, and later calls answer the same', async () => {
    const created: string[] = [];
    const fileSystem = new MemoryFileSystem({
      faults: (operation, path) => {
        if (operation === 'closeFile') created.push(path);
      },
    });
    const { copier, backupStore } = copierOf({ fileSystem });
    await write(backupStore, 'files/x/1', CONTENTS);
    const wanted = { direction: 'import', path: 'files/x/1', copyPath: COPY } as const;
    const [one, two] = await Promise.all([copier.copy(wanted), copier.copy(wanted)]);
    assert.deepEqual([two, created], [one, [COPY]]);
    assert.deepEqual(await copier.copy(wanted), one);
  });

  test('waits while others are made, and comes in its turn', async () => {
    const ends: (() => void)[] = [];
    const fileSystem = new MemoryFileSystem({
      faults: (operation) => (operation === 'closeFile' ? new Promise((end) => ends.push(end)) : undefined),
    });
    const { copier, backupStore } = copierOf({ fileSystem });
    await write(backupStore, 'files/x/1', Buffer.from('contents'));
    const made = Array.from({ length: 9 }, (_, i) =>
      copier.copy({ direction: 'import', path: 'files/x/1', copyPath: `sstables/imported-0000001f-${i}` }),
    );
    for (const done of [0, 4, 8]) {
      while (ends.length < Math.min(4, made.length - done)) await backupStore.size('files/x/1');
      assert.ok(ends.length <= 4, `${ends.length} copies at the same time`);
      for (const end of ends.splice(0)) end();
    }
    assert.equal((await Promise.all(made)).length, 9);
  });

  test('of an empty file, and of none', async () => {
    const { copier, backupStore, fileSystem } = copierOf();
    await write(backupStore, 'files/x/1', Buffer.alloc(0));
    const made = await copier.copy({ direction: 'import', path: 'files/x/1', copyPath: COPY });
    assert.deepEqual([made, await fileSystem.size(COPY)], [{ sizeBytes: 0, checksum: 0 }, 0]);
    await rejectsWith(
      Code.NOT_FOUND,
      copier.copy({ direction: 'import', path: 'files/x/2', copyPath: COPY.replace('1-1', '1-2') }),
    );
    assert.equal((await fileSystem.list('')).length, 1);
  });

  test('leaves nothing where a write fails', async () => {
    const fileSystem = new MemoryFileSystem();
    fileSystem.freeBytes = 3 << 20;
    const { copier, backupStore } = copierOf({ fileSystem });
    await write(backupStore, 'files/x/1', CONTENTS);
    const wanted = { direction: 'import', path: 'files/x/1', copyPath: COPY } as const;
    await rejectsWith(Code.RESOURCE_EXHAUSTED, copier.copy(wanted));
    assert.deepEqual(await fileSystem.list(''), []);
    fileSystem.freeBytes = Number.POSITIVE_INFINITY;
    assert.equal((await copier.copy(wanted)).sizeBytes, CONTENTS.length);
  });

  test('is of an SSTable whose blocks are whole, and imported under a name that says so', async () => {
    const { copier, backupStore, fileSystem } = copierOf();
    await write(fileSystem, 'sstables/1-1', CONTENTS);
    await rejectsWith(
      Code.DATA_LOSS,
      copier.copy({ direction: 'export', path: 'sstables/1-1', copyPath: 'files/x/1-1' }),
    );
    assert.deepEqual(await backupStore.list(''), []);
    for (const copyPath of ['sstables/1-2', 'logs/imported-0000001f-1', 'imported-0000001f-1'])
      await rejectsWith(Code.INVALID_ARGUMENT, copier.copy({ direction: 'import', path: 'files/x/1', copyPath }));
  });
});
