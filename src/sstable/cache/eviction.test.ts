import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AssertionError } from '../../base/index.ts';
import { EvictionQueues, Part, Queued } from './eviction.ts';

class Item extends Queued {
  readonly name: number;

  constructor(name: number, bytes = 1) {
    super(bytes);
    this.name = name;
  }
}

/** A cache of `limit` bytes: requested items that are missing are added. Returns true if the item was in the cache. */
function cacheOf(limit: number): { ask: (name: number) => boolean; names: () => number[] } {
  const queues = new EvictionQueues<Item>(limit);
  const items = new Map<number, Item>();
  const ask = (name: number): boolean => {
    const item = items.get(name);
    if (item) {
      item.used();
      return true;
    }
    while (queues.bytes + 1 > limit) items.delete(queues.evict().name);
    const fresh = new Item(name);
    queues.add(fresh);
    items.set(name, fresh);
    return false;
  };
  return { ask, names: () => [...items.keys()].sort((a, b) => a - b) };
}

describe('EvictionQueues', () => {
  test('evict first what was never used, oldest first', () => {
    const promoted: number[] = [];
    const queues = new EvictionQueues<Item>(4, ({ name }) => promoted.push(name));
    const items = [0, 1, 2, 3].map((name) => new Item(name));
    for (const item of items) queues.add(item);
    items[0]?.used();
    items[2]?.used();
    assert.deepEqual([queues.evict().name, queues.evict().name], [1, 3]);
    assert.deepEqual(promoted, [0, 2]);
    assert.equal(queues.bytes, 2);
    assert.deepEqual([queues.evict().name, queues.evict().name], [0, 2]);
    assert.throws(() => queues.evict(), AssertionError);
  });

  test('keep what is used between two turns, and evict it when it is not', () => {
    const { ask, names } = cacheOf(10);
    for (let round = 0; round < 20; round++) {
      for (let hot = 0; hot < 5; hot++) assert.equal(ask(hot), round > 0, `${hot} in round ${round}`);
      for (let cold = 0; cold < 3; cold++) assert.equal(ask(100 + round * 3 + cold), false);
    }
    for (let cold = 1000; cold < 1100; cold++) ask(cold);
    assert.ok(names().every((name) => name >= 1000 || name < 5));
    for (let other = 2000; other < 2100; other++) {
      ask(other);
      ask(other);
    }
    assert.ok(names().every((name) => name >= 2000));
  });

  test('are not wiped by a scan ten times their size', () => {
    const { ask } = cacheOf(100);
    for (let time = 0; time < 2; time++) for (let hot = 0; hot < 70; hot++) ask(hot);
    for (let cold = 1000; cold < 2000; cold++) ask(cold);
    let hits = 0;
    for (let hot = 0; hot < 70; hot++) if (ask(hot)) hits++;
    assert.ok(hits >= 65, `${hits} of 70`);
  });

  test('count the bytes of their items, for any operations', () => {
    const step = fc.record({
      what: fc.constantFrom('add', 'add', 'visit', 'use', 'remove', 'resize', 'evict', 'evictVisitor'),
      pick: fc.nat(),
      bytes: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100, size: 'max' }), (steps) => {
        const queues = new EvictionQueues<Item>(30, () => {}, 5);
        let items: Item[] = [];
        steps.forEach(({ what, pick, bytes }, i) => {
          const item = items[pick % Math.max(1, items.length)];
          if (what === 'add' || what === 'visit') {
            const fresh = new Item(i, bytes);
            items.push(fresh);
            queues.add(fresh, what === 'visit');
          } else if (what === 'evictVisitor') {
            for (let gone = queues.evictVisitor(bytes); gone; gone = queues.evictVisitor(bytes)) {
              assert.equal(gone.part, Part.visitors);
              items = items.filter((each) => each !== gone);
            }
            const visitors = items.filter(({ part }) => part === Part.visitors);
            assert.ok(visitors.length === 0 || visitors.reduce((sum, each) => sum + each.bytes, bytes) <= 5);
          } else if (item && what === 'use') item.used();
          else if (item && what === 'resize') queues.resize(item, bytes);
          else if (item) {
            const gone = what === 'evict' ? queues.evict() : item;
            if (what === 'remove') queues.remove(item);
            assert.ok(items.includes(gone));
            items = items.filter((each) => each !== gone);
          }
          assert.equal(
            queues.bytes,
            items.reduce((sum, each) => sum + each.bytes, 0),
          );
          queues.assertConsistent(() => undefined);
        });
      }),
    );
  });
});
