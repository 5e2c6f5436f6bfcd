import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ListCursor } from '../../../test/list-cursor.ts';
import { AssertionError, Code, CorruptionError } from '../../base/index.ts';
import { type FileOperation, type FileWriter, ManualClock, MemoryFileSystem, Pacer } from '../../env/index.ts';
import { columnKey, type Entry, EntryKind } from '../../model/index.ts';
import {
  CODECS,
  deletion,
  entryAt,
  numberedRows,
  openFile,
  PATH,
  plain,
  put,
  rowName,
  scan,
  settle,
  writeFile,
} from '../fixtures.ts';
import { writeSsTable } from './write-ss-table.ts';

const Q = columnKey('f', 'q');
const MIB = 1024 * 1024;

/** A clock whose every reading is 4 ms after the one before, and which counts its yields. */
class BusyClock extends ManualClock {
  turns = 0;

  override monotonicMs(): number {
    this.advance(4);
    return super.monotonicMs();
  }

  override yield(): Promise<void> {
    this.turns++;
    return super.yield();
  }
}

function writeTo(fileSystem: MemoryFileSystem, entries: readonly Entry[]): ReturnType<typeof writeSsTable> {
  return writeSsTable(
    { fileSystem, path: PATH, codecs: CODECS, clock: new ManualClock(), group: 'default' },
    new ListCursor(entries),
  );
}

describe('writeSsTable', () => {
  test('writes no file for no entries', async () => {
    const fileSystem = new MemoryFileSystem();
    assert.equal(await writeTo(fileSystem, []), undefined);
    assert.deepEqual(await fileSystem.list(''), []);
  });

  test('takes any cursor from its beginning, loads as needed, and leaves it open', async () => {
    const entries = numberedRows(20, 10);
    let calls = 0;
    const source = new ListCursor(entries, () => calls++ % 2 === 0);
    source.position = 7;
    const fileSystem = new MemoryFileSystem();
    const clock = new ManualClock();
    const written = await writeSsTable({ fileSystem, path: PATH, codecs: CODECS, clock, group: 'g' }, source);
    assert.equal(written?.entries.put, 20);
    assert.equal(written.sizeBytes, await fileSystem.size(PATH));
    assert.equal(calls, 2 * 21, 'a move and a load for each entry and the end');
    assert.equal(source.closed, false);
  });

  test('refuses entries out of order, duplicates, or unreadable ones, and leaves no file', async () => {
    const cases: [string, Entry[]][] = [
      ['rows', [put('b', Q, 1), put('a', Q, 1)]],
      ['columns', [put('a', columnKey('g', ''), 1), put('a', Q, 1)]],
      ['timestamps', [put('a', Q, 1), put('a', Q, 2)]],
      ['alike', [put('a', Q, 1), { ...put('a', Q, 1), kind: EntryKind.merge }]],
      ['kinds', [put('a', Q, 1), deletion(EntryKind.columnDeletion, 'a', Q)]],
      ['unknown kind', [{ ...put('a', Q, 1), kind: 99 as EntryKind }]],
      ['timestamp', [put('a', Q, 2n ** 63n)]],
      ['value of a deletion', [{ ...put('a', Q, 0, 'v'), kind: EntryKind.columnDeletion }]],
      ['range of a put', [{ ...put('a', Q, 0, 'v'), rangeEnd: 4 }]],
    ];
    for (const [what, entries] of cases) {
      const fileSystem = new MemoryFileSystem();
      // far enough after the beginning for part of the file to be written
      const filler = Array.from({ length: 30 }, (_, i) => put(`\0${i + 10}`, Q, 1, Buffer.alloc(100_000)));
      await assert.rejects(writeTo(fileSystem, [...filler, ...entries]), AssertionError, what);
      assert.deepEqual(await fileSystem.list(''), [], what);
    }
    await assert.rejects(
      writeFile([], {
        rowRangeDeletions: [
          { start: 'b', end: 'c' },
          { start: 'a', end: 'b' },
        ],
      }),
      AssertionError,
    );
    await assert.rejects(
      writeFile([], {
        rowRangeDeletions: [
          { start: 'a', end: undefined },
          { start: 'b', end: 'c' },
        ],
      }),
      AssertionError,
    );
    await assert.rejects(writeFile([], { rowRangeDeletions: [{ start: 'a', end: 'a' }] }), AssertionError);
  });

  test('a failure of the file system or of the source is passed on, and leaves no file', async () => {
    const entries = numberedRows(3000, 1000);
    for (const failing of ['create', 'appendFile', 'closeFile'] satisfies FileOperation[]) {
      let calls = 0;
      const fileSystem = new MemoryFileSystem({
        faults: (operation) => {
          if (operation === failing && ++calls === (failing === 'appendFile' ? 2 : 1)) throw new Error('no space');
        },
      });
      await assert.rejects(writeTo(fileSystem, entries), /no space/, failing);
      assert.deepEqual(await fileSystem.list(''), [], failing);
    }
    const fileSystem = new MemoryFileSystem();
    let calls = 0;
    const source = new ListCursor(entries, () => {
      const isLoad = calls++ % 2 === 1;
      if (isLoad && source.position === 2000) throw new CorruptionError('old.sst', 5, 'bad');
      return !isLoad;
    });
    await assert.rejects(
      writeSsTable({ fileSystem, path: PATH, codecs: CODECS, clock: new ManualClock(), group: 'g' }, source),
      /old\.sst/,
    );
    assert.deepEqual(await fileSystem.list(''), []);
  });

  test('aborts the writer, once, after a failure', async () => {
    const ends: string[] = [];
    class WatchedFileSystem extends MemoryFileSystem {
      override async create(path: string): Promise<FileWriter> {
        const writer = await super.create(path);
        return {
          append: (bytes) => writer.append(bytes),
          close: () => (ends.push('close'), writer.close()),
          abort: () => (ends.push('abort'), writer.abort()),
        };
      }
    }
    await assert.rejects(
      writeTo(new WatchedFileSystem(), [...numberedRows(3000, 1000), put('a', Q, 1)]),
      AssertionError,
    );
    assert.deepEqual(ends, ['abort']);
    await writeTo(new WatchedFileSystem(), numberedRows(3000, 1000));
    assert.deepEqual(ends, ['abort', 'close']);
  });

  test('never writes over a file', async () => {
    const fileSystem = new MemoryFileSystem();
    await writeTo(fileSystem, numberedRows(3, 10));
    const before = await fileSystem.size(PATH);
    await assert.rejects(writeTo(fileSystem, numberedRows(9, 10)), { code: Code.ALREADY_EXISTS });
    assert.equal(await fileSystem.size(PATH), before);
  });

  test('writes in large pieces', async () => {
    let appends = 0;
    const fileSystem = new MemoryFileSystem({
      faults: (operation) => {
        if (operation === 'appendFile') appends++;
      },
    });
    const written = await writeTo(fileSystem, numberedRows(5000, 1000));
    assert.ok(written && appends <= Math.ceil(written.sizeBytes / MIB) + 1, `${appends} appends`);
  });

  test('keeps blocks within their size, except for large values, which have blocks of their own', async () => {
    const alone = [put('s', Q, 3, Buffer.alloc(5000, 1)), put('s', Q, 2, Buffer.alloc(1001, 2))];
    const entries = [...numberedRows(100, 500), ...alone, put('s', Q, 1, 'small'), put('t', Q, 1)];
    const table = await openFile(await writeFile(entries, { blockSizeBytes: 1000 }));
    const boundaries = [...table.blockBoundaries().map(({ offsetBytes }) => offsetBytes)];
    const large = boundaries.filter((offset, i) => (boundaries[i + 1] ?? offset) - offset > 1100);
    assert.equal(large.length, 1);
    // the two large values and the two small ones after them make three blocks
    assert.deepEqual(
      table
        .blockBoundaries()
        .slice(-3)
        .map(({ row }) => row),
      ['s', 's', 's'],
    );
    assert.deepEqual(await scan(table.cursor()), entries.map(plain));
  });

  test('long keys of wide rows do not fill file and index', async () => {
    const row = 'r'.repeat(65_536);
    const entries = Array.from({ length: 3000 }, (_, i) => put(row, columnKey('f', rowName(i)), 1, 'v'.repeat(40)));
    const file = await writeFile(entries, { blockSizeBytes: 16_384 });
    assert.ok(file.written.sizeBytes < 1_500_000, `${file.written.sizeBytes} bytes`);
    const table = await openFile(file);
    const cursor = table.cursor();
    cursor.seekRow(row);
    await settle(cursor);
    cursor.seekColumn(columnKey('f', rowName(2500)));
    await settle(cursor);
    assert.deepEqual(entryAt(cursor), plain(entries[2500] as Entry));
    assert.equal((await table.verify()).entries, 3000);
  });

  test('a value of 100 MiB is written, read and verified in short slices', async () => {
    const value = Buffer.alloc(100 * MIB);
    for (let at = 0; at < value.length; at += 4093) value[at] = at % 251;
    const entries = [put('a', Q, 1, 'small'), { ...put('b', Q, 1), value }, put('c', Q, 1, 'small')];
    const fileSystem = new MemoryFileSystem();
    const clock = new BusyClock();
    const longest = { bytes: 0 };
    const codecs = {
      ...CODECS,
      checksum: (bytes: Uint8Array, seed?: number): number => {
        longest.bytes = Math.max(longest.bytes, bytes.length);
        return CODECS.checksum(bytes, seed);
      },
    };
    await writeSsTable({ fileSystem, path: PATH, codecs, clock, group: 'g' }, new ListCursor(entries));
    const afterWrite = clock.turns;
    assert.ok(afterWrite >= 30, `${afterWrite} turns of the event loop while writing`);
    const file = { fileSystem, clock, metrics: (await writeFile(numberedRows(1, 1))).metrics };
    const table = await openFile(file);
    const cursor = table.cursor();
    cursor.seekRow('b');
    await settle(cursor);
    assert.ok(clock.turns - afterWrite >= 30, `${clock.turns - afterWrite} turns while reading`);
    assert.ok(longest.bytes <= MIB + 100_000, `${longest.bytes} bytes in one checksum`);
    assert.equal(Buffer.compare(cursor.value(), value), 0);
    cursor.next();
    await settle(cursor);
    assert.equal(cursor.row, 'c');
  });

  test('yields to the event loop while it writes many entries, by the pacer passed in', async () => {
    const clock = new BusyClock();
    const options = {
      fileSystem: new MemoryFileSystem(),
      path: PATH,
      codecs: CODECS,
      clock,
      group: 'g',
      pacer: new Pacer(clock, 16),
    };
    await writeSsTable(options, new ListCursor(numberedRows(2000, 10)));
    assert.ok(clock.turns >= 20, `${clock.turns} turns`);
  });
});
