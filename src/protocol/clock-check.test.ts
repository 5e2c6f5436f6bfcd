import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code, unavailable } from '../base/index.ts';
import {
  ByteBudget,
  type Clock,
  ManualClock,
  MemoryLockService,
  requestContext,
  type Transport,
} from '../env/index.ts';
import { checkClock } from './clock-check.ts';
import { encodePeerFile, MASTER_PATH, PROTOCOL, type ProtocolVersion } from './version.ts';

const context = requestContext({ budget: new ByteBudget(1000) });

interface Call {
  readonly thereMs: number;
  readonly backMs: number;
}

/** A process whose wall clock is `offsetMs` ahead of the master's, and whose calls take that long in turn. */
async function check(offsetMs: number, calls: readonly Call[], protocol: ProtocolVersion = PROTOCOL) {
  const time = new ManualClock();
  const clock: Clock = { ...bound(time), nowMicros: () => time.nowMicros() + offsetMs * 1000 };
  const lockService = new MemoryLockService();
  await lockService.write(MASTER_PATH, encodePeerFile({ name: 'm1', address: 'master', protocol }));
  let made = 0;
  const transport: Pick<Transport, 'call'> = {
    call: async (address, method) => {
      assert.deepEqual([address, method], ['master', 'clock']);
      const call = calls[made++];
      if (call === undefined) throw unavailable('the master is gone');
      time.advance(call.thereMs);
      const nowMicros = time.nowMicros();
      time.advance(call.backMs);
      return { nowMicros };
    },
  };
  const outcome = await checkClock({ lockService, clock, transport: transport as Transport }, context).catch(
    (error: unknown) => {
      assert.ok(error instanceof BigtableError && error.code === Code.FAILED_PRECONDITION, String(error));
      return error;
    },
  );
  return { outcome, made };
}

function bound(clock: ManualClock): Clock {
  return {
    nowMicros: () => clock.nowMicros(),
    monotonicMs: () => clock.monotonicMs(),
    timer: (delayMs, wake) => clock.timer(delayMs, wake),
    yield: () => clock.yield(),
    slices: clock.slices,
  };
}

describe('the clocks of a process and the master', () => {
  test('are compared to within the duration of the call: only one that surely is off is refused', async () => {
    const call = fc.record({ thereMs: fc.integer({ min: 0, max: 2000 }), backMs: fc.integer({ min: 0, max: 2000 }) });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: -6000, max: 6000 }), fc.tuple(call, call, call), async (offsetMs, calls) => {
        const { outcome, made } = await check(offsetMs, calls);
        const isRefused = outcome instanceof BigtableError;
        if (Math.abs(offsetMs) <= 1000) assert.equal(outcome, true);
        const shortestMs = Math.min(...calls.slice(0, made).map(({ thereMs, backMs }) => thereMs + backMs));
        if (Math.abs(offsetMs) > 1000 + shortestMs) assert.ok(isRefused);
        if (made < 3 && !isRefused) assert.ok(Math.abs(offsetMs) <= 1000, 'a call that decides nothing is repeated');
      }),
    );
  });

  test('a refusal says how much, in which direction, and what to do', async () => {
    const ahead = await check(3200, [{ thereMs: 1, backMs: 1 }]);
    assert.match(
      String(ahead.outcome),
      /the wall clock is 3\.2 s ahead of that of the master m1 at master: more than 1 s/,
    );
    const behind = await check(-1100, [{ thereMs: 1, backMs: 1 }]);
    assert.match(String(behind.outcome), /the wall clock is 1\.1 s behind that of the master m1 .* \(NTP does\)/);
    assert.deepEqual((behind.outcome as BigtableError).details, { clockOffsetMs: -1099 });
  });

  test('are not compared with a master that does not know this process: that is an error', async () => {
    const lockService = new MemoryLockService();
    await lockService.write(MASTER_PATH, encodePeerFile({ name: 'm1', address: 'master', protocol: PROTOCOL }));
    const stranger = new BigtableError(Code.UNAUTHENTICATED, 'another cluster secret');
    const transport = { call: () => Promise.reject(stranger) } as unknown as Transport;
    const parts = { lockService, clock: new ManualClock(), transport };
    await assert.rejects(checkClock(parts, context), { code: Code.UNAUTHENTICATED, message: /another cluster secret/ });
  });

  test('are not compared without a master that can be called', async () => {
    assert.equal((await check(5000, [])).outcome, false);
    assert.equal((await check(5000, [], { ...PROTOCOL, version: 99 })).made, 0);
    const lockService = new MemoryLockService();
    const transport = {} as Transport;
    assert.equal(await checkClock({ lockService, clock: new ManualClock(), transport }, context), false);
  });
});
