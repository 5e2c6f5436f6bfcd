import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RowTree } from './row-tree.ts';

/** All keys by the list of leaves, forward and backward. */
function walk(tree: RowTree<number>): { forward: string[]; backward: string[] } {
  const forward: string[] = [];
  for (let leaf: ReturnType<typeof tree.leafOf> | undefined = tree.leafOf(''); leaf; leaf = leaf.next)
    forward.push(...leaf.keys);
  const backward: string[] = [];
  for (let leaf: ReturnType<typeof tree.leafOf> | undefined = tree.lastLeaf(); leaf; leaf = leaf.previous)
    backward.push(...[...leaf.keys].reverse());
  return { forward, backward };
}

const key = (n: number): string => `row-${String(n).padStart(5, '0')}`;

describe('RowTree', () => {
  test('an empty tree has one empty leaf', () => {
    const tree = new RowTree<number>();
    assert.equal(tree.size, 0);
    assert.equal(tree.get('a'), undefined);
    assert.deepEqual(walk(tree), { forward: [], backward: [] });
    tree.removeRange('', undefined, () => assert.fail('nothing to remove'));
  });

  test('rows in ascending, descending and mixed order come out sorted', () => {
    const count = 9000;
    const orders = [(i: number) => i, (i: number) => count - 1 - i, (i: number) => (i * 7919) % count];
    for (const order of orders) {
      const tree = new RowTree<number>();
      for (let i = 0; i < count; i++) {
        assert.equal(tree.get(key(order(i))), undefined);
        tree.set(key(order(i)), order(i));
      }
      const sorted = Array.from({ length: count }, (_, i) => key(i));
      assert.equal(tree.size, count);
      assert.deepEqual(walk(tree), { forward: sorted, backward: sorted.toReversed() });
      for (let i = 0; i < count; i += 13) assert.equal(tree.get(key(i)), i);
    }
  });

  test('rows written in order fill their leaves', () => {
    const tree = new RowTree<number>();
    for (let i = 0; i < 6400; i++) tree.set(key(i), i);
    let leaves = 0;
    for (let leaf: ReturnType<typeof tree.leafOf> | undefined = tree.leafOf(''); leaf; leaf = leaf.next) leaves++;
    assert.ok(leaves <= 6400 / 63 + 1, `${leaves} leaves`);
  });

  test('a new value for a row keeps the shape, a new row changes it', () => {
    const tree = new RowTree<number>();
    tree.set('a', 1);
    const shape = tree.shape;
    tree.set('a', 2);
    assert.equal(tree.shape, shape);
    assert.equal(tree.get('a'), 2);
    tree.set('b', 1);
    assert.notEqual(tree.shape, shape);
  });

  test('a position remembered by get is not used after the tree has changed', () => {
    const tree = new RowTree<number>();
    tree.set('b', 1);
    assert.equal(tree.get('c'), undefined);
    tree.set('a', 2);
    tree.set('c', 3);
    assert.equal(tree.get('c'), 3);
    assert.ok(tree.find('c'));
    assert.deepEqual([tree.foundLeaf.keys[tree.foundIndex], tree.foundIndex], ['c', 2]);
    tree.removeRange('c', 'd', () => {});
    assert.ok(!tree.find('c'));
    tree.set('c', 4);
    assert.deepEqual(walk(tree).forward, ['a', 'b', 'c']);
  });

  test('agrees with a Map under random sets and removals of ranges', () => {
    const number = fc.nat({ max: 400 });
    const step = fc.oneof(
      fc.record({
        kind: fc.constant('set' as const),
        first: number,
        count: fc.nat({ max: 150 }),
        stride: fc.integer({ min: 1, max: 7 }),
      }),
      fc.record({ kind: fc.constant('remove' as const), first: number, end: fc.option(number, { nil: undefined }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25, size: 'max' }), (steps) => {
        const tree = new RowTree<number>();
        const model = new Map<string, number>();
        let value = 0;
        for (const each of steps) {
          if (each.kind === 'set') {
            for (let i = 0; i < each.count; i++) {
              const row = key((each.first + i * each.stride) % 1000);
              tree.set(row, ++value);
              model.set(row, value);
            }
          } else {
            const gone = new Map<string, number>();
            const end = each.end === undefined ? undefined : key(each.end);
            tree.removeRange(key(each.first), end, (old, row) => gone.set(row, old));
            const expected = [...model].filter(([row]) => row >= key(each.first) && (end === undefined || row < end));
            assert.deepEqual([...gone].sort(), expected.sort());
            for (const [row] of expected) model.delete(row);
          }
          const sorted = [...model.keys()].sort();
          assert.equal(tree.size, sorted.length);
          assert.deepEqual(walk(tree), { forward: sorted, backward: sorted.toReversed() });
        }
        for (const [row, expected] of model) assert.equal(tree.get(row), expected);
      }),
      { numRuns: 60 },
    );
  });
});
