import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inSimulatedTime } from '../../../test/simulated-time.ts';
import { ManualClock, silentLogger } from '../../env/index.ts';
import { startAgain } from './start-again.ts';

/** Starts at those times, of which the first `failures` fail; the signal aborts with the start of that number. */
async function started(failures: number, delayMs?: number, abortAt = Number.POSITIVE_INFINITY) {
  const clock = new ManualClock();
  const beganMs = clock.monotonicMs();
  const abort = new AbortController();
  const errors: string[] = [];
  const logger = { ...silentLogger, error: (message: string) => void errors.push(message) };
  const timesMs: number[] = [];
  const start = async (): Promise<void> => {
    timesMs.push(clock.monotonicMs() - beganMs);
    if (timesMs.length === abortAt) abort.abort();
    if (timesMs.length <= failures) throw new Error('no');
  };
  const options = { env: { clock, logger }, what: 'a role', signal: abort.signal, mostMs: 3000 };
  await inSimulatedTime(clock, startAgain(options, start, delayMs));
  return { timesMs, errors };
}

describe('what has ended is started again', () => {
  test('after delays that double while starts fail, up to the longest', async () => {
    const { timesMs, errors } = await started(5);
    assert.deepEqual(timesMs, [500, 1500, 3500, 6500, 9500, 12_500]);
    assert.deepEqual(errors, new Array(5).fill('a role could not start and will be tried again'));
  });

  test('without a delay where that is requested, and with the usual ones if that fails', async () => {
    assert.deepEqual((await started(2, 0)).timesMs, [0, 500, 1500]);
  });

  test('until the signal aborts', async () => {
    assert.deepEqual(await started(9, 0, 2), {
      timesMs: [0, 500],
      errors: ['a role could not start and will be tried again'],
    });
  });
});
