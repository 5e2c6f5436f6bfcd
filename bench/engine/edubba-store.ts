/**
 * Edubba, opened as users open it: one table, one family that keeps the newest version. Unsynced writes are those of a
 * database opened with the setting `durability: 'buffered'`.
 */
import type { Database, GroupLayout, Row, Table } from '../../src/embedded/index.ts';
import { CELLS_A_ROW, cellName } from './job.ts';
import { open, RowMutation } from './package.ts';
import type { OpenStore, RowToWrite, Store } from './store.ts';

const TABLE = 'bench';
const COLUMNS = Array.from({ length: CELLS_A_ROW }, (_, i) => `f:${cellName(i)}`);

function mutationOf({ key, values }: RowToWrite): RowMutation {
  const mutation = new RowMutation(key);
  for (let i = 0; i < values.length; i++) mutation.set(COLUMNS[i] as string, values[i] as Buffer);
  return mutation;
}

function bytesOf(row: Row | undefined): number {
  let bytes = 0;
  for (const cell of row?.cells ?? []) bytes += cell.value.length;
  return bytes;
}

async function bytesOfScan(table: Table, reverse: boolean): Promise<number> {
  let bytes = 0;
  for await (const row of table.scan({ reverse })) bytes += bytesOf(row);
  return bytes;
}

/** True when a counter of a database has grown since the last call: files are written, read, compacted. */
export function growth(database: Database): () => Promise<boolean> {
  let before = '';
  return async () => {
    const now = JSON.stringify(await database.counters());
    const grown = now !== before;
    before = now;
    return grown;
  };
}

const SMALL_BLOCK_BYTES = 8 * 1024;

export const openEdubba: OpenStore = (job) => openWith(job, {});
export const openEdubbaOfSmallBlocks: OpenStore = (job) =>
  openWith(job, { small: { families: ['f'], blockSizeBytes: SMALL_BLOCK_BYTES } });

async function openWith({ directory, cacheBytes }: Parameters<OpenStore>[0], groups: GroupLayout): Promise<Store> {
  const settings = { blockCacheBytes: cacheBytes };
  let database = await open(directory, settings);
  let isBuffered = false;
  if (!(await database.hasTable(TABLE)))
    await database.createTable(TABLE, { families: { f: { maxVersions: 1 } }, groups });
  let table = database.table(TABLE);
  let isBusy = growth(database);
  return {
    put: (row) => table.apply(mutationOf(row)),
    putUnsynced: async (rows) => {
      if (!isBuffered) {
        await database.close();
        database = await open(directory, { ...settings, durability: 'buffered' });
        [table, isBusy, isBuffered] = [database.table(TABLE), growth(database), true];
      }
      await table.applyAll(rows.map(mutationOf));
    },
    get: async (key) => bytesOf(await table.get(key)),
    getNow: (key) => {
      const found = table.getNow(key);
      return found instanceof Promise ? found.then(bytesOf) : bytesOf(found);
    },
    scan: (reverse) => bytesOfScan(table, reverse),
    isBusy: () => isBusy(),
    close: () => database.close(),
  };
}
