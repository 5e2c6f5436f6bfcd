import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ABSENT, LATE_MS, Register } from '../../sim/world/register.ts';

test('what went with the thing that it was in is not found again, but where that is said, for a time', () => {
  let nowMs = 1000;
  const register = new Register(() => nowMs);
  const set = (value: string): void => {
    register.begin(value);
    register.done();
  };
  set('a');
  register.begin('b');
  register.mayBeDone();
  register.reset(true);
  for (const value of ['a', 'b', ABSENT]) assert.ok(register.mayBe(value), value);
  assert.ok(register.isReset);
  nowMs += LATE_MS + 1;
  set('c');
  assert.deepEqual(
    ['a', 'b', ABSENT, 'c'].map((value) => register.mayBe(value)),
    [false, false, false, true],
  );
  register.reset(false);
  assert.deepEqual([register.mayBe('c'), register.known], [false, ABSENT]);
});
