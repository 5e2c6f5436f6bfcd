/**
 * The memory of a server of many large tablets. Each tablet lists a file of `--mb`; all read the same bytes, which hold
 * rows of every tablet. Prints the memory once all are loaded, and after rows of all of them were read.
 *
 *   npm run bench -- large-tablets [--tablets=1000] [--mb=200] [--value-bytes=1000] [--reads=20000] [--index-mb=128]
 */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ListCursor } from '../test/list-cursor.ts';
import { openDatabase } from '../src/boot/index.ts';
import { type Database, overService, RowMutation } from '../src/embedded/index.ts';
import { type FileSystem, MemoryFileSystem } from '../src/env/index.ts';
import { columnKey, type Entry, EntryKind } from '../src/model/index.ts';
import { nativeCodecs, systemClock } from '../src/platform/index.ts';
import { describeSsTable, writeSsTable } from '../src/sstable/index.ts';

const { values } = parseArgs({
  options: {
    tablets: { type: 'string', default: '1000' },
    mb: { type: 'string', default: '200' },
    'value-bytes': { type: 'string', default: '1000' },
    reads: { type: 'string', default: '20000' },
    'index-mb': { type: 'string', default: '128' },
  },
});
const TABLETS = Number(values.tablets);
const FILE_BYTES = Number(values.mb) * 1e6;
const VALUE_BYTES = Number(values['value-bytes']);
const READS = Number(values.reads);
const INDEX_BYTES = Number(values['index-mb']) * 2 ** 20;

const MIB = 2 ** 20;
const CLIENTS = 16;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const keyOf = (tablet: number): string => String(tablet).padStart(6, '0');
const rowsOfTablet = Math.floor(FILE_BYTES / VALUE_BYTES / TABLETS);
const rowOf = (tablet: number, number: number): string => `${keyOf(tablet)}-${String(number).padStart(6, '0')}`;

/** The rows of the file. */
function fileRows(): Entry[] {
  const value = Buffer.alloc(VALUE_BYTES, 'v');
  const column = columnKey('f', 'q');
  return Array.from({ length: TABLETS * rowsOfTablet }, (_, i): Entry => {
    const row = rowOf(Math.floor(i / rowsOfTablet), i % rowsOfTablet);
    return { row, column, kind: EntryKind.put, timestamp: 1000, value };
  });
}

/** The files of a database; in place of those of `paths` the large one is read. */
function withLargeFiles(files: MemoryFileSystem, large: MemoryFileSystem, paths: ReadonlySet<string>): FileSystem {
  const of = (path: string): [MemoryFileSystem, string] => (paths.has(path) ? [large, LARGE] : [files, path]);
  return {
    create: (path) => files.create(path),
    size: (path) => {
      const [from, name] = of(path);
      return from.size(name);
    },
    read: (path, offset, length) => {
      const [from, name] = of(path);
      return from.read(name, offset, length);
    },
    list: (prefix) => files.list(prefix),
    delete: (path) => files.delete(path),
    openLog: (path) => files.openLog(path),
    fence: (path) => files.fence(path),
    readLog: (path, from) => files.readLog(path, from),
    listLogs: (prefix) => files.listLogs(prefix),
    deleteLog: (path) => files.deleteLog(path),
  };
}

const LARGE = 'large.sst';

async function open(fileSystem: FileSystem): Promise<Database> {
  const opened = await openDatabase({ fileSystem, settings: { indexBytes: INDEX_BYTES } });
  return overService(opened.service, opened.env, () => opened.close());
}

function memory(): { readonly heap: number; readonly outside: number; readonly rss: number } {
  for (let i = 0; i < 3; i++) collectGarbage();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heap: heapUsed, outside: external, rss };
}

// timers of the clock do not keep the process alive
const alive = setInterval(() => {}, 1000);
const large = new MemoryFileSystem();
await writeSsTable(
  { fileSystem: large, path: LARGE, codecs: nativeCodecs(), clock: systemClock, group: 'default', bloomFilter: 'row' },
  new ListCursor(fileRows()),
);
console.log(`each of ${TABLETS} tablets has a file of ${Math.round((await large.size(LARGE)) / 1e6)} MB`);

const files = new MemoryFileSystem();
const empty = await open(files);
const splits = Array.from({ length: TABLETS - 1 }, (_, i) => keyOf(i + 1));
const created = await empty.createTable('t', { families: { f: {} }, splits });
for (let i = 0; i < TABLETS; i++) await created.apply(new RowMutation(rowOf(i, 0)).set('f:q', 'x'));
await empty.flush();
await empty.close();
const paths = new Set<string>();
for (const { path } of await files.list('sstables/')) {
  const { properties } = await describeSsTable({ fileSystem: files, codecs: nativeCodecs(), clock: systemClock }, path);
  if (/^\d{6}-/.test(properties.firstRow ?? '')) paths.add(path);
}
assert(paths.size === TABLETS, `${paths.size} files of ${TABLETS} tablets`);

const before = memory();
const tell = (when: string): void => {
  const now = memory();
  const mib = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`;
  const [heap, outside, rss] = [now.heap - before.heap, now.outside - before.outside, now.rss - before.rss];
  console.log(`${when}: ${mib(heap)} of heap and ${mib(outside)} outside of it; the process took ${mib(rss)} more`);
};
const started = performance.now();
const database = await open(withLargeFiles(files, large, paths));
const table = database.table('t');
for (let i = 0; i < TABLETS; i++) await read(i, 0);
tell(`all are loaded, after ${((performance.now() - started) / 1000).toFixed(1)} s`);
let left = READS;
const begun = performance.now();
await Promise.all(
  Array.from({ length: CLIENTS }, async () => {
    while (left-- > 0) await read(Math.floor(Math.random() * TABLETS), Math.floor(Math.random() * rowsOfTablet));
  }),
);
const seconds = (performance.now() - begun) / 1000;
tell(`after ${READS} rows of all of them were read, ${Math.round(READS / seconds)} a second`);
const counters = await database.counters();
for (const name of ['sstable.indexLoads', 'sstable.indexEvictions', 'sstable.reads'])
  console.log(`${name}: ${counters[name] ?? 0}`);
await database.close();
clearInterval(alive);

async function read(tablet: number, number: number): Promise<void> {
  const row = await table.get(rowOf(tablet, number));
  assert(row?.get('f:q')?.value.length === VALUE_BYTES, 'the row is in the file');
}
