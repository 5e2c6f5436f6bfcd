import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ReplayMemory } from './replay-memory.ts';

describe('the memory of replays', () => {
  test('is granted in order, up to its limit, and one that needs more has it alone', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(12), { maxLength: 20 }), async (sizes) => {
        const memory = new ReplayMemory(10);
        const granted: number[] = [];
        const held: number[] = [];
        for (const [i, bytes] of sizes.entries())
          void memory.take(bytes).then(() => {
            granted.push(i);
            held.push(bytes);
          });
        for (let turns = 0; granted.length < sizes.length || held.length > 0; turns++) {
          assert.ok(turns <= 2 * sizes.length, 'each is granted');
          await new Promise((resolve) => setImmediate(resolve));
          assert.ok(memory.heldBytes <= 10 || held.filter((bytes) => bytes > 0).length === 1, `${held}`);
          const bytes = held.shift();
          if (bytes !== undefined) memory.giveBack(bytes);
        }
        assert.deepEqual(
          granted,
          sizes.map((_, i) => i),
        );
        assert.equal(memory.heldBytes, 0);
      }),
    );
  });
});
