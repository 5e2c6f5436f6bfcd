import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code } from '../base/index.ts';
import { ByteBudget, type Clock, clockOf, ManualClock, requestContext } from '../env/index.ts';
import { LIMITS, normalizeRanges, type RowRange, rangeOfRow } from '../model/index.ts';
import { orderedRanges } from './row-ranges.ts';

const LIMIT = LIMITS.default;
/** The number of ranges that may be handled between two checks of the clock. */
const MAX_BETWEEN_CHECKS = 2048;

/** A slice is over each time this clock is read. `whenPaused` is called at each pause. */
function shortSlices(looked: () => void, whenPaused: () => void = () => {}): Clock {
  const clock = new ManualClock();
  return clockOf({
    nowMicros: () => clock.nowMicros(),
    monotonicMs: () => {
      looked();
      clock.advance(5);
      return clock.monotonicMs();
    },
    timer: (delayMs, wake) => clock.timer(delayMs, wake),
    yield: async () => whenPaused(),
  });
}

const context = (options: { signal?: AbortSignal } = {}) => requestContext({ budget: new ByteBudget(1e9), ...options });

/** Ranges that count the reads of their starts: any work on a range reads it. */
function counted(ranges: readonly RowRange[], touched: () => void): RowRange[] {
  return ranges.map(({ start, end }) => ({
    get start() {
      touched();
      return start;
    },
    end,
  }));
}

describe('the ranges of a read', () => {
  test('are in order and joined, like few of them', async () => {
    const key = fc.integer({ min: 0, max: 5000 }).map((n) => `k${String(n).padStart(4, '0')}`);
    const range = fc.tuple(key, key).map(([a, b]): RowRange => (a < b ? { start: a, end: b } : rangeOfRow(a)));
    const clock = new ManualClock();
    await fc.assert(
      fc.asyncProperty(
        fc.array(range, { minLength: 0, maxLength: 300 }),
        fc.integer({ min: 1, max: 12 }),
        async (some, times) => {
          // the same few repeatedly, and moved, make many
          const many = Array.from({ length: times }, (_, i) =>
            some.map(({ start, end }) => ({ start: `${i % 5}${start}`, end: `${i % 5}${end}` })),
          ).flat();
          assert.deepEqual(await orderedRanges(many, LIMIT, clock, context()), normalizeRanges(many));
        },
      ),
      { numRuns: 60 },
    );
  });

  test('very many are handled in bounded slices', async () => {
    const MANY = 250_000;
    let touches = 0;
    let most = 0;
    const clock = shortSlices(() => {
      most = Math.max(most, touches);
      touches = 0;
    });
    const many = Array.from({ length: MANY }, (_, i) => rangeOfRow(`row${(i * 7919) % 250_007}`));
    const ordered = await orderedRanges(
      counted(many, () => touches++),
      LIMIT,
      clock,
      context(),
    );
    assert.equal(ordered.length, MANY);
    for (let i = 1; i < ordered.length; i++)
      if ((ordered[i - 1] as RowRange).start >= (ordered[i] as RowRange).start) assert.fail(`out of order at ${i}`);
    // a run of 1024 is checked, and sorted with some eleven comparisons a range
    assert.ok(most < MAX_BETWEEN_CHECKS * 16, `${most} reads of ranges in one slice`);
  });

  test('long keys make shorter slices', async () => {
    let bytes = 0;
    let most = 0;
    const clock = shortSlices(() => {
      most = Math.max(most, bytes);
      bytes = 0;
    });
    const prefix = 'k'.repeat(60_000);
    const many = counted(
      Array.from({ length: 2000 }, (_, i) => rangeOfRow(`${prefix}${(i * 7919) % 2003}`)),
      () => (bytes += prefix.length),
    );
    const ordered = await orderedRanges(many, LIMIT, clock, context());
    assert.equal(ordered.length, 2000);
    assert.ok(most < 8 * 1024 * 1024, `${most} bytes of keys in one slice`);
  });

  test('an invalid one is refused at any index', async () => {
    const clock = new ManualClock();
    const many: RowRange[] = Array.from({ length: 3000 }, (_, i) => rangeOfRow(`row${i}`));
    many[2500] = { start: 'b', end: 'a' };
    await assert.rejects(
      async () => orderedRanges(many, LIMIT, clock, context()),
      (error) => error instanceof BigtableError && error.code === Code.INVALID_ARGUMENT,
    );
  });

  test('a cancelled call ends between two slices', async () => {
    const abort = new AbortController();
    const clock = shortSlices(
      () => {},
      () => abort.abort(),
    );
    const many = Array.from({ length: 100_000 }, (_, i) => rangeOfRow(`row${(i * 7919) % 100_003}`));
    await assert.rejects(
      async () => orderedRanges(many, LIMIT, clock, context({ signal: abort.signal })),
      (error) => error instanceof BigtableError && error.code === Code.CANCELLED,
    );
  });
});
