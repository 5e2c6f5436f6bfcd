import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RowLocks } from './row-locks.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Whether the promise has settled within a turn of the event loop; undefined = was not asked to wait. */
async function waits(entered: Promise<void> | undefined): Promise<boolean> {
  if (entered === undefined) return false;
  let settled = false;
  entered.then(() => (settled = true));
  await turn();
  return !settled;
}

describe('row locks', () => {
  test('sharers enter together, at once', async () => {
    const locks = new RowLocks();
    assert.equal(locks.enterShared('r'), undefined);
    assert.equal(locks.enterShared('r'), undefined);
    locks.leaveShared('r');
    locks.leaveShared('r');
    assert.equal(locks.enterAlone('r'), undefined);
  });

  test('who is alone waits for sharers, and keeps later sharers waiting', async () => {
    const locks = new RowLocks();
    locks.enterShared('r');
    const alone = locks.enterAlone('r');
    const later = locks.enterShared('r');
    assert.equal(await waits(alone), true);
    assert.equal(await waits(later), true);
    locks.leaveShared('r');
    assert.equal(await waits(alone), false);
    assert.equal(await waits(later), true);
    locks.leaveAlone('r');
    assert.equal(await waits(later), false);
  });

  test('rows do not disturb one another', () => {
    const locks = new RowLocks();
    locks.enterAlone('a');
    assert.equal(locks.enterAlone('b'), undefined);
  });

  test('the whole tablet waits for every row and keeps new ones out', async () => {
    const locks = new RowLocks();
    locks.enterShared('a');
    const all = locks.enterAll();
    const later = locks.enterShared('b');
    assert.equal(await waits(all), true);
    assert.equal(await waits(later), true);
    locks.leaveShared('a');
    assert.equal(await waits(all), false);
    assert.equal(await waits(later), true);
    locks.leaveAll();
    assert.equal(await waits(later), false);
  });

  test('giving back what is not held is a broken invariant', () => {
    const locks = new RowLocks();
    assert.throws(() => locks.leaveAlone('r'), { name: 'AssertionError' });
    locks.enterShared('r');
    assert.throws(() => locks.leaveAlone('r'), { name: 'AssertionError' });
  });

  test('any mix of holders is exclusive where it must be, and everybody gets through', async () => {
    const holder = fc.record({ row: fc.constantFrom('a', 'b', '*'), alone: fc.boolean(), turns: fc.integer({ min: 0, max: 2 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(holder, { maxLength: 20 }), async (holders) => {
        const locks = new RowLocks();
        const inside: { row: string; alone: boolean }[] = [];
        const check = (): void => {
          for (const one of inside) {
            const others = inside.filter((other) => other !== one && (one.row === '*' || other.row === '*' || other.row === one.row));
            if (one.alone || one.row === '*') assert.equal(others.length, 0);
          }
        };
        await Promise.all(
          holders.map(async ({ row, alone, turns }) => {
            if (row === '*') await locks.enterAll();
            else await (alone ? locks.enterAlone(row) : locks.enterShared(row));
            const me = { row, alone };
            inside.push(me);
            check();
            for (let i = 0; i < turns; i++) await turn();
            check();
            inside.splice(inside.indexOf(me), 1);
            if (row === '*') locks.leaveAll();
            else if (alone) locks.leaveAlone(row);
            else locks.leaveShared(row);
          }),
        );
      }),
      { numRuns: 100 },
    );
  });

  test('a share is taken where it needs no waiting, and refused where it does', () => {
    const locks = new RowLocks();
    assert.equal(locks.tryShared('r'), true);
    assert.equal(locks.tryShared('r'), true);
    const alone = locks.enterAlone('r');
    assert.notEqual(alone, undefined);
    assert.equal(locks.tryShared('r'), false, 'somebody waits to be alone');
    assert.equal(locks.tryShared('other'), true);
    locks.leaveShared('r');
    locks.leaveShared('r');
    assert.equal(locks.tryShared('r'), false, 'held alone');
    locks.leaveAlone('r');
    assert.equal(locks.tryShared('r'), true);
    void locks.enterAll();
    assert.equal(locks.tryShared('third'), false, 'the whole tablet is about to be held');
  });
});
