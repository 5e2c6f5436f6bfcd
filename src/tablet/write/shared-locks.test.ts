import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AssertionError } from '../../base/index.ts';
import { SharedLock, SharedLocks } from './shared-locks.ts';

test('counts each row as often as it is held, whatever came and went', () => {
  // many rows with the same ending, so that counts are shared; and enough of them for the table of counts to grow
  const row = fc.oneof(
    fc.constantFrom('', 'a', 'b', 'x-longending', 'y-longending'),
    fc.nat({ max: 400 }).map((n) => `row${n}`),
  );
  const step = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('add' as const), rows: fc.array(row, { minLength: 1, maxLength: 60 }) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), which: fc.nat() }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), fc.array(row, { maxLength: 20 }), (steps, others) => {
      const shared = new SharedLocks();
      const held: SharedLock[] = [];
      for (const each of steps) {
        if (each.kind === 'add') {
          const share = new SharedLock();
          for (const one of each.rows) shared.add(one, share);
          held.push(share);
        } else if (held.length > 0) {
          const [gone] = held.splice(each.which % held.length, 1);
          shared.remove(gone as SharedLock);
        }
        const rows = held.flatMap((share) => share.rows);
        assert.equal(shared.size, rows.length);
        for (const one of [...others, ...rows.slice(0, 5)])
          assert.equal(shared.count(one), rows.filter((other) => other === one).length);
      }
    }),
    { numRuns: 60 },
  );
});

test('a lock that is not held cannot be released', () => {
  const shared = new SharedLocks();
  const share = new SharedLock();
  assert.throws(() => shared.remove(share), AssertionError);
  shared.add('a', share);
  shared.remove(share);
  shared.add('b', new SharedLock());
  assert.throws(() => shared.remove(share), AssertionError);
});
