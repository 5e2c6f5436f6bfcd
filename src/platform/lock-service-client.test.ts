import { lockServiceContract } from '../../test/contracts/lock-service-contract.ts';
import { MemoryLockService } from '../env/index.ts';
import { portPair } from './fixtures.ts';
import { LockServiceClient } from './lock-service-client.ts';
import { LockServiceHost, sharedLeases } from './lock-service-host.ts';
import { systemClock } from './system-clock.ts';

async function overPort() {
  const { here, there, close } = portPair(systemClock);
  const memory = new MemoryLockService();
  const leases = sharedLeases();
  const host = new LockServiceHost(memory, leases);
  await there.transport.serve('lock-service', host);
  here.transport.route('lock-service', here.peer);
  const client = new LockServiceClient({ transport: here.transport, address: 'lock-service', leases, budget: here.budget });
  return { memory, leases, host, client, close };
}

lockServiceContract('memory, across threads', async () => {
  const { memory, client, close } = await overPort();
  return { service: client, endSession: (id) => memory.expireSession(id), close: async () => close() };
});
