import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CorruptionError } from '../../base/index.ts';
import { type FileSystem, ManualClock, type MemoryFileSystem, Metrics } from '../../env/index.ts';
import { columnKey, type Entry, type LayerCursor, CursorState } from '../../model/index.ts';
import { BlockCache } from '../cache/block-cache.ts';
import {
  CODECS,
  entryAt,
  fileBytes,
  fileSystemWith,
  inOrder,
  numberedRows,
  openFile,
  PATH,
  plain,
  put,
  rowName,
  settle,
  type TestFile,
  writeFile,
} from '../fixtures.ts';
import { describeSsTable } from '../layout.ts';
import { PageIndexBuilder, separatorOf } from './page-index.ts';
import { SsTable } from '../ss-table.ts';

/** The bytes in memory, read synchronously like a directory's. */
async function readingNow(fileSystem: MemoryFileSystem): Promise<FileSystem> {
  const bytes = await fileBytes(fileSystem);
  const readNow = (_path: string, offset: number, length: number, into = Buffer.alloc(length)): Buffer => {
    bytes.copy(into, 0, offset, offset + length);
    return into;
  };
  return {
    size: (path: string) => fileSystem.size(path),
    read: (path: string, at: number, length: number) => fileSystem.read(path, at, length),
    readNow,
  } as unknown as FileSystem;
}

/**
 * A cache that has evicted blocks keeps no whole blocks for the sake of a row: one of 0 bytes does so from the
 * beginning.
 */
function openShort(
  file: Omit<TestFile, 'written'>,
  fileSystem: FileSystem = file.fileSystem,
  cacheBytes = 0,
): Promise<SsTable> {
  const { metrics, clock } = file;
  return SsTable.open({
    fileSystem,
    path: PATH,
    codecs: CODECS,
    cache: new BlockCache({ limitBytes: cacheBytes, metrics }),
    metrics,
    clock,
  });
}

async function entriesOf(cursor: LayerCursor, row: string): Promise<Entry[]> {
  const found: Entry[] = [];
  for (cursor.seekRow(row); ; cursor.next()) {
    await settle(cursor);
    if (cursor.state === CursorState.done || cursor.row !== row) break;
    found.push(entryAt(cursor));
  }
  cursor.close();
  return found;
}

const readBytes = ({ metrics }: { readonly metrics: Metrics }): number => metrics.snapshot()['sstable.readBytes'] ?? 0;

const KIB = 1024;

describe('the pages of a block that is stored uncompressed', () => {
  const cells = fc.array(
    fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 3000 })),
    { minLength: 1, maxLength: 80, size: 'max' },
  );
  const keys = fc.constantFrom(
    (i: number) => rowName(i),
    (i: number) => 'k'.repeat(i),
    (i: number) => `${'long'.repeat(300)}${i}`,
    (i: number) => String(i * i),
  );

  test('yield for any row what a cursor over the whole file yields, read synchronously or awaited', async () => {
    await fc.assert(
      fc.asyncProperty(
        cells,
        keys,
        fc.constantFrom(16 * KIB, 64 * KIB),
        fc.boolean(),
        fc.constantFrom(0, 20 * KIB, 200 * KIB),
        async (drawn, key, blockSizeBytes, now, cacheBytes) => {
          const entries = inOrder(
            drawn.map(([row, column, bytes]) =>
              put(key(row), columnKey('f', `c${column}`), bytes, Buffer.alloc(bytes, row)),
            ),
          );
          const file = await writeFile(entries, { blockSizeBytes });
          const table = await openShort(file, now ? await readingNow(file.fileSystem) : file.fileSystem, cacheBytes);
          for (let round = 0; round < 2; round++) {
            for (let i = 0; i <= 41; i++) {
              const row = key(i);
              assert.deepEqual(
                (await entriesOf(table.rowCursor(row), row)).map(plain),
                entries.filter((each) => each.row === row).map(plain),
              );
            }
          }
          await table.verify();
          table.close();
        },
      ),
      { numRuns: 40 },
    );
  });

  test('are all that is read for a row if memory is short, and are kept', async () => {
    const file = await writeFile(numberedRows(640, 1000), { blockSizeBytes: 32 * KIB });
    const { blocks } = await describeSsTable({ ...file, codecs: CODECS }, PATH);
    assert.ok(blocks.length >= 20 && blocks.every(({ pages }, i) => pages >= 6 || i === blocks.length - 1));
    for (const fileSystem of [file.fileSystem, await readingNow(file.fileSystem)]) {
      const metrics = new Metrics();
      const table = await openShort({ ...file, metrics }, fileSystem, 300 * KIB);
      // a cursor over all of it fills the cache, and more
      for (let i = 0; i < 640; i += 20) await entriesOf(table.cursor(), rowName(i));
      const before = readBytes({ metrics });
      await entriesOf(table.rowCursor(rowName(10)), rowName(10));
      const page = readBytes({ metrics }) - before;
      assert.ok(page >= 4 * KIB && page < 8 * KIB, `${page} bytes`);
      await entriesOf(table.rowCursor(rowName(10)), rowName(10));
      assert.equal(readBytes({ metrics }), before + page);
      table.close();
    }
  });

  test('are not read by themselves while all blocks read so far fit', async () => {
    const file = await writeFile(numberedRows(640, 1000));
    const table = await openFile(file);
    await entriesOf(table.rowCursor(rowName(10)), rowName(10));
    const once = readBytes(file);
    await entriesOf(table.rowCursor(rowName(11)), rowName(11));
    assert.equal(readBytes(file), once);
  });

  test('do not exist for compressed blocks', async () => {
    const file = await writeFile(numberedRows(640, 1000), { compression: { kind: 'lz4' } });
    const { blocks, sections } = await describeSsTable({ ...file, codecs: CODECS }, PATH);
    assert.ok(blocks.every(({ pages }) => pages === 0) && sections.every(({ name }) => name !== 'pages'));
  });

  test('begin with a row: one of many columns is one page', async () => {
    const file = await writeFile(
      Array.from({ length: 300 }, (_, i) => put('row', columnKey('f', String(1000 + i)), 1, Buffer.alloc(100))),
    );
    const { blocks } = await describeSsTable({ ...file, codecs: CODECS }, PATH);
    assert.ok(blocks.every(({ pages }) => pages === 0));
  });

  test('damage to one is reported by reads of its rows, and by no other', async () => {
    const { fileSystem } = await writeFile(numberedRows(60, 1000));
    const bytes = await fileBytes(fileSystem);
    const at = bytes.indexOf(Buffer.alloc(1000, 30));
    bytes.writeUInt8(0xff, at + 500);
    const broken = await fileSystemWith(bytes);
    for (const each of [broken, await readingNow(broken)]) {
      const table = await openShort({ fileSystem: broken, clock: new ManualClock(), metrics: new Metrics() }, each);
      for (const i of [0, 20, 40, 59])
        assert.equal((await entriesOf(table.rowCursor(rowName(i)), rowName(i))).length, 1);
      await assert.rejects(entriesOf(table.rowCursor(rowName(30)), rowName(30)), CorruptionError);
      await assert.rejects(table.verify(), CorruptionError);
    }
  });
});

describe('the section of pages', () => {
  test('has the shortest separators', () => {
    for (const [before, row, separator] of [
      ['', 'a', 'a'],
      ['a', 'ab', 'ab'],
      ['abc', 'abd', 'abd'],
      ['row1', 'row2999', 'row2'],
      ['a\xff', 'b', 'b'],
    ] as const) {
      assert.equal(separatorOf(before, row), separator);
    }
  });

  test('is missing if no block has pages', () => {
    const builder = new PageIndexBuilder();
    builder.add('row', []);
    assert.equal(builder.finish(), undefined);
  });

  test('that does not match the blocks is found by a check', async () => {
    const { fileSystem, clock } = await writeFile(numberedRows(60, 1000));
    const bytes = await fileBytes(fileSystem);
    const { sections } = await describeSsTable({ fileSystem, clock, codecs: CODECS }, PATH);
    const section = sections.find(({ name }) => name === 'pages');
    assert.ok(section);
    const { offset, lengthBytes } = section;
    let refused = 0;
    for (let at = 0; at < lengthBytes; at++) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8((changed.readUInt8(offset + at) + 1) & 0x7f, offset + at);
      changed.writeUInt32BE(
        CODECS.checksum(changed.subarray(offset, offset + lengthBytes + 1)),
        offset + lengthBytes + 1,
      );
      const file = { fileSystem: await fileSystemWith(changed), clock, metrics: new Metrics() };
      await assert.rejects(async () => await (await openShort(file)).verify(), CorruptionError, `byte ${at}`);
      // whatever it states, no row is read wrongly: a page that does not match is read with its block
      const table = await openShort(file).catch(() => undefined);
      if (table === undefined) refused++;
      else
        for (const i of [3, 4, 5, 30, 59])
          for (const each of await entriesOf(table.rowCursor(rowName(i)), rowName(i))) assert.equal(each.value[0], i);
    }
    assert.ok(refused > 0 && refused < lengthBytes);
  });
});
