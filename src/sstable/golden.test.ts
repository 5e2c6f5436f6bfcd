import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { examplesOf, goldenFile } from '../../test/golden/golden-file.ts';
import { crc32c, INT64_MAX, INT64_MIN } from '../base/index.ts';
import { ManualClock, Metrics } from '../env/index.ts';
import { columnKey, type Entry, EntryKind } from '../model/index.ts';
import { decodeDirectory, decodeFooter, FOOTER_BYTES } from './format/format.ts';
import {
  CODECS,
  deletion,
  fileBytes,
  fileSystemWith,
  numberedRows,
  openFile,
  PATH,
  plain,
  put,
  scan,
  writeFile,
} from './fixtures.ts';
import { describeSsTable } from './layout.ts';
import type { SsTable } from './ss-table.ts';

/** A file of the first program that wrote SSTables: it does not mention families. Never written again. */
const FIRST = 'sstable-v1.sst';
const PLAIN = 'sstable-v1-plain.sst';
/** With a Bloom filter and compressed blocks: other compressors write other bytes, and all must read these. */
const FULL = 'sstable-v1-full.sst';
/** With blocks of several pages. */
const PAGES = 'sstable-v1-pages.sst';
/** With a tablet's own properties: its newest record, its lineage, the newest time that a server gave in it. */
const TOLD = 'sstable-v1-told.sst';

function goldenEntries(): Entry[] {
  const q = columnKey('f', 'q');
  return [
    deletion(EntryKind.rowDeletion, '', ''),
    deletion(EntryKind.rowDeletion, 'row', ''),
    deletion(EntryKind.familyDeletion, 'row', 'f'),
    deletion(EntryKind.columnDeletion, 'row', q),
    deletion(EntryKind.rangeDeletion, 'row', q, -7, 0),
    deletion(EntryKind.rangeDeletion, 'row', q, 5),
    put('row', q, INT64_MAX, 'greatest'),
    put('row', q, 2 ** 53 - 1, 'exact'),
    put('row', q, 1_700_000_000_000_001, 'now'),
    put('row', q, 1_700_000_000_000_000, 'a microsecond before'),
    put('row', q, 0, ''),
    put('row', q, -1, 'below 0'),
    { ...put('row', q, INT64_MIN, 'least'), kind: EntryKind.merge },
    put('row\0', columnKey('f', ''), 1, 'the empty qualifier'),
    put('row\xff', columnKey('f', '\0\xff'), 1, Buffer.from([0, 255, 128])),
    ...Array.from({ length: 40 }, (_, i) =>
      put('wide', columnKey('g', `column${String.fromCharCode(48 + i)}`), 1000 - i, `value ${i}`),
    ),
    put('x', columnKey('g', 'large'), 2, Buffer.alloc(700, 'large ')),
    put('x', columnKey('g', 'large'), 1, 'small'),
  ];
}

const ROW_RANGE_DELETIONS = [
  { start: 'a', end: 'c' },
  { start: 'd\xff', end: undefined },
];

async function checkContent(bytes: Buffer): Promise<SsTable> {
  const table = await openFile({
    fileSystem: await fileSystemWith(bytes),
    clock: new ManualClock(),
    metrics: new Metrics(),
  });
  assert.deepEqual(await scan(table.cursor()), goldenEntries().map(plain));
  assert.deepEqual(table.rowRangeDeletions(), ROW_RANGE_DELETIONS);
  assert.equal((await table.verify()).blocks, 4);
  return table;
}

function bloomSection(bytes: Buffer): Buffer {
  const footer = decodeFooter('golden', bytes.length, bytes.subarray(-FOOTER_BYTES), crc32c);
  const { offset, lengthBytes } = footer.directory;
  const section = decodeDirectory('golden', footer.directory, bytes.subarray(offset, offset + lengthBytes)).find(
    ({ name }) => name === 'bloom',
  );
  assert.ok(section);
  return bytes.subarray(section.offset, section.offset + section.lengthBytes);
}

describe('the format of SSTables', () => {
  test('is that of the golden file, byte for byte', async () => {
    const { fileSystem } = await writeFile(goldenEntries(), {
      blockSizeBytes: 512,
      origin: 'elsewhere',
      rowRangeDeletions: ROW_RANGE_DELETIONS,
    });
    const golden = goldenFile(PLAIN, await fileBytes(fileSystem));
    assert.equal((await fileBytes(fileSystem)).toString('hex'), golden.toString('hex'));
    await checkContent(golden);
  });

  test('of the first files is still read', async () => {
    const table = await checkContent(goldenFile(FIRST));
    assert.equal(table.families, undefined);
    assert.equal(table.properties.newest, undefined);
    assert.deepEqual({ ...table.properties.compression }, { kind: 'none', rawBytes: 1557, storedBytes: 1557 });
    assert.ok(table.mayContainRow('row') && table.mayContainColumn('row', columnKey('f', 'q')));
  });

  test('of compressed blocks and Bloom filters is read, and filters are written so', async () => {
    const options = {
      blockSizeBytes: 512,
      rowRangeDeletions: ROW_RANGE_DELETIONS,
      bloomFilter: 'row-column',
      newest: { epoch: 3, sequence: 77 },
    } as const;
    const { fileSystem } = await writeFile(goldenEntries(), { ...options, compression: { kind: 'lz4' } });
    const bytes = await fileBytes(fileSystem);
    const golden = goldenFile(FULL, bytes);
    const table = await checkContent(golden);
    assert.deepEqual(table.properties.newest, options.newest);
    assert.deepEqual(
      table.families?.map(({ family, cells }) => [family, cells]),
      [
        ['f', 9],
        ['g', 42],
      ],
    );
    assert.equal(table.properties.compression.kind, 'lz4');
    assert.ok(table.properties.compression.storedBytes < table.properties.compression.rawBytes);
    const written = bloomSection(bytes);
    assert.ok(written.length > 64);
    assert.equal(written.toString('hex'), bloomSection(golden).toString('hex'));
  });

  test('of pages is that of the golden file, byte for byte', async () => {
    const entries = numberedRows(13, 700);
    const { fileSystem } = await writeFile(entries);
    const bytes = await fileBytes(fileSystem);
    const golden = goldenFile(PAGES, bytes);
    assert.equal(bytes.toString('hex'), golden.toString('hex'));
    const file = { fileSystem: await fileSystemWith(golden), clock: new ManualClock(), metrics: new Metrics() };
    assert.deepEqual(
      (await describeSsTable({ ...file, codecs: CODECS }, PATH)).blocks.map(({ pages }) => pages),
      [3],
    );
    const table = await openFile(file);
    assert.equal((await table.verify()).entries, 13);
    assert.deepEqual(await scan(table.cursor()), entries.map(plain));
  });

  test('of the lineage of a tablet is that of the golden file, byte for byte', async () => {
    const lineage = {
      tableId: '0000002a',
      range: { start: 'a', end: undefined },
      families: ['f', 'g'],
      since: { epoch: 3, sequence: 70 },
    };
    const told = { newest: { epoch: 3, sequence: 77 }, lineage, lastServerMicros: 1_704_067_200_000_001 };
    const { fileSystem } = await writeFile(goldenEntries(), {
      blockSizeBytes: 512,
      rowRangeDeletions: ROW_RANGE_DELETIONS,
      ...told,
    });
    const golden = goldenFile(TOLD, await fileBytes(fileSystem));
    assert.equal((await fileBytes(fileSystem)).toString('hex'), golden.toString('hex'));
    const { properties } = await checkContent(golden);
    assert.deepEqual(
      [properties.newest, properties.lineage, properties.lastServerMicros],
      [told.newest, { ...lineage, path: PATH }, told.lastServerMicros],
    );
    for (const name of [FIRST, PLAIN, FULL, PAGES]) {
      const file = {
        fileSystem: await fileSystemWith(goldenFile(name)),
        clock: new ManualClock(),
        metrics: new Metrics(),
      };
      assert.equal((await openFile(file)).properties.lastServerMicros, undefined, `${name} is older`);
    }
  });

  test('is that of the example in its page', async () => {
    const column = columnKey('f', '');
    const { fileSystem } = await writeFile([put('a', column, 1000, 'x'), put('ab', column, 1000, 'yz')]);
    const [example] = examplesOf('sstable.md');
    assert.equal(example?.toString('hex'), (await fileBytes(fileSystem)).toString('hex'));
  });
});
