import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RealTime } from './real-time.ts';

const START_MS = 1_800_000_000_000;

/**
 * A machine whose true time is known: each reading takes some time, and the two clocks differ only as the test sets
 * them.
 */
class Machine {
  /** Since START_MS: a double could not hold the whole time. */
  trueMs: number;
  /** The reading of the fine clock at START_MS. */
  #fineOffsetMs: number;
  readonly #readingMs: () => number;
  readonly realTime: RealTime;

  constructor(fractionMs: number, readingMs: () => number = () => 0.0001) {
    this.trueMs = fractionMs;
    this.#fineOffsetMs = 250.3;
    this.#readingMs = readingMs;
    this.realTime = new RealTime({
      coarseMs: () => START_MS + Math.floor(this.#read()),
      fineMs: () => this.#read() + this.#fineOffsetMs,
    });
  }

  #read(): number {
    const read = this.trueMs;
    this.trueMs += this.#readingMs();
    return read;
  }

  /** Sets the real-time clock; the fine one continues. */
  set(byMs: number): void {
    this.trueMs += byMs;
    this.#fineOffsetMs -= byMs;
  }

  /**
   * The lag of the measured time after the true one before the readings began, and its lead over the true one after
   * them; in microseconds.
   */
  error(): { readonly late: number; readonly ahead: number } {
    const before = this.trueMs;
    const micros = this.micros();
    return { late: before * 1000 - micros, ahead: micros - this.trueMs * 1000 };
  }

  /** The measured time, since START_MS. */
  micros(): number {
    const micros = this.realTime.nowMicros();
    assert.ok(Number.isSafeInteger(micros));
    return micros - START_MS * 1000;
  }
}

/** Rounding of milliseconds since 1970 in doubles, and to whole microseconds. */
const ROUNDING_MICROS = 2;

describe('real time out of a coarse and a fine clock', () => {
  test('is late by no more than a reading takes, and never ahead, from the first call on', () => {
    for (const fraction of [0, 0.0005, 0.1, 0.37, 0.5, 0.9, 0.9995]) {
      const machine = new Machine(fraction);
      for (let i = 0; i < 2000; i++) {
        const { late, ahead } = machine.error();
        assert.ok(
          late <= ROUNDING_MICROS && ahead <= ROUNDING_MICROS,
          `call ${i} at ${fraction}: ${late} us late, ${ahead} us ahead`,
        );
        machine.trueMs += 0.0137 * (i % 97);
      }
    }
  });

  test('is so again with the first call after the real-time clock was set by more than a millisecond, forward or back', () => {
    for (const byMs of [1.7, 25, 3_600_000, -1.7, -25, -3_600_000]) {
      const machine = new Machine(0.4);
      machine.error();
      machine.set(byMs);
      const { late, ahead } = machine.error();
      assert.ok(late <= ROUNDING_MICROS && ahead <= ROUNDING_MICROS, `${byMs} ms: ${late} us late, ${ahead} us ahead`);
    }
  });

  test('is found again step by step where the real-time clock was set by less than a millisecond, or the two clocks drift', () => {
    for (const byMs of [0.6, -0.6, 0.06, -0.06]) {
      const machine = new Machine(0.4);
      machine.error();
      machine.set(byMs);
      for (let i = 0; i < 10_000; i++) {
        machine.error();
        machine.trueMs += 0.0713;
      }
      const { late, ahead } = machine.error();
      assert.ok(late <= ROUNDING_MICROS && ahead <= ROUNDING_MICROS, `${byMs} ms: ${late} us late, ${ahead} us ahead`);
    }
  });

  test('lies in the millisecond that the coarse clock shows around it, whatever happens between readings', () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.double({ min: 0, max: 5, noNaN: true }).map((ms) => ({ kind: 'wait', ms })) },
      { weight: 1, arbitrary: fc.constantFrom(-5000, -1.5, -0.3, 0.3, 1.5, 5000).map((ms) => ({ kind: 'set', ms })) },
    );
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.array(step, { maxLength: 50 }),
        fc.array(fc.constantFrom(0.0001, 0.0001, 0.0002, 0.04, 3), { minLength: 1 }),
        (fraction, steps, delays) => {
          let reading = 0;
          // the thread is suspended within a call now and then
          const machine = new Machine(fraction, () => delays[reading++ % delays.length] as number);
          for (const { kind, ms } of steps) {
            if (kind === 'set') machine.set(ms);
            else machine.trueMs += ms;
            const earliest = Math.floor(machine.trueMs) * 1000;
            const micros = machine.micros();
            assert.ok(
              micros >= earliest - ROUNDING_MICROS &&
                micros < (Math.floor(machine.trueMs) + 1) * 1000 + ROUNDING_MICROS,
            );
          }
        },
      ),
    );
  });

  test('a clock that is held still is read as it stands', () => {
    const held = new RealTime({ coarseMs: () => START_MS, fineMs: () => 7 });
    for (let i = 0; i < 3; i++) assert.equal(held.nowMicros(), START_MS * 1000);
  });
});
