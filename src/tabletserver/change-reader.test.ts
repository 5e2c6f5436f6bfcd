import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import { ByteBudget, ManualClock, MemoryFileSystem, requestContext } from '../env/index.ts';
import { ALL_ROWS, type ChangePosition } from '../model/index.ts';
import { ChangeReader } from './change-reader.ts';
import type { ServedTablet } from './tablet-map.ts';

/** Reads on after that place; the server has the tablet for the first looks only. Returns the error. */
async function failureAfter(after: ChangePosition, looks: number): Promise<BigtableError> {
  const row = { pastOwners: [{ server: 'past', epoch: 1, untilMicros: 1, changesFrom: 0 }], changesFrom: 0 };
  const served = { tableId: 't', range: ALL_ROWS, epoch: 2, host: { row } } as unknown as ServedTablet;
  let left = looks;
  const reader = new ChangeReader(
    {
      clock: new ManualClock(),
      fileSystem: new MemoryFileSystem(),
      log: { newestPosition: 0, pendingBytes: 0 },
      retention: { before: () => undefined },
      serverName: 'own',
      isServed: () => left-- > 0,
    },
    served,
    { tableId: 't', range: ALL_ROWS, progress: [{ range: ALL_ROWS, fromMicros: 0, after }], heartbeatMs: 1000 },
    requestContext({ budget: new ByteBudget(1 << 24) }),
  );
  try {
    for await (const _ of reader.read());
  } catch (thrown) {
    if (thrown instanceof BigtableError) return thrown;
    throw thrown;
  }
  assert.fail('the reading has ended');
}

test('a reading waits for memory, and gives it back', async () => {
  const budget = new ByteBudget(1 << 24);
  const context = requestContext({ budget });
  const [clock, fileSystem] = [new ManualClock(), new MemoryFileSystem()];
  const served = { tableId: 't', range: ALL_ROWS, epoch: 2, host: { row: {} } } as unknown as ServedTablet;
  const other = requestContext({ budget }).reservation;
  for (let held = 0; held < 16; held++) assert.ok(other.tryGrow(1 << 20));
  const reader = new ChangeReader(
    {
      clock,
      fileSystem,
      log: { newestPosition: 0, pendingBytes: 0 },
      retention: { before: () => undefined },
      serverName: 'own',
      isServed: () => true,
    },
    served,
    {
      tableId: 't',
      range: ALL_ROWS,
      progress: [{ range: ALL_ROWS, fromMicros: 0, after: undefined }],
      heartbeatMs: 300,
    },
    context,
  );
  const batches = reader.read();
  const next = async () => {
    let batch: Awaited<ReturnType<typeof batches.next>> | undefined;
    const pulled = batches.next().then((result) => (batch = result));
    for (; batch === undefined; await new Promise((resolve) => setImmediate(resolve))) clock.advance(50);
    return pulled;
  };
  // it says that it is there
  const heartbeat = await next();
  assert.ok(!heartbeat.done && heartbeat.value.changes.length === 0);
  assert.equal(context.reservation.heldBytes, 0);
  other.release();
  await next();
  assert.equal(context.reservation.heldBytes, 0);
  await batches.return();
  assert.equal(budget.usedBytes, 0);
});

describe('a place that is not kept', () => {
  const places = [
    ['of an owner that the row does not name', { server: 'next', epoch: 3, position: 1, record: 0, row: 0 }],
    ['in a log that was deleted', { server: 'past', epoch: 1, position: 1, record: 0, row: 0 }],
  ] as const;
  for (const [what, place] of places) {
    test(`${what} is out of range where the server has the tablet`, async () => {
      assert.equal((await failureAfter(place, 9)).code, Code.OUT_OF_RANGE);
    });

    test(`${what} is looked for at the tablet's next owner where the server has it no more`, async () => {
      const { code, details } = await failureAfter(place, 0);
      assert.deepEqual([code, details.notServing], [Code.UNAVAILABLE, true]);
    });
  }
});
