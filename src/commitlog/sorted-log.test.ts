import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { examplesOf, goldenFile } from '../../test/golden/golden-file.ts';
import { quickClock } from '../../test/simulated-time.ts';
import { CorruptionError } from '../base/index.ts';
import { type FileSystem, MemoryFileSystem, MemorySlotStore, SeededRandom, withSlotLogs } from '../env/index.ts';
import { intersectRanges, isEmptyRange, rangeContains, type RowRange } from '../model/index.ts';
import { nativeCodecs } from '../platform/index.ts';
import { AppendEncoder } from './append-encoder.ts';
import { readAppends } from './log-reader.ts';
import { isAfter, type LogRecord, type NewRecord, Origin, type RecordBody } from './record.ts';
import { sortLog } from './sort-log.ts';
import { listSorted, type LogPart, SORTED_DIRECTORY, type SortedPart, sortedPath } from './sorted-format.ts';
import { SortedLog } from './sorted-log.ts';

const LOG = 'logs/s1';
const DIRECTORY = `${SORTED_DIRECTORY}s1/`;
const codecs = nativeCodecs();
const ALL: RowRange = { start: '', end: undefined };
const FIRST = { epoch: 0, sequence: 0 };

function newFiles(): FileSystem {
  const random = new SeededRandom(1);
  return withSlotLogs(new MemoryFileSystem(), new MemorySlotStore(), { clock: quickClock(), random });
}

const rows = (...keys: string[]): RecordBody => ({
  kind: 'rows',
  rows: keys.map((row) => ({
    row,
    mutations: [
      { kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1000, value: Buffer.from(`value of ${row}`) },
      { kind: 'deleteFromFamily', family: 'g' },
    ],
  })),
});

interface Made {
  readonly tableId: string;
  readonly epoch: number;
  readonly body: RecordBody;
}

/** Makes a fenced log of the appends; `trimmed`: the number of appends that are gone. */
async function makeLog(files: FileSystem, appends: readonly (readonly Made[])[], trimmed = 0): Promise<void> {
  const log = await files.openLog(LOG);
  let firstSequence = 1;
  let previous = 0;
  for (const [i, records] of appends.entries()) {
    const encoder = new AppendEncoder();
    for (const { tableId, epoch, body } of records) {
      const record: NewRecord = { tableId, epoch, body, commitMicros: 5, origin: Origin.user };
      encoder.add(record);
    }
    const lowWater = i === appends.length - 1 ? trimmed + 1 : 0;
    const header = { previous, count: records.length, firstSequence, lowWater };
    const position = await log.append(encoder.finish(header));
    firstSequence += records.length;
    previous = position + 1;
  }
  if (trimmed > 0) await log.trimBefore(trimmed + 1);
  await log.close();
  await files.fence(LOG);
}

interface Sorting {
  readonly maxBytes?: number;
  readonly blockBytes?: number;
  readonly rowsAtOnce?: number;
}

async function sort(files: FileSystem, part: LogPart, sorting: Sorting = {}) {
  const env = { fileSystem: files, clock: quickClock(), codecs };
  const pathOf = (one: LogPart): string => sortedPath(LOG, one, 'x');
  return sortLog({ env, log: LOG, part, pathOf, maxBytes: 1 << 20, blockBytes: 200, ...sorting });
}

async function partsIn(files: FileSystem): Promise<SortedPart[]> {
  return (await listSorted(files, LOG)).sort((a, b) => a.from - b.from);
}

const open = async (files: FileSystem, parts?: readonly SortedPart[]): Promise<SortedLog> =>
  SortedLog.open(LOG, parts ?? (await partsIn(files)), { fileSystem: files, checksum: codecs.checksum });

async function copy(from: FileSystem, to: FileSystem, path: string): Promise<void> {
  const writer = await to.create(path);
  await writer.append(await from.read(path, 0, await from.size(path)));
  await writer.close();
}

const WHOLE: LogPart = { from: 0, to: undefined };

/** What of the record changes the range, as words. */
function inRange({ epoch, sequence, commitMicros, origin, body }: LogRecord, range: RowRange): string {
  const place = `${epoch} ${sequence} ${commitMicros} ${origin}`;
  if (body.kind === 'dropRows') return `${place} drop ${body.range.start} ${body.range.end}`;
  const words = body.rows
    .filter(({ row }) => rangeContains(range, row))
    .map(({ row, mutations }) => `${row} ${JSON.stringify(mutations)}`)
    .sort();
  return `${place} ${words.join()}`;
}

const key = fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom('a', 'b', 'c', 'd') });
const range = fc.record({ start: fc.oneof(fc.constant(''), key), end: fc.option(key, { nil: undefined }) });
const made = fc.record({
  tableId: fc.constantFrom('00000010', '00000011', '00000012'),
  epoch: fc.integer({ min: 1, max: 3 }),
  body: fc.oneof(
    { weight: 4, arbitrary: fc.uniqueArray(key, { maxLength: 4 }).map((keys) => rows(...keys)) },
    { weight: 1, arbitrary: range.map((one): RecordBody => ({ kind: 'dropRows', range: one })) },
  ),
});

describe('a sorted log', () => {
  test('is the golden bytes and the example', async () => {
    const files = newFiles();
    await makeLog(files, [
      [{ tableId: '00000010', epoch: 3, body: rows('b', 'a') }],
      [{ tableId: '00000010', epoch: 3, body: { kind: 'dropRows', range: { start: 'a', end: 'b' } } }],
    ]);
    await sort(files, WHOLE);
    const [part] = await partsIn(files);
    const written = await files.read(part!.path, 0, await files.size(part!.path));
    const golden = goldenFile('sorted-log-v1.bin', written);
    assert.equal(written.toString('hex'), golden.toString('hex'));
    assert.equal(Buffer.concat(examplesOf('sorted-log.md')).toString('hex'), written.toString('hex'));
  });

  test('has of each range the records that the log has, whatever its parts', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(made, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 12 }),
        fc.nat(11),
        fc.uniqueArray(fc.integer({ min: 1, max: 14 }), { maxLength: 4 }),
        fc.constantFrom(300, 1000, 1 << 20),
        fc.constantFrom(1, 100, 1 << 16),
        fc.constantFrom(1, 3, 4096),
        fc.array(
          fc.record({
            tableId: fc.constantFrom('00000010', '00000011'),
            range,
            epoch: fc.nat(3),
            sequence: fc.nat(20),
          }),
        ),
        async (appends, trim, cuts, maxBytes, blockBytes, rowsAtOnce, requests) => {
          const files = newFiles();
          await makeLog(files, appends, Math.min(trim, appends.length - 1));
          const begins = [0, ...cuts.sort((a, b) => a - b)];
          for (const [i, from] of begins.entries())
            await sort(files, { from, to: begins[i + 1] }, { maxBytes, blockBytes, rowsAtOnce });
          const all: LogRecord[] = [];
          for await (const { records } of readAppends(files, LOG)) all.push(...records);
          const sorted = await open(files);
          for (const { tableId, range: rowRange, ...redo } of requests) {
            const touches = ({ body }: LogRecord): boolean =>
              body.kind === 'rows'
                ? body.rows.some(({ row }) => rangeContains(rowRange, row))
                : !isEmptyRange(intersectRanges(body.range, rowRange));
            const expected = all.filter((one) => one.tableId === tableId && isAfter(one, redo) && touches(one));
            const found = await sorted.records(tableId, rowRange, redo);
            assert.deepEqual(
              found.map((one) => inRange(one.decode(), rowRange)).sort(),
              expected.map((one) => inRange(one, rowRange)).sort(),
            );
          }
        },
      ),
    );
  });

  test('joins the rows of a record, and of no other', async () => {
    const files = newFiles();
    const one = { tableId: '00000010', epoch: 1, body: rows('a', 'b') };
    await makeLog(files, [[one], [one]]);
    await sort(files, { from: 0, to: 2 });
    await sort(files, { from: 2, to: undefined });
    const [first, second] = await partsIn(files);
    const sorted = await open(files, [first!, second!]);
    const found = await sorted.records('00000010', ALL, FIRST);
    assert.deepEqual(
      found.map(({ sequence }) => sequence),
      [1, 2],
    );
    assert.deepEqual(found[0]!.span(), { first: 'a', last: 'b' });
  });

  test('reads of a file the blocks of the range alone', async () => {
    const files = newFiles();
    const keys = Array.from({ length: 500 }, (_, i) => `r${1000 + i}`);
    await makeLog(
      files,
      keys.map((row) => [{ tableId: '00000010', epoch: 1, body: rows(row) }]),
    );
    await sort(files, WHOLE, { blockBytes: 1000 });
    let readBytes = 0;
    const counted: FileSystem = {
      ...files,
      read: async (path, offset, length) => {
        readBytes += length;
        return files.read(path, offset, length);
      },
    };
    const sorted = await open(counted);
    readBytes = 0;
    const found = await sorted.records('00000010', { start: 'r1100', end: 'r1110' }, FIRST);
    assert.equal(found.length, 10);
    assert.ok(readBytes < 3000, `${readBytes}`);
  });

  test('with an append missing between two parts is refused, as the log is', async () => {
    const one = [{ tableId: '00000010', epoch: 1, body: rows('a') }];
    const files = newFiles();
    await makeLog(files, [one, one, one, one]);
    await sort(files, { from: 4, to: undefined });
    // the third append was not there when its part was sorted
    const shorter = newFiles();
    await makeLog(shorter, [one, one]);
    await sort(shorter, { from: 0, to: 4 });
    const [first] = await partsIn(shorter);
    await copy(shorter, files, first!.path);
    await assert.rejects(open(files), { name: 'CorruptionError', file: LOG });
    await files.delete(first!.path);
    await sort(files, { from: 0, to: 4 });
    assert.equal((await (await open(files)).records('00000010', ALL, FIRST)).length, 4);
  });

  test('of a file that has another part than its name says is refused', async () => {
    const files = newFiles();
    await makeLog(files, [[{ tableId: '00000010', epoch: 1, body: rows('a') }]]);
    await sort(files, { from: 0, to: 9 });
    await sort(files, { from: 9, to: undefined });
    const [first, last] = await partsIn(files);
    const parts = [
      { ...first!, to: 8 },
      { ...last!, from: 8 },
    ];
    await assert.rejects(open(files, parts), { name: 'CorruptionError', file: first!.path });
  });

  test('of a log that is missing is refused', async () => {
    const files = newFiles();
    await sort(files, WHOLE);
    await assert.rejects(open(files), { name: 'CorruptionError', file: LOG });
  });

  test('with a wrong byte anywhere is refused, or yields what it had', async () => {
    const files = newFiles();
    const one = (row: string): Made[] => [{ tableId: '00000010', epoch: 1, body: rows(row) }];
    await makeLog(files, ['a', 'b', 'c'].map(one));
    await sort(files, WHOLE, { blockBytes: 1 });
    const [part] = await partsIn(files);
    const size = await files.size(part!.path);
    let refused = 0;
    for (let at = 0; at < size; at++) {
      const damaged: FileSystem = {
        ...files,
        read: async (path, offset, length) => {
          const bytes = await files.read(path, offset, length);
          if (at >= offset && at < offset + length) bytes[at - offset]! ^= 1 << (at % 8);
          return bytes;
        },
      };
      await assert.rejects(
        open(damaged).then((sorted) => sorted.records('00000010', ALL, FIRST)),
        CorruptionError,
        `byte ${at}`,
      );
      refused++;
    }
    assert.equal(refused, size);
  });

  test('names of files say their parts, and other names none', async () => {
    const files = newFiles();
    const create = async (path: string): Promise<void> => {
      const writer = await files.create(path);
      await writer.append(Buffer.from('x'));
      await writer.close();
    };
    const parts: LogPart[] = [
      { from: 0, to: 7 },
      { from: 7, to: undefined },
    ];
    for (const part of parts) await create(sortedPath(LOG, part, 'a-1'));
    for (const name of ['7', '7.end', '7.7.a', '8.7.a', '-1.7.a', '0.x.a', '0.end.a.b', '0.1e3.a', '1'.repeat(20)])
      await create(DIRECTORY + name);
    assert.deepEqual(
      await partsIn(files),
      parts.map((part) => ({ ...part, path: sortedPath(LOG, part, 'a-1') })),
    );
  });
});
