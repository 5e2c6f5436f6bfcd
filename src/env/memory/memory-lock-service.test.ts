import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lockServiceContract } from '../../../test/contracts/lock-service-contract.ts';
import { lockServiceOverPort } from '../../../test/contracts/over-port.ts';
import type { LockEvent } from '../seams/lock-service.ts';
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

describe('MemoryLockService', () => {
  test('leases hold for ever unless a test says otherwise', async () => {
    const service = new MemoryLockService();
    const session = await service.openSession();
    assert.equal(service.leaseDeadlineMs(session), Number.POSITIVE_INFINITY);
    service.setLeaseDeadlineMs(session, 1234);
    assert.equal(service.leaseDeadlineMs(session), 1234);
    assert.ok(await service.tryAcquire('l', session), 'the session itself continues');
    await service.expireSession(session);
    assert.equal(service.leaseDeadlineMs(session), Number.NEGATIVE_INFINITY);
  });

  test('an expired session is reported to every watcher, last, and a closed one is not', async () => {
    const service = new MemoryLockService();
    const reported: LockEvent[] = [];
    service.watch('elsewhere/', (event) => reported.push(event));
    service.watch('l', (event) => reported.push(event));
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
    const stop = service.watch('', () => heard++);
    service.watch('', () => stop());
    const late = service.watch('', () => {
      late();
      heard += 10;
    });
    await service.write('a', new Uint8Array(0));
    await service.write('a', new Uint8Array(0));
    await turns();
    assert.equal(heard, 11);
  });
});

async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await undefined;
}
