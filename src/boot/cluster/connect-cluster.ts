/**
 * The client library of a cluster: it finds each row's tablet server itself, and calls it directly. It needs the lock
 * service and the cluster's secret, as the cluster's own processes do, and not the store.
 */
import { BigtableError, Code } from '../../base/index.ts';
import { Client } from '../../client/index.ts';
import { ByteBudget, InlineWorkers, MemoryFileSystem, Metrics } from '../../env/index.ts';
import { LIMITS } from '../../model/index.ts';
import { NetworkTransport } from '../../network/index.ts';
import { nativeCodecs, openEtcdLockService, systemClock, systemRandom } from '../../platform/index.ts';
import { CALL_CODEC } from '../../protocol/index.ts';
import type { Connection } from '../open/connect.ts';
import { DEFAULT_SETTINGS } from '../settings/settings.ts';
import { type ClusterAccess, readAccess } from './cluster-access.ts';
import { identityOf } from './cluster-identity.ts';

/** INVALID_ARGUMENT for wrong addresses and files; FAILED_PRECONDITION where no cluster has started there. */
export async function connectCluster(options: ClusterAccess): Promise<Connection> {
  const { etcd, secret, tls } = await readAccess(options);
  const lockService = await openEtcdLockService(etcd);
  const metrics = new Metrics();
  const requestBudget = new ByteBudget(DEFAULT_SETTINGS.requestBytes);
  const machine = { clock: systemClock, random: systemRandom, logger: options.logger, metrics, requestBudget };
  let transport: NetworkTransport | undefined;
  try {
    const cluster = await identityOf(lockService);
    if (cluster === undefined)
      throw new BigtableError(Code.FAILED_PRECONDITION, `no cluster has started at ${options.lock}`);
    const identity = { name: 'a client', cluster, role: 'client' };
    transport = new NetworkTransport({ env: machine, codec: CALL_CODEC, identity, secret, tls });
    const calling = transport;
    const nothing = { fileSystem: new MemoryFileSystem(), workers: new InlineWorkers({}), codecs: nativeCodecs() };
    const env = { ...machine, ...nothing, lockService, transport };
    const client = await Client.open({ env, limits: LIMITS.default });
    return {
      service: client,
      env: machine,
      close: async () => {
        client.close();
        await calling.close(0).finally(() => lockService.close());
      },
    };
  } catch (error) {
    await transport?.close(0);
    await lockService.close();
    throw error;
  }
}
