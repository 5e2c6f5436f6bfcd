import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CorruptionError } from '../base/index.ts';
import { columnKey, EntryKind } from '../model/index.ts';
import { CODECS, fileSystemWith, numberedRows, openFile, PATH, rowName, writeFile } from './fixtures.ts';
import { describeSsTable } from './layout.ts';

describe('describeSsTable', () => {
  test('shows the parts of a file as plain data that fill it', async () => {
    const file = await writeFile(numberedRows(10, 100), {
      blockSizeBytes: 400,
      rowRangeDeletions: [{ start: 'x', end: 'y' }],
    });
    const layout = await describeSsTable({ ...file, codecs: CODECS }, PATH);
    assert.deepEqual(structuredClone(layout), layout);
    assert.equal(layout.sizeBytes, file.written.sizeBytes);
    assert.deepEqual([layout.formatVersion, layout.requiredFeatures, layout.optionalFeatures], [1, 0, 0]);
    assert.deepEqual(
      layout.sections.map(({ name }) => name),
      ['index', 'properties', 'row-range-deletions'],
    );
    assert.deepEqual(layout.rowRangeDeletions, [{ start: 'x', end: 'y' }]);
    assert.equal(layout.properties.rows, 10);
    let end = 0;
    for (const { offset, lengthBytes } of [...layout.blocks, ...layout.sections]) {
      assert.equal(offset, end);
      end = offset + lengthBytes + 5;
    }
    assert.deepEqual(layout.blocks[0]?.first, {
      row: rowName(0),
      column: columnKey('f', 'q'),
      kind: EntryKind.put,
      timestamp: 1000,
    });
    assert.equal(layout.blocks.at(-1)?.lastRow, rowName(9));
    assert.equal(
      layout.blocks.reduce((sum, { entries }) => sum + entries, 0),
      10,
    );
    const table = await openFile(file);
    assert.deepEqual(
      layout.blocks.map(({ offset }) => offset),
      table.blockBoundaries().map(({ offsetBytes }) => offsetBytes),
    );
  });

  test('fails on a file that is not an SSTable', async () => {
    const { clock } = await writeFile(numberedRows(1, 1));
    const fileSystem = await fileSystemWith(Buffer.from('a text that is surely longer than the footer of an SSTable'));
    await assert.rejects(describeSsTable({ fileSystem, clock, codecs: CODECS }, PATH), CorruptionError);
  });
});
