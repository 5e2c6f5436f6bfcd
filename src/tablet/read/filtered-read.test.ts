/** Reads whose filter multiplies cells: the cells that they return, and the number between two checks of the clock. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Code } from '../../base/index.ts';
import { ByteBudget, requestContext } from '../../env/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import { ALL_ROWS } from '../../model/index.ts';
import { TabletFixture, schemaOf } from '../fixtures.ts';

const SCHEMA = schemaOf({ f: { name: 'f' } });
const PASS: RowFilter = { kind: 'passAll' };
const copies = (count: number): RowFilter => ({
  kind: 'interleave',
  filters: Array.from({ length: count }, () => PASS),
});

test('a read comes in batches of the size that is set, each of its own instant', async () => {
  const fixture = new TabletFixture(SCHEMA);
  fixture.readBatchBytes = 500;
  await fixture.load();
  const rows = Array.from({ length: 40 }, (_, i) => `row-${String(i).padStart(2, '0')}`);
  for (const row of rows) await fixture.set(row, 'v'.repeat(100));
  const parts: string[][] = [];
  const last: string[] = [];
  for await (const { fragments } of fixture.tablet.read(fixture.context, {
    ranges: [ALL_ROWS],
    filter: PASS,
    rowsLimit: 0,
    reversed: false,
  })) {
    if (parts.length === 0) await fixture.set('row-39', 'later');
    parts.push(fragments.flatMap(({ row, last }) => (last ? row : [])));
    for (const { row, cells } of fragments) if (row === 'row-39') last.push(...cells.map(({ value }) => String(value)));
  }
  assert.deepEqual(parts.flat(), rows);
  assert.deepEqual(last, ['later'], 'the last part was read after the write');
  assert.ok(parts.length >= 7 && parts.every(({ length }) => length <= 6), `${parts.length} parts`);
  await fixture.tablet.close({ flush: false });
});

describe('a read through a filter', () => {
  test('returns the copies of one cell in batches', async () => {
    const fixture = await new TabletFixture(SCHEMA).load();
    await fixture.set('row', 'v'.repeat(100_000));
    await fixture.set('row2', 'w');
    let [batches, cells, most] = [0, 0, 0];
    const rows: string[] = [];
    for await (const batch of fixture.tablet.read(fixture.context, {
      ranges: [ALL_ROWS],
      filter: copies(1000),
      rowsLimit: 0,
      reversed: false,
    })) {
      batches++;
      let bytes = 0;
      for (const fragment of batch.fragments) {
        cells += fragment.cells.length;
        if (fragment.last) rows.push(fragment.row);
        for (const { value } of fragment.cells) bytes += value.length;
      }
      most = Math.max(most, bytes);
    }
    assert.equal(cells, 2000);
    assert.deepEqual(rows, ['row', 'row2']);
    assert.ok(batches > 300 && most <= 300_000, `${batches} batches, the largest of ${most} bytes`);
    await fixture.tablet.close({ flush: false });
  });

  test('a row that is held to its end leaves in batches, and ends once', async () => {
    const fixture = await new TabletFixture(SCHEMA).load();
    await fixture.set('row', 'v'.repeat(200_000));
    const last: RowFilter = { kind: 'condition', predicate: { kind: 'blockAll' }, whenFalse: copies(20) };
    const filter: RowFilter = {
      kind: 'interleave',
      filters: [{ kind: 'condition', predicate: { kind: 'valueRegex', regex: 'no' }, whenFalse: copies(20) }, last],
    };
    const ends: boolean[] = [];
    let cells = 0;
    for await (const { fragments } of fixture.tablet.read(fixture.context, {
      ranges: [ALL_ROWS],
      filter,
      rowsLimit: 0,
      reversed: false,
    })) {
      for (const fragment of fragments) {
        ends.push(fragment.last);
        cells += fragment.cells.length;
      }
    }
    assert.equal(cells, 40);
    assert.ok(ends.length > 10);
    assert.deepEqual(
      ends.map((isLast, i) => isLast === (i === ends.length - 1)),
      ends.map(() => true),
    );
    await fixture.tablet.close({ flush: false });
  });

  test('a row with its copies is limited like any row', async () => {
    const fixture = await new TabletFixture(SCHEMA).load();
    await fixture.set('row', 'v'.repeat(1024 * 1024));
    const read = async (filter: RowFilter): Promise<void> => {
      for await (const _ of fixture.tablet.read(fixture.context, {
        ranges: [ALL_ROWS],
        filter,
        rowsLimit: 0,
        reversed: false,
      }));
    };
    await read(copies(200));
    await assert.rejects(read(copies(300)), {
      code: Code.RESOURCE_EXHAUSTED,
      message: /makes more than 268435456 bytes of one row, by copies/,
    });
    await fixture.tablet.close({ flush: false });
  });

  test('a call is cancelled inside of one match', async () => {
    const fixture = await new TabletFixture(SCHEMA).load();
    await fixture.set('row', 'xy'.repeat(500_000));
    // a slice ends at every check of the clock
    let passedMs = 0;
    const standing = fixture.clock.monotonicMs();
    fixture.clock.monotonicMs = () => standing + (passedMs += 5);
    const abort = new AbortController();
    const context = requestContext({ budget: new ByteBudget(1e9), signal: abort.signal });
    const read = fixture.tablet.read(context, {
      ranges: [ALL_ROWS],
      filter: { kind: 'valueRegex', regex: `[xy]*x${'[xy]{900}'.repeat(9)}z` },
      rowsLimit: 0,
      reversed: false,
    });
    const pulled = read.pull();
    abort.abort();
    await assert.rejects(async () => pulled, { code: Code.CANCELLED });
    await fixture.tablet.close({ flush: false });
  });
});
