import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lockServiceContract } from '../../../test/contracts/lock-service-contract.ts';
import { sentAgain } from '../../../test/contracts/lost-answers.ts';
import { lockServiceOverPort } from '../../../test/contracts/over-port.ts';
import { inSimulatedTime } from '../../../test/simulated-time.ts';
import { sleep } from '../seams/clock.ts';
import type { LockEvent } from '../seams/lock-service.ts';
import { ManualClock } from './manual-clock.ts';
import { MemoryLockService } from './memory-lock-service.ts';

lockServiceContract('memory', async () => {
  const service = new MemoryLockService();
  const { proxy: other, close } = lockServiceOverPort(service);
  return { service, other, endSession: (sessionId) => service.expireSession(sessionId), close: async () => close() };
});

lockServiceContract('memory, over a port', async () => {
  const service = new MemoryLockService();
  const [one, two] = [lockServiceOverPort(service), lockServiceOverPort(service)];
  return {
    service: one.proxy,
    other: two.proxy,
    endSession: (sessionId) => service.expireSession(sessionId),
    close: async () => {
      one.close();
      two.close();
    },
  };
});

lockServiceContract('memory, two adapters, every call applied and its answer lost', async () => {
  const service = new MemoryLockService();
  const [one, two] = [lockServiceOverPort(service), lockServiceOverPort(service)];
  return {
    service: sentAgain(one.proxy),
    other: sentAgain(two.proxy),
    endSession: (sessionId) => service.expireSession(sessionId),
    close: async () => {
      one.close();
      two.close();
    },
  };
});

describe('MemoryLockService', () => {
  test('a session with a lease that is cut off loses the lease first, and then its locks', async () => {
    const clock = new ManualClock();
    const service = new MemoryLockService({ clock, leaseMs: 10_000 });
    const session = await service.openSession();
    const lock = await service.tryAcquire('l', session);
    assert.ok(lock);
    await inSimulatedTime(clock, sleep(clock, 60_000));
    assert.equal(service.leaseHolds(session), true);
    service.cut(session, true);
    while (service.leaseHolds(session)) await inSimulatedTime(clock, sleep(clock, 10));
    assert.deepEqual(await service.holder('l'), lock);
    service.cut(session, false);
    assert.deepEqual([service.leaseHolds(session), await service.holder('l')], [true, lock], 'it never was free');
    service.cut(session, true);
    await inSimulatedTime(clock, sleep(clock, 10_050));
    assert.deepEqual([service.leaseHolds(session), await service.holder('l')], [false, undefined]);
  });

  test('an expired session is reported to every watcher, last, and a closed one is not', async () => {
    const service = new MemoryLockService();
    const reported: LockEvent[] = [];
    const report = (event: LockEvent): void => {
      if (event.kind !== 'established') reported.push(event);
    };
    service.watch('elsewhere/', report);
    service.watch('l', report);
    const [one, two] = [await service.openSession(), await service.openSession()];
    await service.tryAcquire('l', one);
    await service.expireSession(one);
    await service.closeSession(two);
    await service.expireSession(two);
    await turns();
    assert.deepEqual(reported, [
      { kind: 'lock-lost', path: 'l', sessionId: one },
      { kind: 'session-expired', sessionId: one },
      { kind: 'session-expired', sessionId: one },
    ]);
  });

  test('a watch stopped between a change and its report receives nothing', async () => {
    const service = new MemoryLockService();
    let heard = 0;
    const watch = (onChange: () => void) => service.watch('', ({ kind }) => kind !== 'established' && onChange());
    const stop = watch(() => heard++);
    watch(() => stop());
    const late = watch(() => {
      late();
      heard += 10;
    });
    await service.write('a', new Uint8Array(0));
    await service.write('a', new Uint8Array(0));
    await turns();
    assert.equal(heard, 11);
  });

  test('changes that are not reported leave a gap, which is', async () => {
    const service = new MemoryLockService();
    const reported: LockEvent['kind'][] = [];
    service.watch('a', ({ kind }) => reported.push(kind));
    const end = service.missChanges();
    await service.write('a', new Uint8Array(0));
    end();
    await service.remove('a');
    await turns();
    assert.deepEqual(reported, ['established', 'gap', 'deleted']);
  });
});

async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await undefined;
}
