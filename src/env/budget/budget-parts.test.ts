import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BudgetParts, Part } from './budget-parts.ts';

const MIB = 1024 * 1024;
const LIMIT = 128 * MIB;
/** An eighth each for small requests and for arriving bytes, a sixteenth for unread answers. */
const SMALL = LIMIT / 8;
const COMMON = LIMIT - (5 * LIMIT) / 16;

describe('the parts of a budget', () => {
  test('are the limit together', () => {
    for (const limit of [1, 10, 1000, MIB, LIMIT]) {
      const parts = new BudgetParts(limit);
      assert.equal(
        Object.values(Part)
          .map((part) => parts.sizeOf(part))
          .reduce((sum, bytes) => sum + bytes),
        limit,
      );
    }
  });

  test('a request of up to 64 KiB is small, where the budget is no smaller than half a MiB', () => {
    const parts = new BudgetParts(LIMIT);
    assert.deepEqual([parts.partOf(65_536), parts.partOf(65_537)], [Part.small, Part.common]);
    assert.equal(new BudgetParts(80).smallBytes, 10);
  });

  test('a spent common part leaves the reserved ones their sizes, and no more', () => {
    const parts = new BudgetParts(LIMIT);
    parts.take(Part.common, COMMON);
    for (const part of [Part.small, Part.arriving, Part.unread]) {
      assert.equal(parts.fits(part, parts.sizeOf(part), false), true);
      parts.take(part, parts.sizeOf(part));
      assert.equal(parts.fits(part, 1, false), false);
    }
    assert.equal(parts.usedBytes, LIMIT);
  });

  test('small requests borrow from the common part, but not while a call waits for it', () => {
    const parts = new BudgetParts(LIMIT);
    parts.take(Part.small, SMALL);
    assert.equal(parts.fits(Part.small, COMMON, false), true);
    assert.equal(parts.fits(Part.small, COMMON + 1, false), false);
    assert.equal(parts.fits(Part.small, 1, true), false);
    parts.take(Part.small, COMMON);
    assert.deepEqual([parts.commonUsedBytes, parts.fits(Part.common, 1, false)], [COMMON, false]);
  });

  test('a request that is larger than its part is admitted when it is alone in it', () => {
    const parts = new BudgetParts(LIMIT);
    assert.equal(parts.fits(Part.common, 10 * LIMIT, false), true);
    parts.take(Part.common, 1);
    assert.equal(parts.fits(Part.common, COMMON, false), false);
    assert.equal(parts.fits(Part.common, COMMON, false, 1), true, 'its own bytes do not count against it');
    assert.equal(parts.fits(Part.unread, LIMIT, true), true);
  });
});
