import { after, before } from 'node:test';
import { lockServiceContract } from '../contracts/lock-service-contract.ts';
import { sentAgain } from '../contracts/lost-answers.ts';
import { EtcdCluster } from './etcd-cluster.ts';
import { newPrefix, openAt } from './fixtures.ts';

let etcd: EtcdCluster;
before(async () => {
  etcd = await EtcdCluster.start();
});
after(() => etcd.close());

for (const [name, seenBy] of [
  ['etcd, two adapters', (service) => service],
  ['etcd, two adapters, every call applied and its answer lost', sentAgain],
] as const satisfies readonly (readonly [string, typeof sentAgain])[])
  lockServiceContract(name, async () => {
    const prefix = newPrefix();
    const [one, two] = await Promise.all([openAt(etcd.endpoints, prefix), openAt(etcd.endpoints, prefix)]);
    return {
      service: seenBy(one),
      other: seenBy(two),
      endSession: (sessionId) => one.closeSession(sessionId),
      close: async () => {
        await one.close();
        await two.close();
      },
    };
  });
