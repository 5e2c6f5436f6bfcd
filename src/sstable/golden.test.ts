import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { INT64_MAX, INT64_MIN } from '../base/index.ts';
import { ManualClock, Metrics } from '../env/index.ts';
import { columnKey, type Entry, EntryKind } from '../model/index.ts';
import { deletion, fileBytes, fileSystemWith, openFile, plain, put, scan, writeFile } from './fixtures.ts';

/** WRITE_GOLDEN=1 in the environment writes it anew; a change of its bytes is a new version of the format. */
const GOLDEN = 'test/golden/sstable-v1.sst';
const PAGE = 'docs/formats/sstable.md';

/** The repository's folder, whether this runs from the source or from what was built of it. */
function repository(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, PAGE))) folder = dirname(folder);
  return folder;
}

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
    ...Array.from({ length: 40 }, (_, i) => put('wide', columnKey('g', `column${String.fromCharCode(48 + i)}`), 1000 - i, `value ${i}`)),
    put('x', columnKey('g', 'large'), 2, Buffer.alloc(700, 'large ')),
    put('x', columnKey('g', 'large'), 1, 'small'),
  ];
}

describe('the format of SSTables', () => {
  test('is that of the golden file, byte for byte', async () => {
    const path = join(repository(), GOLDEN);
    const rowRangeDeletions = [{ start: 'a', end: 'c' }, { start: 'd\xff', end: undefined }];
    const { fileSystem } = await writeFile(goldenEntries(), { blockSizeBytes: 512, origin: 'elsewhere', rowRangeDeletions });
    const bytes = await fileBytes(fileSystem);
    if (process.env.WRITE_GOLDEN === '1') writeFileSync(path, bytes);
    const golden = readFileSync(path);
    assert.equal(bytes.toString('hex'), golden.toString('hex'));
    const table = await openFile({ fileSystem: await fileSystemWith(golden), clock: new ManualClock(), metrics: new Metrics() });
    assert.deepEqual(await scan(table.cursor()), goldenEntries().map(plain));
    assert.deepEqual(table.rowRangeDeletions(), rowRangeDeletions);
    assert.equal((await table.verify()).blocks, 4);
  });

  test('is that of the example in its page', async () => {
    const column = columnKey('f', '');
    const { fileSystem } = await writeFile([put('a', column, 1000, 'x'), put('ab', column, 1000, 'yz')]);
    const example = readFileSync(join(repository(), PAGE), 'utf8').split('## Example')[1]?.match(/```\n([^`]*)```/)?.[1];
    assert.ok(example, 'the page has an example');
    const bytes = example.split('\n').map((line) => line.slice(6, 54).replaceAll(' ', '')).join('');
    assert.equal(bytes, (await fileBytes(fileSystem)).toString('hex'));
  });
});
