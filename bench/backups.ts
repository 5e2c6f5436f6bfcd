/**
 * Backups of a table of a million rows of 1000 random bytes, a gigabyte, on a server of the default command line: how
 * long it takes to back it up after the load, again and again at rest and under load, to copy a backup, to restore it,
 * and to read a first row of the restored table.
 *
 *   npm run bench -- backups [rows]
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type Database, RowMutation } from '../src/embedded/index.ts';
import { type ServerProcess, startServer } from './serving/server-process.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const TABLE = 'big';
const BATCH = 200;
const CALLS = 8;
const ROUNDS = 21;
/** Compactions and splits of the load are over. */
const REST_MS = 20_000;
const WARM_MS = 5_000;
const MIB = 1024 * 1024;

const key = (i: number): string => `row${String(i).padStart(9, '0')}`;
const mutation = (i: number): RowMutation => new RowMutation(key(i)).set('f:v', randomBytes(1000), 1000);

async function load(database: Database): Promise<void> {
  const table = await database.createTable(TABLE, { families: { f: { maxVersions: 1 } }, granularity: 'millis' });
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < ROWS) {
      const from = next;
      next += BATCH;
      await table.applyAll(Array.from({ length: Math.min(BATCH, ROWS - from) }, (_, i) => mutation(from + i)));
    }
  };
  await Promise.all(Array.from({ length: CALLS }, worker));
}

async function timed(call: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await call();
  return performance.now() - began;
}

/** One after another. */
async function times(call: (round: number) => Promise<unknown>, rounds = ROUNDS): Promise<number[]> {
  const all: number[] = [];
  for (let round = 0; round < rounds; round++) all.push(await timed(() => call(round)));
  return all;
}

function tell(what: string, all: readonly number[]): void {
  const sorted = [...all].sort((a, b) => a - b);
  const median = sorted[sorted.length >> 1]!;
  console.log(`${what}: median of ${sorted.length} ${median.toFixed(0)} ms, slowest ${sorted.at(-1)!.toFixed(0)} ms`);
}

/** Writes rows one by one, 16 at once, until the returned function is called, which answers how many. */
function writing(database: Database): () => Promise<number> {
  let isOver = false;
  let written = 0;
  const writers = Array.from({ length: 16 }, async () => {
    while (!isOver) {
      await database.table(TABLE).apply(mutation(Math.floor(Math.random() * ROWS)));
      written++;
    }
  });
  return async () => {
    isOver = true;
    await Promise.all(writers);
    return written;
  };
}

async function measure(database: Database): Promise<void> {
  const began = performance.now();
  await load(database);
  console.log(`${ROWS} rows of 1000 bytes loaded in ${((performance.now() - began) / 1000).toFixed(1)} s`);
  tell('backup directly after the load, which flushes it', [await timed(() => database.createBackup(TABLE, 'first'))]);
  await sleep(REST_MS);
  tell('backup at rest', await times((round) => database.createBackup(TABLE, `b-${round}`)));
  const { sizeBytes } = await database.getBackup('b-0');
  const tablets = await database.table(TABLE).tablets();
  console.log(`a backup lists ${Math.round(sizeBytes / MIB)} MiB of files of ${tablets.length} tablets`);
  tell('copy', await times((round) => database.copyBackup('b-0', `c-${round}`)));
  tell('restore', await times((round) => database.restoreTable('b-0', `r-${round}`)));
  const read = async (round: number): Promise<void> => {
    const row = await database.table(`r-${round}`).get(key(ROWS >> 1));
    if (row?.cells.length !== 1) throw new Error('the row is not there');
  };
  tell('first read of a restored table', await times(read));
  const restored = await times(async (round) => {
    await database.restoreTable('b-0', `s-${round}`);
    const row = await database.table(`s-${round}`).get(key(ROWS >> 1));
    if (row?.cells.length !== 1) throw new Error('the row is not there');
  });
  tell('restore and first read', restored);
  for (const prefix of ['r', 's']) for (let i = 0; i < ROUNDS; i++) await database.deleteTable(`${prefix}-${i}`);
  const stop = writing(database);
  await sleep(WARM_MS);
  const underLoad = await times(async (round) => {
    await database.createBackup(TABLE, `l-${round}`);
    await sleep(0);
  });
  console.log(`${await stop()} rows written meanwhile by 16 clients`);
  tell('backup under load', underLoad);
  tell('deletion', await times((round) => database.deleteBackup(`l-${round}`)));
}

const directory = await mkdtemp(join(tmpdir(), 'edubba-backups-'));
let server: ServerProcess | undefined;
try {
  server = await startServer(directory);
  const database = await connect(server.address);
  await measure(database);
  await database.close();
} finally {
  await server?.stop();
  await rm(directory, { recursive: true });
}
