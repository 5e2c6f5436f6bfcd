/**
 * Memory of tablets at their server: empty ones, and ones with a small file. The database is in a directory, so that
 * neither logs nor files count; METADATA's memtables are in files when the heap is measured.
 *
 *   npm run bench -- tablets [tablets]
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openDatabase } from '../src/boot/index.ts';
import { overService, RowMutation } from '../src/embedded/index.ts';

const TABLETS = Number(process.argv[2] ?? 20_000);
/** Tablets of the table that compiles the code before anything is measured. */
const WARM_TABLETS = 500;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heapBytes(): number {
  for (let i = 0; i < 3; i++) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const key = (i: number): string => `k${String(i).padStart(6, '0')}`;
const splits = (count: number): string[] => Array.from({ length: count - 1 }, (_, i) => key(i + 1));

const directory = await mkdtemp(join(tmpdir(), 'edubba-tablets-'));
const opened = await openDatabase({ directory });
const database = overService(opened.service, opened.env, () => opened.close());
try {
  await database.createTable('warm', { families: { f: {} }, splits: splits(WARM_TABLETS) });
  await opened.flush();
  const before = heapBytes();
  const table = await database.createTable('t', { families: { f: {} }, splits: splits(TABLETS) });
  await opened.flush();
  const empty = heapBytes();
  console.log(`an empty tablet: ${Math.round((empty - before) / TABLETS)} bytes`);
  for (let from = 0; from < TABLETS; from += 1000) {
    await table.applyAll(
      Array.from({ length: Math.min(1000, TABLETS - from) }, (_, i) => new RowMutation(key(from + i)).set('f:q', 'v')),
    );
  }
  await opened.flush();
  console.log(`a tablet with a file of one row: ${Math.round((heapBytes() - before) / TABLETS)} bytes`);
} finally {
  await database.close();
  await rm(directory, { recursive: true });
}
