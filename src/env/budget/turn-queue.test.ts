import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Owner, type Turn, TurnQueue } from './turn-queue.ts';

const turn = (owner: Owner | undefined, bytes = 1): Turn => ({ owner, bytes });

describe('the order of turns', () => {
  test('is that of arrival among callers that hold the same', () => {
    const queue = new TurnQueue<Turn>(1000);
    const turns = [turn(undefined), turn(new Owner()), turn(undefined)];
    for (const each of turns) queue.add(each);
    for (const each of turns) {
      assert.equal(queue.next(), each);
      assert.equal(queue.remove(each, true), true);
    }
    assert.deepEqual([queue.next(), queue.length], [undefined, 0]);
  });

  test('prefers the principal that holds least, then its connection that holds least', () => {
    const [rich, poor] = [new Owner(), new Owner()];
    const [full, empty, other] = [new Owner(poor), new Owner(poor), new Owner(rich)];
    full.hold(10);
    other.hold(20);
    const queue = new TurnQueue<Turn>(1000);
    const turns = [turn(other), turn(full), turn(empty)];
    for (const each of turns) queue.add(each);
    const order: (Turn | undefined)[] = [];
    while (queue.length > 0) {
      const next = queue.next()!;
      order.push(next);
      queue.remove(next, true);
    }
    assert.deepEqual(order, [turns[2], turns[1], turns[0]]);
  });

  test('puts a call next that was passed over for long enough, and later ones in their order', () => {
    const queue = new TurnQueue<Turn>(100);
    const rich = new Owner();
    rich.hold(1000);
    const old = turn(rich);
    queue.add(old);
    for (let i = 0; i < 10; i++) {
      const quick = turn(undefined, 10);
      queue.add(quick);
      assert.equal(queue.next(), quick);
      queue.remove(quick, true);
    }
    queue.add(turn(undefined, 10));
    assert.equal(queue.next(), old);
  });
});

test('lets no call wait for more than the patience, the calls before it, and one more, whatever they hold', () => {
  const arrival = fc.record({
    owner: fc.nat({ max: 5 }),
    bytes: fc.integer({ min: 1, max: 50 }),
    grants: fc.nat({ max: 3 }),
  });
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 200 }), (arrivals) => {
      const patience = 100;
      const principals = [new Owner(), new Owner()];
      const owners = Array.from({ length: 6 }, (_, i) => new Owner(principals[i % 2]));
      const queue = new TurnQueue<Turn>(patience);
      let granted = 0;
      /** The bytes that may be granted until each has its turn. */
      const bounds = new Map<Turn, number>();
      const grant = (): void => {
        const next = queue.next();
        if (next === undefined) return;
        assert.ok(
          granted <= bounds.get(next)!,
          `${granted} bytes were granted before a turn that was due at ${bounds.get(next)}`,
        );
        queue.remove(next, true);
        bounds.delete(next);
        granted += next.bytes;
        next.owner?.hold(next.bytes);
      };
      for (const { owner, bytes, grants } of arrivals) {
        const before = [...bounds.keys()].reduce((sum, each) => sum + each.bytes, 0);
        const one = turn(owners[owner], bytes);
        queue.add(one);
        bounds.set(one, granted + patience + before + 50);
        for (let i = 0; i < grants; i++) grant();
      }
      while (queue.length > 0) grant();
      assert.equal(bounds.size, 0);
    }),
  );
});
