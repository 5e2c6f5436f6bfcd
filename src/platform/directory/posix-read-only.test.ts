/** Reading a directory without owning it: nothing is changed, and a running owner does not confuse the reader. */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { BigtableError, Code, CorruptionError, codeName, crc32c } from '../../base/index.ts';
import type { LogAppend } from '../../env/index.ts';
import { openDirectory } from './directory.ts';
import { openLocalLockService } from '../locks/local-lock-service.ts';
import { openPosixFileSystem } from '../posix/posix-file-system.ts';
import { findDirectory, openLoneFile, openReadOnlyDirectory } from './posix-read-only.ts';
import { systemClock } from '../machine/system-clock.ts';

const OPTIONS = { checksum: crc32c, clock: systemClock };

function temporaryDirectory(t: TestContext): string {
  const directory = fs.mkdtempSync(join(tmpdir(), 'edubba-read-only-'));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A database directory with an owner, and a reader next to it. */
async function nextToOwner(t: TestContext, logSegmentBytes = 8192) {
  const directory = join(temporaryDirectory(t), 'data');
  const { fileSystem: owner, release } = await openDirectory(directory, { ...OPTIONS, logSegmentBytes });
  const reader = await openReadOnlyDirectory(directory, OPTIONS);
  t.after(async () => {
    await reader.close();
    await release();
  });
  return { directory, owner, reader };
}

async function write(
  fileSystem: Awaited<ReturnType<typeof nextToOwner>>['owner'],
  path: string,
  text: string,
): Promise<void> {
  const writer = await fileSystem.create(path);
  await writer.append(Buffer.from(text));
  await writer.close();
}

async function textsOf(log: AsyncIterable<LogAppend>): Promise<string[]> {
  const texts: string[] = [];
  for await (const { bytes } of log) texts.push(bytes.toString());
  return texts;
}

/** Every file below the directory with its size and time of change. */
function snapshot(directory: string): string[] {
  return fs
    .readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const { size, mtimeMs, ino } = fs.statSync(join(directory, name));
      return `${name} ${size} ${mtimeMs} ${ino}`;
    });
}

async function fails(work: Promise<unknown>, code: Code): Promise<BigtableError> {
  const error = await work.then(
    () => assert.fail('it should have failed'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof BigtableError, String(error));
  assert.equal(codeName(error.code), codeName(code), error.message);
  return error;
}

describe('a directory for reading only', () => {
  test('shows files and logs of an owner that continues to write', async (t) => {
    const { owner, reader } = await nextToOwner(t);
    await write(owner, 'tables/a', 'one');
    assert.deepEqual(await reader.fileSystem.list(''), [{ path: 'tables/a', sizeBytes: 3 }]);
    assert.equal((await reader.fileSystem.read('tables/a', 0, 3)).toString(), 'one');
    await write(owner, 'tables/b', 'two');
    assert.equal(await reader.fileSystem.size('tables/b'), 3);
    const log = await owner.openLog('logs/x');
    await log.append([Buffer.from('first')]);
    assert.deepEqual(await reader.fileSystem.listLogs(''), ['logs/x']);
    assert.deepEqual(await textsOf(reader.fileSystem.readLog('logs/x')), ['first']);
    await log.append([Buffer.from('second')]);
    assert.deepEqual(await textsOf(reader.fileSystem.readLog('logs/x')), ['first', 'second']);
    assert.deepEqual(await textsOf(reader.fileSystem.readLog('logs/none')), []);
    await owner.delete('tables/b');
    await fails(reader.fileSystem.size('tables/b'), Code.NOT_FOUND);
  });

  test('changes nothing: every change is refused, and the directory stays the same to the byte', async (t) => {
    const { directory, owner, reader } = await nextToOwner(t);
    await write(owner, 'tables/a', 'one');
    const log = await owner.openLog('logs/x');
    await log.append([Buffer.from('first')]);
    fs.writeFileSync(join(directory, 'tmp', 'left-over'), 'x');
    const before = snapshot(directory);
    const { fileSystem } = reader;
    await fails(
      fileSystem.create('tables/c').then((writer) => writer.close()),
      Code.PERMISSION_DENIED,
    );
    await fails(fileSystem.delete('tables/a'), Code.PERMISSION_DENIED);
    await fails(fileSystem.openLog('logs/y'), Code.PERMISSION_DENIED);
    await fails(fileSystem.fence('logs/x'), Code.PERMISSION_DENIED);
    await fails(fileSystem.deleteLog('logs/x'), Code.PERMISSION_DENIED);
    await textsOf(fileSystem.readLog('logs/x'));
    await reader.lockServiceFiles();
    await reader.logFiles('logs/x');
    assert.deepEqual(snapshot(directory), before);
    // the owner continues
    await log.append([Buffer.from('second')]);
  });

  test('reads the newest version of every lasting file of the lock service, and does not touch older ones', async (t) => {
    const { directory, owner, reader } = await nextToOwner(t);
    assert.deepEqual(await reader.lockServiceFiles(), []);
    const service = await openLocalLockService(owner);
    await service.write('root', Buffer.from('old'));
    const version = await service.write('root', Buffer.from('new'));
    await service.write('schemas/t', Buffer.from('schema'));
    await service.write('gone', Buffer.from('x'));
    await service.remove('gone');
    await service.write('servers/s', Buffer.from('ephemeral'), { sessionId: await service.openSession() });
    const before = snapshot(directory);
    const files = await reader.lockServiceFiles();
    assert.deepEqual(
      files.map(({ path, contents }) => [path, Buffer.from(contents).toString()]),
      [
        ['root', 'new'],
        ['schemas/t', 'schema'],
      ],
    );
    assert.equal(files[0]?.version, version);
    assert.deepEqual(snapshot(directory), before);
  });

  test('is found from any path inside, and refused where there is none', async (t) => {
    const { directory, owner, reader } = await nextToOwner(t);
    await write(owner, 'tables/deep/a', 'one');
    for (const path of ['', 'EDUBBA', 'files/tables/deep/a', 'logs/not/there'])
      assert.equal(await findDirectory(join(directory, path)), directory);
    assert.equal(await findDirectory(join(directory, '..')), undefined);
    assert.equal(reader.identity, /identity (\w+)/.exec(fs.readFileSync(join(directory, 'EDUBBA'), 'latin1'))?.[1]);
    await fails(openReadOnlyDirectory(join(directory, '..'), OPTIONS), Code.NOT_FOUND);
    fs.writeFileSync(join(directory, 'EDUBBA'), 'edubba directory\nversion 9\n');
    await fails(openReadOnlyDirectory(directory, OPTIONS), Code.DATA_LOSS);
  });

  test('a lone file is read, whatever its name', async (t) => {
    const directory = temporaryDirectory(t);
    for (const name of ['one.sst', 'a name with spaces', '...']) {
      fs.writeFileSync(join(directory, name), 'hello');
      const { fileSystem, path, close } = openLoneFile(join(directory, name), OPTIONS);
      assert.equal((await fileSystem.read(path, 1, 3)).toString(), 'ell');
      assert.equal(await fileSystem.size(path), 5);
      await close();
    }
  });
});

describe('a log next to its writer', () => {
  test('a read returns a prefix of the written appends, however the two take turns', async (t) => {
    const { owner, reader } = await nextToOwner(t);
    const log = await owner.openLog('logs/x');
    const written: string[] = [];
    let done = false;
    const writing = (async () => {
      for (let i = 0; i < 80; i++) {
        const text = `${i}`.padEnd(1 + ((i * 37) % 3000), '.');
        written.push(text);
        await log.append([Buffer.from(text)]);
      }
      done = true;
    })();
    let readings = 0;
    while (!done) {
      const acknowledged = written.length - 1;
      const read = await textsOf(reader.fileSystem.readLog('logs/x'));
      readings++;
      assert.deepEqual(read, written.slice(0, read.length));
      assert.ok(read.length >= acknowledged, `${read.length} of ${acknowledged} acknowledged appends`);
    }
    await writing;
    assert.deepEqual(await textsOf(reader.fileSystem.readLog('logs/x')), written);
    t.diagnostic(`${readings} readings`);
  });

  test('a slow reader sees the appends that came meanwhile, after its own', async (t) => {
    const { owner, reader } = await nextToOwner(t);
    const log = await owner.openLog('logs/x');
    for (let i = 0; i < 5; i++) await log.append([Buffer.from(`${i}`)]);
    const texts: string[] = [];
    for await (const { bytes } of reader.fileSystem.readLog('logs/x')) {
      texts.push(bytes.toString());
      // the reader's window was filled before these were written
      if (texts.length <= 3) for (let i = 0; i < 3; i++) await log.append([Buffer.from(`${texts.length}-${i}`)]);
    }
    assert.deepEqual(texts.slice(0, 5), ['0', '1', '2', '3', '4']);
    const all = await textsOf(reader.fileSystem.readLog('logs/x'));
    assert.deepEqual(texts, all.slice(0, texts.length));
    assert.equal(all.length, 14);
  });

  test('one that is trimmed under the reader ends with UNAVAILABLE and not with a hole', async (t) => {
    const { owner, reader } = await nextToOwner(t);
    const log = await owner.openLog('logs/x');
    const append = (i: number): Promise<number> => log.append([Buffer.alloc(3000, i)]);
    for (let i = 0; i < 12; i++) await append(i);
    let read = 0;
    const reading = (async () => {
      for await (const { bytes } of reader.fileSystem.readLog('logs/x')) {
        assert.equal(bytes[0], read);
        if (read++ === 0) await log.trimBefore(await append(12));
      }
    })();
    await fails(reading, Code.UNAVAILABLE);
    assert.ok(read >= 1 && read < 12);
  });

  test('damage stays damage', async (t) => {
    const { directory, owner, reader } = await nextToOwner(t);
    const log = await owner.openLog('logs/x');
    for (let i = 0; i < 3; i++) await log.append([Buffer.alloc(600, i + 1)]);
    const file = join(directory, 'logs', 'logs/x', '0000000000000000.segment');
    const bytes = fs.readFileSync(file);
    bytes[64 + 32 + 10] = 0x77;
    fs.writeFileSync(file, bytes);
    const error = await fails(textsOf(reader.fileSystem.readLog('logs/x')), Code.DATA_LOSS);
    assert.ok(error instanceof CorruptionError && error.offset === 64 && error.file.endsWith('.segment'));
  });

  test('its files are reported: segments, fence, and a tail that was cut off', async (t) => {
    const directory = temporaryDirectory(t);
    const data = join(directory, 'data');
    const first = await openDirectory(data, { ...OPTIONS, logSegmentBytes: 8192 });
    const log = await first.fileSystem.openLog('logs/x');
    for (let i = 0; i < 5; i++) await log.append([Buffer.alloc(3000, i + 1)]);
    await first.release();
    const reader = await openReadOnlyDirectory(data, OPTIONS);
    const whole = await reader.logFiles('logs/x');
    assert.deepEqual([whole.fenced, whole.tornBytes], [false, 0]);
    assert.deepEqual(
      whole.segments.map(({ base }) => base),
      [0, 6080, 12160],
    );
    assert.equal(whole.end, 12160 + 3040);
    // the beginning of a frame that never became whole: its last sector was not written
    const last = join(data, 'logs', 'logs/x', whole.segments.at(-1)?.name ?? '');
    const frame = fs.readFileSync(last).subarray(64, 64 + 3040);
    const fd = fs.openSync(last, 'r+');
    fs.writeSync(fd, frame, 0, 100, 64 + 3040 + 1024);
    fs.closeSync(fd);
    const torn = await reader.logFiles('logs/x');
    assert.deepEqual([torn.end, torn.tornBytes], [whole.end, 1124]);
    assert.equal((await textsOf(reader.fileSystem.readLog('logs/x'))).length, 5);
    const second = await openPosixFileSystem(data, OPTIONS);
    await second.fence('logs/x');
    await second.close();
    assert.equal((await reader.logFiles('logs/x')).fenced, true);
    await fails(reader.logFiles('logs/none'), Code.NOT_FOUND);
    await fails(reader.logFiles('logs'), Code.NOT_FOUND);
    await reader.close();
  });
});
