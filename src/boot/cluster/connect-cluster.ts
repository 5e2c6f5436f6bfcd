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
import { openTogether } from './open-parts.ts';

/** INVALID_ARGUMENT for wrong addresses and files; FAILED_PRECONDITION where no cluster has started there. */
export async function connectCluster(options: ClusterAccess): Promise<Connection> {
  const { etcd, secret, tls } = await readAccess(options);
  const requestBudget = new ByteBudget(DEFAULT_SETTINGS.requestBytes);
  const { logger, lock } = options;
  const machine = { clock: systemClock, random: systemRandom, logger, metrics: new Metrics(), requestBudget };
  return openTogether(async (parts) => {
    const lockService = parts.add(await openEtcdLockService(etcd));
    const cluster = await identityOf(lockService);
    if (cluster === undefined) throw new BigtableError(Code.FAILED_PRECONDITION, `no cluster has started at ${lock}`);
    const identity = { name: 'a client', cluster, role: 'client' };
    const transport = new NetworkTransport({ env: machine, codec: CALL_CODEC, identity, secret, tls });
    parts.add({ close: () => transport.close(0) });
    const nothing = { fileSystem: new MemoryFileSystem(), workers: new InlineWorkers({}), codecs: nativeCodecs() };
    const env = { ...machine, ...nothing, lockService, transport };
    return { service: parts.add(await Client.open({ env, limits: LIMITS.default })), env: machine };
  });
}
