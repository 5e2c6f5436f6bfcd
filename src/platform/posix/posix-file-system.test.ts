import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileSystemContract } from '../../../test/contracts/file-system-contract.ts';
import { filesInTurn, filesSentAgain } from '../../../test/contracts/lost-answers.ts';
import { BigtableError, Code, codeName, crc32c } from '../../base/index.ts';
import type { FileSystem } from '../../env/index.ts';
import { errno, smallDisk } from '../fixtures.ts';
import { openPosixFileSystem, type PosixFileSystem, type PosixOptions } from './posix-file-system.ts';
import { nodeSyscalls, type Syscalls } from './posix-syscalls.ts';

const OPTIONS: PosixOptions = { checksum: crc32c };

for (const [name, options, adapters, seenBy] of [
  ['directory', OPTIONS, 1, undefined],
  ['directory with small segments', { ...OPTIONS, logSegmentBytes: 8192 }, 1, undefined],
  ['directory, every call applied and its answer lost', OPTIONS, 1, filesSentAgain],
  ['directory, two adapters, every call applied and its answer lost', OPTIONS, 2, filesSentAgain],
] as const) {
  fileSystemContract(name, async () => {
    const directory = temporaryDirectory();
    const opened: PosixFileSystem[] = [];
    const disk = smallDisk();
    const open = async (): Promise<PosixFileSystem> => {
      const fileSystem = await openPosixFileSystem(directory, { ...options, syscalls: disk.syscalls });
      opened.push(fileSystem);
      return fileSystem;
    };
    const openFor = async (): Promise<FileSystem> => {
      const opening: PosixFileSystem[] = [];
      for (let i = 0; i < adapters; i++) opening.push(await open());
      const fileSystem = adapters === 1 ? opening[0]! : filesInTurn(opening);
      return seenBy ? seenBy(fileSystem) : fileSystem;
    };
    return {
      fileSystem: await openFor(),
      reopen: openFor,
      setFreeBytes: (bytes) => (disk.freeBytes = bytes),
      close: async () => {
        for (const fileSystem of opened) await fileSystem.close();
        fs.rmSync(directory, { recursive: true });
      },
    };
  });
}

describe('files in a directory', () => {
  test('unfinished files of an earlier owner are removed, and empty directories with them', async (t) => {
    const { directory, fileSystem } = await open(t);
    const writer = await fileSystem.create('a/b/never');
    await writer.append(Buffer.from('half'));
    await writeFile(fileSystem, 'a/c/deleted', 'x');
    await writeFile(fileSystem, 'd/kept', 'x');
    await fileSystem.delete('a/c/deleted');
    assert.equal(fs.readdirSync(join(directory, 'tmp')).length, 1);
    await openPosixFileSystem(directory, OPTIONS);
    assert.deepEqual(fs.readdirSync(join(directory, 'tmp')), []);
    assert.deepEqual(fs.readdirSync(join(directory, 'files')), ['d']);
  });

  test('a reading of a log with a memo, which may stand still, has little of it in memory', async (t) => {
    let readBytes = 0;
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      read: async (...call) => {
        const got = await nodeSyscalls.read(...call);
        readBytes += got;
        return got;
      },
    };
    const { fileSystem } = await open(t, { ...OPTIONS, syscalls, logSegmentBytes: 1 << 20 });
    const log = await fileSystem.openLog('log');
    const payload = Buffer.alloc(100_000, 1);
    for (let i = 0; i < 50; i++) await log.append([payload]);
    await log.close();
    for (const [memo, most] of [
      [{}, 1 << 20],
      [undefined, 4 << 20],
    ] as const) {
      readBytes = 0;
      const appends = fileSystem.readLog('log', 0, memo)[Symbol.asyncIterator]();
      const { value } = await appends.next();
      assert.equal(value?.bytes.length, payload.length);
      assert.ok(readBytes <= most, `${readBytes} bytes`);
      let left = 0;
      for (let next = await appends.next(); !next.done; next = await appends.next()) left++;
      assert.equal(left, 49);
    }
  });

  test('files are read when the process has few descriptors left: kept ones are closed', async (t) => {
    let left = Number.POSITIVE_INFINITY;
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      open: async (path, flags) => {
        if (left <= 0) throw errno('EMFILE');
        left--;
        return nodeSyscalls.open(path, flags);
      },
      close: async (fd) => {
        left++;
        await nodeSyscalls.close(fd);
      },
    };
    const { fileSystem } = await open(t, { ...OPTIONS, syscalls });
    for (let i = 0; i < 10; i++) await writeFile(fileSystem, `f${i}`, `content ${i}`);
    left = 3;
    for (let i = 0; i < 30; i++)
      assert.equal((await fileSystem.read(`f${i % 10}`, 0, 9)).toString(), `content ${i % 10}`);
    // none is kept, and none is available
    for (let i = 0; i < 10; i++) await fileSystem.delete(`f${i}`);
    left = Number.POSITIVE_INFINITY;
    await writeFile(fileSystem, 'last', 'content');
    left = 0;
    await fails(fileSystem.read('last', 0, 7), Code.RESOURCE_EXHAUSTED);
    await fails(fileSystem.create('new'), Code.RESOURCE_EXHAUSTED);
    left = 2;
    assert.equal((await fileSystem.read('last', 0, 7)).toString(), 'content');
  });

  test('a fence whose name could not be made durable is made durable by the next', async (t) => {
    let syncs = 0;
    let failing = false;
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      sync: async (fd) => {
        if (fs.fstatSync(fd).isDirectory()) {
          if (failing) throw errno('EIO');
          syncs++;
        }
        await nodeSyscalls.sync(fd);
      },
    };
    const { fileSystem } = await open(t, { ...OPTIONS, syscalls });
    const log = await fileSystem.openLog('log');
    await log.append([Buffer.from('x')]);
    await log.close();
    failing = true;
    await assert.rejects(fileSystem.fence('log'));
    failing = false;
    const before = syncs;
    await fileSystem.fence('log');
    assert.ok(syncs > before + 1, 'the directory of the temporary log, then that of the fence');
  });

  test('no call leaves the directory', async (t) => {
    const { fileSystem } = await open(t);
    for (const path of ['..', '../x', 'a/../../x', '/etc/passwd', 'a/./b']) {
      for (const call of ['create', 'size', 'delete', 'openLog', 'fence', 'deleteLog'] as const)
        await fails(fileSystem[call](path), Code.INVALID_ARGUMENT);
      await fails(fileSystem.read(path, 0, 1), Code.INVALID_ARGUMENT);
    }
    for (const prefix of ['../', 'a/../../', '/', '/etc/']) {
      await fails(fileSystem.list(prefix), Code.INVALID_ARGUMENT);
      await fails(fileSystem.listLogs(prefix), Code.INVALID_ARGUMENT);
    }
    await fails(fileSystem.deleteLog('a/..'), Code.INVALID_ARGUMENT);
  });

  test('a directory of logs is no log', async (t) => {
    const { fileSystem } = await open(t);
    await (await fileSystem.openLog('s/a')).close();
    await fileSystem.deleteLog('s');
    assert.deepEqual(await fileSystem.listLogs(''), ['s/a']);
  });

  test('a read with an absurd length takes no memory', async (t) => {
    const { fileSystem } = await open(t);
    await writeFile(fileSystem, 'f', 'abc');
    for (const length of [2 ** 40, Number.MAX_SAFE_INTEGER, Number.NaN, -1])
      await fails(fileSystem.read('f', 0, length), Code.OUT_OF_RANGE);
    await fails(fileSystem.read('f', -1, 1), Code.OUT_OF_RANGE);
  });

  test('an open file is read synchronously, within its size', async (t) => {
    const { fileSystem } = await open(t);
    await writeFile(fileSystem, 'f', 'abcdef');
    assert.equal(fileSystem.readNow?.('f', 0, 6), undefined, 'it is not open yet');
    await fileSystem.read('f', 0, 1);
    // a slow machine may have used up the time for synchronous reads
    const read = fileSystem.readNow?.('f', 2, 3);
    if (read !== undefined) assert.deepEqual(read, Buffer.from('cde'));
    for (const [offset, length] of [
      [4, 3],
      [-1, 2],
      [0, Number.NaN],
      [0, 2 ** 40],
    ] as const)
      assert.equal(fileSystem.readNow?.('f', offset, length), undefined);
    await fileSystem.delete('f');
    assert.equal(fileSystem.readNow?.('f', 0, 6), undefined);
  });

  test('more files than descriptors are kept, and a deleted one is closed', async (t) => {
    const { syscalls, counts } = counting();
    const { fileSystem } = await open(t, { ...OPTIONS, syscalls });
    for (let i = 0; i < 300; i++) await writeFile(fileSystem, `f/${i}`, `content ${i}`);
    const before = counts.open - counts.close;
    for (let round = 0; round < 2; round++) {
      await Promise.all(
        Array.from({ length: 300 }, async (_, i) =>
          assert.equal((await fileSystem.read(`f/${i}`, 8, `${i}`.length)).toString(), `${i}`),
        ),
      );
    }
    await eventually(() => counts.open - counts.close - before === 256);
    await fileSystem.delete('f/299');
    await eventually(() => counts.open - counts.close - before === 255);
    await fails(fileSystem.read('f/299', 0, 1), Code.NOT_FOUND);
    await writeFile(fileSystem, 'f/299', 'another');
    assert.equal((await fileSystem.read('f/299', 0, 7)).toString(), 'another');
  });

  test('a read that is under way ends on the file that is being deleted', async (t) => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let reading = (): void => undefined;
    const begun = new Promise<void>((resolve) => (reading = resolve));
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      read: async (fd, into, offset, length, position) => {
        if (length === 3) {
          reading();
          await held;
        }
        return nodeSyscalls.read(fd, into, offset, length, position);
      },
    };
    const { fileSystem } = await open(t, { ...OPTIONS, syscalls });
    await writeFile(fileSystem, 'f', 'abc');
    const read = fileSystem.read('f', 0, 3);
    await begun;
    await fileSystem.delete('f');
    release();
    assert.equal((await read).toString(), 'abc');
  });

  test('a full disk is RESOURCE_EXHAUSTED, other failures UNAVAILABLE with their cause, and nothing is visible', async (t) => {
    const codes = {
      ENOSPC: Code.RESOURCE_EXHAUSTED,
      EDQUOT: Code.RESOURCE_EXHAUSTED,
      EIO: Code.UNAVAILABLE,
      EWEIRD: Code.INTERNAL,
    };
    for (const [errno, code] of Object.entries(codes)) {
      for (const call of ['write', 'sync', 'link'] as const) {
        const faults = failing();
        const { directory, fileSystem } = await open(t, { ...OPTIONS, syscalls: faults.syscalls });
        const writer = await fileSystem.create('a/f');
        faults.failNext(call, errno);
        const outcome = await failure(writer.append(Buffer.from('x')).then(() => writer.close()));
        assert.equal(codeName(outcome.code), codeName(code), `${call} ${errno}`);
        assert.equal((outcome.cause as NodeJS.ErrnoException).code, errno);
        await writer.abort();
        assert.deepEqual(await fileSystem.list(''), []);
        assert.deepEqual(fs.readdirSync(join(directory, 'tmp')), []);
      }
    }
  });

  test('a file is closed whole or not at all: a failed write is remembered', async (t) => {
    const faults = failing();
    const { fileSystem } = await open(t, { ...OPTIONS, syscalls: faults.syscalls });
    const writer = await fileSystem.create('f');
    faults.failNext('write', 'ENOSPC');
    await fails(writer.append(Buffer.from('lost')), Code.RESOURCE_EXHAUSTED);
    await fails(writer.close(), Code.FAILED_PRECONDITION);
    assert.deepEqual(await fileSystem.list(''), []);
  });

  test('the name is given after the file is synced, and close resolves after the directory is', async (t) => {
    const order: string[] = [];
    const kinds = new Map<number, string>();
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      open: async (path, flags) => {
        const fd = await nodeSyscalls.open(path, flags);
        kinds.set(fd, fs.statSync(path).isDirectory() ? 'directory' : 'file');
        return fd;
      },
      sync: async (fd) => {
        await nodeSyscalls.sync(fd);
        order.push(`sync ${kinds.get(fd)}`);
      },
      link: async (from, to) => {
        await nodeSyscalls.link(from, to);
        order.push('link');
      },
    };
    const { fileSystem } = await open(t, { ...OPTIONS, syscalls });
    await writeFile(fileSystem, 'a/first', 'x');
    order.length = 0;
    await writeFile(fileSystem, 'a/second', 'x');
    assert.deepEqual(order, ['sync file', 'link', 'sync directory']);
    order.length = 0;
    await writeFile(fileSystem, 'b/c/third', 'x');
    assert.deepEqual(
      order,
      ['sync file', 'sync directory', 'sync directory', 'link', 'sync directory'],
      'new parents are durable before the name',
    );
  });

  test('a directory whose link() replaces is refused', async (t) => {
    const directory = temporaryDirectory(t);
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      link: async (from, to) => fs.copyFileSync(from, to),
    };
    const outcome = await failure(openPosixFileSystem(directory, { ...OPTIONS, syscalls }));
    assert.equal(outcome.code, Code.FAILED_PRECONDITION);
    assert.match(outcome.message, /of 4 that create one name together one succeeds/);
  });

  test('a large append is written in slices', async (t) => {
    let largest = 0;
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      write: (fd, buffers, position) => {
        for (const buffer of buffers) largest = Math.max(largest, buffer.length);
        return nodeSyscalls.write(fd, buffers, position);
      },
    };
    const { fileSystem } = await open(t, { ...OPTIONS, syscalls });
    const writer = await fileSystem.create('f');
    await writer.append(Buffer.alloc(20_000_000, 7));
    await writer.close();
    assert.equal(await fileSystem.size('f'), 20_000_000);
    assert.ok(largest <= 4 << 20, `${largest}`);
  });
});

function temporaryDirectory(t?: TestContext): string {
  const directory = fs.mkdtempSync(join(tmpdir(), 'edubba-posix-'));
  t?.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function open(
  t: TestContext,
  options: PosixOptions = OPTIONS,
): Promise<{ directory: string; fileSystem: PosixFileSystem }> {
  const directory = temporaryDirectory(t);
  const fileSystem = await openPosixFileSystem(directory, options);
  t.after(() => fileSystem.close());
  return { directory, fileSystem };
}

/** System calls of which the next one of a kind can be made to fail before it does anything. */
function failing(): { syscalls: Syscalls; failNext: (call: 'write' | 'sync' | 'link', errno: string) => void } {
  const next = new Map<string, string>();
  const check = (call: string): void => {
    const errno = next.get(call);
    next.delete(call);
    if (errno) throw Object.assign(new Error(`${errno}: made to fail`), { code: errno });
  };
  const syscalls: Syscalls = {
    ...nodeSyscalls,
    write: async (fd, buffers, position) => (check('write'), nodeSyscalls.write(fd, buffers, position)),
    sync: async (fd) => (check('sync'), nodeSyscalls.sync(fd)),
    link: async (from, to) => (check('link'), nodeSyscalls.link(from, to)),
  };
  return { syscalls, failNext: (call, errno) => void next.set(call, errno) };
}

function counting(): { syscalls: Syscalls; counts: { open: number; close: number } } {
  const counts = { open: 0, close: 0 };
  const syscalls: Syscalls = {
    ...nodeSyscalls,
    open: async (path, flags) => {
      const fd = await nodeSyscalls.open(path, flags);
      counts.open++;
      return fd;
    },
    close: async (fd) => {
      await nodeSyscalls.close(fd);
      counts.close++;
    },
  };
  return { syscalls, counts };
}

/** No caller waits for closes of descriptors; the runner's time limit ends a wait in vain. */
async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

async function writeFile(fileSystem: FileSystem, path: string, content: string): Promise<void> {
  const writer = await fileSystem.create(path);
  await writer.append(Buffer.from(content));
  await writer.close();
}

async function failure(call: Promise<unknown>): Promise<BigtableError> {
  const outcome = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(outcome instanceof BigtableError, `expected a BigtableError, not ${outcome}`);
  return outcome;
}

async function fails(call: Promise<unknown>, code: Code): Promise<void> {
  const outcome = await failure(call);
  assert.equal(codeName(outcome.code), codeName(code), outcome.message);
}
