import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ALL_ROWS, rangeOfRow } from '../../model/index.ts';
import { schemaOf, TabletFixture } from '../fixtures.ts';

const PLAIN = schemaOf({ f: { name: 'f' } });
/** More reads than any compaction of these tests costs, in rows. */
const MANY_ROWS = 12_000;
const ROWS = Array.from({ length: 100 }, (_, i) => `row-${String(i).padStart(3, '0')}`);

/** Files that each have all the rows, newest last. */
async function overwritten(fixture: TabletFixture, files: number): Promise<void> {
  for (let i = 0; i < files; i++) {
    for (const row of ROWS) await fixture.set(row, `value ${i}`);
    await fixture.tablet.flush();
  }
}

async function scan(fixture: TabletFixture, rows = MANY_ROWS): Promise<void> {
  for (let i = 0; i < rows; i += ROWS.length) await fixture.cells(undefined, ALL_ROWS);
}

/** The compaction that is due for reads once the tablet has taken no write for a second. */
function earnedInQuiet({ tablet, clock }: TabletFixture): ReturnType<typeof tablet.earnedCompaction> {
  tablet.earnedCompaction();
  clock.advance(1000);
  return tablet.earnedCompaction();
}

const filesOf = ({ state }: TabletFixture): number => Object.values(state.files).flat().length;

describe('compactions that reads earn', () => {
  test('files over one another become one after many scans', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    await overwritten(fixture, 3);
    const before = await fixture.cells();
    assert.deepEqual([fixture.tablet.dueCompaction(), fixture.tablet.earnedCompaction()], [undefined, undefined]);
    await scan(fixture);
    assert.equal(fixture.tablet.dueCompaction(), undefined);
    assert.equal(earnedInQuiet(fixture), 'merging');
    await fixture.tablet.compact('merging');
    assert.equal(filesOf(fixture), 1);
    assert.deepEqual(await fixture.cells(), before);
    assert.equal(fixture.env.metrics.get('tablet.mergesForReads'), 1);
    await scan(fixture);
    assert.equal(earnedInQuiet(fixture), undefined);
    await fixture.assertNoOrphans();
  });

  test('or after many look-ups of rows, in one read or in several', async () => {
    for (const read of [
      (fixture: TabletFixture, rows: readonly string[]) => fixture.cellsIn(rows.map(rangeOfRow)),
      async (fixture: TabletFixture, rows: readonly string[]) => {
        for (const row of rows) await fixture.cellsOfRow(row);
      },
    ]) {
      const fixture = await new TabletFixture(PLAIN).load();
      await overwritten(fixture, 2);
      for (let i = 0; i < 30; i++) await read(fixture, ROWS);
      assert.equal(earnedInQuiet(fixture), 'merging');
    }
  });

  test('rows that lie in one file each earn none', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    for (const start of [0, 50]) {
      for (const row of ROWS.slice(start, start + 50)) await fixture.set(row, 'x');
      await fixture.tablet.flush();
    }
    await scan(fixture);
    for (let i = 0; i < 30; i++) for (const row of ROWS) await fixture.cellsOfRow(row);
    assert.equal(earnedInQuiet(fixture), undefined);
  });

  test('while the tablet takes writes, a merge has to be earned four times', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    await overwritten(fixture, 2);
    await scan(fixture);
    for (let i = 0; i < 10; i++) {
      await fixture.set('elsewhere', `${i}`);
      assert.equal(fixture.tablet.earnedCompaction(), undefined);
      fixture.clock.advance(999);
    }
    await scan(fixture, 3 * MANY_ROWS);
    assert.equal(fixture.tablet.earnedCompaction(), 'merging');
  });

  test('a merge that fails has spent its credit, and is earned again', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    await overwritten(fixture, 2);
    await scan(fixture);
    fixture.onCompaction = () => Promise.reject(new Error('no space'));
    await assert.rejects(fixture.tablet.compact('merging'), /no space/);
    assert.equal(earnedInQuiet(fixture), undefined);
    fixture.onCompaction = async () => {};
    await scan(fixture);
    await fixture.tablet.compact('merging');
    assert.equal(filesOf(fixture), 1);
  });

  test('a tablet that is closed has none', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    await overwritten(fixture, 2);
    await scan(fixture);
    assert.equal(earnedInQuiet(fixture), 'merging');
    await fixture.tablet.close({ flush: false });
    assert.equal(fixture.tablet.earnedCompaction(), undefined);
  });

  test('a large memtable over a file is flushed once it is read and no longer written', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    await overwritten(fixture, 1);
    const value = 'v'.repeat(100_000);
    for (const row of ROWS) await fixture.set(row, value);
    const read = async (): Promise<void> => {
      for (let i = 0; i < 130; i++) for (const row of ROWS) await fixture.cellsOfRow(row);
    };
    await read();
    assert.equal(fixture.tablet.earnedCompaction(), undefined, 'it was just written');
    fixture.clock.advance(999);
    assert.equal(fixture.tablet.earnedCompaction(), undefined);
    await fixture.set(ROWS[0]!, value);
    fixture.clock.advance(1);
    assert.equal(fixture.tablet.earnedCompaction(), undefined, 'it was written again');
    fixture.clock.advance(1000);
    assert.equal(fixture.tablet.earnedCompaction(), 'minor');
    await fixture.tablet.compact('minor');
    assert.deepEqual([filesOf(fixture), fixture.tablet.memtableBytes < 1000], [2, true]);
    assert.equal(fixture.tablet.earnedCompaction(), undefined);
  });

  test('a small memtable is not, nor one that is read alone', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    const value = 'v'.repeat(100_000);
    for (const row of ROWS) await fixture.set(row, value);
    fixture.clock.advance(1000);
    const read = async (): Promise<void> => {
      for (let i = 0; i < 130; i++) for (const row of ROWS) await fixture.cellsOfRow(row);
    };
    await read();
    assert.equal(fixture.tablet.earnedCompaction(), undefined);
    fixture.clock.advance(1000);
    assert.equal(fixture.tablet.earnedCompaction(), undefined, 'no other layer has its rows');
    await fixture.tablet.flush();
    for (const row of ROWS) await fixture.set(row, 'small');
    await read();
    fixture.tablet.earnedCompaction();
    fixture.clock.advance(1000);
    assert.equal(fixture.tablet.earnedCompaction(), undefined);
  });
});
