import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ManualClock, Pacer } from '../../env/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import { Memtable } from '../../memtable/index.ts';
import { columnKey, CursorState, type Mutation } from '../../model/index.ts';
import { TabletFixture, schemaOf } from '../fixtures.ts';
import { MergeCursor } from './merge-cursor.ts';
import { cursorOver } from './one-row-cursor.ts';

const SCHEMA = schemaOf(
  {
    f: { name: 'f' },
    v: { name: 'v', gcRule: { kind: 'maxVersions', versions: 2 } },
    g: { name: 'g', group: 'other' },
    s: { name: 's', valueType: { aggregate: { kind: 'sum', input: 'int64' } } },
  },
  { other: {} },
);
const ROWS = Array.from({ length: 6 }, (_, i) => `a row key ${String(i).padStart(8, '0')}`);
const row = fc.constantFrom(...ROWS);
const family = fc.constantFrom('f', 'v', 'g');
const qualifier = fc.constantFrom('a', 'b', 'c');
const timestamp = fc.nat(4);
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('setCell' as const),
      family,
      qualifier,
      timestamp,
      value: timestamp.map((n) => Buffer.alloc(n * 20, n)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('addToCell' as const),
      family: fc.constant('s'),
      qualifier,
      timestamp,
      input: timestamp,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('deleteFromColumn' as const),
      family,
      qualifier,
      range: fc.option(
        timestamp.map((start) => ({ start, end: start + 2 })),
        { nil: undefined },
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.oneof(
      fc.record({ kind: fc.constant('deleteFromFamily' as const), family }),
      fc.constant({ kind: 'deleteFromRow' as const }),
    ),
  },
);
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('write' as const),
      row,
      mutations: fc.array(mutation, { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop' as const), row }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('flush' as const, 'reload' as const, 'compact' as const) }),
  },
);
const filters: readonly (RowFilter | undefined)[] = [
  undefined,
  { kind: 'familyNameRegex', regex: 'g' },
  { kind: 'cellsPerColumnLimit', cells: 1 },
  { kind: 'cellsPerRowLimit', cells: 2 },
  { kind: 'columnRange', family: 'f', start: { value: 'b', closed: true }, end: { value: 'b', closed: true } },
  { kind: 'timestampRange', range: { start: 1, end: 3 } },
];

describe('a read of one row', () => {
  test('returns the cells that a scan of all returns for it, whatever the history', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.boolean(), async (steps, reversed) => {
        const fixture = await new TabletFixture(SCHEMA).load();
        for (const each of steps) {
          if (each.kind === 'write') await fixture.apply(each.row, ...each.mutations);
          else if (each.kind === 'drop')
            await fixture.tablet.dropRows(fixture.context, { start: each.row, end: `${each.row.slice(0, -1)}4` });
          else if (each.kind === 'flush') await fixture.tablet.flush();
          else if (each.kind === 'reload') await fixture.reload();
          else await fixture.tablet.compact('merging');
        }
        for (const filter of filters) {
          const all = await fixture.cells(filter, undefined, reversed);
          for (const requested of ROWS) {
            const expected = all.filter((line) => line.startsWith(requested));
            assert.deepEqual(
              await fixture.cells(filter, { start: requested, end: `${requested}\0` }, reversed),
              expected,
            );
          }
        }
        await fixture.tablet.close({ flush: false });
      }),
      { numRuns: 60 },
    );
  });
});

describe('a cursor over one layer, of one row', () => {
  const none = (): undefined => undefined;
  const layerOf = (...mutations: Mutation[]): Memtable => {
    const memtable = new Memtable();
    memtable.apply('b', mutations, () => undefined);
    memtable.apply(
      'c',
      [{ kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1, value: Buffer.from('other') }],
      () => undefined,
    );
    return memtable;
  };

  test('is at its end without a layer, or if the seek goes past the row', () => {
    const set = { kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1, value: Buffer.from('v') } as const;
    for (const layers of [[], [layerOf(set)]]) {
      const cursor = cursorOver(layers, 'b', none);
      assert.ok(!(cursor instanceof MergeCursor));
      const states: CursorState[] = [];
      const seeks = [
        () => cursor.seekRow('b'),
        () => cursor.seekRow('a'),
        () => cursor.seekRowBefore(undefined),
        () => cursor.seekRowBefore('b\0'),
        () => cursor.seekRow('b\0'),
        () => cursor.seekRowBefore('b'),
      ];
      for (const seek of seeks) {
        seek();
        states.push(cursor.state);
      }
      const there = layers.length === 0 ? CursorState.done : CursorState.ready;
      assert.deepEqual(states, [there, there, there, there, CursorState.done, CursorState.done]);
      cursor.close();
    }
  });

  test('ends with the row, and skips deletions', () => {
    const cursor = cursorOver(
      [
        layerOf(
          { kind: 'deleteFromRow' },
          { kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1, value: Buffer.from('v') },
        ),
      ],
      'b',
      none,
    );
    cursor.seekRow('b');
    assert.deepEqual(
      [cursor.state, cursor.row, cursor.column, cursor.timestamp, String(cursor.value())],
      [CursorState.ready, 'b', columnKey('f', 'q'), 1, 'v'],
    );
    cursor.next();
    assert.equal(cursor.state, CursorState.done);
  });

  test('pauses among very many deletions when its slice is over', async () => {
    const clock = new ManualClock();
    const deletions = Array.from(
      { length: 1000 },
      (_, i): Mutation => ({ kind: 'deleteFromColumn', family: 'f', qualifier: String(i).padStart(4, '0') }),
    );
    const set = { kind: 'setCell', family: 'g', qualifier: 'q', timestamp: 1, value: Buffer.from('v') } as const;
    const pacer = new Pacer(clock, 1);
    const cursor = cursorOver([layerOf(...deletions, set)], 'b', none, pacer);
    clock.advance(1000);
    cursor.seekRow('b');
    let rests = 0;
    for (; cursor.state === CursorState.needsLoad; rests++) await cursor.load();
    assert.ok(rests > 0);
    assert.deepEqual([cursor.state, cursor.column], [CursorState.ready, columnKey('g', 'q')]);
  });
});
