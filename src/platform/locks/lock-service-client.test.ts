import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lockServiceContract } from '../../../test/contracts/lock-service-contract.ts';
import { sentAgain } from '../../../test/contracts/lost-answers.ts';
import { type LockService, MemoryLockService } from '../../env/index.ts';
import { portPair } from '../fixtures.ts';
import { LockServiceClient } from './lock-service-client.ts';
import { LockServiceHandler, sharedLeases } from './lock-service-handler.ts';
import { systemClock } from '../machine/system-clock.ts';

async function overPort(memory = new MemoryLockService()) {
  const { here, there, close } = portPair(systemClock);
  const leases = sharedLeases();
  const handler = new LockServiceHandler(memory, leases);
  await there.transport.serve('lock-service', handler);
  here.transport.route('lock-service', here.peer);
  const client = new LockServiceClient({
    transport: here.transport,
    address: 'lock-service',
    leases,
    budget: here.budget,
  });
  return { memory, leases, handler, client, close };
}

for (const [name, seenBy] of [
  ['memory, across threads', (service: LockService) => service],
  ['memory, across threads, every call applied and its answer lost', sentAgain],
] as const)
  lockServiceContract(name, async () => {
    const one = await overPort();
    const two = await overPort(one.memory);
    return {
      service: seenBy(one.client),
      other: seenBy(two.client),
      endSession: (id) => one.memory.expireSession(id),
      close: async () => {
        one.close();
        two.close();
      },
    };
  });

describe('LockServiceClient', () => {
  test('a lease holds in shared memory: when the handler removes it the thread sees that in the same instant', async () => {
    const { client, handler, close } = await overPort();
    const session = await client.openSession();
    assert.equal(client.leaseHolds(session), true);
    const closing = handler.close();
    assert.equal(client.leaseHolds(session), false, 'before the session has ended');
    await closing;
    await assert.rejects(client.openSession(), /none after its end/);
    close();
  });

  test('the end of the handler ends the sessions of its thread, and no others', async () => {
    const { memory, client, handler, close } = await overPort();
    const session = await client.openSession();
    const other = await memory.openSession();
    assert.ok(await client.tryAcquire('mine', session));
    assert.ok(await memory.tryAcquire('theirs', other));
    await handler.close();
    assert.equal(await memory.holder('mine'), undefined);
    assert.ok(await memory.holder('theirs'));
    close();
  });

  test('a watch ends with an event when the other thread does, unless it was stopped', async () => {
    const { client, close } = await overPort();
    const events: string[] = [];
    client.watch('', ({ kind }) => events.push(kind));
    const stop = client.watch('', ({ kind }) => events.push(kind));
    for (let i = 0; i < 50 && events.length < 2; i++) await systemClock.yield();
    stop();
    close();
    for (let i = 0; i < 50 && !events.includes('ended'); i++) await systemClock.yield();
    assert.deepEqual(events, ['established', 'established', 'ended']);
  });

  test('a closed session holds no lease, and its slot in memory is free for another', async () => {
    const { client, leases, close } = await overPort();
    for (let i = 0; i < 3; i++) {
      const session = await client.openSession();
      await client.closeSession(session);
      assert.equal(client.leaseHolds(session), false);
    }
    assert.ok(leases.every((number) => number === 0));
    close();
  });
});
