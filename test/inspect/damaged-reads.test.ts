/** Reads over an SSTable of which one block is damaged: they fail for the rows of that block, and for no others. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { openForInspection } from '../../src/boot/index.ts';
import { BigtableError, Code, CorruptionError, open } from '../../src/embedded/index.ts';
import { describeSsTable } from '../../src/sstable/index.ts';
import { copyOf, fillDatabase, filesIn, flip, PAGES, pageRow, temporaryDirectory } from './damage.ts';

test('a damaged block fails the reads of its rows alone, with DATA_LOSS that names file and byte', async (t) => {
  const alive = setInterval(() => {}, 1000);
  t.after(() => clearInterval(alive));
  const home = await temporaryDirectory();
  t.after(() => home.remove());
  const filled = await fillDatabase(join(home.path, 'live'));
  const copy = await copyOf(join(home.path, 'live'), join(home.path, 'copy'));
  await filled.close();

  const source = await openForInspection(copy);
  const paths = (await filesIn(copy))
    .filter((path) => path.startsWith('files/sstables/'))
    .map((path) => path.slice('files/'.length));
  const layouts = await Promise.all(paths.map((path) => describeSsTable(source, path)));
  await source.close();
  const layout = layouts.find(
    ({ properties, blocks }) =>
      properties.group === 'default' && properties.firstRow === pageRow(0) && blocks.length > 4,
  );
  const block = layout?.blocks.find(({ first }) => first.row > pageRow(20));
  assert.ok(layout && block);
  await flip(join(copy, 'files', layout.path), block.offset + 5);

  const database = await open(copy);
  t.after(() => database.close());
  const pages = database.table('pages');
  const isLost = (row: string): boolean => row >= block.first.row && row <= block.lastRow;
  const isTheBlock = (error: unknown): boolean =>
    error instanceof BigtableError &&
    error.code === Code.DATA_LOSS &&
    error.message.includes(`${layout.path}: corrupt at byte ${block.offset}`);
  let lost = 0;
  for (let i = 0; i < PAGES; i++) {
    const row = pageRow(i);
    if (isLost(row)) {
      lost++;
      await assert.rejects(pages.get(row), isTheBlock, row);
      // the other locality group has files of its own
      assert.ok(await pages.getCell(row, 'meta:length'));
    } else assert.equal((await pages.get(row)) !== undefined, i < 10 || i > 11, row);
  }
  assert.ok(lost >= 2 && lost < PAGES / 4, `${lost} rows in the block`);

  const before: string[] = [];
  await assert.rejects(
    async () => {
      for await (const { key } of pages.scan({ end: pageRow(PAGES) })) before.push(key.toString());
    },
    (error) =>
      error instanceof CorruptionError &&
      isTheBlock(error) &&
      error.file === layout.path &&
      error.offset === block.offset,
  );
  assert.ok(
    before.every((row) => row < block.first.row),
    'a scan gives what stands before the block, and then fails',
  );
  const behind: string[] = [];
  for await (const { key } of pages.scan({ start: `${block.lastRow}\0` })) behind.push(key.toString());
  assert.equal(behind.at(-1), pageRow(PAGES - 1));
  assert.equal(
    await database
      .table('counters')
      .getCell('visits', 'n:all')
      .then((cell) => cell?.int),
    10n,
  );
});
