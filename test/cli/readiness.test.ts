/**
 * The answers of /readyz and /healthz of `edubba serve` are true: a client that waits for them is served, and they
 * report a full disk, failing flushes and lost tablets.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type BigtableError, Code } from '../../src/base/index.ts';
import { connect, type Database, RowMutation, type Table } from '../../src/embedded/index.ts';
import { Child, temporaryDirectory } from './run.ts';

const DISK_MIB = 64;
const NOT_READY = 503;
/** Flushes begin at half of it. */
const SMALL_MEMTABLES = ['--memtable-bytes', '16MiB'];
const FLUSHED_ROWS = 9;
const MAX_PROBES = 600;

interface Probe {
  readonly status: number;
  readonly text: string;
}

async function probe(base: string, path: string): Promise<Probe | undefined> {
  const answer = await fetch(`${base}${path}`, { headers: { connection: 'close' } }).catch(() => undefined);
  return answer && { status: answer.status, text: (await answer.text()).trim() };
}

/** The server checks once a second. */
async function readyWhere(base: string, holds: (answer: Probe) => boolean): Promise<Probe> {
  let answer: Probe | undefined;
  for (let probes = 0; probes < MAX_PROBES; probes++) {
    answer = await probe(base, '/readyz');
    if (answer !== undefined && holds(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return assert.fail(`the last answer was ${JSON.stringify(answer)}`);
}

async function serve(
  t: TestContext,
  directory: string,
  words: readonly string[] = [],
): Promise<{ server: Child; database: Database; metrics: string }> {
  const server = new Child(t, ['serve', '--dir', directory, '--address', '127.0.0.1:0', ...words]);
  const database = await connect(await server.address());
  t.after(() => database.close());
  return {
    server,
    database,
    metrics: /^metrics: (http:\/\/[^/\s]+)\/metrics/m.exec(server.out)?.[1] ?? assert.fail(server.out),
  };
}

async function stop(server: Child): Promise<void> {
  server.process.kill('SIGTERM');
  assert.equal(await server.ended(), 0, server.err);
}

/** The largest file, which is no file of METADATA. */
async function largest(directory: string): Promise<string> {
  const paths = (await readdir(directory)).map((name) => join(directory, name));
  const sizes = await Promise.all(paths.map(async (path) => ({ path, size: (await stat(path)).size })));
  return sizes.toSorted((a, b) => b.size - a.size)[0]?.path ?? assert.fail('no file');
}

/** A file system of DISK_MIB; undefined where none may be mounted here. */
async function smallDisk(t: TestContext): Promise<string | undefined> {
  const disk = await mkdtemp(join(tmpdir(), 'edubba-ready-'));
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'edubba-test', disk]);
  t.after(async () => {
    if (status === 0) spawnSync('umount', ['-l', disk]);
    await rm(disk, { recursive: true, force: true });
  });
  return status === 0 ? disk : undefined;
}

/** Leaves `freeBytes` on the file system of `disk`. Returns the file to remove for there to be room again. */
async function fill(disk: string, freeBytes = 0): Promise<string> {
  const ballast = join(disk, 'ballast');
  const { bavail, bsize } = await statfs(disk);
  await writeFile(ballast, Buffer.alloc(Math.max(0, bavail * bsize - freeBytes)));
  return ballast;
}

/**
 * Writes rows of 1 MiB, as many as make a flush due. The log may refuse the last ones while the flush fills the disk.
 */
async function writeRows(table: Table): Promise<void> {
  for (let row = 0; row < FLUSHED_ROWS; row++) {
    await table
      .apply(new RowMutation(`large${row}`).set('f:q', randomBytes(1 << 20)))
      .catch((error: BigtableError) => assert.equal(error.code, Code.RESOURCE_EXHAUSTED, error.message));
  }
}

async function freePort(): Promise<number> {
  const holder = createServer();
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
  const { port } = holder.address() as AddressInfo;
  await new Promise((resolve) => holder.close(resolve));
  return port;
}

for (const servers of ['1', '2']) {
  test(`a client that waits until a server is ready is served by it, tablet servers: ${servers}`, {
    timeout: 120_000,
  }, async (t) => {
    const directory = join(await temporaryDirectory(t), 'data');
    const [address, metrics] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
    for (const isNew of [true, false]) {
      const server = new Child(t, [
        'serve',
        '--dir',
        directory,
        '--address',
        address,
        '--metrics-address',
        metrics,
        '--tablet-servers',
        servers,
      ]);
      const answers: Probe[] = [];
      await readyWhere(`http://${metrics}`, (answer) => answers.push(answer) > 0 && answer.status === 200);
      for (const answer of answers.slice(0, -1))
        assert.deepEqual(answer, { status: NOT_READY, text: 'the server is starting' });
      const database = await connect(address);
      if (isNew) await database.createTable('t', { families: { f: {} }, splits: ['m'] });
      await Promise.all(['a', 'z'].map((row) => database.table('t').apply(new RowMutation(row).set('f:q', 'v'))));
      await database.close();
      await stop(server);
      assert.equal(await probe(`http://${metrics}`, '/healthz'), undefined);
    }
  });

  test(`tablets whose files are lost: not ready, and why; the rest is served, tablet servers: ${servers}`, {
    timeout: 120_000,
  }, async (t) => {
    const directory = join(await temporaryDirectory(t), 'data');
    const before = await serve(t, directory);
    const whole = await before.database.createTable('whole', { families: { f: {} } });
    await whole.apply(new RowMutation('r').set('f:q', 'v'));
    const damaged = await before.database.createTable('damaged', { families: { f: {} } });
    await damaged.apply(new RowMutation('r').set('f:q', randomBytes(1 << 20)));
    await before.database.flush();
    await before.database.close();
    await stop(before.server);
    await rm(await largest(join(directory, 'files', 'sstables')));
    const { server, database, metrics } = await serve(t, directory, ['--tablet-servers', servers]);
    assert.deepEqual(await readyWhere(metrics, ({ status }) => status !== 200), {
      status: NOT_READY,
      text: 'tablets that cannot be served: 1',
    });
    assert.equal((await probe(metrics, '/healthz'))?.status, 200);
    assert.equal((await database.table('whole').getCell('r', 'f:q'))?.text, 'v');
    await database.close();
    await stop(server);
  });
}

for (const servers of ['1', '2']) {
  test(`a full disk: not ready while writes are refused, ready when there is room, tablet servers: ${servers}`, {
    timeout: 120_000,
  }, async (t) => {
    const disk = await smallDisk(t);
    if (disk === undefined) return t.skip('no file system may be mounted here');
    const { server, database, metrics } = await serve(t, join(disk, 'data'), ['--tablet-servers', servers]);
    const table = await database.createTable('t', { families: { f: {} } });
    await table.apply(new RowMutation('kept').set('f:q', 'v'));
    assert.deepEqual(await probe(metrics, '/readyz'), { status: 200, text: 'ok' });
    const ballast = await fill(disk);
    const large = (): Promise<void> => table.apply(new RowMutation('large').set('f:q', randomBytes(4 << 20)));
    await assert.rejects(
      async () => {
        for (;;) await large();
      },
      ({ code }: BigtableError) => code === Code.RESOURCE_EXHAUSTED,
    );
    assert.deepEqual(await readyWhere(metrics, ({ status: ready }) => ready !== 200), {
      status: NOT_READY,
      text: 'the disk is full',
    });
    assert.equal((await probe(metrics, '/healthz'))?.status, 200);
    assert.match(await (await fetch(`${metrics}/metrics`)).text(), /^edubba_disk_free_bytes \d+$/m);
    assert.equal((await table.getCell('kept', 'f:q'))?.text, 'v');
    await rm(ballast);
    await readyWhere(metrics, ({ status: ready }) => ready === 200);
    await large();
    await database.close();
    await stop(server);
  });
}

test('a flush that the disk has no room for: not ready, though the log has room, and ready when there is room', {
  timeout: 120_000,
}, async (t) => {
  const disk = await smallDisk(t);
  if (disk === undefined) return t.skip('no file system may be mounted here');
  const { server, database, metrics } = await serve(t, join(disk, 'data'), SMALL_MEMTABLES);
  const table = await database.createTable('t', { families: { f: {} } });
  const ballast = await fill(disk, 16 << 20);
  await writeRows(table);
  const refusing = /cannot be written to files: writes are refused/;
  assert.equal((await readyWhere(metrics, ({ text }) => refusing.test(text))).status, NOT_READY);
  assert.equal((await probe(metrics, '/healthz'))?.status, 200);
  assert.equal((await table.getCell('large0', 'f:q'))?.value.length, 1 << 20);
  await rm(ballast);
  await readyWhere(metrics, (answer) => answer.status === 200);
  await table.apply(new RowMutation('after').set('f:q', 'v'));
  await database.close();
  await stop(server);
});

test('a flush that fails for another reason: not ready, and why, and ready when it succeeds', {
  timeout: 120_000,
}, async (t) => {
  const directory = join(await temporaryDirectory(t), 'data');
  const { server, database, metrics } = await serve(t, directory, SMALL_MEMTABLES);
  const table = await database.createTable('t', { families: { f: {} } });
  // a file lies where the directory of SSTables was
  const sstables = join(directory, 'files', 'sstables');
  await rm(sstables, { recursive: true, force: true });
  await writeFile(sstables, '');
  await writeRows(table);
  const failing = /cannot be written to files, as the log says: writes wait/;
  assert.equal((await readyWhere(metrics, ({ text }) => failing.test(text))).status, NOT_READY);
  assert.match(server.err, /a minor compaction failed/);
  assert.equal((await probe(metrics, '/healthz'))?.status, 200);
  await rm(sstables);
  await mkdir(sstables);
  await readyWhere(metrics, (answer) => answer.status === 200);
  await table.apply(new RowMutation('after').set('f:q', 'v'));
  await database.close();
  await stop(server);
});
