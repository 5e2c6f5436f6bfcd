import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

const NAME = 'EDUBBA_CHECK_INVARIANTS';

/** The module as a process finds it whose global has that value. */
async function loaded(value: unknown, load: number): Promise<boolean> {
  const before: unknown = Reflect.get(globalThis, NAME);
  Reflect.set(globalThis, NAME, value);
  try {
    const module = new URL(import.meta.url.replace('invariants.test', 'invariants'));
    module.search = `?load=${load}`;
    return ((await import(module.href)) as typeof import('./invariants.ts')).checksInvariants;
  } finally {
    Reflect.set(globalThis, NAME, before);
  }
}

describe('the switch for costly invariants', () => {
  test('is off unless it is set to true before the module is loaded', async () => {
    const answers = [await loaded(undefined, 1), await loaded('true', 2), await loaded(true, 3)];
    assert.deepEqual(answers, [false, false, true]);
  });
});
