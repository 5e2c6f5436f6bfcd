/**
 * An acknowledgement is a promise that outlasts the power: over the whole engine, many writers write while syncs are
 * late or fail, by a seed. No acknowledgement may come before the sync of its append; after a crash at any point every
 * acknowledged write is there and nothing that was not written; failed syncs and a full disk are told in the right
 * words, and the database goes on by itself. EDUBBA_SEED=N draws other faults.
 */
import assert from 'node:assert/strict';
import { fstatSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { BigtableError, Code, crc32c } from '../../src/base/index.ts';
import {
  type FileFaults,
  type FileSystem,
  type LogWriter,
  MemoryFileSystem,
  requestContext,
  SeededRandom,
} from '../../src/env/index.ts';
import { nodeSyscalls, openDirectory, type Syscalls, systemClock } from '../../src/platform/index.ts';
import { Engine } from './engine.ts';
import { checkTable, createTable, isWritten, Ledger, write } from './writers.ts';

const FIRST_SEED = Number(process.env['EDUBBA_SEED'] ?? 1);
const SEEDS = [FIRST_SEED, FIRST_SEED + 1, FIRST_SEED + 2];
const WRITERS = 24;
const SECTOR_BYTES = 512;
/** A recovery takes a second or two. */
const RECOVERY_MS = 8000;
/** Makes the room in a log, or in memory, end soon. */
const PADDING_BYTES = 16 * 1024;

/** The same file system, whose logs tell the ledger of every append whose sync is done. */
function watched(inner: FileSystem, ledger: Ledger): FileSystem {
  const watch = (log: LogWriter): LogWriter => ({
    append: async (parts, options) => {
      const bytes = Buffer.concat(parts);
      const position = await log.append(parts, options);
      ledger.synced(bytes);
      return position;
    },
    reserve: (bytes) => log.reserve(bytes),
    trimBefore: (position) => log.trimBefore(position),
    sizeBytes: (from) => log.sizeBytes(from),
    close: () => log.close(),
  });
  return {
    create: (path) => inner.create(path),
    size: (path) => inner.size(path),
    read: (path, offset, length) => inner.read(path, offset, length),
    list: (prefix) => inner.list(prefix),
    delete: (path) => inner.delete(path),
    openLog: async (path) => watch(await inner.openLog(path)),
    fence: (path) => inner.fence(path),
    readLog: (path, from) => inner.readLog(path, from),
    listLogs: (prefix) => inner.listLogs(prefix),
    deleteLog: (path) => inner.deleteLog(path),
  };
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

const below = (random: SeededRandom, most: number): number => Math.floor(random.float() * most);

/** The faults of a disk in memory. */
interface Trouble {
  /** The sync of the log that fails, counted from now; 0 = none. */
  failIn: number;
  /** Which part of the syncs of SSTables fails. */
  failing: number;
  slow: boolean;
  full: boolean;
}

function faultsOf(trouble: Trouble, random: SeededRandom, ledger: Ledger): FileFaults {
  return (operation, path) => {
    const ofLock = path.startsWith('lock-service/');
    if (trouble.full && (operation === 'appendLog' || (operation === 'appendFile' && !ofLock)))
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, `${path}: the disk is full`);
    if (operation !== 'syncLog' && (operation !== 'syncFile' || ofLock)) return;
    if (operation === 'syncLog' ? trouble.failIn > 0 && --trouble.failIn === 0 : random.float() < trouble.failing) {
      if (operation === 'syncLog') ledger.failedSyncs++;
      throw new BigtableError(Code.UNAVAILABLE, `${path}: the disk does not answer`);
    }
    if (trouble.slow) return turns(below(random, 4));
  };
}

// the clock's own timers do not keep a process alive
let alive: NodeJS.Timeout;
before(() => void (alive = setInterval(() => {}, 1000)));
after(() => clearInterval(alive));

describe('in memory', () => {
  for (const seed of SEEDS) {
    test(`syncs late and failing, the power gone again and again: seed ${seed}`, { timeout: 120_000 }, async () => {
      const random = new SeededRandom(seed);
      const ledger = new Ledger();
      const trouble: Trouble = { failIn: 0, failing: 0, slow: true, full: false };
      let disk = new MemoryFileSystem({ faults: faultsOf(trouble, random, ledger) });
      let engine = await Engine.start(watched(disk, ledger), random);
      await createTable(engine);
      for (let round = 0; round < 8; round++) {
        trouble.failing = 0.1;
        if (round % 2 === 1) trouble.failIn = 1 + below(random, 12);
        const target = ledger.acknowledged.size + 100 + below(random, 500);
        let crashed = false;
        let tell = (): void => {};
        const crash = new Promise<void>((resolve) => (tell = resolve));
        const more = (): boolean => {
          if (!crashed && ledger.acknowledged.size >= target) {
            crashed = true;
            Object.assign(trouble, { failIn: 0, failing: 0 });
            disk = disk.crash(random);
            tell();
          }
          return !crashed;
        };
        const writing = write({
          engine,
          ledger,
          random,
          round: `${round}`,
          writers: WRITERS,
          more,
          allowed: [Code.UNAVAILABLE],
        });
        // no caller hears anything once the power is gone
        await Promise.race([writing, crash]);
        assert.ok(crashed);
        const dead = engine;
        engine = await Engine.start(watched(disk, ledger), random);
        await checkTable(engine, ledger);
        await Promise.all([dead.close().catch(() => {}), writing]);
      }
      await engine.close();
      assert.deepEqual(ledger.early, [], `acknowledged before the sync of its append: seed ${seed}`);
      assert.ok(ledger.failedSyncs > 0, `no sync failed: seed ${seed}`);
      console.log(`seed ${seed}, 8 crashes: ${ledger.words}`);
    });
  }

  test('a failed sync is reported as an unknown outcome, and the database goes on by itself', {
    timeout: 60_000,
  }, async () => {
    const random = new SeededRandom(FIRST_SEED);
    const ledger = new Ledger();
    const trouble: Trouble = { failIn: 0, failing: 0, slow: true, full: false };
    const engine = await Engine.start(
      watched(new MemoryFileSystem({ faults: faultsOf(trouble, random, ledger) }), ledger),
      random,
    );
    await createTable(engine);
    for (let failure = 0; failure < 3; failure++) {
      trouble.failIn = 3;
      const unknownBefore = ledger.unknown.size;
      const target = ledger.acknowledged.size + 300;
      await write({
        engine,
        ledger,
        random,
        round: `f${failure}`,
        writers: WRITERS,
        more: () => ledger.acknowledged.size < target,
        allowed: [Code.UNAVAILABLE],
      });
      assert.ok(ledger.unknown.size > unknownBefore, 'no caller heard of it');
      await checkTable(engine, ledger);
    }
    assert.equal(engine.messages.filter((text) => text.startsWith('a tablet server ends itself')).length, 3);
    assert.deepEqual(ledger.early, []);
    await engine.close();
  });

  test('a sync that fails at any point of the recovery from another', { timeout: 60_000 }, async () => {
    const stuck: number[] = [];
    const recover = async (failIn: number): Promise<void> => {
      const random = new SeededRandom(failIn);
      const ledger = new Ledger();
      const trouble: Trouble = { failIn: 0, failing: 0, slow: false, full: false };
      const engine = await Engine.start(new MemoryFileSystem({ faults: faultsOf(trouble, random, ledger) }), random);
      await createTable(engine);
      trouble.failIn = 1;
      const tryIt = async (row: string): Promise<boolean> => isWritten(engine, row, RECOVERY_MS);
      assert.equal(await tryIt('a'), false);
      trouble.failIn = failIn;
      // a first one may meet the second failure
      if (!(await tryIt('b')) && !(await tryIt('c'))) stuck.push(failIn);
      trouble.failIn = 0;
      await engine.close();
    };
    await Promise.all(Array.from({ length: 12 }, (_, i) => recover(i + 1)));
    assert.deepEqual(
      stuck.sort((a, b) => a - b),
      [],
      `after all these syncs nothing is served for ${RECOVERY_MS} ms`,
    );
  });

  test('a full disk refuses writes, loses nothing, and takes writes when there is room again', {
    timeout: 60_000,
  }, async () => {
    const random = new SeededRandom(FIRST_SEED);
    const ledger = new Ledger();
    const trouble: Trouble = { failIn: 0, failing: 0, slow: true, full: false };
    let disk = new MemoryFileSystem({ faults: faultsOf(trouble, random, ledger) });
    const engine = await Engine.start(watched(disk, ledger), random);
    await createTable(engine);
    for (let time = 0; time < 4; time++) {
      const [acknowledged, refused] = [ledger.acknowledged.size, ledger.refused.size];
      trouble.full = false;
      // it fills up in the midst of writing, and writers go on trying
      const more = (): boolean => {
        if (ledger.acknowledged.size >= acknowledged + 200) trouble.full = true;
        return ledger.refused.size < refused + 200;
      };
      await write({
        engine,
        ledger,
        random,
        round: `d${time}`,
        writers: WRITERS,
        more,
        allowed: [Code.RESOURCE_EXHAUSTED],
      });
      // reads are served all the while
      await checkTable(engine, ledger);
    }
    trouble.full = false;
    const target = ledger.acknowledged.size + 100;
    await write({
      engine,
      ledger,
      random,
      round: 'after',
      writers: WRITERS,
      more: () => ledger.acknowledged.size < target,
      allowed: [],
    });
    assert.deepEqual(
      engine.messages.filter((text) => text.includes('ends itself')),
      [],
    );
    assert.equal(ledger.unknown.size, 0);
    disk = disk.crash();
    const next = await Engine.start(watched(disk, ledger), random);
    await checkTable(next, ledger);
    await next.close();
    await engine.close().catch(() => {});
    assert.deepEqual(ledger.early, []);
  });
});

test('a change of the lock service whose sync fails is reported, and the next one is made', {
  timeout: 60_000,
}, async () => {
  const random = new SeededRandom(FIRST_SEED);
  const ledger = new Ledger();
  let failing = false;
  const faults: FileFaults = (operation, path) => {
    if (failing && operation === 'syncFile' && path.startsWith('lock-service/'))
      throw new BigtableError(Code.UNAVAILABLE, `${path}: the disk does not answer`);
  };
  let disk = new MemoryFileSystem({ faults });
  const engine = await Engine.start(watched(disk, ledger), random);
  await createTable(engine);
  failing = true;
  const { service, env } = engine;
  const create = (id: string): Promise<unknown> =>
    service.createTable(requestContext({ budget: env.requestBudget }), {
      name: `projects/p/instances/i/tables/${id}`,
      families: [],
      splits: [],
      granularity: 'micros',
      deletionProtection: false,
    });
  await assert.rejects(create('u'), { code: Code.UNAVAILABLE });
  failing = false;
  await create('v');
  const target = ledger.acknowledged.size + 100;
  await write({
    engine,
    ledger,
    random,
    round: 'lock',
    writers: WRITERS,
    more: () => ledger.acknowledged.size < target,
    allowed: [],
  });
  disk = disk.crash();
  const again = await Engine.start(watched(disk, ledger), random);
  await checkTable(again, ledger);
  const tables = await again.service.listTables(requestContext({ budget: again.env.requestBudget }), '');
  assert.ok(
    tables.some(({ name }) => name.endsWith('/v')),
    'an acknowledged table is gone',
  );
  await again.close();
  await engine.close().catch(() => {});
});

test('writes that wait for memory while the disk is full go on when there is room again', {
  timeout: 60_000,
}, async () => {
  const random = new SeededRandom(FIRST_SEED);
  const ledger = new Ledger();
  let full = false;
  const noRoom: FileFaults = (operation, path) => {
    if (full && operation === 'appendFile' && path.startsWith('sstables/'))
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, `${path}: the disk is full`);
  };
  const engine = await Engine.start(watched(new MemoryFileSystem({ faults: noRoom }), ledger), random);
  await createTable(engine);
  full = true;
  const waited = (): number => engine.env.metrics.get('tabletserver.writesThatWaited');
  const makeRoom = async (): Promise<void> => {
    while (waited() < WRITERS) await turns(1);
    full = false;
  };
  const more = (): boolean => full || ledger.acknowledged.size < 400;
  await Promise.all([
    makeRoom(),
    write({ engine, ledger, random, round: 'wait', writers: WRITERS, paddingBytes: PADDING_BYTES, more, allowed: [] }),
  ]);
  await checkTable(engine, ledger);
  await engine.close();
  assert.deepEqual(ledger.early, []);
});

describe('in a directory', () => {
  let home: string;
  let directories = 0;
  before(async () => void (home = await mkdtemp(join(tmpdir(), 'edubba-durability-'))));
  after(() => rm(home, { recursive: true, force: true }));

  interface Disk {
    /** The durable write that fails, counted from now; 0 = none. */
    failIn: number;
    full: boolean;
    /** Says that bytes are durable when their write has only begun. */
    lies: boolean;
  }

  const failure = (code: string): Error => Object.assign(new Error(`${code}: so the test wants it`), { code });

  /**
   * The system's calls, with durable writes that are late, fail before, amid or after they are made, and a disk that
   * may be full.
   */
  function troubled(disk: Disk, random: SeededRandom, ledger: Ledger): Syscalls {
    let writing: Promise<unknown> = Promise.resolve();
    // by file, up to where something was written: only what lies after it needs space
    const allocated = new Map<number, number>();
    const takeRoom = (fd: number, end: number): void => {
      const { ino } = fstatSync(fd);
      const before = allocated.get(ino) ?? 0;
      if (end <= before) return;
      if (disk.full) throw failure('ENOSPC');
      allocated.set(ino, end);
    };
    /** The part of a durable write that is made; undefined: all of it. */
    const failingPart = (bytes: Buffer, position: number): Buffer | undefined => {
      if (disk.failIn === 0 || --disk.failIn > 0) return undefined;
      ledger.failedSyncs++;
      // a disk writes whole sectors
      const half = Math.max(0, ((position + (bytes.length >> 1)) & ~(SECTOR_BYTES - 1)) - position);
      return bytes.subarray(0, [0, half, bytes.length][below(random, 3)]);
    };
    const isSynchronous = below(random, 2) === 0;
    const writeDurableNow: Syscalls['writeDurableNow'] = (fd, buffers, position) => {
      const bytes = Buffer.concat(buffers);
      takeRoom(fd, position + bytes.length);
      const part = failingPart(bytes, position);
      if (part?.length !== 0) nodeSyscalls.writeDurableNow!(fd, [part ?? bytes], position);
      if (part !== undefined) throw failure('EIO');
      ledger.synced(bytes);
    };
    return {
      ...nodeSyscalls,
      get writeDurableNow() {
        return isSynchronous && !disk.lies ? writeDurableNow : undefined;
      },
      writeDurable: async (fd, buffers, position) => {
        const bytes = Buffer.concat(buffers as Uint8Array[]);
        takeRoom(fd, position + bytes.length);
        const made = async (): Promise<void> => {
          await turns(below(random, 3) + (disk.lies ? 20 : 0));
          await nodeSyscalls.writeDurable(fd, [bytes], position);
          ledger.synced(bytes);
        };
        if (disk.lies) {
          writing = writing.then(made);
          return;
        }
        const part = failingPart(bytes, position);
        if (part !== undefined) {
          if (part.length > 0) await nodeSyscalls.writeDurable(fd, [part], position);
          throw failure('EIO');
        }
        await made();
      },
      write: async (fd, buffers, position) => {
        takeRoom(fd, position + buffers.reduce((sum, { byteLength }) => sum + byteLength, 0));
        await nodeSyscalls.write(fd, buffers, position);
      },
      truncate: async (fd, sizeBytes) => {
        const { ino } = fstatSync(fd);
        await nodeSyscalls.truncate(fd, sizeBytes);
        allocated.set(ino, Math.min(allocated.get(ino) ?? 0, sizeBytes));
      },
      close: async (fd) => {
        await writing;
        await nodeSyscalls.close(fd);
      },
    };
  }

  async function openHere(directory: string, disk: Disk, random: SeededRandom, ledger: Ledger, memtableBytes?: number) {
    const syscalls = troubled(disk, random, ledger);
    const { fileSystem, release } = await openDirectory(directory, { checksum: crc32c, clock: systemClock, syscalls });
    const engine = await Engine.start(fileSystem, random, memtableBytes);
    const close = async (): Promise<void> => {
      await engine.close();
      await release();
    };
    return { engine, close };
  }

  test(`durable writes late and failing, opened again and again: seed ${FIRST_SEED}`, {
    timeout: 120_000,
  }, async () => {
    const random = new SeededRandom(FIRST_SEED);
    const ledger = new Ledger();
    const disk: Disk = { failIn: 0, full: false, lies: false };
    const directory = join(home, `${++directories}`);
    for (let round = 0; round < 4; round++) {
      const { engine, close } = await openHere(directory, disk, random, ledger);
      if (round === 0) await createTable(engine);
      else await checkTable(engine, ledger);
      disk.failIn = 1 + below(random, 12);
      const target = ledger.acknowledged.size + 400;
      await write({
        engine,
        ledger,
        random,
        round: `${round}`,
        writers: WRITERS,
        more: () => ledger.acknowledged.size < target,
        allowed: [Code.UNAVAILABLE],
      });
      disk.failIn = 0;
      await checkTable(engine, ledger);
      await close();
    }
    assert.deepEqual(ledger.early, [], `acknowledged before its write was durable: seed ${FIRST_SEED}`);
    assert.ok(ledger.failedSyncs > 0);
    console.log(`seed ${FIRST_SEED}, in a directory: ${ledger.words}`);
  });

  test('a full disk refuses writes, loses nothing, and takes writes when there is room again', {
    timeout: 60_000,
  }, async () => {
    const random = new SeededRandom(FIRST_SEED);
    const ledger = new Ledger();
    const disk: Disk = { failIn: 0, full: false, lies: false };
    const directory = join(home, `${++directories}`);
    const { engine, close } = await openHere(directory, disk, random, ledger, 16 * 1024 * 1024);
    await createTable(engine);
    disk.full = true;
    // room that was made ahead is used up first
    await write({
      engine,
      ledger,
      random,
      round: 'full',
      writers: WRITERS,
      paddingBytes: PADDING_BYTES,
      more: () => ledger.refused.size < 100,
      allowed: [Code.RESOURCE_EXHAUSTED],
    });
    await checkTable(engine, ledger);
    disk.full = false;
    const target = ledger.acknowledged.size + 100;
    await write({
      engine,
      ledger,
      random,
      round: 'room',
      writers: WRITERS,
      more: () => ledger.acknowledged.size < target,
      allowed: [],
    });
    assert.deepEqual(
      engine.messages.filter((text) => text.includes('ends itself')),
      [],
    );
    await close();
    const again = await openHere(directory, disk, random, ledger);
    await checkTable(again.engine, ledger);
    await again.close();
    assert.deepEqual(ledger.early, []);
  });

  test('a disk that lies is found out: the check itself can fail', { timeout: 60_000 }, async () => {
    const random = new SeededRandom(FIRST_SEED);
    const ledger = new Ledger();
    const disk: Disk = { failIn: 0, full: false, lies: false };
    const { engine, close } = await openHere(join(home, `${++directories}`), disk, random, ledger);
    await createTable(engine);
    disk.lies = true;
    await write({
      engine,
      ledger,
      random,
      round: 'lie',
      writers: WRITERS,
      more: () => ledger.acknowledged.size < 200,
      allowed: [],
    });
    disk.lies = false;
    assert.ok(ledger.early.length > 100, `${ledger.early.length} early acknowledgements were seen`);
    await close();
  });
});
