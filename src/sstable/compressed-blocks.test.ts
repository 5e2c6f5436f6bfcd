import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { CompressionKind } from '../compress/index.ts';
import { SeededRandom } from '../env/index.ts';
import { columnKey, type Entry } from '../model/index.ts';
import {
  CODECS,
  numberedRows,
  openFile,
  PATH,
  plain,
  put,
  rowName,
  scan,
  settle,
  sortedEntries,
  writeFile,
} from './fixtures.ts';
import { describeSsTable } from './layout.ts';

const KINDS: readonly CompressionKind[] = ['lz4', 'zstd', 'zstd-dict', 'two-pass'];
const Q = columnKey('f', 'q');

/** Values of words: compressible, and no two alike. */
function pages(count: number, words: number): Entry[] {
  const random = new SeededRandom(7);
  const vocabulary = [
    '<div class="page">',
    '<a href="https://example.com/',
    'tablet',
    'house',
    '</a></div>',
    'index.html',
    ' of ',
    ' and ',
  ];
  return Array.from({ length: count }, (_, i) => {
    const text = Array.from({ length: words }, () => vocabulary[Math.floor(random.float() * vocabulary.length)]).join(
      '',
    );
    return put(rowName(i), Q, 1, text);
  });
}

function noise(bytes: number): Buffer {
  const random = new SeededRandom(9);
  return Buffer.from(Array.from({ length: bytes }, () => Math.floor(random.float() * 256)));
}

describe('compressed blocks', () => {
  for (const kind of KINDS) {
    test(`of ${kind} decode to the written entries, in any order`, async () => {
      const entries = pages(300, 60);
      const file = await writeFile(entries, { blockSizeBytes: 4096, compression: { kind } });
      const { compression, sizeBytes } = file.written;
      assert.equal(compression.kind, kind);
      assert.ok(
        compression.storedBytes * 2 < compression.rawBytes,
        `${compression.storedBytes} of ${compression.rawBytes}`,
      );
      assert.ok(sizeBytes < compression.rawBytes);
      const table = await openFile(file);
      assert.deepEqual(await scan(table.cursor()), entries.map(plain));
      const cold = await openFile(file, 0);
      for (const i of [250, 3, 120]) {
        const cursor = cold.cursor();
        cursor.seekRow(rowName(i));
        await settle(cursor);
        assert.deepEqual(Buffer.from(cursor.value()), entries[i]?.value);
        cursor.close();
      }
      assert.equal((await table.verify()).blockBytes, compression.rawBytes);
      assert.deepEqual({ ...table.properties.compression }, { ...compression });
    });
  }

  test('hold any entries, however small the blocks', async () => {
    await fc.assert(
      fc.asyncProperty(
        sortedEntries,
        fc.constantFrom(...KINDS),
        fc.constantFrom(64, 300, 4096),
        fc.constantFrom(0, 3000, 1_000_000),
        async (entries, kind, blockSizeBytes, cache) => {
          fc.pre(entries.length > 0);
          const table = await openFile(
            await writeFile(entries, { compression: { kind }, blockSizeBytes, bloomFilter: 'row' }),
            cache,
          );
          assert.deepEqual(await scan(table.cursor()), entries.map(plain));
          assert.equal((await table.verify()).entries, entries.length);
          table.close();
        },
      ),
      { numRuns: 60 },
    );
  });

  test('that would not shrink are stored as they are, and the file needs no feature', async () => {
    const entries = Array.from({ length: 8 }, (_, i) => put(rowName(i), Q, 1, noise(2000)));
    const one = (): Entry[] => entries.slice(0, 1);
    const file = await writeFile(one(), { compression: { kind: 'lz4' } });
    const layout = await describeSsTable({ ...file, codecs: CODECS }, PATH);
    assert.equal(layout.requiredFeatures, 0);
    assert.deepEqual(
      layout.blocks.map(({ lengthBytes, rawBytes }) => rawBytes === lengthBytes),
      [true],
    );
    assert.deepEqual(await scan((await openFile(file)).cursor()), one().map(plain));
  });

  test('of a value above the block size too; a very large value stays uncompressed between them, in its order', async () => {
    const text = 'a page of a thousand words '.repeat(8000);
    const entries = [
      ...pages(20, 60),
      put('x', Q, 3, text),
      put('x', Q, 2, Buffer.alloc(3 * 1024 * 1024, 'large ')),
      put('x', Q, 1, text),
      ...pages(20, 60).map((each) => ({ ...each, row: `z${each.row}` })),
    ];
    for (const kind of KINDS) {
      const file = await writeFile(entries, { blockSizeBytes: 4096, compression: { kind } });
      const { blocks } = await describeSsTable({ ...file, codecs: CODECS }, PATH);
      const large = blocks.filter(({ rawBytes }) => rawBytes > 100_000);
      assert.deepEqual(
        large.map(({ rawBytes, lengthBytes }) => rawBytes === lengthBytes),
        [false, true, false],
        kind,
      );
      assert.deepEqual(await scan((await openFile(file)).cursor()), entries.map(plain));
    }
  });

  test('are read ahead together and decoded one by one', async () => {
    const file = await writeFile(pages(2000, 40), { blockSizeBytes: 4096, compression: { kind: 'lz4' } });
    const table = await openFile(file);
    const { blocks } = await describeSsTable({ ...file, codecs: CODECS }, PATH);
    assert.equal((await scan(table.cursor())).length, 2000);
    const reads = file.metrics.get('sstable.reads');
    assert.ok(reads * 8 < blocks.length, `${reads} reads of ${blocks.length} blocks`);
  });

  test('are still decoded for a cursor that is open when its table closes', async () => {
    for (const kind of KINDS) {
      const entries = pages(100, 60);
      const table = await openFile(await writeFile(entries, { blockSizeBytes: 2048, compression: { kind } }), 0);
      const cursor = table.cursor();
      cursor.seekRow('');
      await settle(cursor);
      table.close();
      assert.deepEqual(await scan(cursor), entries.map(plain));
      cursor.close();
    }
  });

  test('share nothing if nothing repeats, and cost a small file no section', async () => {
    const file = await writeFile(numberedRows(1, 10), { compression: { kind: 'lz4' }, bloomFilter: 'row' });
    const { sections } = await describeSsTable({ ...file, codecs: CODECS }, PATH);
    assert.deepEqual(
      sections.map(({ name }) => name),
      ['bloom', 'index', 'properties', 'row-range-deletions'],
    );
  });
});
