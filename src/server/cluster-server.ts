/**
 * A tablet server of a cluster with its front door: it answers the Cloud Bigtable API for the rows of all servers, and
 * passes on calls for those of others.
 */
import { type DatabaseSettings, type RoleClusterOptions, startTabletServer } from '../boot/index.ts';
import { checkedAddress, type RunningServer, type ServerOptions, startServer } from './server.ts';

export interface ClusterServerOptions
  extends Omit<
    ServerOptions,
    'service' | 'passer' | 'decoder' | 'env' | 'connections' | 'listenerFd' | 'sharers' | 'compactionsAtOnce'
  > {
  readonly cluster: RoleClusterOptions;
  /** Default: those of a library. */
  readonly settings?: Partial<DatabaseSettings>;
}

export interface ClusterServer extends RunningServer {
  /** HOST:PORT by which the cluster's other processes reach it. */
  readonly clusterAddress: string;
}

/** Resolves when it answers; `close` ends the door first, then gives the tablets up. */
export async function startClusterServer({
  cluster,
  settings = {},
  ...door
}: ClusterServerOptions): Promise<ClusterServer> {
  // before anything is opened
  checkedAddress(door);
  const server = await startTabletServer(cluster, settings);
  const { service, passer, decoder, env, clusterAddress } = server;
  const { compactionsAtOnce = 1 } = settings;
  const opened = await startServer({ ...door, compactionsAtOnce, service, passer, decoder, env }).catch(
    async (error: unknown) => {
      await server.close();
      throw error;
    },
  );
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => opened.close().finally(() => server.close());
  return { address: opened.address, clusterAddress, close: () => (closing ??= close()) };
}
