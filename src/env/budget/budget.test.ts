import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Code } from '../../base/index.ts';
import { ByteBudget, type Reservation } from './budget.ts';
import { BudgetParts, Part } from './budget-parts.ts';
import { Owner } from './turn-queue.ts';

/** Small: up to 11 bytes, 11 in all. Arriving: 11, unread: 5, common: 61. */
const LIMIT = 88;
const PARTS = new BudgetParts(LIMIT);
const COMMON = PARTS.sizeOf(Part.common);

/** Resolves when everything that is ready to run has run. */
async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

interface Grown {
  readonly held: Reservation;
  isDone: boolean;
}

/** Requests the bytes of a request. */
function grow(
  budget: ByteBudget,
  bytes: number,
  { owner, signal }: { owner?: Owner; signal?: AbortSignal } = {},
): Grown {
  const grown: Grown = { held: budget.reservation(owner), isDone: false };
  grown.held.grow(bytes, signal).then(
    () => (grown.isDone = true),
    () => {},
  );
  return grown;
}

function holding(budget: ByteBudget, bytes: number, owner?: Owner): Reservation {
  const held = budget.reservation(owner);
  assert.equal(held.tryGrow(bytes), true);
  return held;
}

describe('the budget', () => {
  test('grants immediately while bytes are left', () => {
    const budget = new ByteBudget(LIMIT);
    const one = holding(budget, 40);
    assert.equal(budget.reservation().tryGrow(22), false);
    const other = holding(budget, 20);
    assert.equal(budget.usedBytes, 60);
    one.release();
    other.release();
    assert.equal(budget.usedBytes, 0);
  });

  test('a single caller may use all bytes for its kind of request', () => {
    const budget = new ByteBudget(LIMIT);
    const owner = new Owner(new Owner());
    for (let i = 0; i < 3; i++) holding(budget, (COMMON - 1) / 3, owner);
    for (let i = 0; i < 10; i++) holding(budget, 1, owner);
    assert.equal(owner.heldBytes, COMMON + 9);
  });

  test('a large request does not overtake a waiting large one; small ones are admitted meanwhile', async () => {
    const budget = new ByteBudget(LIMIT);
    const held = holding(budget, 50);
    const [first, second] = [grow(budget, 40), grow(budget, 12)];
    const small = Array.from({ length: 11 }, () => grow(budget, 1));
    await settled();
    assert.deepEqual([first.isDone, second.isDone, small.every(({ isDone }) => isDone)], [false, false, true]);
    const late = grow(budget, 1);
    await settled();
    assert.equal(late.isDone, false, 'the common part is not lent while a call waits for it');
    held.release();
    await settled();
    assert.deepEqual([first.isDone, second.isDone, late.isDone], [true, true, true]);
  });

  test('a request larger than the whole budget is admitted alone, and small ones continue', async () => {
    const budget = new ByteBudget(LIMIT);
    const held = holding(budget, 20);
    const giant = grow(budget, 1000);
    const after = grow(budget, 20);
    await settled();
    assert.deepEqual([giant.isDone, after.isDone], [false, false]);
    held.release();
    await settled();
    assert.deepEqual([giant.isDone, after.isDone], [true, false]);
    assert.equal(budget.reservation().tryAdmit(10), true);
    giant.held.release();
    await settled();
    assert.equal(after.isDone, true);
  });

  test('the caller that holds least is next, whatever the order of arrival', async () => {
    const budget = new ByteBudget(LIMIT);
    const [greedy, modest] = [new Owner(), new Owner()];
    const held = [1, 2, 3].map(() => holding(budget, 20, greedy));
    const [more, first] = [grow(budget, 20, { owner: greedy }), grow(budget, 20, { owner: modest })];
    held[0]?.release();
    await settled();
    assert.deepEqual([more.isDone, first.isDone], [false, true]);
  });

  test('a cancelled caller leaves the queue, and later ones move up', async () => {
    const budget = new ByteBudget(LIMIT);
    const held = holding(budget, 50);
    const abort = new AbortController();
    const first = budget.reservation().grow(50, abort.signal);
    const second = grow(budget, 12);
    await settled();
    assert.deepEqual([second.isDone, budget.waiting], [false, 2]);
    held.shrink(1);
    abort.abort();
    await assert.rejects(first, { code: Code.CANCELLED });
    await settled();
    assert.deepEqual([second.isDone, budget.waiting], [true, 0]);
    await assert.rejects(budget.reservation().grow(50, abort.signal), { code: Code.CANCELLED });
    assert.equal(budget.waiting, 0);
  });

  test('a cancellation after the grant changes nothing', async () => {
    const budget = new ByteBudget(LIMIT);
    const held = holding(budget, COMMON);
    const abort = new AbortController();
    const taken = grow(budget, 50, { signal: abort.signal });
    held.release();
    abort.abort();
    await settled();
    assert.deepEqual([taken.isDone, budget.usedBytes], [true, 50]);
  });

  test('a caller that finds no space has calls ended that are too slow, and then gets their bytes', async () => {
    const budget = new ByteBudget(LIMIT);
    const slow = [1, 2, 3].map(() => holding(budget, 20));
    let reliefs = 0;
    const relief = {
      relieve: (isEnough: () => boolean) => {
        reliefs++;
        while (!isEnough() && slow.length > 1) slow.pop()?.release();
      },
    };
    budget.addRelief(relief);
    const waiting = grow(budget, 15);
    await settled();
    assert.deepEqual([waiting.isDone, slow.length, reliefs], [true, 2, 1]);
    assert.equal(budget.reservation().tryGrow(15), true);
    assert.deepEqual([slow.length, reliefs], [1, 2]);
    assert.equal(budget.reservation().tryGrow(30), false);
    budget.removeRelief(relief);
    assert.equal(budget.reservation().tryGrow(30), false);
    assert.equal(reliefs, 3);
  });
});

describe('a reservation', () => {
  test('holds, shrinks and returns everything once', async () => {
    const budget = new ByteBudget(LIMIT);
    const owner = new Owner(new Owner());
    const one = budget.reservation(owner);
    const other = holding(budget, 20);
    await one.grow(40);
    assert.equal(one.tryGrow(30), false);
    other.release();
    assert.equal(one.tryGrow(30), true, 'alone it may take more than the part');
    one.shrink(29);
    assert.deepEqual([one.heldBytes, budget.usedBytes, owner.heldBytes, owner.principal?.heldBytes], [41, 41, 41, 41]);
    one.shrink(100);
    assert.deepEqual([one.heldBytes, budget.usedBytes], [0, 0]);
    one.tryGrow(5);
    one.release();
    one.release();
    assert.deepEqual([one.heldBytes, budget.usedBytes, owner.heldBytes, owner.principal?.heldBytes], [0, 0, 0, 0]);
  });

  test('takes nothing once it is released, not even bytes it waited for', async () => {
    const budget = new ByteBudget(LIMIT);
    const held = holding(budget, COMMON);
    const owner = new Owner();
    const late = budget.reservation(owner);
    const growing = late.grow(50);
    late.release();
    held.release();
    await growing;
    assert.deepEqual([late.heldBytes, budget.usedBytes, owner.heldBytes], [0, 0, 0]);
    assert.equal(late.tryGrow(1) || late.tryArrive(1) || late.tryAdmit(1), false);
    assert.equal(late.tryHoldAnswer(1), 'refused');
  });

  test('arriving bytes are held apart, and returned when they are admitted', async () => {
    const budget = new ByteBudget(LIMIT);
    holding(budget, COMMON);
    const one = budget.reservation();
    assert.deepEqual([one.tryArrive(4), one.arrivingBytes], [true, 4]);
    const other = budget.reservation();
    assert.deepEqual([other.tryArrive(7), other.tryArrive(1)], [true, false]);
    one.arrived(1);
    assert.deepEqual([other.tryArrive(1), budget.usedOf(Part.arriving)], [true, 11]);
    one.arrived();
    other.release();
    assert.deepEqual([one.heldBytes, budget.usedOf(Part.arriving)], [0, 0]);
  });

  test('answers are held in the common part, then tightly in a part of their own, then not at all', () => {
    const budget = new ByteBudget(LIMIT);
    const one = budget.reservation();
    const other = holding(budget, 51);
    assert.deepEqual(
      [10, 5].map((bytes) => one.tryHoldAnswer(bytes)),
      ['held', 'tight'],
    );
    assert.equal(budget.reservation().tryHoldAnswer(1), 'refused');
    one.shrink(5);
    assert.deepEqual([budget.usedOf(Part.unread), budget.usedOf(Part.common)], [0, 61]);
    other.release();
    one.shrink(10);
    assert.equal(budget.usedBytes, 0);
  });

  test('one message that grows may exceed the common part where no other call uses that', () => {
    const budget = new ByteBudget(LIMIT);
    const held = budget.reservation();
    for (let i = 0; i < 8; i++) assert.equal(held.tryHoldAnswer(LIMIT / 8, true), 'held');
    assert.notEqual(held.tryHoldAnswer(1, true), 'held');
    const another = budget.reservation();
    assert.notEqual(another.tryHoldAnswer(COMMON / 2, true), 'held');
    another.release();
    held.release();
    const other = holding(budget, 20);
    const neighbour = budget.reservation();
    assert.equal(neighbour.tryHoldAnswer(COMMON - 20, true), 'held');
    assert.notEqual(neighbour.tryHoldAnswer(COMMON, true), 'held');
    neighbour.release();
    other.release();
    assert.equal(budget.usedBytes, 0);
  });

  test('bytes that a request does not need any more hold its answers, however few are left', () => {
    const budget = new ByteBudget(LIMIT);
    const one = holding(budget, 20);
    for (const held of [holding(budget, 41), budget.reservation()]) held.tryHoldAnswer(5);
    assert.equal(one.tryHoldAnswer(1), 'refused');
    one.setAside(15);
    assert.deepEqual([one.tryHoldAnswer(10), one.heldBytes], ['held', 20]);
    one.shrink(10);
    assert.deepEqual([one.tryHoldAnswer(5), one.heldBytes, budget.usedOf(Part.common)], ['held', 10, 51]);
    one.setAside(100);
    one.shrink(8);
    assert.equal(one.tryHoldAnswer(2), 'held');
    one.release();
  });

  test('bytes that cannot be refused are counted, and others wait for them', async () => {
    const budget = new ByteBudget(LIMIT);
    const forced = budget.reservation();
    holding(budget, COMMON);
    forced.force(20);
    const waiting = grow(budget, 15);
    await settled();
    assert.deepEqual([waiting.isDone, budget.usedBytes], [false, COMMON + 20]);
    forced.release();
    assert.equal(budget.usedBytes, COMMON);
  });
});

describe('any requests', () => {
  const kinds = ['request', 'request', 'arrive', 'answer', 'release', 'release', 'abort'] as const;
  const step = fc.record({
    kind: fc.constantFrom(...kinds),
    bytes: fc.integer({ min: 1, max: 100 }),
    small: fc.boolean(),
    which: fc.nat({ max: 50 }),
  });

  test('never exceed the limit but alone, small ones never wait for large ones, and none waits for ever', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const budget = new ByteBudget(LIMIT);
        const owners = Array.from({ length: 4 }, (_, i) => new Owner(i < 2 ? undefined : new Owner()));
        const held: Reservation[] = [];
        const waiting: { readonly bytes: number; readonly abort: AbortController; readonly dueAfter: number }[] = [];
        /** Bytes of large requests that were admitted. */
        let granted = 0;
        const request = (bytes: number, owner: Owner | undefined): void => {
          const before = waiting.reduce((sum, other) => sum + (other.bytes > PARTS.smallBytes ? other.bytes : 0), 0);
          const one = { bytes, abort: new AbortController(), dueAfter: granted + COMMON + before + 100 };
          const reservation = budget.reservation(owner);
          waiting.push(one);
          const dequeue = (): unknown => waiting.splice(waiting.indexOf(one), 1);
          reservation.grow(bytes, one.abort.signal).then(() => {
            dequeue();
            held.push(reservation);
            if (bytes <= PARTS.smallBytes) return;
            assert.ok(granted <= one.dueAfter, 'a large request waits for its turn and no longer');
            granted += bytes;
          }, dequeue);
        };
        const check = (): void => {
          assert.equal(
            budget.usedBytes,
            held.reduce((sum, each) => sum + each.heldBytes, 0),
          );
          const giants = held.filter((each) => each.heldBytes > COMMON);
          assert.ok(giants.length <= 1, 'above its part only alone');
          assert.ok(
            budget.usedBytes <= LIMIT - COMMON + Math.max(COMMON, giants[0]?.heldBytes ?? 0),
            `${budget.usedBytes} bytes are used`,
          );
          const small = budget.usedOf(Part.small);
          const waits = waiting.filter(({ bytes }) => bytes <= PARTS.smallBytes);
          if (waits.length > 0)
            assert.ok(
              waits.some(({ bytes }) => small + bytes > PARTS.sizeOf(Part.small)),
              'a small request waits only for small ones',
            );
        };
        for (const { kind, bytes, small, which } of steps) {
          const owner = owners[which % 5];
          const size = small ? 1 + (bytes % PARTS.smallBytes) : bytes;
          if (kind === 'request') request(size, owner);
          else if (kind === 'abort') waiting[which % Math.max(1, waiting.length)]?.abort.abort();
          else if (kind === 'release') {
            if (held.length > 0) held.splice(which % held.length, 1)[0]!.release();
          } else {
            const one = budget.reservation(owner);
            if (kind === 'arrive' ? one.tryArrive(size % 5) : one.tryHoldAnswer(size % 5) !== 'refused') held.push(one);
          }
          await settled();
          check();
        }
        while (held.length > 0) {
          held.shift()!.release();
          await settled();
          check();
        }
        assert.deepEqual([budget.waiting, budget.usedBytes, waiting.length], [0, 0, 0]);
        assert.deepEqual(
          owners.map(({ heldBytes }) => heldBytes),
          [0, 0, 0, 0],
        );
      }),
      { numRuns: 200 },
    );
  });
});
