import assert from 'node:assert/strict';

/** More than any wait of these tests takes: leases last 10 s, calls are tried for 3 s. */
const BOUND_MS = 60_000;

/** Resolves when it holds. Fails as the question does, and after a minute, saying what it waits for. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + BOUND_MS;
  while (!(await holds())) {
    assert.ok(performance.now() < endMs, `not within a minute: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
