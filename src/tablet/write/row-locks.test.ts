import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RowLocks } from './row-locks.ts';
import { RowShare } from './shared-rows.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Whether the promise has settled within a turn of the event loop; undefined = was not asked to wait. */
async function waits(entered: Promise<unknown> | undefined): Promise<boolean> {
  if (entered === undefined) return false;
  let settled = false;
  entered.then(() => (settled = true));
  await turn();
  return !settled;
}

/** A share of the row, which nobody makes wait. */
function shareOf(locks: RowLocks, row: string): RowShare {
  const share = new RowShare();
  assert.equal(locks.tryShare(row, share), true);
  return share;
}

describe('row locks', () => {
  test('sharers enter together, at once', async () => {
    const locks = new RowLocks();
    const [first, second] = [shareOf(locks, 'r'), shareOf(locks, 'r')];
    locks.leaveShared(first);
    locks.leaveShared(second);
    assert.equal(locks.enterAlone('r'), undefined);
  });

  test('who is alone waits for sharers, and keeps later sharers waiting', async () => {
    const locks = new RowLocks();
    const share = shareOf(locks, 'r');
    const alone = locks.enterAlone('r');
    const later = locks.enterShared('r');
    assert.equal(await waits(alone), true);
    assert.equal(await waits(later), true);
    locks.leaveShared(share);
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
    const share = shareOf(locks, 'a');
    const all = locks.enterAll();
    const later = locks.enterShared('b');
    assert.equal(await waits(all), true);
    assert.equal(await waits(later), true);
    locks.leaveShared(share);
    assert.equal(await waits(all), false);
    assert.equal(await waits(later), true);
    locks.leaveAll();
    assert.equal(await waits(later), false);
  });

  test('giving back what is not held is a broken invariant', () => {
    const locks = new RowLocks();
    assert.throws(() => locks.leaveAlone('r'), { name: 'AssertionError' });
    const share = shareOf(locks, 'r');
    assert.throws(() => locks.leaveAlone('r'), { name: 'AssertionError' });
    locks.leaveShared(share);
    assert.throws(() => locks.leaveShared(share), { name: 'AssertionError' });
  });

  test('a share of several rows holds each of them, one several times where it was added several times', async () => {
    const locks = new RowLocks();
    const share = new RowShare();
    for (const row of ['a', 'b', 'a', 'c']) assert.equal(locks.tryShare(row, share), true);
    const other = shareOf(locks, 'b');
    const alone = ['a', 'b', 'c', 'd'].map((row) => locks.enterAlone(row));
    assert.deepEqual(await Promise.all(alone.map(waits)), [true, true, true, false]);
    locks.leaveShared(share);
    assert.deepEqual(await Promise.all(alone.map(waits)), [false, true, false, false]);
    locks.leaveShared(other);
    assert.equal(await waits(alone[1]), false);
  });

  test('any mix of holders is exclusive where it must be, and everybody gets through', async () => {
    const holder = fc.record({
      row: fc.constantFrom('a', 'b', '*'),
      alone: fc.boolean(),
      turns: fc.integer({ min: 0, max: 2 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(holder, { maxLength: 20 }), async (holders) => {
        const locks = new RowLocks();
        const inside: { row: string; alone: boolean }[] = [];
        const check = (): void => {
          for (const one of inside) {
            const others = inside.filter(
              (other) => other !== one && (one.row === '*' || other.row === '*' || other.row === one.row),
            );
            if (one.alone || one.row === '*') assert.equal(others.length, 0);
          }
        };
        await Promise.all(
          holders.map(async ({ row, alone, turns }) => {
            let share = new RowShare();
            if (row === '*') await locks.enterAll();
            else if (alone) await locks.enterAlone(row);
            else if (!locks.tryShare(row, share)) share = await locks.enterShared(row);
            const me = { row, alone };
            inside.push(me);
            check();
            for (let i = 0; i < turns; i++) await turn();
            check();
            inside.splice(inside.indexOf(me), 1);
            if (row === '*') locks.leaveAll();
            else if (alone) locks.leaveAlone(row);
            else locks.leaveShared(share);
          }),
        );
      }),
      { numRuns: 100 },
    );
  });

  test('a share is taken where it needs no waiting, and refused where it does', () => {
    const locks = new RowLocks();
    const shares = [shareOf(locks, 'r'), shareOf(locks, 'r')];
    const alone = locks.enterAlone('r');
    assert.notEqual(alone, undefined);
    assert.equal(locks.tryShare('r', new RowShare()), false, 'somebody waits to be alone');
    shares.push(shareOf(locks, 'other'));
    for (const share of shares) locks.leaveShared(share);
    assert.equal(locks.tryShare('r', new RowShare()), false, 'held alone');
    locks.leaveAlone('r');
    shareOf(locks, 'r');
    void locks.enterAll();
    assert.equal(locks.tryShare('third', new RowShare()), false, 'the whole tablet is about to be held');
  });
});
