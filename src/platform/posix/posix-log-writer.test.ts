/** The promises of the log's writer when system calls are slow or fail. */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { BigtableError, Code, codeName, crc32c } from '../../base/index.ts';
import type { FileSystem } from '../../env/index.ts';
import { errno, smallDisk } from '../fixtures.ts';
import { systemClock } from '../machine/system-clock.ts';
import { openPosixFileSystem, type PosixFileSystem, type PosixOptions } from './posix-file-system.ts';
import { nodeSyscalls, type Syscalls } from './posix-syscalls.ts';

/** Notes every system call; whether a durable write is synchronous depends on the disk. */
function recording(calls: string[]): Syscalls {
  return Object.fromEntries(
    Object.entries(nodeSyscalls).map(([name, call]) => [
      name,
      (...args: unknown[]) => {
        calls.push(name.startsWith('writeDurable') ? 'a durable write' : name);
        return (call as (...args: unknown[]) => unknown)(...args);
      },
    ]),
  ) as unknown as Syscalls;
}

describe('acknowledgements and syncs', () => {
  test('no append resolves before its sync has returned; both are counted', async (t) => {
    let syncs = 0;
    let acknowledged = 0;
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      writeDurableNow: undefined,
      writeDurable: async (fd, buffers, position) => {
        await nodeSyscalls.writeDurable(fd, buffers, position);
        // the disk takes a different time for each append
        for (let i = 0; i < (syncs * 7) % 5; i++) await new Promise((resolve) => setImmediate(resolve));
        syncs++;
      },
    };
    const { fileSystem } = await open(t, { syscalls });
    const write = async (path: string): Promise<void> => {
      const log = await fileSystem.openLog(path);
      for (let i = 0; i < 100; i++) {
        const before = syncs;
        await log.append([Buffer.from(`${path} ${i}`)]);
        acknowledged++;
        assert.ok(syncs > before && acknowledged <= syncs, `${acknowledged} acknowledged, ${syncs} synced`);
      }
    };
    await write('alone');
    assert.equal(acknowledged, syncs);
    await Promise.all(['a', 'b', 'c'].map(write));
    t.diagnostic(`${syncs} syncs, ${acknowledged} acknowledgements`);
    assert.equal(acknowledged, 400);
    assert.equal(syncs, 400);
  });

  test('after three slow synchronous appends other work goes on while the disk is slow', async (t) => {
    let nowMs = 0;
    let synchronous = 0;
    let turnsMeanwhile = 0;
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      writeDurableNow: (fd, buffers, position) => {
        synchronous++;
        nowMs += 5;
        nodeSyscalls.writeDurableNow!(fd, buffers, position);
      },
      writeDurable: async (fd, buffers, position) => {
        nowMs += 5;
        await new Promise((resolve) => setImmediate(resolve));
        turnsMeanwhile++;
        await nodeSyscalls.writeDurable(fd, buffers, position);
      },
    };
    const { fileSystem } = await open(t, { syscalls, clock: { ...systemClock, monotonicMs: () => nowMs } });
    const log = await fileSystem.openLog('log');
    for (let i = 0; i < 100; i++) await log.append([Buffer.from(`${i}`)]);
    assert.deepEqual([synchronous, turnsMeanwhile], [3, 97]);
    assert.deepEqual(
      await readTexts(fileSystem, 'log'),
      Array.from({ length: 100 }, (_, i) => `${i}`),
    );
  });

  test('a sync that fails poisons the log: nothing is acknowledged afterwards', async (t) => {
    for (const [when, how] of [
      ['before', 'thread'],
      ['after', 'thread'],
      ['before', 'synchronous'],
      ['after', 'synchronous'],
    ] as const) {
      let syncs = 0;
      let acknowledged = 0;
      let fail = false;
      const syscalls: Syscalls = {
        ...nodeSyscalls,
        writeDurable: async (fd, buffers, position) => {
          if (fail && when === 'before') throw errno('EIO');
          await nodeSyscalls.writeDurable(fd, buffers, position);
          if (fail) throw errno('EIO');
          syncs++;
        },
        writeDurableNow:
          how === 'thread'
            ? undefined
            : (fd, buffers, position) => {
                if (fail && when === 'before') throw errno('EIO');
                nodeSyscalls.writeDurableNow!(fd, buffers, position);
                if (fail) throw errno('EIO');
                syncs++;
              },
      };
      const { fileSystem } = await open(t, { syscalls });
      const log = await fileSystem.openLog('log');
      for (let i = 0; i < 10; i++) await log.append([Buffer.from(`${i}`)]).then(() => acknowledged++);
      fail = true;
      const outcome = await failure(log.append([Buffer.from('unknown')]));
      assert.equal(outcome.code, Code.UNAVAILABLE);
      assert.match(outcome.message, /outcome of the append is unknown/);
      fail = false;
      for (let i = 0; i < 3; i++) await fails(log.append([Buffer.from('late')]), Code.FAILED_PRECONDITION);
      t.diagnostic(`failing ${when} the write, ${how}: ${syncs} syncs, ${acknowledged} acknowledgements`);
      assert.deepEqual([syncs, acknowledged], [10, 10]);
      const found = await readTexts(fileSystem, 'log');
      assert.deepEqual(
        found.slice(0, 10),
        Array.from({ length: 10 }, (_, i) => `${i}`),
      );
      assert.deepEqual(found.slice(10), when === 'after' ? ['unknown'] : [], 'unknown means either');
    }
  });

  test('two concurrent appends are a bug of the caller', async (t) => {
    const { fileSystem } = await open(t);
    const log = await fileSystem.openLog('log');
    const first = log.append([Buffer.from('1')]);
    await fails(log.append([Buffer.from('2')]), Code.INTERNAL);
    await first;
    await log.append([Buffer.from('3')]);
    assert.deepEqual(await readTexts(fileSystem, 'log'), ['1', '3']);
  });
});

describe('a full disk', () => {
  // small ones into zeros, large ones into the hole, and both in turn
  for (const sizes of [[9_000], [100_000], [9_000, 300_000, 10, 10, 70_000], [150_000, 10]]) {
    test(`an append without space is RESOURCE_EXHAUSTED and not written, and the log continues when there is space again: ${sizes.join(', ')} bytes`, async (t) => {
      const disk = smallDisk();
      const { fileSystem } = await open(t, { syscalls: disk.syscalls, logSegmentBytes: 512 << 10 });
      const log = await fileSystem.openLog('log');
      const written: string[] = [];
      let refused = 0;
      disk.freeBytes = 3_000_000;
      for (let i = 0; written.length < 60; i++) {
        assert.ok(i < 10_000, 'the log continues');
        const text = `${i} `.padEnd(sizes[i % sizes.length]!, 'x');
        try {
          await log.append([Buffer.from(text)]);
          written.push(text);
          // read while the log is written to, and as if opened after a crash
          if (i % 10 === 0) assert.equal((await readTexts(fileSystem, 'log')).length, written.length);
        } catch (error) {
          assert.ok(error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED, `${error}`);
          refused++;
          if (refused % 3 === 0) disk.freeBytes = 100_000 + 40_000 * (refused % 7);
        }
        if (i % 10 === 5) assert.deepEqual(await readTexts(await copyOf(t, fileSystem), 'log'), written);
      }
      if (sizes[0] !== 9_000 || sizes.length > 1) assert.ok(refused > 2, `${refused} refused`);
      assert.deepEqual(await readTexts(fileSystem, 'log'), written);
      await fileSystem.close();
      const again = await openPosixFileSystem(fileSystem.directory, { checksum: crc32c });
      assert.deepEqual(await readTexts(again, 'log'), written);
      await again.close();
    });
  }

  test('a crash while an append that found no space is taken back loses nothing else', async (t) => {
    for (const failing of ['write', 'datasync', 'truncate'] as const) {
      const disk = smallDisk();
      let broken = false;
      const full: Syscalls = {
        ...disk.syscalls,
        [failing]: async (...parts: never[]) => {
          if (broken) throw errno('EIO');
          await (disk.syscalls[failing] as (...parts: never[]) => Promise<void>)(...parts);
        },
      };
      const { fileSystem } = await open(t, { syscalls: full });
      const log = await fileSystem.openLog('log');
      for (let i = 0; i < 20; i++) await log.append([Buffer.alloc(200_000, 65 + i)]);
      disk.freeBytes = 50_000;
      broken = true;
      await fails(log.append([Buffer.alloc(200_000, 'z')]), Code.UNAVAILABLE);
      await fails(log.append([Buffer.from('late')]), Code.FAILED_PRECONDITION);
      assert.deepEqual(
        (await readTexts(await copyOf(t, fileSystem), 'log')).map((text) => text[0]),
        [...'ABCDEFGHIJKLMNOPQRST'],
        failing,
      );
    }
  });

  test('a small append still finds space where a large one does not', async (t) => {
    const disk = smallDisk();
    const { fileSystem } = await open(t, { syscalls: disk.syscalls });
    const log = await fileSystem.openLog('log');
    disk.freeBytes = 0;
    await fails(log.append([Buffer.alloc(2 << 20)]), Code.RESOURCE_EXHAUSTED);
    await log.append([Buffer.from('small')]);
    disk.freeBytes = 8 << 20;
    await log.append([Buffer.alloc(2 << 20, 1)]);
    assert.deepEqual(
      (await readTexts(fileSystem, 'log')).map((text) => text.length),
      [5, 2 << 20],
    );
  });

  for (const code of ['EMFILE', 'ENFILE', 'ENOMEM', 'EDQUOT', 'EROFS']) {
    for (const call of ['open', 'openDurable', 'link', 'truncate'] as const) {
      test(`${code} from ${call} while a segment is begun: nothing is written, no descriptor is lost, and the log continues afterwards`, async (t) => {
        let failing = false;
        let opened = 0;
        const counted = async (work: Promise<number>): Promise<number> => work.then((fd) => (opened++, fd));
        const syscalls: Syscalls = {
          ...nodeSyscalls,
          open: (path, flags) => counted(nodeSyscalls.open(path, flags)),
          openDurable: (path) => counted(nodeSyscalls.openDurable(path)),
          close: async (fd) => (opened--, nodeSyscalls.close(fd)),
        };
        const lacking: Syscalls = {
          ...syscalls,
          [call]: async (...parts: never[]) => {
            if (failing) throw errno(code);
            return (syscalls[call] as (...parts: never[]) => Promise<unknown>)(...parts);
          },
        };
        const { fileSystem, directory } = await open(t, { syscalls: lacking, logSegmentBytes: 64 << 10 });
        const log = await fileSystem.openLog('log');
        const written: string[] = [];
        for (let round = 0; round < 4; round++) {
          failing = true;
          const held = opened;
          for (let refused = 0, i = 0; refused < 3; i++) {
            assert.ok(i < 100, 'no segment is begun');
            // large ones, so that the file is extended by truncate
            const text = `${round} ${i} `.padEnd(70_000, 'x');
            try {
              await log.append([Buffer.from(text)]);
              written.push(text);
            } catch (error) {
              assert.ok(error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED, `${error}`);
              assert.match(error.message, /nothing was written/);
              refused++;
            }
          }
          assert.equal(opened, held);
          assert.deepEqual(fs.readdirSync(join(directory, 'tmp')), []);
          failing = false;
          const text = `${round} when it is over `.padEnd(70_000, 'x');
          await log.append([Buffer.from(text)]);
          written.push(text);
          assert.deepEqual(await readTexts(fileSystem, 'log'), written);
          assert.deepEqual(await readTexts(await copyOf(t, fileSystem), 'log'), written);
        }
      });
    }
  }

  test('appends into reserved space open, name and extend nothing', async (t) => {
    const calls: string[] = [];
    const recorded = recording(calls);
    const { fileSystem } = await open(t, { syscalls: recorded, logSegmentBytes: 256 << 10 });
    const log = await fileSystem.openLog('log');
    for (const bytes of [1000, 70_000]) {
      await log.reserve(20 * (bytes + 128));
      calls.length = 0;
      for (let i = 0; i < 20; i++) await log.append([Buffer.alloc(bytes, i)], { reserved: true });
      assert.deepEqual(
        calls,
        Array.from({ length: 20 }, () => 'a durable write'),
      );
    }
  });

  test('a closed log takes no more of the disk than its frames need', async (t) => {
    const { fileSystem, directory } = await open(t);
    const log = await fileSystem.openLog('log');
    await log.append([Buffer.alloc(10_000, 1)]);
    await log.reserve(3 << 20);
    assert.ok(log.sizeBytes() > 3 << 20);
    await log.close();
    const [name = ''] = segments(directory);
    assert.ok(fs.statSync(join(directory, 'logs', 'log', name)).size <= 16 << 10);
    assert.deepEqual(
      (await readTexts(await copyOf(t, fileSystem), 'log')).map((text) => text.length),
      [10_000],
    );
  });

  test('a failure to allocate space that is not a lack of space poisons the log', async (t) => {
    for (const call of ['truncate', 'datasync'] as const) {
      let fail = false;
      const syscalls: Syscalls = {
        ...nodeSyscalls,
        truncate: async (fd, sizeBytes) => {
          if (fail && call === 'truncate') throw errno('EIO');
          await nodeSyscalls.truncate(fd, sizeBytes);
        },
        datasync: async (fd) => {
          if (fail && call === 'datasync') throw errno('EIO');
          await nodeSyscalls.datasync(fd);
        },
      };
      const { fileSystem } = await open(t, { syscalls });
      const log = await fileSystem.openLog('log');
      await log.append([Buffer.from('kept')]);
      fail = true;
      await fails(log.append([Buffer.alloc(3 << 20)]), Code.UNAVAILABLE);
      fail = false;
      await fails(log.append([Buffer.from('late')]), Code.FAILED_PRECONDITION);
      assert.deepEqual(await readTexts(fileSystem, 'log'), ['kept']);
    }
  });

  test('a failure while space is allocated ahead poisons the log, too', async (t) => {
    let failed = (): void => undefined;
    const hasFailed = new Promise<void>((resolve) => (failed = resolve));
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      datasync: async () => {
        failed();
        throw errno('EIO');
      },
    };
    const { fileSystem } = await open(t, { syscalls });
    const log = await fileSystem.openLog('log');
    for (let i = 0; i < 18; i++) await log.append([Buffer.alloc(30_000)]);
    await hasFailed;
    await turns();
    await fails(log.append([Buffer.from('late')]), Code.UNAVAILABLE);
    await fails(log.append([Buffer.from('later')]), Code.FAILED_PRECONDITION);
  });
});

describe('segments', () => {
  test('an ordinary append is one durable write and nothing else', async (t) => {
    const calls: string[] = [];
    const recorded = recording(calls);
    const { fileSystem } = await open(t, { syscalls: recorded });
    const log = await fileSystem.openLog('log');
    calls.length = 0;
    for (let i = 0; i < 20; i++) await log.append([Buffer.from('x'), Buffer.from('y')]);
    assert.deepEqual(
      calls,
      Array.from({ length: 20 }, () => 'a durable write'),
    );
  });

  test('small appends are written where zeros were, large ones are written once', async (t) => {
    for (const [size, zeros] of [
      [10_000, true],
      [200_000, false],
    ] as const) {
      let filledBytes = 0;
      let writtenBytes = 0;
      const syscalls: Syscalls = {
        ...nodeSyscalls,
        write: async (fd, buffers, position) => {
          for (const buffer of buffers) filledBytes += buffer.length;
          await nodeSyscalls.write(fd, buffers, position);
        },
      };
      const { fileSystem, directory } = await open(t, { syscalls, logSegmentBytes: 4 << 20 });
      const log = await fileSystem.openLog('log');
      for (; writtenBytes < 20 << 20; writtenBytes += size) await log.append([Buffer.alloc(size, 1)]);
      assert.ok(segments(directory).length >= 5);
      if (zeros) assert.ok(filledBytes > writtenBytes, `${filledBytes} bytes of zeros for ${writtenBytes}`);
      else assert.ok(filledBytes < 3 << 20, `${filledBytes} bytes of zeros for ${writtenBytes}`);
    }
  });

  test('a writer holds descriptors of one segment and of the directory, however many segments it has filled', async (t) => {
    let opened = 0;
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      open: async (path, flags) => (opened++, nodeSyscalls.open(path, flags)),
      openDurable: async (path) => (opened++, nodeSyscalls.openDurable(path)),
      close: async (fd) => (opened--, nodeSyscalls.close(fd)),
    };
    const { fileSystem, directory } = await open(t, { syscalls, logSegmentBytes: 4096 });
    const log = await fileSystem.openLog('log');
    for (let i = 0; i < 30; i++) await log.append([Buffer.alloc(1000, i)]);
    assert.ok(segments(directory).length >= 10);
    assert.equal(opened, 3);
    await log.close();
    await log.close();
    assert.equal(opened, 0);
    await fails(log.append([Buffer.from('x')]), Code.FAILED_PRECONDITION);
  });

  test('an append larger than a segment has one of its own, and positions continue', async (t) => {
    const { fileSystem, directory } = await open(t, { logSegmentBytes: 4096 });
    const log = await fileSystem.openLog('log');
    const sizes = [10, 100_000, 10, 3000, 2000, 4096, 1];
    const positions: number[] = [];
    for (const size of sizes) positions.push(await log.append([Buffer.alloc(size, 1)]));
    for (let i = 1; i < positions.length; i++) {
      const step = positions[i]! - positions[i - 1]!;
      assert.ok(step >= sizes[i - 1]! + 36 && step < sizes[i - 1]! + 36 + 32, `append ${i - 1} took ${step}`);
    }
    assert.equal(segments(directory).length, 6);
    assert.deepEqual(
      (await readTexts(fileSystem, 'log')).map((text) => text.length),
      sizes,
    );
    assert.deepEqual(
      (await readTexts(fileSystem, 'log', positions[4])).map((text) => text.length),
      sizes.slice(4),
    );
    assert.equal(
      log.sizeBytes(),
      segments(directory).reduce((sum, name) => sum + fs.statSync(join(directory, 'logs', 'log', name)).size, 0),
    );
  });

  test('trimming removes whole segments below the position, from the lowest up, never the last', async (t) => {
    const removed: string[] = [];
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      unlink: async (path) => {
        await nodeSyscalls.unlink(path);
        if (path.endsWith('.segment')) removed.push(path);
      },
    };
    const { fileSystem, directory } = await open(t, { syscalls, logSegmentBytes: 4096 });
    const log = await fileSystem.openLog('log');
    const positions: number[] = [];
    for (let i = 0; i < 30; i++) positions.push(await log.append([Buffer.from(String(i).padStart(900, '.'))]));
    const names = segments(directory);
    const before = log.sizeBytes();
    await Promise.all([log.trimBefore(positions[9]!), log.trimBefore(positions[3]!), log.trimBefore(positions[17]!)]);
    assert.deepEqual(removed, [...removed].sort());
    assert.deepEqual(segments(directory), names.slice(removed.length));
    assert.ok(log.sizeBytes() < before);
    const kept = (await readTexts(fileSystem, 'log')).map((text) => Number(text.replaceAll('.', '')));
    assert.ok(kept[0]! <= 17 && kept[0]! > 9, `from ${kept[0]}`);
    assert.equal(kept.at(-1), 29);
    await log.trimBefore(Number.MAX_SAFE_INTEGER);
    assert.equal(segments(directory).length, 1);
    await log.append([Buffer.from('after')]);
    assert.equal((await readTexts(fileSystem, 'log')).at(-1), 'after');
  });

  test('a fence lets the append in flight end and stops all later ones', async (t) => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let hold = false;
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      writeDurableNow: undefined,
      writeDurable: async (fd, buffers, position) => {
        if (hold) await held;
        await nodeSyscalls.writeDurable(fd, buffers, position);
      },
    };
    const { fileSystem } = await open(t, { syscalls });
    const log = await fileSystem.openLog('log');
    hold = true;
    const inFlight = log.append([Buffer.from('in flight')]);
    let fenced = false;
    const fence = fileSystem.fence('log').then(() => (fenced = true));
    await turns();
    assert.equal(fenced, false, 'a replay after the fence must find acknowledged appends');
    release();
    await inFlight;
    await fence;
    await fails(log.append([Buffer.from('late')]), Code.FAILED_PRECONDITION);
    assert.deepEqual(await readTexts(fileSystem, 'log'), ['in flight']);
  });

  test('100 MB in one append are read back, and the event loop keeps turning meanwhile', async (t) => {
    const { fileSystem } = await open(t);
    const log = await fileSystem.openLog('log');
    const value = Buffer.alloc(100_000_000, 'edubba');
    let loops = 0;
    let running = true;
    const count = (): void => {
      loops++;
      if (running) setImmediate(count);
    };
    count();
    await log.append([Buffer.from('header'), value]);
    const written = loops;
    const [read] = await readAll(fileSystem, 'log');
    running = false;
    assert.ok(read?.equals(Buffer.concat([Buffer.from('header'), value])));
    // checksums are computed 2 MB a turn
    assert.ok(written >= 48 && loops - written >= 48, `${written} turns to write, ${loops - written} to read`);
  });
});

type Opened = { readonly directory: string; readonly fileSystem: PosixFileSystem & { readonly directory: string } };

async function open(t: TestContext, options: Partial<PosixOptions> = {}): Promise<Opened> {
  const directory = fs.mkdtempSync(join(tmpdir(), 'edubba-log-'));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  const fileSystem = await openPosixFileSystem(directory, { checksum: crc32c, ...options });
  t.after(() => fileSystem.close());
  return { directory, fileSystem: Object.assign(fileSystem, { directory }) };
}

/** The same log as found by a process that opens the directory after its owner has ended. */
async function copyOf(t: TestContext, { directory }: Opened['fileSystem']): Promise<FileSystem> {
  const copy = fs.mkdtempSync(join(tmpdir(), 'edubba-log-'));
  t.after(() => fs.rmSync(copy, { recursive: true, force: true }));
  fs.cpSync(join(directory, 'logs'), join(copy, 'logs'), { recursive: true });
  const fileSystem = await openPosixFileSystem(copy, { checksum: crc32c });
  t.after(() => fileSystem.close());
  return fileSystem;
}

function segments(directory: string): string[] {
  return fs.readdirSync(join(directory, 'logs', 'log')).sort();
}

async function readAll(fileSystem: FileSystem, path: string, from?: number): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for await (const append of fileSystem.readLog(path, from)) found.push(append.bytes);
  return found;
}

async function readTexts(fileSystem: FileSystem, path: string, from?: number): Promise<string[]> {
  return (await readAll(fileSystem, path, from)).map((bytes) => bytes.toString('latin1'));
}

/** Some turns of the event loop, in which a forbidden event could happen. */
async function turns(): Promise<void> {
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
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
