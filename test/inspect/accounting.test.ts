/** The size of each family as `Table.statistics` reports it, against a count over the table's rows. */
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type FamilyUsage, open, RowMutation, type Table } from '../../src/embedded/index.ts';
import { SeededRandom } from '../../src/env/index.ts';
import { filesIn, temporaryDirectory } from './damage.ts';

/** Cells and logical bytes of every family, by reading all. */
async function counted(table: Table): Promise<Map<string, { cells: number; logicalBytes: number }>> {
  const families = new Map<string, { cells: number; logicalBytes: number }>();
  for await (const { key, cells } of table.scan({ versions: 1000 })) {
    for (const { family, qualifier, value } of cells) {
      const sum = families.get(family) ?? { cells: 0, logicalBytes: 0 };
      sum.cells++;
      sum.logicalBytes += key.length + family.length + 1 + Buffer.byteLength(qualifier) + 8 + value.length;
      families.set(family, sum);
    }
  }
  return families;
}

function of(usages: readonly FamilyUsage[], family: string): FamilyUsage {
  return usages.find((usage) => usage.family === family) ?? assert.fail(`no statistics of family ${family}`);
}

function isNear(told: number, counted: number, what: string): void {
  assert.ok(Math.abs(told - counted) <= counted * 0.05, `${what}: ${told} reported and ${counted} counted`);
}

describe('accounting by family', () => {
  test('is right after compactions, whatever was written, deleted and collected before', async (t) => {
    const alive = setInterval(() => {}, 1000);
    t.after(() => clearInterval(alive));
    const home = await temporaryDirectory();
    t.after(() => home.remove());
    const database = await open(home.path, { blockSizeBytes: 4096 });
    t.after(() => database.close());
    const table = await database.createTable('t', {
      families: { big: { maxVersions: 2 }, small: {}, hot: {}, gone: {} },
      splits: ['row-2', 'row-5'],
      groups: { memory: { families: ['hot'], inMemory: true } },
    });
    const random = new SeededRandom(5);
    const below = (most: number): number => Math.floor(random.float() * most);
    for (let batch = 0; batch < 12; batch++) {
      const mutations = Array.from({ length: 100 }, () => {
        const mutation = new RowMutation(`row-${below(10)}${below(100)}`);
        if (random.float() < 0.15) return mutation.deleteRow();
        return mutation
          .set(`big:${below(2)}`, Buffer.alloc(below(400), below(256)), below(1e6))
          .set(`small:${below(3)}`, 'x', below(1000))
          .set('hot:q', Buffer.alloc(20, below(256)), 7)
          .set('gone:q', 'y', 1);
      });
      await table.applyAll(mutations);
      if (batch % 3 === 0) await database.flush();
    }
    const before = await table.statistics();
    assert.ok(
      before.every(({ memoryBytes, cells }) => memoryBytes > 0 && cells > 0),
      `memtables are counted: ${JSON.stringify(before)}`,
    );
    await table.deleteFamily('gone');
    await database.compact();
    const usages = await table.statistics();
    assert.deepEqual(
      usages.map(({ family }) => family),
      ['big', 'hot', 'small'],
    );
    for (const [family, { cells, logicalBytes }] of await counted(table)) {
      isNear(of(usages, family).cells, cells, `cells of ${family}`);
      isNear(of(usages, family).logicalBytes, logicalBytes, `logical bytes of ${family}`);
    }
    assert.ok(of(usages, 'big').cells < of(before, 'big').cells, 'hidden versions were counted before the compaction');
    assert.deepEqual([of(usages, 'big').memoryBytes, of(usages, 'small').memoryBytes], [0, 0]);
    const { memoryBytes, logicalBytes } = of(usages, 'hot');
    assert.ok(
      memoryBytes > logicalBytes / 2 && memoryBytes <= logicalBytes,
      `the in-memory group lies in memory, its keys shortened: ${memoryBytes} bytes of ${logicalBytes}`,
    );
    let bytes = 0;
    for (const path of await filesIn(home.path))
      if (path.startsWith('files/sstables/')) bytes += (await stat(join(home.path, path))).size;
    const told = usages.reduce((sum, { diskBytes }) => sum + diskBytes, 0);
    assert.ok(told > bytes * 0.8 && told <= bytes, `${told} of ${bytes} bytes on disk, METADATA's among them`);
  });

  test('counts what lies in memory alone, without a file', async () => {
    const database = await open(':memory:');
    const table = await database.createTable('t', { families: { f: {}, g: {} } });
    await table.apply(new RowMutation('row').set('f:q', 'value', 1).set('f:q', 'value', 2).delete('g:q'));
    const [f, g] = await table.statistics();
    assert.deepEqual([f?.family, f?.cells, f?.logicalBytes, f?.diskBytes], ['f', 2, 2 * (3 + 3 + 8 + 5), 0]);
    assert.ok((f?.memoryBytes ?? 0) >= 38);
    assert.deepEqual(g, { family: 'g', cells: 0, logicalBytes: 0, diskBytes: 0, memoryBytes: 0 });
    await database.close();
    await assert.rejects(table.statistics(), /closed/);
  });
});
