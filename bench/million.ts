/**
 * A million rows of 1000 random bytes through a server: how long the load takes and the most memory the server held,
 * how soon it answers a first read after kill -9 and after SIGTERM, and what a read of 1000 rows by limit, without an
 * end key, costs.
 *
 *   npm run bench -- million [rows]
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '../src/boot/index.ts';
import { type Database, overService, RowMutation } from '../src/embedded/index.ts';
import { type ServerProcess, startServer } from './serving/server-process.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const BATCH = 200;
const CALLS = 8;
const ROUNDS = 101;
const MIB = 1024 * 1024;

async function withClient<T>({ address }: ServerProcess, work: (database: Database) => Promise<T>): Promise<T> {
  const { service, env, close } = await connect(address);
  const database = overService(service, env, close);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

const key = (i: number): string => `row${String(i).padStart(9, '0')}`;

function memory({ child }: ServerProcess): { residentBytes: number; peakBytes: number } {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  const kib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1024;
  return { residentBytes: kib('VmRSS'), peakBytes: kib('VmHWM') };
}

async function load(database: Database): Promise<void> {
  const table = await database.createTable('million', { families: { f: { maxVersions: 1 } }, granularity: 'millis' });
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < ROWS) {
      const from = next;
      next += BATCH;
      const rows = Array.from({ length: Math.min(BATCH, ROWS - from) }, (_, i) =>
        new RowMutation(key(from + i)).set('f:v', randomBytes(1000), 1000),
      );
      await table.applyAll(rows);
    }
  };
  await Promise.all(Array.from({ length: CALLS }, worker));
}

/** ms from the start of a process, which is `server` then, to the answer of a first read. */
async function firstRead(): Promise<number> {
  const began = performance.now();
  server = await startServer(directory);
  await withClient(server, async (database) => {
    const row = await database.table('million').get(key(ROWS >> 1));
    if (row?.cells.length !== 1) throw new Error('the row is not there');
  });
  return performance.now() - began;
}

async function limitedReads(database: Database): Promise<number[]> {
  const times: number[] = [];
  const wanted = Math.min(1000, ROWS);
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now();
    let rows = 0;
    for await (const _ of database
      .table('million')
      .scan({ start: key(Math.floor(((ROWS - wanted) * round) / ROUNDS)), limit: wanted }))
      rows++;
    if (rows !== wanted) throw new Error(`${rows} rows in place of ${wanted}`);
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b);
}

const directory = await mkdtemp(join(tmpdir(), 'edubba-million-'));
let server: ServerProcess | undefined;
try {
  server = await startServer(directory);
  const began = performance.now();
  await withClient(server, load);
  const seconds = (performance.now() - began) / 1000;
  const { residentBytes, peakBytes } = memory(server);
  console.log(
    `${ROWS} rows of 1000 bytes loaded in ${seconds.toFixed(1)} s; resident ${Math.round(residentBytes / MIB)} MiB, at most ${Math.round(peakBytes / MIB)} MiB`,
  );
  await server.stop('SIGKILL');
  console.log(`after kill -9: first read answered ${(await firstRead()).toFixed(0)} ms after the process began`);
  await server.stop();
  console.log(`after SIGTERM: first read answered ${(await firstRead()).toFixed(0)} ms after the process began`);
  const times = await withClient(server, limitedReads);
  console.log(
    `1000 rows by limit, no end key: slowest (the first, cold) ${times.at(-1)?.toFixed(1)} ms, median ${times[times.length >> 1]?.toFixed(1)} ms`,
  );
  console.log(`memory after it: at most ${Math.round(memory(server).peakBytes / MIB)} MiB`);
} finally {
  await server?.stop();
  await rm(directory, { recursive: true });
}
