import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AssertionError } from '../base/index.ts';
import { EntryKind } from '../model/index.ts';
import { type EntryTree, EntryTreeEdit, forEachEntry, isBranch, type Node } from './entry-tree.ts';
import { cellEntry, columnStart, compareInRow, type MemEntry, probe } from './mem-entry.ts';
import { EMPTY_SLAB } from './value-arena.ts';

const put = (column: string, timestamp: number, offset = 0): MemEntry =>
  cellEntry(column, EntryKind.put, timestamp, EMPTY_SLAB, offset, 0);
const column = (n: number): string => `f\0${String(n).padStart(5, '0')}`;

function entriesOf(tree: EntryTree): MemEntry[] {
  const out: MemEntry[] = [];
  forEachEntry(tree.root, (entry) => out.push(entry));
  return out;
}

/** Checks the invariants of nodes in the header of entry-tree.ts; returns the first and last entry. */
function checkNode(node: Node, isRoot: boolean): [MemEntry, MemEntry] | undefined {
  if (!isBranch(node)) {
    if (!isRoot) assert.ok(node.entries.length > 0, 'only a root may be empty');
    node.entries.forEach((entry, i) => {
      assert.equal(node.columns[i], entry.column);
      if (i > 0) assert.ok(compareInRow(node.entries[i - 1]!, entry) < 0);
    });
    assert.equal(node.columns.length, node.entries.length);
    return node.entries.length === 0 ? undefined : [node.entries[0]!, node.entries.at(-1) as MemEntry];
  }
  assert.ok(node.children.length > 0);
  assert.equal(node.lows.length, node.children.length);
  assert.deepEqual(
    node.lowColumns,
    node.lows.map((low) => low.column),
  );
  let first: MemEntry | undefined;
  let last: MemEntry | undefined;
  node.children.forEach((child, i) => {
    const bounds = checkNode(child, false);
    assert.ok(bounds);
    if (i > 0) {
      const low = node.lows[i]!;
      assert.ok(compareInRow(low, bounds[0]) <= 0 && compareInRow(last as MemEntry, low) < 0);
      assert.equal(low.slab, EMPTY_SLAB);
    }
    first ??= bounds[0];
    last = bounds[1];
  });
  return [first as MemEntry, last as MemEntry];
}

describe('EntryTree', () => {
  test('wide and deep rows keep their order, whichever order they are written in', () => {
    for (const order of [(i: number) => i, (i: number) => 5999 - i, (i: number) => (i * 7919) % 6000]) {
      const edit = new EntryTreeEdit([], true);
      for (let i = 0; i < 6000; i++) {
        const n = order(i);
        assert.equal(edit.put(n < 3000 ? put(column(n), 5) : put(column(3000), n)), undefined);
      }
      for (let n = 0; n < 2999; n++) assert.deepEqual(edit.floor(put(`${column(n)}x`, 0)), put(column(n), 5));
      assert.equal(edit.floor(columnStart('f')), undefined);
      const tree = edit.end();
      checkNode(tree.root, true);
      const entries = entriesOf(tree);
      assert.equal(entries.length, 6000);
      assert.deepEqual(entries, entries.toSorted(compareInRow));
    }
  });

  test('floor searches the branch before if its own has lost its first entries', () => {
    const edit = new EntryTreeEdit([], true);
    for (let n = 0; n < 6000; n++) edit.put(put(column((n * 7919) % 6000), 5));
    for (let n = 10; n < 6000; n += 60) edit.removeRange(columnStart(column(n)), columnStart(column(n + 57)), () => {});
    for (let n = 0; n < 6000; n++) {
      const into = (n + 50) % 60;
      const expected = into < 57 && n >= 10 ? n - into - 1 : n;
      assert.deepEqual(edit.floor(put(column(n), 0)), put(column(expected), 5), `floor of ${n}`);
    }
  });

  test('a taken tree stays as it was through later changes', () => {
    const edit = new EntryTreeEdit(
      Array.from({ length: 500 }, (_, i) => put(column(i), 1)),
      true,
    );
    const before = edit.end();
    before.take();
    const kept = entriesOf(before);
    const next = new EntryTreeEdit(before, true);
    for (let i = 0; i < 1000; i++) next.put(put(column(i), i % 3));
    next.removeRange(columnStart(column(100)), columnStart(column(300)), () => {});
    const after = next.end();
    assert.deepEqual(entriesOf(before), kept);
    checkNode(before.root, true);
    checkNode(after.root, true);
    assert.notEqual(after.version, before.version);
  });

  test('a tree that no reader took is changed in place, one that a reader took or may take is not', () => {
    const base = new EntryTreeEdit([put(column(1), 1)], true).end();
    const inPlace = new EntryTreeEdit(base, true);
    inPlace.put(put(column(2), 1));
    const second = inPlace.end();
    assert.equal(second.root, base.root);
    const concurrent = new EntryTreeEdit(second, false);
    concurrent.put(put(column(3), 1));
    assert.notEqual(concurrent.end().root, second.root);
    assert.equal(entriesOf(second).length, 2);
    second.take();
    const taken = new EntryTreeEdit(second, true);
    taken.put(put(column(4), 1));
    assert.notEqual(taken.end().root, second.root);
    assert.equal(entriesOf(second).length, 2);
  });

  test('an edit cannot be used after its end', () => {
    const edit = new EntryTreeEdit([], true);
    edit.end();
    assert.throws(() => edit.put(put(column(1), 1)), AssertionError);
    assert.throws(() => edit.removeRange(columnStart(''), columnStart('z'), () => {}), AssertionError);
    assert.throws(() => edit.end(), AssertionError);
  });

  test('agrees with a sorted array under random puts, removals and floors, and so does every version taken on the way', () => {
    const number = fc.nat({ max: 300 });
    const step = fc.oneof(
      fc.record({
        kind: fc.constant('put' as const),
        first: number,
        count: fc.nat({ max: 120 }),
        stride: fc.integer({ min: 1, max: 5 }),
        timestamp: fc.nat({ max: 3 }),
      }),
      fc.record({ kind: fc.constant('remove' as const), from: number, to: number }),
      fc.record({ kind: fc.constant('floor' as const), at: number, timestamp: fc.nat({ max: 4 }) }),
      fc.record({ kind: fc.constant('end' as const), take: fc.boolean(), inPlace: fc.boolean() }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30, size: 'max' }), (steps) => {
        let edit = new EntryTreeEdit([], true);
        let model: MemEntry[] = [];
        const taken: { tree: EntryTree; entries: MemEntry[] }[] = [];
        for (const each of steps) {
          if (each.kind === 'put') {
            for (let i = 0; i < each.count; i++) {
              const entry = put(column((each.first + i * each.stride) % 400), each.timestamp, i);
              const present = model.find((other) => compareInRow(other, entry) === 0);
              assert.equal(edit.put(entry), present);
              model = [...model.filter((other) => other !== present), entry];
            }
            model.sort(compareInRow);
          } else if (each.kind === 'remove') {
            const from = columnStart(column(each.from));
            const to = columnStart(column(each.to));
            const gone: MemEntry[] = [];
            edit.removeRange(from, to, (entry) => gone.push(entry));
            const inside = (entry: MemEntry): boolean => compareInRow(entry, from) >= 0 && compareInRow(entry, to) < 0;
            assert.deepEqual(gone, model.filter(inside));
            model = model.filter((entry) => !inside(entry));
          } else if (each.kind === 'floor') {
            const key = probe(column(each.at), EntryKind.merge, each.timestamp);
            assert.equal(
              edit.floor(key),
              model.findLast((entry) => compareInRow(entry, key) <= 0),
            );
          } else {
            const tree = edit.end();
            checkNode(tree.root, true);
            assert.deepEqual(entriesOf(tree), model);
            if (each.take) {
              tree.take();
              taken.push({ tree, entries: model });
            }
            edit = new EntryTreeEdit(tree, each.inPlace);
          }
        }
        for (const { tree, entries } of taken) assert.deepEqual(entriesOf(tree), entries);
      }),
      { numRuns: 60 },
    );
  });
});
