import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { schemaOf, TabletFixture } from '../fixtures.ts';

const PLAIN = schemaOf({ f: { name: 'f' } });
const ROWS = Array.from({ length: 60 }, (_, i) => `row-${String(i).padStart(3, '0')}`);
const VALUE = randomBytes(100_000).toString('latin1');

/** Writes the rows, each of 100 KB, and flushes them into a file. */
async function write(fixture: TabletFixture, timestamp: number, rows = ROWS): Promise<void> {
  for (const row of rows) await fixture.set(row, VALUE, timestamp);
  await fixture.tablet.flush();
}

const filesOf = ({ state }: TabletFixture): number => Object.values(state.files).flat().length;

describe('compactions of files that newer ones have overwritten', () => {
  test('are done while the tablet takes writes, if a third of the bytes is superseded', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    await write(fixture, 1);
    assert.equal(fixture.tablet.earnedCompaction(), undefined);
    await write(fixture, 1);
    const before = await fixture.cells();
    assert.deepEqual([fixture.tablet.dueCompaction(), fixture.tablet.earnedCompaction()], [undefined, 'merging']);
    await fixture.tablet.compact('merging');
    assert.equal(filesOf(fixture), 1);
    assert.deepEqual(await fixture.cells(), before);
    assert.equal(fixture.tablet.earnedCompaction(), undefined);
    await fixture.assertNoOrphans();
  });

  test('are done once it takes none, if a fifth is', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    await write(fixture, 1);
    await write(fixture, 1);
    await fixture.tablet.compact('merging');
    await write(fixture, 1, ROWS.slice(20));
    await fixture.tablet.compact('merging');
    await write(fixture, 1);
    await fixture.tablet.compact('merging');
    assert.equal(filesOf(fixture), 1);
    await write(fixture, 1, [...ROWS.slice(0, 20), ...ROWS.map((row) => `${row}-new`)]);
    assert.equal(fixture.tablet.earnedCompaction(), undefined);
    fixture.clock.advance(1000);
    assert.equal(fixture.tablet.earnedCompaction(), undefined, 'less than a fifth is superseded');
    await write(fixture, 1, ROWS.slice(20, 50));
    assert.equal(fixture.tablet.earnedCompaction(), undefined);
    fixture.clock.advance(1000);
    assert.equal(fixture.tablet.earnedCompaction(), 'merging');
  });

  test('are not repeated where the rules keep versions', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    await write(fixture, 1);
    await write(fixture, 2);
    assert.equal(fixture.tablet.earnedCompaction(), 'merging');
    await fixture.tablet.compact('merging');
    await write(fixture, 3);
    await write(fixture, 4);
    fixture.clock.advance(1000);
    assert.equal(fixture.tablet.earnedCompaction(), undefined);
    assert.equal((await fixture.cells()).length, 4 * ROWS.length);
  });
});
