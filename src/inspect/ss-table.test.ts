import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code, CorruptionError } from '../base/index.ts';
import { ManualClock, MemoryFileSystem } from '../env/index.ts';
import { Memtable } from '../memtable/index.ts';
import { EntryKind } from '../model/index.ts';
import { nativeCodecs } from '../platform/index.ts';
import { type SsTableWriteOptions, writeSsTable } from '../sstable/index.ts';
import { inspectSsTable, type SsTableComponents, ssTableEntries } from './ss-table.ts';

const PATH = 'tables/one';

/** Rows r000 to r199 with a value each, in small blocks; r100 was deleted before it was written. */
async function table(more: Partial<SsTableWriteOptions> = {}): Promise<SsTableComponents> {
  const components = { fileSystem: new MemoryFileSystem(), codecs: nativeCodecs(), clock: new ManualClock() };
  const memtable = new Memtable();
  memtable.apply('r100', [{ kind: 'deleteFromRow' }], () => undefined);
  for (let i = 0; i < 200; i++) {
    memtable.apply(
      rowName(i),
      [{ kind: 'setCell', family: 'f', qualifier: 'q', timestamp: i, value: Buffer.alloc(50, i) }],
      () => undefined,
    );
  }
  memtable.dropRows({ start: 'x', end: 'y' });
  const cursor = memtable.cursor();
  cursor.seekRow('');
  await writeSsTable(
    { ...components, path: PATH, group: 'default', blockSizeBytes: 1024, ...more },
    cursor,
    memtable.rowRangeDeletions(),
  );
  cursor.close();
  return components;
}

function rowName(i: number): string {
  return `r${String(i).padStart(3, '0')}`;
}

/** The same file with one byte turned around. */
async function damaged(components: SsTableComponents, at: number): Promise<SsTableComponents> {
  const { fileSystem } = components;
  const bytes = await fileSystem.read(PATH, 0, await fileSystem.size(PATH));
  bytes[at] = (bytes[at] as number) ^ 0x10;
  const copy = new MemoryFileSystem();
  const writer = await copy.create(PATH);
  await writer.append(bytes);
  await writer.close();
  return { ...components, fileSystem: copy };
}

describe('inspecting an SSTable', () => {
  test('returns its layout, and verifies it if requested', async () => {
    const components = await table();
    const { layout, verified } = await inspectSsTable(components, PATH);
    assert.equal(verified, undefined);
    assert.equal(layout.path, PATH);
    assert.equal(layout.sizeBytes, await components.fileSystem.size(PATH));
    assert.deepEqual(
      [layout.properties.rows, layout.properties.firstRow, layout.properties.lastRow],
      [200, 'r000', 'r199'],
    );
    assert.deepEqual(layout.rowRangeDeletions, [{ start: 'x', end: 'y' }]);
    assert.ok(layout.blocks.length > 5);
    const checked = await inspectSsTable(components, PATH, { verify: true });
    assert.deepEqual([checked.verified?.blocks, checked.verified?.entries], [layout.blocks.length, 201]);
  });

  test('returns sizes, ratios, filter and the bytes that blocks share, of a compressed file', async () => {
    const components = await table({
      compression: { kind: 'lz4' },
      bloomFilter: 'row',
      newest: { epoch: 2, sequence: 30 },
    });
    const { layout, verified } = await inspectSsTable(components, PATH, { verify: true });
    assert.deepEqual(layout.bloomFilter, { kind: 'row', keys: 200, sizeBytes: 256 });
    assert.equal(layout.compressionSharedBytes, 0);
    assert.deepEqual(layout.properties.newest, { epoch: 2, sequence: 30 });
    const { kind, rawBytes, storedBytes } = layout.properties.compression;
    assert.deepEqual([kind, verified?.blockBytes], ['lz4', rawBytes]);
    assert.equal(
      layout.blocks.reduce((sum, block) => sum + block.rawBytes, 0),
      rawBytes,
    );
    assert.equal(
      layout.blocks.reduce((sum, block) => sum + block.lengthBytes, 0),
      storedBytes,
    );
    assert.ok(storedBytes < rawBytes);
    assert.deepEqual(layout.properties.families, [{ family: 'f', cells: 200, logicalBytes: 200 * (4 + 3 + 8 + 50) }]);
  });

  test('returns its entries in order, from a row on too', async () => {
    const components = await table();
    const rows: string[] = [];
    const deletions: string[] = [];
    for await (const entry of ssTableEntries(components, PATH)) {
      if (entry.kind === EntryKind.put) rows.push(entry.row);
      else deletions.push(entry.row);
      if (entry.kind === EntryKind.put)
        assert.deepEqual(Buffer.from(entry.value), Buffer.alloc(50, Number(entry.row.slice(1))));
    }
    assert.deepEqual(
      rows,
      Array.from({ length: 200 }, (_, i) => rowName(i)),
    );
    assert.deepEqual(deletions, ['r100']);
    const rest: string[] = [];
    for await (const entry of ssTableEntries(components, PATH, 'r198')) rest.push(entry.row);
    assert.deepEqual(rest, ['r198', 'r199']);
  });

  test('ending the entries early leaves no handle open', async () => {
    const components = await table();
    for await (const entry of ssTableEntries(components, PATH)) {
      assert.equal(entry.row, 'r000');
      break;
    }
  });

  test('a damaged block is found by --verify and by its entries, not by the layout', async () => {
    const components = await table();
    const { layout } = await inspectSsTable(components, PATH);
    const block = layout.blocks[2] as { offset: number };
    const broken = await damaged(components, block.offset + 7);
    assert.equal((await inspectSsTable(broken, PATH)).layout.blocks.length, layout.blocks.length);
    const isIt = (error: unknown): boolean =>
      error instanceof CorruptionError && error.file === PATH && error.offset === block.offset;
    await assert.rejects(inspectSsTable(broken, PATH, { verify: true }), isIt);
    let entries = 0;
    await assert.rejects(
      (async () => {
        for await (const _ of ssTableEntries(broken, PATH)) entries++;
      })(),
      isIt,
    );
    assert.ok(entries > 0, 'the blocks before it were shown');
  });

  test('a damaged footer is corruption; a missing file is NOT_FOUND', async () => {
    const components = await table();
    const sizeBytes = await components.fileSystem.size(PATH);
    await assert.rejects(inspectSsTable(await damaged(components, sizeBytes - 1), PATH), CorruptionError);
    await assert.rejects(
      inspectSsTable(components, 'tables/other'),
      (error) => error instanceof BigtableError && error.code === Code.NOT_FOUND,
    );
  });
});
