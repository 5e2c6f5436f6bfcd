import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RowLocks } from './row-locks.ts';
import { SharedLock } from './shared-locks.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** True if the promise has settled within a turn of the event loop; undefined = there was no promise to wait for. */
async function waits(entered: Promise<unknown> | undefined): Promise<boolean> {
  if (entered === undefined) return false;
  let settled = false;
  entered.then(() => (settled = true));
  await turn();
  return !settled;
}

/** A lock of the row, taken without a wait. */
function lockOf(locks: RowLocks, row: string): SharedLock {
  const lock = new SharedLock();
  assert.equal(locks.tryLockShared(row, lock), true);
  return lock;
}

describe('row locks', () => {
  test('a row is shared without waiting', async () => {
    const locks = new RowLocks();
    const [first, second] = [lockOf(locks, 'r'), lockOf(locks, 'r')];
    locks.unlockShared(first);
    locks.unlockShared(second);
    assert.equal(locks.lockExclusive('r'), undefined);
  });

  test('an exclusive lock waits for sharers, and keeps later calls waiting', async () => {
    const locks = new RowLocks();
    const lock = lockOf(locks, 'r');
    const alone = locks.lockExclusive('r');
    const later = locks.lockExclusive('r');
    assert.equal(await waits(alone), true);
    assert.equal(await waits(later), true);
    locks.unlockShared(lock);
    assert.equal(await waits(alone), false);
    assert.equal(await waits(later), true);
    assert.equal(locks.tryLockShared('r', new SharedLock()), false);
    locks.unlockExclusive('r');
    assert.equal(await waits(later), false);
  });

  test('a row is hot until its logged transactions are applied: it is locked exclusively, and not shared', async () => {
    const locks = new RowLocks();
    for (let i = 0; i < 2; i++) {
      assert.equal(locks.lockExclusive('r'), undefined);
      locks.logged('r');
      locks.unlockExclusive('r');
    }
    assert.equal(locks.tryLockShared('r', new SharedLock()), false);
    assert.equal(await waits(locks.lockTablet()), false, 'nothing holds a hot row');
    locks.unlockTablet();
    locks.applied('r');
    assert.equal(locks.tryLockShared('r', new SharedLock()), false);
    locks.applied('r');
    lockOf(locks, 'r');
    assert.throws(() => locks.applied('r'), { name: 'AssertionError' });
  });

  test('a transaction may be applied before it unlocks the row', () => {
    const locks = new RowLocks();
    assert.equal(locks.lockExclusive('r'), undefined);
    locks.logged('r');
    locks.applied('r');
    assert.equal(locks.tryLockShared('r', new SharedLock()), false);
    locks.unlockExclusive('r');
    lockOf(locks, 'r');
  });

  test('rows do not disturb one another', () => {
    const locks = new RowLocks();
    locks.lockExclusive('a');
    assert.equal(locks.lockExclusive('b'), undefined);
  });

  test('the whole tablet waits for every row and keeps new ones out', async () => {
    const locks = new RowLocks();
    const lock = lockOf(locks, 'a');
    const all = locks.lockTablet();
    const later = locks.lockExclusive('b');
    assert.equal(await waits(all), true);
    assert.equal(await waits(later), true);
    locks.unlockShared(lock);
    assert.equal(await waits(all), false);
    assert.equal(await waits(later), true);
    locks.unlockTablet();
    assert.equal(await waits(later), false);
  });

  test('unlocking what is not locked is a broken invariant', () => {
    const locks = new RowLocks();
    assert.throws(() => locks.unlockExclusive('r'), { name: 'AssertionError' });
    const lock = lockOf(locks, 'r');
    assert.throws(() => locks.unlockExclusive('r'), { name: 'AssertionError' });
    locks.unlockShared(lock);
    assert.throws(() => locks.unlockShared(lock), { name: 'AssertionError' });
  });

  test('a lock of several rows holds each of them as often as it was added', async () => {
    const locks = new RowLocks();
    const lock = new SharedLock();
    for (const row of ['a', 'b', 'a', 'c']) assert.equal(locks.tryLockShared(row, lock), true);
    const other = lockOf(locks, 'b');
    const alone = ['a', 'b', 'c', 'd'].map((row) => locks.lockExclusive(row));
    assert.deepEqual(await Promise.all(alone.map(waits)), [true, true, true, false]);
    locks.unlockShared(lock);
    assert.deepEqual(await Promise.all(alone.map(waits)), [false, true, false, false]);
    locks.unlockShared(other);
    assert.equal(await waits(alone[1]), false);
  });

  test('any mix of holders is exclusive where it must be, and every holder gets its turn', async () => {
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
          holders.map(async ({ row, alone: wantsAlone, turns }) => {
            const lock = new SharedLock();
            const alone = row !== '*' && (wantsAlone || !locks.tryLockShared(row, lock));
            if (row === '*') await locks.lockTablet();
            else if (alone) await locks.lockExclusive(row);
            const me = { row, alone };
            inside.push(me);
            check();
            for (let i = 0; i < turns; i++) await turn();
            check();
            inside.splice(inside.indexOf(me), 1);
            if (row === '*') locks.unlockTablet();
            else if (alone) locks.unlockExclusive(row);
            else locks.unlockShared(lock);
          }),
        );
      }),
      { numRuns: 100 },
    );
  });

  test('a shared lock is taken if that needs no wait, and else refused', () => {
    const locks = new RowLocks();
    const shared = [lockOf(locks, 'r'), lockOf(locks, 'r')];
    const alone = locks.lockExclusive('r');
    assert.notEqual(alone, undefined);
    assert.equal(locks.tryLockShared('r', new SharedLock()), false, 'a call waits for the exclusive lock');
    shared.push(lockOf(locks, 'other'));
    for (const lock of shared) locks.unlockShared(lock);
    assert.equal(locks.tryLockShared('r', new SharedLock()), false, 'locked exclusively');
    locks.unlockExclusive('r');
    lockOf(locks, 'r');
    void locks.lockTablet();
    assert.equal(locks.tryLockShared('third', new SharedLock()), false, 'the whole tablet is about to be locked');
  });
});
