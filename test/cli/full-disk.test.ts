/**
 * `edubba serve` while files cannot be written: it refuses writes, goes on answering reads, loses nothing that it
 * acknowledged, and ends on SIGTERM with status 0. A small tmpfs is the full disk where this process may mount one; the
 * first test needs no rights.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { BigtableError, Code } from '../../src/base/index.ts';
import { connect } from '../../src/boot/index.ts';
import { type Database, open, overService, RowMutation } from '../../src/embedded/index.ts';
import { Child, temporaryDirectory } from './run.ts';

const TABLE = 't';
const VALUE_BYTES = 500_000;
/** More than this in memory, and a flush begins. */
const FLUSHED_BYTES = 40 << 20;
const DISK_MIB = 64;
const WRITERS = 4;

// the timers of a client do not keep a process alive
let alive: NodeJS.Timeout;
before(() => void (alive = setInterval(() => {}, 1000)));
after(() => clearInterval(alive));

async function clientOf(t: TestContext, server: Child): Promise<Database> {
  const { service, env, close } = await connect(await server.address());
  t.after(close);
  return overService(service, env, close);
}

/**
 * Writes rows of random bytes, several at once, until `more` says otherwise. Answers the rows that were acknowledged.
 */
async function writeRows(
  database: Database,
  prefix: string,
  more: (acknowledged: number, error?: BigtableError) => boolean,
): Promise<string[]> {
  const acknowledged: string[] = [];
  let next = 0;
  let goesOn = true;
  const write = async (): Promise<void> => {
    while (goesOn) {
      const row = `${prefix}${next % 10}-${next++}`;
      try {
        await database.table(TABLE).apply(new RowMutation(row).set('f:q', randomBytes(VALUE_BYTES)));
        acknowledged.push(row);
        goesOn &&= more(acknowledged.length);
      } catch (error) {
        if (!(error instanceof BigtableError)) throw error;
        goesOn &&= more(acknowledged.length, error);
      }
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, write));
  return acknowledged;
}

async function rowsOf(database: Database): Promise<Set<string>> {
  const rows = new Set<string>();
  for await (const { key } of database.table(TABLE).scan({ filter: { kind: 'stripValue' } })) rows.add(key.toString());
  return rows;
}

async function assertServed(database: Database, rows: readonly string[], when: string): Promise<void> {
  const found = await rowsOf(database);
  assert.deepEqual(
    rows.filter((row) => !found.has(row)),
    [],
    `acknowledged and lost, ${when}`,
  );
}

describe('edubba serve that cannot write files', () => {
  test('ends with status 0 while flushes fail and are tried again', { timeout: 300_000 }, async (t) => {
    const directory = join(await temporaryDirectory(t), 'data');
    const server = new Child(t, ['serve', '--dir', directory, '--address', '127.0.0.1:0']);
    const database = await clientOf(t, server);
    await database.createTable(TABLE, { families: { f: {} } });
    // where SSTables are to be made there is a file
    await rm(join(directory, 'files', 'sstables'), { recursive: true, force: true });
    await writeFile(join(directory, 'files', 'sstables'), '');
    const rows = await writeRows(
      database,
      'r',
      (count) => count * VALUE_BYTES < FLUSHED_BYTES && !server.err.includes('a minor compaction failed'),
    );
    while (!server.err.includes('a minor compaction failed'))
      await new Promise((resolve) => server.process.stderr?.once('data', resolve));
    server.process.kill('SIGTERM');
    assert.equal(await server.ended(), 0, server.err);
    await rm(join(directory, 'files', 'sstables'));
    const again = await open(directory);
    await assertServed(again, rows, 'after it was opened again');
    await again.close();
  });
});

/** A file system of DISK_MIB; undefined where none may be mounted here. */
async function smallDisk(t: TestContext): Promise<string | undefined> {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-disk-'));
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'edubba-test', directory]);
  t.after(async () => {
    if (status === 0) spawnSync('umount', ['-l', directory]);
    await rm(directory, { recursive: true, force: true });
  });
  return status === 0 ? directory : undefined;
}

/** A copy of an ended server's directory, on a disk with space. */
async function elsewhere(t: TestContext, directory: string): Promise<string> {
  const copy = join(await temporaryDirectory(t), 'copy');
  await cp(directory, copy, { recursive: true });
  return copy;
}

for (const durability of ['synced', 'buffered']) {
  for (const servers of ['1', '2']) {
    test(`a full disk, ${durability}, tablet servers: ${servers}`, { timeout: 300_000 }, async (t) => {
      const disk = await smallDisk(t);
      if (disk === undefined) return t.skip('no file system may be mounted here');
      const directory = join(disk, 'data');
      await mkdir(directory);
      const ballast = join(disk, 'ballast');
      await writeFile(ballast, Buffer.alloc(8 << 20));
      const server = new Child(t, [
        'serve',
        '--dir',
        directory,
        '--address',
        '127.0.0.1:0',
        '--durability',
        durability,
        '--tablet-servers',
        servers,
      ]);
      const database = await clientOf(t, server);
      await database.createTable(TABLE, { families: { f: {} }, splits: ['a3', 'a6', 'b3', 'b6'] });
      let refusals = 0;
      const refused = (_: number, error?: BigtableError): boolean => {
        if (error !== undefined) {
          assert.equal(error.code, Code.RESOURCE_EXHAUSTED, error.message);
          assert.match(error.message, /nothing was written/);
          refusals++;
        }
        return refusals < 40;
      };
      const rows = await writeRows(database, 'a', refused);
      await assertServed(database, rows, 'while the disk is full');
      // there is room again, and it is filled again
      await rm(ballast);
      let more: string[] = [];
      for (let tries = 0; more.length === 0; tries++) {
        assert.ok(tries < 100, 'no write is taken though there is room');
        refusals = 0;
        more = await writeRows(database, `b${tries}-`, refused);
      }
      rows.push(...more);
      await assertServed(database, rows, 'while the disk is full again');
      assert.doesNotMatch(server.err, /ends itself|no new tablet server/);
      server.process.kill('SIGTERM');
      assert.equal(await server.ended(), 0, server.err);
      const again = await open(await elsewhere(t, directory));
      await assertServed(again, rows, 'after it was opened again');
      await again.close();
    });
  }
}
