import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SLICE_MS } from '../../env/index.ts';
import { TurnClock } from './fixtures.ts';
import { ReadTurns } from './read-turns.ts';

describe('turns of reading', () => {
  test('a turn has time for SLICE_MS, whoever reads', async () => {
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

  test('time in which nobody reads is not counted', async () => {
    const clock = new TurnClock();
    const turns = new ReadTurns(clock);
    turns.isSpent();
    await clock.turn();
    clock.advance(1000);
    assert.equal(turns.isSpent(), false);
  });

  test('those who wait go on in their order, as many in a turn as it has time for', async () => {
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

  test('who waits again waits for the next turn, though this one has time left', async () => {
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
