import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Metrics, silentLogger } from '../env/index.ts';
import { ClockWarning } from './clock-warning.ts';

const SECOND = 1_000_000;

test('a clock that falls back is logged once for all tablets, and again when it falls back after it caught up', () => {
  const behindMs: unknown[] = [];
  const metrics = new Metrics();
  const warning = new ClockWarning({
    metrics,
    logger: { ...silentLogger, warn: (_message, fields) => void behindMs.push(fields?.['behindMs']) },
  });
  warning.isBehind(100 * SECOND, 100.9 * SECOND);
  assert.deepEqual(behindMs, [], 'less than a second');
  // two tablets, one of which was written a little earlier
  for (let i = 0; i < 100; i++) warning.isBehind(100 * SECOND + i, (i % 2 === 0 ? 130 : 129.5) * SECOND + i);
  assert.deepEqual(behindMs, [30_000]);
  warning.isBehind(110 * SECOND, 190 * SECOND);
  assert.deepEqual(behindMs, [30_000, 80_000], 'a tablet of which another server was much further ahead');
  warning.isBehind(195 * SECOND, 197 * SECOND);
  assert.deepEqual(behindMs, [30_000, 80_000, 2000], 'it had caught up');
  assert.equal(metrics.get('tabletserver.timesAheadOfTheClock'), 103);
});

test('a clock that is not behind is not logged', () => {
  const warning = new ClockWarning({ metrics: new Metrics(), logger: silentLogger });
  assert.throws(() => warning.isBehind(5, 5), /a clock is reported as behind only where it is/);
});
