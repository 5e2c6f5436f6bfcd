/**
 * How each peer is driven. The same chance for all: 256 writers' rows go out as one batch, and one sync if the store is
 * synced, where the peer has a batch; reads and scans use the quickest calls that the peer documents, keys and values
 * are bytes, and caches get the same number of bytes where they can be set.
 */
import { join } from 'node:path';
import { CELLS_A_ROW, cellName } from './job.ts';
import { loadPeer } from './peers.ts';
import {
  entriesOf,
  GroupCommit,
  hasCells,
  type OpenStore,
  rangeOfCells,
  type RowToWrite,
  type Store,
} from './store.ts';

const NAMES = Array.from({ length: CELLS_A_ROW }, (_, i) => cellName(i));
const ENTRIES_A_READ = 1000;

interface LevelOptions {
  readonly sync: boolean;
}
interface LevelIterator {
  nextv(count: number): Promise<[string, Uint8Array][]>;
  close(): Promise<void>;
}
interface Level {
  open(): Promise<void>;
  close(): Promise<void>;
  get(key: string): Promise<Uint8Array | undefined>;
  getSync(key: string): Uint8Array | undefined;
  batch(operations: readonly { type: 'put'; key: string; value: Uint8Array }[], options: LevelOptions): Promise<void>;
  iterator(options: object): LevelIterator;
}

/**
 * classic-level: one batch a group, with `sync` if the store is synced; getSync one by one, get many at once;
 * iterator.nextv of 1000 entries. LevelDB's cache is set; its other settings are its own.
 */
export const openClassicLevel: OpenStore = async ({ directory, shape, cacheBytes, isSynced }): Promise<Store> => {
  const { ClassicLevel } = loadPeer<{ ClassicLevel: new (path: string, options: object) => Level }>('classic-level');
  const db = new ClassicLevel(directory, { keyEncoding: 'utf8', valueEncoding: 'view', cacheSize: cacheBytes });
  await db.open();
  const write = (rows: readonly RowToWrite[]): Promise<void> =>
    db.batch(
      rows.flatMap((row) => entriesOf(row, NAMES).map(([key, value]) => ({ type: 'put' as const, key, value }))),
      { sync: isSynced },
    );
  const groups = new GroupCommit(write);
  const sum = async (range: object): Promise<number> => {
    const iterator = db.iterator(range);
    let bytes = 0;
    for (
      let entries = await iterator.nextv(ENTRIES_A_READ);
      entries.length > 0;
      entries = await iterator.nextv(ENTRIES_A_READ)
    ) {
      for (const [, value] of entries) bytes += value.length;
    }
    await iterator.close();
    return bytes;
  };
  return {
    put: (row) => groups.put(row),
    putBatch: write,
    get: hasCells(shape)
      ? (key) => sum(rangeOfCells(key))
      : (key, alone) => (alone ? (db.getSync(key)?.length ?? 0) : db.get(key).then((value) => value?.length ?? 0)),
    scan: (reverse) => sum({ reverse }),
    close: () => db.close(),
  };
};

interface RocksBatch {
  tryPut(key: string, value: Uint8Array): void;
  flush(): Promise<void>;
  destroy(): void;
}
interface Rocks {
  ready(): Promise<void>;
  write(options?: object): RocksBatch;
  get(key: string): Promise<Uint8Array | null>;
  iterator(range: object, options?: object): AsyncIterable<{ value: Uint8Array }>;
  close(): Promise<void>;
}

/**
 * rocksdb-native: one write batch a group. It offers no sync of its log, so its "synced" writes are not: that column
 * flatters it. Nor does it let its block cache be sized. Iterators fetch 1000 entries a call.
 */
export const openRocks: OpenStore = async ({ directory, shape }): Promise<Store> => {
  const RocksDB = loadPeer<new (path: string) => Rocks>('rocksdb-native');
  const db = new RocksDB(directory);
  await db.ready();
  const write = async (rows: readonly RowToWrite[]): Promise<void> => {
    const batch = db.write();
    for (const row of rows) for (const [key, value] of entriesOf(row, NAMES)) batch.tryPut(key, value);
    await batch.flush();
    batch.destroy();
  };
  const groups = new GroupCommit(write);
  const sum = async (range: object): Promise<number> => {
    let bytes = 0;
    for await (const { value } of db.iterator(range, { capacity: ENTRIES_A_READ })) bytes += value.length;
    return bytes;
  };
  return {
    put: (row) => groups.put(row),
    putBatch: write,
    get: hasCells(shape) ? (key) => sum(rangeOfCells(key)) : async (key) => (await db.get(key))?.length ?? 0,
    scan: (reverse) => sum({ reverse }),
    close: () => db.close(),
  };
};

interface Lmdb {
  put(key: string, value: Uint8Array): Promise<boolean>;
  get(key: string): Uint8Array | undefined;
  getRange(options: object): Iterable<{ value: Uint8Array }>;
  close(): Promise<void>;
}

/**
 * lmdb: put, which groups by itself; without overlappingSync a commit is on disk when it resolves. A store that is not
 * synced is opened with noSync. Reads are its synchronous ones out of the memory map, which has no size to set.
 */
export const openLmdb: OpenStore = async ({ directory, shape, isSynced }): Promise<Store> => {
  const lmdb = loadPeer<{ open(options: object): Lmdb }>('lmdb');
  const db = lmdb.open({
    path: join(directory, 'data'),
    encoding: 'binary',
    compression: false,
    maxReaders: 64,
    overlappingSync: false,
    noSync: !isSynced,
  });
  const write = async (rows: readonly RowToWrite[]): Promise<void> => {
    const done: Promise<boolean>[] = [];
    for (const row of rows) for (const [key, value] of entriesOf(row, NAMES)) done.push(db.put(key, value));
    await Promise.all(done);
  };
  const sum = (range: object): number => {
    let bytes = 0;
    for (const { value } of db.getRange(range)) bytes += value.length;
    return bytes;
  };
  return {
    put: (row) => write([row]),
    putBatch: write,
    get: hasCells(shape)
      ? (key) => {
          const { gte, lt } = rangeOfCells(key);
          return sum({ start: gte, end: lt });
        }
      : (key) => db.get(key)?.length ?? 0,
    scan: async (reverse) => sum({ reverse }),
    close: () => db.close(),
  };
};

interface Statement {
  run(...values: unknown[]): unknown;
  get(...values: unknown[]): { value: Uint8Array } | undefined;
  iterate(...values: unknown[]): Iterable<{ value: Uint8Array }>;
}
interface Sqlite {
  pragma(text: string): unknown;
  exec(text: string): unknown;
  prepare(text: string): Statement;
  transaction<A extends unknown[]>(work: (...args: A) => void): (...args: A) => void;
  close(): void;
}

/**
 * better-sqlite3: a table without rowid keyed by text, WAL, one transaction a group; synchronous FULL if the store is
 * synced, NORMAL (no sync a commit) else.
 */
export const openSqlite: OpenStore = async ({ directory, shape, cacheBytes, isSynced }): Promise<Store> => {
  const { mkdirSync } = await import('node:fs');
  mkdirSync(directory, { recursive: true });
  const SqliteDatabase = loadPeer<new (path: string) => Sqlite>('better-sqlite3');
  const db = new SqliteDatabase(join(directory, 'data.sqlite'));
  db.pragma('journal_mode = WAL');
  db.pragma(`synchronous = ${isSynced ? 'FULL' : 'NORMAL'}`);
  db.pragma(`cache_size = -${Math.floor(cacheBytes / 1024)}`);
  db.exec('CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID');
  const insert = db.prepare('INSERT OR REPLACE INTO entries (key, value) VALUES (?, ?)');
  const one = db.prepare('SELECT value FROM entries WHERE key = ?');
  const cells = db.prepare('SELECT value FROM entries WHERE key >= ? AND key < ? ORDER BY key');
  const all = {
    forward: db.prepare('SELECT key, value FROM entries ORDER BY key'),
    reverse: db.prepare('SELECT key, value FROM entries ORDER BY key DESC'),
  };
  const insertAll = db.transaction((rows: readonly RowToWrite[]) => {
    for (const row of rows) for (const [key, value] of entriesOf(row, NAMES)) insert.run(key, value);
  });
  const write = async (rows: readonly RowToWrite[]): Promise<void> => {
    insertAll(rows);
  };
  const groups = new GroupCommit(write);
  const sum = (found: Iterable<{ value: Uint8Array }>): number => {
    let bytes = 0;
    for (const { value } of found) bytes += value.length;
    return bytes;
  };
  return {
    put: (row) => groups.put(row),
    putBatch: write,
    get: hasCells(shape)
      ? (key) => {
          const { gte, lt } = rangeOfCells(key);
          return sum(cells.iterate(gte, lt));
        }
      : (key) => one.get(key)?.value.length ?? 0,
    scan: async (reverse) => sum(reverse ? all.reverse.iterate() : all.forward.iterate()),
    close: async () => db.close(),
  };
};
