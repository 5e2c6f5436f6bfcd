/**
 * A tripped assert fails its call, and the tablet is opened anew from disk: it has every acknowledged row, and others
 * go on.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Code, type Database, open, RowMutation, type Table } from '../../src/embedded/index.ts';
import { Memtable } from '../../src/memtable/index.ts';

/**
 * The memtable that the row is written to next is frozen first, which nothing correct does: the write trips an assert.
 */
function plantFault(row: string): { isPlanted: boolean; undo(): void } {
  const { apply } = Memtable.prototype;
  const fault = { isPlanted: false, undo: () => void (Memtable.prototype.apply = apply) };
  Memtable.prototype.apply = function (...change): void {
    if (change[0] === row && !fault.isPlanted) {
      fault.isPlanted = true;
      this.freeze();
    }
    apply.apply(this, change);
  };
  return fault;
}

const set = (table: Table, row: string, value: string): Promise<void> =>
  table.apply(new RowMutation(row).set('f:q', value));

const valueOf = async (table: Table, row: string): Promise<string | undefined> =>
  (await table.getCell(row, 'f:q'))?.value.toString();

async function breakTablet(database: Database): Promise<Table> {
  const table = await database.createTable('t', { families: { f: {} }, splits: ['m'] });
  await set(table, 'filed', 'filed');
  await database.flush();
  for (const row of ['a', 'b', 'z']) await set(table, row, 'old');
  const fault = plantFault('b');
  try {
    const [broken, other] = [set(table, 'b', 'new'), set(table, 'z', 'new')];
    await assert.rejects(broken, { code: Code.INTERNAL, message: /a frozen memtable takes no writes/ });
    await other;
    assert.ok(fault.isPlanted);
    // its record is durable, and the replay applies it
    assert.equal(await valueOf(table, 'b'), 'new');
    await set(table, 'c', 'later');
  } finally {
    fault.undo();
  }
  return table;
}

async function assertRows(table: Table): Promise<void> {
  const rows: [string, string | undefined][] = [];
  for await (const row of table.scan()) rows.push([row.key.toString(), row.get('f:q')?.value.toString()]);
  const want = { a: 'old', b: 'new', c: 'later', filed: 'filed', z: 'new' };
  assert.deepEqual(rows, Object.entries(want));
}

for (const durability of ['synced', 'buffered'] as const) {
  test(`a tablet whose invariant breaks is served again with all of its rows, ${durability}`, async () => {
    const directory = await mkdtemp(join(tmpdir(), 'edubba-broken-'));
    try {
      const database = await open(directory, { durability });
      const table = await breakTablet(database);
      await assertRows(table);
      await database.flush();
      await database.compact('t');
      await assertRows(table);
      await database.close();
      const later = await open(directory);
      await assertRows(later.table('t'));
      await later.close();
    } finally {
      await rm(directory, { recursive: true });
    }
  });
}
