import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SLICE_MS } from '../../env/index.ts';
import { TurnClock } from './fixtures.ts';
import { ReadTurns } from './read-turns.ts';

describe('turns of reading', () => {
  test('a turn has time for SLICE_MS, for all readers together', async () => {
    const clock = new TurnClock();
    const turns = new ReadTurns(clock);
    assert.equal(turns.isSpent(), false);
    clock.advance(SLICE_MS - 1);
    assert.equal(turns.isSpent(), false);
    clock.advance(1);
    assert.equal(turns.isSpent(), true);
    await clock.turn();
    assert.equal(turns.isSpent(), false);
  });

  test('time without a reader is not counted', async () => {
    const clock = new TurnClock();
    const turns = new ReadTurns(clock);
    turns.isSpent();
    await clock.turn();
    clock.advance(1000);
    assert.equal(turns.isSpent(), false);
  });

  test('waiting readers continue in their order, in each turn as long as it has time', async () => {
    const clock = new TurnClock();
    const turns = new ReadTurns(clock);
    turns.isSpent();
    clock.advance(SLICE_MS);
    const seen: string[] = [];
    const reader = (name: string, leftMs: number): void => {
      turns.wait(() => {
        seen.push(name);
        clock.advance(2);
        if (leftMs > 2) reader(name, leftMs - 2);
      });
    };
    reader('a', 4);
    reader('b', 2);
    reader('c', 2);
    reader('d', 2);
    await clock.turn();
    assert.deepEqual(seen.splice(0), ['a', 'b', 'c']);
    assert.equal(turns.isSpent(), true, 'bytes that come now are for later');
    reader('e', 2);
    await clock.turn();
    assert.deepEqual(seen.splice(0), ['d', 'a', 'e']);
    await clock.turn();
    assert.deepEqual(seen, []);
    assert.equal(turns.isSpent(), false);
  });

  test('a reader that waits again waits for the next turn, even if this one has time left', async () => {
    const clock = new TurnClock();
    const turns = new ReadTurns(clock);
    turns.isSpent();
    let calls = 0;
    const again = (): void => {
      calls++;
      turns.wait(again);
    };
    turns.wait(again);
    await clock.turn();
    assert.equal(calls, 1);
    await clock.turn();
    assert.equal(calls, 2);
  });
});
