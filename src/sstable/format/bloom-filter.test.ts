import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CorruptionError } from '../../base/index.ts';
import { columnKey, type Entry, EntryKind } from '../../model/index.ts';
import { BloomFilter, BloomFilterBuilder, type BloomFilterKind } from './bloom-filter.ts';
import { BloomHash } from './bloom-hash.ts';
import { decodeSection } from './byte-reader.ts';
import { deletion, openFile, put, sortedEntries, writeFile } from '../fixtures.ts';

/** Bloom hashes of the test's keys, from the page of the format. */
const VECTORS = [
  '2798e970 dd18d53f',
  '7d589ac2 85932bbc',
  '4f60867 b554e398',
  '1711cee1 ca2bc5c4',
  'b93b6ab2 ba92ba34',
  'e215d49f 50d06045',
  'b6537aac 64d7a014',
];

function decode(bytes: Buffer): BloomFilter {
  return decodeSection('t', 0, 'bloom', bytes, (reader) => new BloomFilter(reader, bytes));
}

function filterOf(kind: BloomFilterKind, keys: Iterable<readonly [row: string, column: string]>): BloomFilter {
  const builder = new BloomFilterBuilder(kind);
  for (const [row, column] of keys) builder.add(row, column);
  return decode(builder.finish());
}

/** The share of `count` keys of `shape` that are taken for present after the same number of others was added. */
function falseRate(count: number, shape: (i: number) => string): number {
  const filter = filterOf(
    'row',
    (function* () {
      for (let i = 0; i < count; i++) yield [shape(i), ''] as const;
    })(),
  );
  let wrong = 0;
  for (let i = count; i < 2 * count; i++) if (filter.mayContainRow(shape(i))) wrong++;
  return wrong / count;
}

describe('BloomHash', () => {
  test('is that of the format, for ever', () => {
    const hash = new BloomHash();
    const of = (row: string, column?: string): string => {
      hash.row(row);
      if (column !== undefined) hash.column(column);
      return `${(hash.first >>> 0).toString(16)} ${(hash.second >>> 0).toString(16)}`;
    };
    assert.deepEqual(
      [
        of(''),
        of('a'),
        of('row'),
        of('com.example/index.html'),
        of('\0\xff\x80\x7f\xfe'),
        of('row', 'f\0q'),
        of('', ''),
      ],
      VECTORS,
    );
  });

  test('depends on every byte and on the length', () => {
    const seen = new Set<string>();
    const hash = new BloomHash();
    const note = (key: string): void => {
      hash.row(key);
      seen.add(`${hash.first} ${hash.second}`);
    };
    let keys = 0;
    for (let length = 0; length < 20; length++, keys++) note('\0'.repeat(length));
    for (let at = 0; at < 20; at++)
      for (let byte = 1; byte < 256; byte++, keys++)
        note(`${'\0'.repeat(at)}${String.fromCharCode(byte)}${'\0'.repeat(19 - at)}`);
    assert.equal(seen.size, keys);
  });
});

describe('a Bloom filter', () => {
  test('contains all added keys', () => {
    const key = fc.string({ unit: fc.constantFrom('\0', 'a', 'b', '\xff'), maxLength: 9 });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(key, key), { maxLength: 300, size: 'max' }),
        fc.constantFrom<BloomFilterKind>('row', 'row-column'),
        (pairs, kind) => {
          const filter = filterOf(kind, pairs.toSorted());
          for (const [row, column] of pairs)
            assert.ok(filter.mayContainRow(row) && (kind === 'row' || filter.mayContainColumn(row, column)));
        },
      ),
    );
  });

  test('takes about one absent key in a hundred for a present one, for keys of any form', () => {
    const shapes: [string, (i: number) => string][] = [
      ['numbers', (i) => String(i)],
      ['padded numbers', (i) => `user${String(i).padStart(20, '0')}`],
      ['numbers of four bytes', (i) => String.fromCharCode(i >> 24, (i >> 16) & 255, (i >> 8) & 255, i & 255)],
      ['reversed hosts', (i) => `com.example.host${i % 97}/path/${i}/index.html`],
      ['one byte repeated', (i) => `${'x'.repeat(i % 50)}${i}`],
    ];
    for (const [what, shape] of shapes) {
      const rate = falseRate(20_000, shape);
      assert.ok(rate > 0.003 && rate < 0.015, `${what}: ${rate}`);
    }
  });

  test('distinguishes pairs of row and column, also if their texts run together', () => {
    const filter = filterOf(
      'row-column',
      Array.from({ length: 3000 }, (_, i) => [`row${i}`, `f\0${i}`] as const),
    );
    let wrong = 0;
    for (let i = 0; i < 3000; i++) if (filter.mayContainColumn(`row${i}`, `f\0${i + 1}`)) wrong++;
    for (let i = 0; i < 3000; i++) if (filter.mayContainColumn(`row${i}f`, `\0${i}`)) wrong++;
    assert.ok(wrong < 150, `${wrong} of 6000`);
    assert.equal(filter.keys, 6000);
    assert.equal(filter.sizeBytes, Math.ceil((6000 * 10) / 512) * 64);
  });

  test('of no keys contains none', () => {
    const filter = filterOf('row', []);
    assert.equal(filter.keys, 0);
    assert.equal(filter.mayContainRow(''), false);
  });

  test('that is malformed is a CorruptionError', () => {
    const good = new BloomFilterBuilder('row').finish();
    assert.equal(good.length, 3 + 64);
    for (const bad of [
      Buffer.alloc(0),
      good.subarray(0, -1),
      Buffer.concat([good, Buffer.alloc(1)]),
      Buffer.concat([Buffer.from([0]), good.subarray(1)]),
      Buffer.concat([Buffer.from([3]), good.subarray(1)]),
      Buffer.from([1, 0, 0]),
      Buffer.from([1, 0, 0xff, 0xff, 0xff, 0xff, 0x7f]),
    ]) {
      assert.throws(() => decode(bad), CorruptionError);
    }
  });
});

describe('the Bloom filter of an SSTable', () => {
  const Q = columnKey('f', 'q');

  test('never hides an entry, nor a deletion that affects the request', async () => {
    await fc.assert(
      fc.asyncProperty(
        sortedEntries,
        fc.constantFrom<BloomFilterKind>('none', 'row', 'row-column'),
        async (entries, bloomFilter) => {
          fc.pre(entries.length > 0);
          const table = await openFile(await writeFile(entries, { bloomFilter, blockSizeBytes: 200 }));
          const columns = new Set(entries.filter(({ column }) => column.includes('\0')).map(({ column }) => column));
          for (const { row, column, kind } of entries) {
            assert.ok(table.mayContainRow(row));
            const bearsOn = (each: string): boolean =>
              kind === EntryKind.rowDeletion ||
              (kind === EntryKind.familyDeletion ? each.startsWith(`${column}\0`) : each === column);
            for (const each of columns) if (bearsOn(each)) assert.ok(table.mayContainColumn(row, each));
          }
          assert.equal((await table.verify()).entries, entries.length);
        },
      ),
      { numRuns: 100 },
    );
  });

  test('saves a read of an absent row every block, and counts', async () => {
    const rows: Entry[] = Array.from({ length: 500 }, (_, i) =>
      put(`row${String(2 * i).padStart(4, '0')}`, Q, 1, 'value'),
    );
    const file = await writeFile(rows, { bloomFilter: 'row-column', blockSizeBytes: 512 });
    const table = await openFile(file);
    const reads = file.metrics.get('sstable.reads');
    let passed = 0;
    for (let i = 0; i < 499; i++) {
      const row = `row${String(2 * i + 1).padStart(4, '0')}`;
      if (!table.mayContainRow(row)) continue;
      passed++;
      const cursor = table.rowCursor(row);
      cursor.seekRow(row);
      while (cursor.state === 1) await cursor.load();
      assert.equal(cursor.state, 2);
      cursor.close();
    }
    assert.ok(passed < 30, `${passed} of 499`);
    assert.equal(file.metrics.get('sstable.bloomSkips'), 499 - passed);
    assert.equal(file.metrics.get('sstable.bloomPasses'), passed);
    assert.equal(file.metrics.get('sstable.bloomFalsePasses'), passed);
    assert.ok(file.metrics.get('sstable.reads') - reads <= passed);
    assert.equal(table.mayContainRow('row0004'), true);
    assert.equal(table.mayContainColumn('row0004', Q), true);
    // outside the file's rows the filter is not queried
    assert.equal(table.mayContainRow('a'), false);
    assert.equal(table.mayContainColumn('z', Q), false);
    assert.equal(file.metrics.get('sstable.bloomSkips'), 499 - passed);
  });

  test('without a column of the row still passes a deletion of the row or the family', async () => {
    const others = Array.from({ length: 50 }, (_, i) => put(`x${i}`, Q, 1));
    const entries = [
      deletion(EntryKind.rowDeletion, 'a', ''),
      deletion(EntryKind.familyDeletion, 'b', 'f'),
      put('c', Q, 1),
      ...others,
    ];
    const table = await openFile(
      await writeFile(
        entries.toSorted((a, b) => (a.row < b.row ? -1 : 1)),
        { bloomFilter: 'row-column' },
      ),
    );
    const other = columnKey('f', 'other');
    assert.equal(table.mayContainColumn('a', other), true);
    assert.equal(table.mayContainColumn('b', other), true);
    const skipped = ['f', 'g', 'h', 'i', 'j', 'k'].filter(
      (family) => !table.mayContainColumn('c', columnKey(family, 'other')),
    );
    assert.ok(skipped.length >= 4, 'most missing columns are known to be absent');
  });
});
