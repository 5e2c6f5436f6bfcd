/** The scale run (sim/scale) of a small cluster. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runScale } from '../../sim/scale/run.ts';

test('a large cluster starts, recovers from deaths one after another, and is balanced; the same seed is the same run', async () => {
  const options = { seed: 7, size: { servers: 16, tablets: 640, metadataTablets: 3 }, deaths: 6 };
  const figures = await runScale(options);
  assert.ok(figures.coldStartMs < 5000, `${figures.coldStartMs} ms`);
  assert.ok(figures.recoveryMs < 15_000, `${figures.recoveryMs} ms`);
  assert.ok(figures.lockCallsPerDeath <= 10, `${figures.lockCallsPerDeath} calls`);
  assert.ok(figures.balanceMs < 60_000, `${figures.balanceMs} ms`);
  assert.ok(figures.moves <= 1.1 * figures.leastMoves, `${figures.moves} of ${figures.leastMoves}`);
  assert.deepEqual(await runScale(options), figures);
});
