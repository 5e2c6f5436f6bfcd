/** A directory that many machines share: its start, what faults of the files come to, races and kills. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertRaced, type RaceCounts, raceFenceOver } from '../../../test/contracts/fence-race.ts';
import { Code, codeName, toBigtableError } from '../../base/index.ts';
import type { FileSystem } from '../../env/index.ts';
import { errno, smallDisk, withoutSyncs } from '../fixtures.ts';
import { systemClock } from '../machine/system-clock.ts';
import { systemRandom } from '../machine/system-random.ts';
import { nodeSyscalls, type Syscalls } from '../posix/posix-syscalls.ts';
import { openSharedDirectory, type SharedDirectoryOptions } from './shared-directory.ts';
import type { SharedStore } from './shared-store.ts';

const OPTIONS = { clock: systemClock, random: systemRandom };

// timers of the system's clock do not keep the process alive
const alive = setInterval(() => undefined, 1000);
after(() => clearInterval(alive));

describe('a directory that many machines share', () => {
  test('of machines that make it together all see one store', async (t) => {
    const directory = join(temporaryDirectory(t), 'a', 'b');
    const opened = await Promise.all(Array.from({ length: 4 }, () => openSharedDirectory(directory, OPTIONS)));
    assert.equal(new Set(opened.map(({ identity }) => identity)).size, 1);
    assert.match(opened[0]!.identity, /^[0-9a-f]{32}$/);
    await write(opened[0]!.fileSystem, 'x/f', 'content');
    for (const { fileSystem } of opened)
      assert.deepEqual(await fileSystem.list(''), [{ path: 'x/f', sizeBytes: 7 }], 'and no self-test is seen');
    assert.deepEqual(fs.readdirSync(directory).sort(), ['EDUBBA', 'files', 'room', 'slots', 'tmp']);
    assert.deepEqual(fs.readdirSync(join(directory, 'tmp')), []);
  });

  test('a directory with other content is refused and left unchanged', async (t) => {
    const directory = temporaryDirectory(t);
    fs.writeFileSync(join(directory, 'thesis.tex'), 'x');
    await fails(openSharedDirectory(directory, OPTIONS), Code.FAILED_PRECONDITION, /holds "thesis\.tex"/);
    assert.deepEqual(fs.readdirSync(directory), ['thesis.tex']);
  });

  test('temporary files of other machines stay at a start, those of writers long dead do not', async (t) => {
    const { directory, machine } = await opened(t);
    const writer = await machine.fileSystem.create('f');
    await writer.append(Buffer.from('half'));
    const old = join(directory, 'tmp', 'of-the-dead');
    fs.writeFileSync(old, 'x');
    const dayBefore = Date.now() / 1000 - 25 * 3600;
    fs.utimesSync(old, dayBefore, dayBefore);
    const other = await openSharedDirectory(directory, OPTIONS);
    assert.equal(fs.existsSync(old), false);
    await writer.append(Buffer.from(', whole'));
    await writer.close();
    assert.equal((await other.fileSystem.read('f', 0, 11)).toString(), 'half, whole');
  });

  test('a writer whose temporary file is gone fails, and nothing is visible', async (t) => {
    const { directory, machine } = await opened(t);
    const writer = await machine.fileSystem.create('f');
    for (const name of fs.readdirSync(join(directory, 'tmp'))) fs.rmSync(join(directory, 'tmp', name));
    await fails(writer.close(), Code.UNAVAILABLE, /gone/);
    assert.deepEqual(await machine.fileSystem.list(''), []);
  });

  test('directories of deleted files and logs vanish, also while another machine creates in them', async (t) => {
    const syscalls = withoutSyncs(nodeSyscalls);
    const { directory, machine } = await opened(t, { syscalls });
    const other = await openSharedDirectory(directory, { ...OPTIONS, syscalls });
    for (let i = 0; i < 50; i++) {
      await write(machine.fileSystem, `a/b/${i}`, 'x');
      await Promise.all([machine.fileSystem.delete(`a/b/${i}`), write(other.fileSystem, `a/b/${i}.2`, 'x')]);
      await Promise.all([other.fileSystem.delete(`a/b/${i}.2`), other.fileSystem.openLog(`l/${i}`)]);
    }
    for (let i = 0; i < 50; i++) await machine.fileSystem.deleteLog(`l/${i}`);
    for (const name of ['files', 'slots', 'tmp', 'room']) assert.deepEqual(fs.readdirSync(join(directory, name)), []);
  });

  test('a name that may not be durable is of unknown outcome, also where a resource lacks', async (t) => {
    let failing = '';
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      sync: async (fd) => {
        if (failing !== '' && fs.fstatSync(fd).isDirectory()) throw errno(failing);
      },
    };
    const { machine } = await opened(t, { syscalls });
    await machine.slots.create('l/a', 0, [Buffer.from('x')]);
    await write(machine.fileSystem, 'f', 'x');
    for (failing of ['EIO', 'ENOSPC', 'EMFILE']) {
      const slot = { EIO: 1, ENOSPC: 2, EMFILE: 3 }[failing]!;
      await fails(machine.slots.create('l/a', slot, [Buffer.from('x')]), Code.UNAVAILABLE);
      await fails(machine.slots.create('l/a', slot, [Buffer.from('x')]), Code.UNAVAILABLE, /durable/);
      const writer = await machine.fileSystem.create(`f${slot}`);
      await fails(writer.close(), Code.UNAVAILABLE);
    }
    failing = '';
    assert.equal(await machine.slots.create('l/a', 1, [Buffer.from('x')]), false);
  });

  test('a full disk refuses a slot without effect, and a lack of descriptors takes nothing of what is reserved', async (t) => {
    const disk = smallDisk();
    let isOutOfDescriptors = false;
    const open: Syscalls['open'] = async (path, flags) => {
      if (isOutOfDescriptors) throw errno('EMFILE');
      return nodeSyscalls.open(path, flags);
    };
    const { directory, machine } = await opened(t, { syscalls: { ...disk.syscalls, open } });
    const { slots } = machine;
    const large = [Buffer.alloc(100_000, 1)];
    await slots.create('l/a', 0, [Buffer.from('x')]);
    await slots.reserve('l/a', 100_000);
    disk.freeBytes = 0;
    await fails(slots.create('l/a', 1, large), Code.RESOURCE_EXHAUSTED);
    assert.deepEqual(fs.readdirSync(join(directory, 'tmp')), []);
    isOutOfDescriptors = true;
    await fails(slots.create('l/a', 1, large), Code.RESOURCE_EXHAUSTED);
    await fails(slots.create('l/a', 1, large, { reserved: true }), Code.UNAVAILABLE, /reserved/);
    isOutOfDescriptors = false;
    assert.equal(await slots.create('l/a', 1, large, { reserved: true }), true);
    await slots.delete('l/a', [0, 1]);
    assert.deepEqual(fs.readdirSync(join(directory, 'room')), [], 'the log is gone, and its room');
  });

  test('what an NFS client leaves of open files is no file and no slot', async (t) => {
    const { directory, machine } = await opened(t);
    await write(machine.fileSystem, 'a/f', 'x');
    await machine.slots.create('l/a', 0, [Buffer.from('x')]);
    for (const folder of ['files/a', 'slots/l/a']) fs.writeFileSync(join(directory, folder, '.nfs00000000004'), 'x');
    assert.deepEqual(await machine.fileSystem.list(''), [{ path: 'a/f', sizeBytes: 1 }]);
    assert.deepEqual(await machine.slots.listSlots('l/a', 0), { slots: [0], isLast: true });
    await machine.slots.delete('l/a', [0]);
    assert.deepEqual(await machine.slots.listLogs('', ''), []);
  });

  test('a file that another machine has deleted is not found, where the descriptor is stale', async (t) => {
    let isStale = false;
    const syscalls: Syscalls = {
      ...nodeSyscalls,
      read: async (...args) => {
        if (isStale) throw errno('ESTALE');
        return nodeSyscalls.read(...args);
      },
    };
    const { directory, machine } = await opened(t, { syscalls });
    await write(machine.fileSystem, 'f', 'abc');
    await machine.fileSystem.read('f', 0, 3);
    await (await openSharedDirectory(directory, OPTIONS)).fileSystem.delete('f');
    isStale = true;
    await fails(machine.fileSystem.read('f', 0, 3), Code.NOT_FOUND);
  });

  test('no call leaves the directory', async (t) => {
    const { machine } = await opened(t);
    const { fileSystem, slots } = machine;
    for (const path of ['..', '../x', 'a/../../x', '/etc/passwd', 'a/./b']) {
      for (const call of ['create', 'size', 'delete', 'openLog', 'fence'] as const)
        await fails(fileSystem[call](path), Code.INVALID_ARGUMENT);
      await fails(fileSystem.read(path, 0, 1), Code.INVALID_ARGUMENT);
      await fails(slots.create(path, 0, []), Code.INVALID_ARGUMENT);
      await fails(slots.read(path, 0, 0, 1), Code.INVALID_ARGUMENT);
      await fails(slots.reserve(path, 1), Code.INVALID_ARGUMENT);
      await fails(slots.unreserve(path), Code.INVALID_ARGUMENT);
      await fails(slots.listSlots(path, 0), Code.INVALID_ARGUMENT);
    }
    for (const prefix of ['../', 'a/../../', '/', '/etc/']) {
      await fails(fileSystem.list(prefix), Code.INVALID_ARGUMENT);
      await fails(slots.listLogs(prefix, ''), Code.INVALID_ARGUMENT);
    }
  });

  test('a directory whose link() replaces is refused', async (t) => {
    const link: Syscalls['link'] = async (from, to) => fs.copyFileSync(from, to);
    const opening = openSharedDirectory(temporaryDirectory(t), { ...OPTIONS, syscalls: { ...nodeSyscalls, link } });
    await fails(opening, Code.FAILED_PRECONDITION, /of 8 that create one file together one succeeds/);
  });
});

/** EDUBBA_RACES=N: more of them; .ci/run has 100. */
const RACES = Number(process.env['EDUBBA_RACES'] ?? 30);

test(`${RACES} races of a writer and its fencers on two machines, by seed`, async (t) => {
  const syscalls = withoutSyncs(nodeSyscalls);
  const { directory, machine } = await opened(t, { syscalls, pageSize: 3 });
  const other = await openSharedDirectory(directory, { ...OPTIONS, syscalls, pageSize: 3 });
  const counts: RaceCounts[] = [];
  for (let seed = 1; seed <= RACES; seed++)
    counts.push(await raceFenceOver([machine.slots, other.slots], seed, 'race'));
  assertRaced(counts);
});

test('processes that are killed while they create leave nothing half visible', async (t) => {
  const { directory, machine } = await opened(t);
  const program = fileURLToPath(new URL('../../../test/crash/shared-writer.js', import.meta.url));
  let seen = 0;
  for (let kill = 0; kill < 8; kill++) {
    const writers = [0, 1].map((n) => fork(program, [directory, `${kill}.${n}`], { stdio: 'ignore' }));
    const ends = writers.map((writer) => new Promise((resolve) => writer.once('exit', resolve)));
    await Promise.all(writers.map((writer) => new Promise((resolve) => writer.once('message', resolve))));
    for (let i = 0; i < kill % 4; i++) await new Promise((resolve) => writers[0]!.once('message', resolve));
    for (const writer of writers) writer.kill('SIGKILL');
    await Promise.all(ends);
    for (const { path, sizeBytes } of await machine.fileSystem.list('w/')) {
      const content = await machine.fileSystem.read(path, 0, sizeBytes);
      assert.equal(sizeBytes, Number(path.split('.').at(-1)), `${path} is whole`);
      assert.ok(content.every((byte) => byte === 7));
      seen++;
      await machine.fileSystem.delete(path);
    }
    for (const row of await machine.slots.listLogs('', ''))
      for (const slot of (await machine.slots.listSlots(row, 0)).slots)
        assert.equal((await machine.slots.read(row, slot, 0, 1 << 20))!.length, 50_000);
  }
  assert.ok(seen > 10, `${seen} files`);
});

function temporaryDirectory(t?: TestContext): string {
  const directory = fs.mkdtempSync(join(tmpdir(), 'edubba-shared-'));
  t?.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function opened(
  t: TestContext,
  options: Partial<SharedDirectoryOptions> = {},
): Promise<{ directory: string; machine: SharedStore }> {
  const directory = temporaryDirectory(t);
  const machine = await openSharedDirectory(directory, { ...OPTIONS, ...options });
  t.after(() => machine.close());
  return { directory, machine };
}

async function write(fileSystem: FileSystem, path: string, content: string): Promise<void> {
  const writer = await fileSystem.create(path);
  await writer.append(Buffer.from(content));
  await writer.close();
}

async function fails(call: Promise<unknown>, code: Code, words = /./): Promise<void> {
  await assert.rejects(call, (thrown) => {
    const error = toBigtableError(thrown);
    assert.equal(codeName(error.code), codeName(code), error.message);
    assert.match(error.message, words);
    return true;
  });
}
