import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { run } from '../../sim/world/run.ts';

/** As many as take some seconds: `npm run sim` has the others. */
const SEEDS = [1];

describe('simulated clusters', () => {
  for (const seed of SEEDS) {
    test(`seed ${seed}: every history is linearizable, and the same seed is the same run`, async () => {
      const first = await run({ seed });
      assert.equal(first.violation, undefined);
      assert.ok(first.counts['answered']! > 1000, 'the clients get on');
      assert.ok(first.faults.length > 0);
      const second = await run({ seed });
      assert.deepEqual([second.trace, second.events, second.counts], [first.trace, first.events, first.counts]);
    });
  }
});
