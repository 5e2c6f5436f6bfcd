/**
 * npm run test:stores [-- --short]: stores that many machines share, against programs of others. A directory (on the
 * disk of this machine) and versitygw, an S3 store of a Go module: races of writers, fencers and sweeps by seed, and on
 * S3 the self-test, large files and refusals; on both a read cache, and a backup that is exported and imported while
 * servers are killed. Needs Go for versitygw. Closes with one line 'N passed, N failed, N skipped'.
 *
 * --short: fewer races, and a smaller backup.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildOrExit } from './lib/build.mjs';
import { argumentsOf, helpIfAsked } from './lib/command-line.mjs';
import { exportUnderKills } from './lib/exported-backups.mjs';
import { Report } from './lib/report.mjs';
import { secondsSince } from './lib/repository.mjs';
import { freePort } from './lib/server.mjs';
import { goMissing, versitygw } from './lib/tools.mjs';

helpIfAsked(import.meta.url);

const START_MS = 10_000;
const LARGE_FILE_MIB = 256;
const MAX_GROWTH_MIB = 160;
const CACHED_FILE_MIB = 64;

const { values } = argumentsOf({ options: { short: { type: 'boolean', default: false } } });
const backupMib = values.short ? 32 : 256;
const races = values.short ? { directory: 200, s3: 60 } : { directory: 1000, s3: 300 };

buildOrExit();
const { assertRaced, raceFenceOver } = await import('../dist/test/contracts/fence-race.js');
const { nativeCodecs, openReadCache, openS3Store, openSharedDirectory, systemClock, systemRandom } = await import(
  '../dist/src/platform/index.js'
);

/** @typedef {import('../src/env/index.ts').SlotStore} SlotStore */
/** @typedef {import('../src/env/index.ts').FileSystem} FileSystem */
/** @typedef {{ readonly fileSystem: FileSystem, readonly identity: string }} SharedStore */

const report = new Report();
const scratch = mkdtempSync(join(tmpdir(), 'edubba-stores-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
// timers of the system's clock do not keep the process alive
const alive = setInterval(() => undefined, 1000);

/**
 * @param {readonly SlotStore[]} machines
 * @param {number} count
 */
async function race(machines, count) {
  const start = performance.now();
  const counts = [];
  for (let seed = 1; seed <= count; seed++) counts.push(await raceFenceOver(machines, seed, 'race'));
  const total = assertRaced(counts);
  report.pass(
    `${count} races: no acknowledged append behind the FENCE`,
    `${JSON.stringify(total)} ${secondsSince(start)}`,
  );
}

async function directoryRaces() {
  const options = { clock: systemClock, random: systemRandom, pageSize: 3 };
  const path = join(scratch, 'shared');
  const machines = [await openSharedDirectory(path, options), await openSharedDirectory(path, options)];
  await race(
    machines.map(({ slots }) => slots),
    races.directory,
  );
  await readCache(machines[0].fileSystem, machines[1]);
  for (const machine of machines) await machine.close();
  await exportOver(join(scratch, 'backups'), 'directories', (address) => openSharedDirectory(address, options));
}

/**
 * @param {string} store
 * @param {string} folder Of the databases.
 * @param {(address: string) => Promise<SharedStore & { close(): Promise<void> }>} open
 */
async function exportOver(store, folder, open) {
  const listStore = async () => {
    const { fileSystem, close } = await open(store);
    const found = await fileSystem.list('');
    await close();
    // one that is killed in its self-test leaves a small file of that
    return found.map(({ path }) => path).filter((path) => !path.startsWith('self-test/'));
  };
  const env = { AWS_ACCESS_KEY_ID: 'testkey', AWS_SECRET_ACCESS_KEY: 'testsecret' };
  await exportUnderKills(report, { scratch: join(scratch, folder), store, env, mib: backupMib, listStore });
}

/**
 * Runs versitygw over a directory with the bucket "bucket" until `body` has ended.
 *
 * @param {(endpoint: string) => Promise<void>} body
 */
async function withVersitygw(body) {
  const program = await versitygw();
  const data = join(scratch, 'versitygw');
  mkdirSync(join(data, 'bucket'), { recursive: true });
  const endpoint = `127.0.0.1:${await freePort()}`;
  const gateway = spawn(program, ['--port', endpoint, 'posix', data], {
    stdio: 'ignore',
    env: { ...process.env, ROOT_ACCESS_KEY: 'testkey', ROOT_SECRET_KEY: 'testsecret' },
  });
  const ended = new Promise((resolve) => gateway.once('exit', resolve));
  try {
    const endMs = performance.now() + START_MS;
    for (;;) {
      const isUp = await fetch(`http://${endpoint}/`).then(
        () => true,
        () => false,
      );
      if (isUp) break;
      if (performance.now() > endMs) throw new Error(`versitygw does not answer within ${START_MS} ms`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await body(`http://${endpoint}`);
  } finally {
    gateway.kill();
    await ended;
  }
}

/** @param {string} endpoint */
async function onS3(endpoint) {
  const options = {
    clock: systemClock,
    random: systemRandom,
    credentials: async () => ({ accessKeyId: 'testkey', secretAccessKey: 'testsecret' }),
    retryForMs: 2000,
  };
  const address = (bucket = 'bucket') => `s3://${bucket}/db?endpoint=${endpoint}`;
  const machines = [await openS3Store(address(), options), await openS3Store(address(), options)];
  report.pass('the self-test of versitygw');
  await largeFile(machines[0].fileSystem, machines[1].fileSystem);
  await readCache(machines[0].fileSystem, machines[1]);
  await refuses('a bucket that is not there', openS3Store(address('no-such-bucket'), options), 'FAILED_PRECONDITION');
  /** @param {string} accessKeyId */
  const as = (accessKeyId) => ({ ...options, credentials: async () => ({ accessKeyId, secretAccessKey: 'wrong' }) });
  await refuses('a wrong secret', openS3Store(address(), as('testkey')), 'UNAUTHENTICATED');
  await refuses('an unknown key', openS3Store(address(), as('stranger')), 'UNAUTHENTICATED');
  const late = { ...systemClock, nowMicros: () => systemClock.nowMicros() - 3_600_000_000 };
  await refuses(
    'a clock that is an hour late',
    openS3Store(address(), { ...options, clock: late }),
    'FAILED_PRECONDITION',
  );
  await race(
    machines.map(({ slots }) => slots),
    races.s3,
  );
  for (const machine of machines) await machine.close();
  const backups = `s3://bucket/backups?endpoint=${endpoint}`;
  await exportOver(backups, 's3-databases', (store) => openS3Store(store, options));
}

/**
 * Single reads of a file that another machine wrote: from the store, for the first time through the cache, and from it.
 *
 * @param {FileSystem} writing
 * @param {SharedStore} store
 */
async function readCache(writing, store) {
  const chunk = Buffer.alloc(1 << 20);
  const writer = await writing.create('cached');
  for (let i = 0; i < CACHED_FILE_MIB; i++) {
    chunk.fill(i);
    await writer.append(chunk);
  }
  await writer.close();
  const cache = await openReadCache(join(scratch, 'read-cache'), {
    ...store,
    budgetBytes: 2 * CACHED_FILE_MIB * 2 ** 20,
    checksum: nativeCodecs().checksum,
    clock: systemClock,
  });
  // one in each chunk, not one after another
  const offsets = Array.from({ length: CACHED_FILE_MIB * 4 }, (_, i) => ((i * 37) % (CACHED_FILE_MIB * 4)) * 2 ** 18);
  const expected = Array.from({ length: CACHED_FILE_MIB }, (_, i) => Buffer.alloc(65_536, i));
  let isRight = true;
  /** @param {(offset: number) => Promise<Buffer>} read */
  const medianMs = async (read) => {
    const times = [];
    for (const offset of offsets) {
      const start = performance.now();
      const bytes = await read(offset);
      times.push(performance.now() - start);
      isRight &&= bytes.equals(expected[offset >> 20] ?? chunk);
    }
    return `${times.sort((a, b) => a - b)[times.length >> 1]?.toFixed(3)} ms`;
  };
  const through = cache.fileSystem;
  const plain = await medianMs((offset) => store.fileSystem.read('cached', offset, 65_536));
  const first = await medianMs((offset) => through.read('cached', offset, 65_536));
  await cache.settled();
  const hit = await medianMs((offset) => through.read('cached', offset, 65_536));
  const now = await medianMs(
    async (offset) => through.readNow?.('cached', offset, 65_536) ?? through.read('cached', offset, 65_536),
  );
  report.check(
    isRight,
    `${offsets.length} reads of 64 KiB through a read cache`,
    `median: store ${plain}, miss ${first}, hit ${hit}, synchronous hit ${now}`,
  );
  await cache.close();
  await writing.delete('cached');
}

/**
 * @param {FileSystem} writing
 * @param {FileSystem} reading
 */
async function largeFile(writing, reading) {
  const chunk = Buffer.alloc(1 << 20);
  const before = process.memoryUsage.rss();
  let most = before;
  const writer = await writing.create('large');
  for (let i = 0; i < LARGE_FILE_MIB; i++) {
    chunk.fill(i);
    await writer.append(chunk);
    most = Math.max(most, process.memoryUsage.rss());
  }
  await writer.close();
  const growthMiB = Math.round((most - before) / 2 ** 20);
  report.check(growthMiB < MAX_GROWTH_MIB, `${LARGE_FILE_MIB} MiB in parts`, `the process grew by ${growthMiB} MiB`);
  let isWhole = (await reading.size('large')) === LARGE_FILE_MIB << 20;
  for (let i = 0; i < LARGE_FILE_MIB; i += 17) isWhole &&= (await reading.read('large', i << 20, 1))[0] === i % 256;
  report.check(isWhole, 'another machine reads it');
  const second = await writing.create('large');
  for (let i = 0; i < 20; i++) await second.append(chunk);
  await refuses('a second one of that path', second.close(), 'ALREADY_EXISTS');
  await writing.delete('large');
}

/**
 * @param {string} what
 * @param {Promise<unknown>} call
 * @param {string} code
 */
async function refuses(what, call, code) {
  const error = await call.then(
    () => undefined,
    (thrown) => thrown,
  );
  report.check(error?.codeName === code, `${what} is ${code}`, error?.message ?? 'it was not refused');
}

await report.section('a directory that two machines share', directoryRaces);
const missing = await goMissing();
if (missing !== undefined) report.skip('versitygw', missing);
else await report.section('versitygw', () => withVersitygw(onS3));
clearInterval(alive);
report.close();
