import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { quickClock } from '../../test/simulated-time.ts';
import { Origin, readEncodedAppends, ServerLog } from '../commitlog/index.ts';
import {
  type Env,
  type FileSystem,
  MemoryFileSystem,
  MemorySlotStore,
  Metrics,
  SeededRandom,
  silentLogger,
  withSlotLogs,
} from '../env/index.ts';
import { nativeCodecs } from '../platform/index.ts';
import { LogReplay } from './log-replay.ts';
import { chain, LogSorter } from './log-sorter.ts';

const LOG = 'logs/dead';
const ROWS = Array.from({ length: 40 }, (_, i) => `row ${10 + i}`);
const ALL = { tableId: '00000010', range: { start: '', end: undefined }, redo: { epoch: 0, sequence: 0 }, logs: [LOG] };

interface Storage {
  readonly files: FileSystem;
  readonly sorter: LogSorter;
  readonly warnings: string[];
}

/** The fenced log of a dead server, of a row a record. */
async function deadLog(): Promise<Storage> {
  const clock = quickClock();
  const random = new SeededRandom(1);
  const codecs = nativeCodecs();
  const metrics = new Metrics();
  const files = withSlotLogs(new MemoryFileSystem(), new MemorySlotStore(), { clock, random });
  const warnings: string[] = [];
  const logger = { ...silentLogger, warn: (message: string) => void warnings.push(message) };
  const env = { fileSystem: files, clock, codecs, metrics, logger, random };
  const log = await ServerLog.open({
    fileSystem: files,
    path: LOG,
    onFailure: (error) => assert.fail(error.message),
    env: env as unknown as Env,
  });
  for (const row of ROWS) {
    const mutations = [{ kind: 'deleteFromRow' }] as const;
    const body = { kind: 'rows', rows: [{ row, mutations }] } as const;
    await log.append({ tableId: ALL.tableId, epoch: 1, commitMicros: 0, origin: Origin.user, body }).append.durable;
  }
  await log.close();
  await files.fence(LOG);
  return { files, sorter: new LogSorter({ env, serverName: 's2' }), warnings };
}

/** The rows that a replay finds, and how often it has read the log itself. */
async function replayed({ files, sorter }: Storage): Promise<{ rows: string[]; readings: number }> {
  let readings = 0;
  const replay = new LogReplay(
    (path) => {
      readings++;
      return readEncodedAppends(files, path);
    },
    (path) => sorter.find(path),
    quickClock(),
  );
  const rows: string[] = [];
  await replay.apply(ALL, async (records) => {
    for (const { body } of records) if (body.kind === 'rows') rows.push(...body.rows.map(({ row }) => row));
  });
  replay.clear();
  return { rows, readings };
}

const sortedFiles = async (files: FileSystem): Promise<string[]> =>
  (await files.list('sorted/')).map(({ path }) => path);

describe('the sorted log of a dead server', () => {
  test('is found where it is whole, and replaces the log', async () => {
    const storage = await deadLog();
    assert.equal(await storage.sorter.find(LOG), undefined);
    assert.deepEqual(await replayed(storage), { rows: ROWS, readings: 1 });
    await storage.sorter.sort('dead', { from: 0, to: 20 }, 1 << 20);
    await storage.sorter.sort('dead', { from: 20, to: undefined }, 1 << 20);
    assert.deepEqual(await replayed(storage), { rows: ROWS, readings: 0 });
  });

  test('gets the parts that are missing', async () => {
    const storage = await deadLog();
    await storage.sorter.sort('dead', { from: 10, to: 20 }, 1 << 20);
    assert.deepEqual(await replayed(storage), { rows: ROWS, readings: 0 });
    assert.equal((await sortedFiles(storage.files)).length, 3);
  });

  test('is sorted once by calls that come twice', async () => {
    const { files, sorter } = await deadLog();
    const part = { from: 0, to: undefined };
    await Promise.all([sorter.sort('dead', part, 1 << 20), sorter.sort('dead', part, 1 << 20)]);
    assert.equal((await sortedFiles(files)).length, 1);
  });

  test('that is damaged or lost, at its end or in a block, is not missed: the log is read', async () => {
    for (const damage of ['end', 'block', 'lost', 'lost after it was found'] as const) {
      const storage = await deadLog();
      await storage.sorter.sort('dead', { from: 0, to: undefined }, 1 << 20);
      const [path] = await sortedFiles(storage.files);
      const size = await storage.files.size(path!);
      const { read } = storage.files;
      let reads = 0;
      (storage.files as { read: FileSystem['read'] }).read = async (file, offset, length) => {
        reads++;
        if (file === path && (damage === 'lost' || (damage === 'lost after it was found' && reads > 1)))
          await storage.files.delete(path);
        const bytes = await read(file, offset, length);
        if (file === path && damage === 'end' && offset + length === size) bytes[length - 20]! ^= 1;
        if (file === path && damage === 'block' && offset === 0 && length < size) bytes[30]! ^= 1;
        return bytes;
      };
      assert.deepEqual(await replayed(storage), { rows: ROWS, readings: 1 }, damage);
      assert.equal(storage.warnings.length, damage === 'end' || damage === 'lost' ? 1 : 0);
    }
  });

  test('is not made by a server that ends', async () => {
    const { files, sorter } = await deadLog();
    sorter.stop();
    await assert.rejects(sorter.sort('dead', { from: 0, to: undefined }, 1 << 20), /ending/);
    assert.deepEqual(await sortedFiles(files), []);
  });
});

describe('a chain of parts', () => {
  test('covers a log once, with what is missing, whatever parts there are', () => {
    const part = fc
      .tuple(fc.nat(9), fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }))
      .map(([from, length]) => ({ from, to: length === undefined ? undefined : from + length, path: 'x' }));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (all) => {
        const { parts, missing } = chain(all);
        for (const one of parts) assert.ok(all.includes(one));
        const both = [...parts, ...missing].sort((a, b) => a.from - b.from);
        assert.equal(both[0]!.from, 0);
        for (const [i, one] of both.entries()) assert.equal(one.to, both[i + 1]?.from);
        const hasAll = (from: number): boolean =>
          all.some((one) => one.from === from && (one.to === undefined || hasAll(one.to)));
        assert.equal(missing.length === 0, hasAll(0));
      }),
    );
  });
});
