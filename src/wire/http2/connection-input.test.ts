import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { SLICE_MS } from '../../env/index.ts';
import { ConnectionInput } from './connection-input.ts';
import { Pipe, streamsFlushed, TurnClock } from './fixtures.ts';
import { CLIENT_PREFACE, FrameType, frame } from './frames.ts';
import { ReadTurns } from './read-turns.ts';

/** Frames that take a while each: the clock advances by `frameMs`. */
function input(turns: ReadTurns, clock: TurnClock, frameMs: number) {
  const pipe = new Pipe();
  const seen: number[] = [];
  const failures: unknown[] = [];
  const reader = new ConnectionInput({
    socket: pipe,
    turns,
    onHeard: () => {},
    onFailed: (thrown) => failures.push(thrown),
    onFrame: (_type, _flags, streamId) => {
      seen.push(streamId);
      clock.advance(frameMs);
    },
  });
  return { pipe, seen, failures, reader };
}

const frames = (from: number, to: number): Buffer =>
  Buffer.concat(
    Array.from({ length: to - from }, (_, i) => frame(FrameType.DATA, 0, from + i, Buffer.alloc((from + i) % 7))),
  );
const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

describe('the input of a connection', () => {
  test('a hundred slow frames in one chunk take many turns, and nothing is read meanwhile', async () => {
    const clock = new TurnClock();
    const { pipe, seen } = input(new ReadTurns(clock), clock, 1);
    pipe.push(Buffer.concat([CLIENT_PREFACE, frames(0, 100)]));
    await streamsFlushed();
    let turns = 1;
    for (let before = 0; seen.length < 100; turns++) {
      // four frames at most come between two readings of the clock
      assert.ok(seen.length - before <= SLICE_MS + 3, `${seen.length - before} frames in a turn`);
      assert.ok(pipe.isPaused());
      before = seen.length;
      await clock.turn();
    }
    assert.deepEqual(seen, numbers(0, 100));
    assert.ok(turns >= 100 / (SLICE_MS + 3));
    assert.ok(!pipe.isPaused());
  });

  test('frames that take no time come in one turn', async () => {
    const clock = new TurnClock();
    const { pipe, seen } = input(new ReadTurns(clock), clock, 0);
    pipe.push(Buffer.concat([CLIENT_PREFACE, frames(0, 1000)]));
    await streamsFlushed();
    assert.deepEqual(seen, numbers(0, 1000));
  });

  test('all connections share a turn', async () => {
    const clock = new TurnClock();
    const turns = new ReadTurns(clock);
    const peers = numbers(0, 50).map(() => input(turns, clock, 1));
    for (const { pipe } of peers) pipe.push(Buffer.concat([CLIENT_PREFACE, frames(0, 8)]));
    await streamsFlushed();
    const count = (): number => peers.reduce((sum, { seen }) => sum + seen.length, 0);
    for (let before = 0; count() < 50 * 8; await clock.turn()) {
      assert.ok(count() > before, 'each turn brings something');
      assert.ok(count() - before <= SLICE_MS + 6, `${count() - before} frames in a turn`);
      before = count();
    }
    for (const { seen, pipe } of peers) {
      assert.deepEqual(seen, numbers(0, 8));
      assert.ok(!pipe.isPaused());
    }
  });

  test('however it is cut and however slow, each frame comes once and in order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(200), { maxLength: 12 }), fc.nat(6), async (cuts, frameMs) => {
        const clock = new TurnClock();
        const { pipe, seen } = input(new ReadTurns(clock), clock, frameMs);
        const bytes = Buffer.concat([CLIENT_PREFACE, frames(0, 60)]);
        let at = 0;
        for (const cut of cuts) {
          if (cut > 0) pipe.push(bytes.subarray(at, at + cut));
          at = Math.min(bytes.length, at + cut);
          await streamsFlushed();
          if (cut % 3 === 0) await clock.turn();
        }
        if (at < bytes.length) pipe.push(bytes.subarray(at));
        await streamsFlushed();
        for (let turns = 0; seen.length < 60 && turns < 100; turns++) await clock.turn();
        assert.deepEqual(seen, numbers(0, 60));
        assert.ok(!pipe.isPaused());
      }),
      { numRuns: 50 },
    );
  });

  test('a pause by the caller holds independently', async () => {
    const clock = new TurnClock();
    const { pipe, seen, reader } = input(new ReadTurns(clock), clock, SLICE_MS);
    pipe.push(Buffer.concat([CLIENT_PREFACE, frames(0, 8)]));
    await streamsFlushed();
    reader.pause();
    while (seen.length < 8) await clock.turn();
    assert.ok(pipe.isPaused());
    pipe.push(frames(8, 9));
    await clock.turn();
    assert.equal(seen.length, 8);
    reader.resume();
    await streamsFlushed();
    await clock.turn();
    await clock.turn();
    assert.deepEqual(seen, numbers(0, 9));
  });

  test('once stopped it passes on nothing, and the end of the socket is seen', async () => {
    const clock = new TurnClock();
    const { pipe, seen, reader } = input(new ReadTurns(clock), clock, SLICE_MS);
    let hasEnded = false;
    pipe.on('end', () => {
      hasEnded = true;
    });
    pipe.push(Buffer.concat([CLIENT_PREFACE, frames(0, 100)]));
    await streamsFlushed();
    const before = seen.length;
    reader.stop();
    pipe.push(frames(100, 200));
    pipe.push(null);
    for (let i = 0; i < 5; i++) await clock.turn();
    assert.equal(seen.length, before);
    assert.ok(hasEnded);
  });

  test('an error in a later part is reported once', async () => {
    const clock = new TurnClock();
    const { pipe, seen, failures, reader } = input(new ReadTurns(clock), clock, SLICE_MS);
    pipe.push(Buffer.concat([CLIENT_PREFACE, frames(0, 8), Buffer.from('ffffff000000000001', 'hex')]));
    await streamsFlushed();
    for (let i = 0; i < 5; i++) await clock.turn();
    reader.stop();
    assert.equal(seen.length, 8);
    assert.equal(failures.length, 1);
  });
});
