/** The roles and the client of a cluster, whose code is loaded on demand: a database of one process needs none. */
import type { Connection } from '../open/connect.ts';
import type { DatabaseSettings } from '../settings/settings.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { MasterOptions, RoleClusterOptions, RunningMaster, RunningTabletServer } from './start-roles.ts';

/** The client library of a cluster: see connect-cluster.ts. */
export async function connectCluster(options: ClusterAccess): Promise<Connection> {
  return (await import('./connect-cluster.ts')).connectCluster(options);
}

/** A tablet server of a cluster: see start-roles.ts. */
export async function startTabletServer(
  options: RoleClusterOptions,
  given?: Partial<DatabaseSettings>,
): Promise<RunningTabletServer> {
  return (await import('./start-roles.ts')).startTabletServer(options, given);
}

/** A master of a cluster: see start-roles.ts. */
export async function startMaster(options: RoleClusterOptions, given?: MasterOptions): Promise<RunningMaster> {
  return (await import('./start-roles.ts')).startMaster(options, given);
}
