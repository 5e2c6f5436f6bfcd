/**
 * Edubba, opened as users open it: one table, one family that keeps the newest version. A store that is not
 * synced has the setting `durability: 'buffered'`.
 */
import type { Database, GroupLayout, Row, Table } from '../../src/embedded/index.ts';
import { CELLS_A_ROW, cellName } from './job.ts';
import { open, RowMutation } from './package.ts';
import type { OpenStore, RowToWrite, Store, StoreOptions } from './store.ts';

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

export const openEdubba: OpenStore = (options) => openWith(options, {});
export const openEdubbaOfSmallBlocks: OpenStore = (options) =>
  openWith(options, { small: { families: ['f'], blockSizeBytes: SMALL_BLOCK_BYTES } });

async function openWith({ directory, cacheBytes, isSynced }: StoreOptions, groups: GroupLayout): Promise<Store> {
  const database = await open(directory, {
    blockCacheBytes: cacheBytes,
    durability: isSynced ? 'synced' : 'buffered',
  });
  if (!(await database.hasTable(TABLE)))
    await database.createTable(TABLE, { families: { f: { maxVersions: 1 } }, groups });
  const table = database.table(TABLE);
  const isBusy = growth(database);
  return {
    put: (row) => table.apply(mutationOf(row)),
    putBatch: (rows) => table.applyAll(rows.map(mutationOf)),
    get: (key) => table.get(key).then(bytesOf),
    getNow: (key) => {
      const found = table.getNow(key);
      return found instanceof Promise ? found.then(bytesOf) : bytesOf(found);
    },
    scan: (reverse) => bytesOfScan(table, reverse),
    isBusy,
    close: () => database.close(),
  };
}
