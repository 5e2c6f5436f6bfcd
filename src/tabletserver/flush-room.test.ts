import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import { FlushRoom } from './flush-room.ts';

const MIB = 1024 * 1024;
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('room for flushes', () => {
  test('a large one is alone, small ones share it', () => {
    const room = new FlushRoom();
    assert.ok(room.tryTake(100 * MIB), 'any fits where there is no other');
    assert.ok(!room.tryTake(1));
    room.giveBack(100 * MIB);
    for (let i = 0; i < 8; i++) assert.ok(room.tryTake(MIB));
    assert.ok(!room.tryTake(1), 'their bytes are limited');
    room.giveBack(MIB);
    assert.ok(room.tryTake(1));
  });

  test('their number is limited, too', () => {
    const room = new FlushRoom();
    let count = 0;
    while (room.tryTake(0)) count++;
    assert.equal(count, 64);
  });

  test('is given in the order of the requests, and never beyond its limits', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 12 * MIB }), { minLength: 1, maxLength: 200 }),
        async (all) => {
          const room = new FlushRoom();
          const entered: number[] = [];
          const underWay: number[] = [];
          const takes = all.map((bytes, i) =>
            room.take(bytes).then(() => {
              entered.push(i);
              underWay.push(bytes);
              const sum = underWay.reduce((a, b) => a + b, 0);
              assert.ok(underWay.length === 1 || (sum <= 8 * MIB && underWay.length <= 64));
            }),
          );
          while (entered.length < all.length || underWay.length > 0) {
            await settled();
            assert.ok(underWay.length > 0, 'nothing waits while nothing is under way');
            room.giveBack(underWay.shift()!);
          }
          await Promise.all(takes);
          assert.deepEqual(
            entered,
            all.map((_, i) => i),
          );
        },
      ),
      { numRuns: 50 },
    ));
});
