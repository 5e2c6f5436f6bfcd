/** A database whose files are read through a cache on the local disk: over restarts, and with damage in the cache. */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openDatabase } from '../../src/boot/index.ts';
import { type Database, overService, RowMutation } from '../../src/embedded/index.ts';
import { MemoryFileSystem, Metrics } from '../../src/env/index.ts';
import { nativeCodecs, openReadCache, systemClock } from '../../src/platform/index.ts';

const ROWS = 400;
const directory = fs.mkdtempSync(join(tmpdir(), 'edubba-read-cache-'));
after(() => fs.rmSync(directory, { recursive: true }));

const keyOf = (row: number): string => `row${String(row).padStart(4, '0')}`;
const valueOf = (row: number, round: number): string => `${row} ${round} `.repeat(100 + (row % 50));

/** Runs `use` on the database of the store, which is opened and closed for it, and returns what the cache counted. */
async function withDatabase(store: MemoryFileSystem, use: (database: Database) => Promise<void>): Promise<Metrics> {
  const metrics = new Metrics();
  const cache = await openReadCache(directory, {
    fileSystem: store,
    identity: '0'.repeat(32),
    budgetBytes: 16 << 20,
    checksum: nativeCodecs().checksum,
    clock: systemClock,
    metrics,
  });
  const opened = await openDatabase({ fileSystem: cache.fileSystem, settings: { blockCacheBytes: 128 * 1024 } });
  const database = overService(opened.service, opened.env, () => opened.close());
  try {
    await use(database);
    await database.close();
  } finally {
    await cache.close();
  }
  return metrics;
}

async function checkRows(database: Database, round: number): Promise<void> {
  const table = await database.openTable('t', { families: { f: {} } });
  for (let i = 0; i < ROWS; i++) {
    const row = await table.get(keyOf((i * 37) % ROWS));
    assert.equal(row?.get('f:c')?.value.toString(), valueOf((i * 37) % ROWS, round));
  }
  const rows = await table.scan().toArray();
  assert.equal(rows.length, ROWS);
}

test('a database reads its own files from the cache, also after a restart, and none of the damage there', async () => {
  const store = new MemoryFileSystem();
  const written = await withDatabase(store, async (database) => {
    const table = await database.openTable('t', { families: { f: {} } });
    for (const round of [0, 1]) {
      const rows = Array.from({ length: ROWS }, (_, i) => new RowMutation(keyOf(i)).set('f:c', valueOf(i, round)));
      await table.applyAll(rows);
      await database.flush();
    }
    await database.compact();
    await checkRows(database, 1);
  });
  assert.equal(written.get('readCache.misses'), 0);
  const restarted = await withDatabase(store, (database) => checkRows(database, 1));
  assert.equal(restarted.get('readCache.misses'), 0);
  assert.notEqual(restarted.get('readCache.hits'), 0);

  const chunks = join(directory, 'chunks');
  const bytes = fs.readFileSync(chunks);
  for (let at = 0; at < bytes.length; at += 10_000) bytes[at]! ^= 1;
  fs.writeFileSync(chunks, bytes);
  const damaged = await withDatabase(store, (database) => checkRows(database, 1));
  assert.notEqual(damaged.get('readCache.damaged'), 0);
  assert.ok(damaged.get('readCache.misses') <= damaged.get('readCache.damaged'));
});
