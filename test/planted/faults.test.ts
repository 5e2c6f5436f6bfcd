/**
 * Planted faults: wrong states, one at a time. The operation that meets one must stop with an AssertionError instead of
 * going on to write, list or count what is wrong. Each operation also runs without its fault, and must succeed.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AssertionError, checksInvariants } from '../../src/base/index.ts';
import { COMMITLOG_FAULTS } from './commitlog.ts';
import { ENV_FAULTS, WIRE_FAULTS } from './env-and-wire.ts';
import type { Fault } from './fault.ts';
import { LOCATOR_FAULTS } from './locator.ts';
import { MASTER_FAULTS } from './master.ts';
import { MEMTABLE_FAULTS } from './memtable.ts';
import { METADATA_FAULTS } from './metadata.ts';
import { SSTABLE_FAULTS } from './sstable.ts';
import { TABLET_FAULTS } from './tablet.ts';
import { TABLETSERVER_FAULTS } from './tabletserver.ts';

const ROOMS: Readonly<Record<string, readonly Fault[]>> = {
  env: ENV_FAULTS,
  wire: WIRE_FAULTS,
  tablet: TABLET_FAULTS,
  memtable: MEMTABLE_FAULTS,
  sstable: SSTABLE_FAULTS,
  commitlog: COMMITLOG_FAULTS,
  metadata: METADATA_FAULTS,
  locator: LOCATOR_FAULTS,
  tabletserver: TABLETSERVER_FAULTS,
  master: MASTER_FAULTS,
};
const MIN_FAULTS_PER_ROOM = 4;
const MIN_FAULTS = 40;

/** The error, or its cause where the failure of an invariant ends more than the call. */
function assertionIn(error: unknown): AssertionError | undefined {
  if (error instanceof AssertionError) return error;
  return error instanceof Error && error.cause !== undefined ? assertionIn(error.cause) : undefined;
}

for (const [room, faults] of Object.entries(ROOMS)) {
  describe(`a planted fault in ${room} is noticed`, () => {
    for (const { fault, message, run } of faults) {
      test(fault, async () => {
        await run(false);
        await assert.rejects(
          async () => run(true),
          (error) => {
            const tripped = assertionIn(error);
            assert.ok(tripped, `no AssertionError: ${error}`);
            assert.match(tripped.message, message);
            return true;
          },
        );
      });
    }
  });
}

test('every room has faults enough, and the costly checks are on', () => {
  assert.ok(checksInvariants, 'to be run with --import ./scripts/lib/check-invariants.mjs');
  const counts = Object.values(ROOMS).map((faults) => faults.length);
  assert.ok(counts.every((count) => count >= MIN_FAULTS_PER_ROOM));
  assert.ok(counts.reduce((sum, count) => sum + count) >= MIN_FAULTS);
});
