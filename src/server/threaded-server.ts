/**
 * A server with one tablet server per thread. Each thread takes connections from the one listening socket, serves its
 * own rows, and calls the other threads for theirs. A connection goes to a thread that has fewest. The threads
 * share the limits of connections evenly, as they share memory.
 */
import { mustThreadModule, openThreadedDatabase, type ThreadedDatabase } from '../boot/index.ts';
import { silentLogger } from '../env/index.ts';
import { addressText } from '../wire/index.ts';
import { checkedAddress, checkedConnections, type RunningServer, type ServerOptions } from './server.ts';
import { LISTENER_FD, openSharedListener } from './shared-listener.ts';
import { warnOfFiles } from './warn-of-files.ts';

export interface ThreadedServerOptions
  extends Omit<
    ServerOptions,
    'service' | 'passer' | 'decoder' | 'env' | 'connections' | 'listenerFd' | 'sharers' | 'compactionsAtOnce'
  > {
  readonly database: Omit<Parameters<typeof openThreadedDatabase>[0], 'module'>;
}

/** The options of the server in each thread. */
export type ThreadServerOptions = Omit<ServerOptions, 'service' | 'passer' | 'decoder' | 'env' | 'connections'>;

export interface ThreadedServer extends RunningServer {
  readonly database: ThreadedDatabase;
}

/** Opens the database and serves it; `close` ends both. Fails as `startServer` and `openThreadedDatabase` do. */
export async function startThreadedServer({
  database: open,
  ...options
}: ThreadedServerOptions): Promise<ThreadedServer> {
  const { host, port } = checkedAddress(options);
  const { tabletServers, logger = silentLogger } = open;
  const compactionsAtOnce = open.settings?.compactionsAtOnce ?? 1;
  const maxConnections = checkedConnections({ ...options, compactionsAtOnce }, tabletServers, logger);
  const listener = await openSharedListener(host, port);
  const address = addressText(host, listener.port);
  let database: ThreadedDatabase | undefined;
  try {
    database = await openThreadedDatabase({ ...open, module: mustThreadModule('./thread-entry.ts', import.meta.url) });
    await warnOfFiles(options, database.env.logger);
    await database.listen({
      ...options,
      maxConnections,
      compactionsAtOnce,
      sharers: tabletServers,
      address,
      listenerFd: LISTENER_FD,
    } satisfies ThreadServerOptions);
  } catch (error) {
    listener.close();
    await database?.close();
    throw error;
  }
  let closing: Promise<void> | undefined;
  const close = async (opened: ThreadedDatabase): Promise<void> => {
    await opened.stopListening();
    listener.close();
    await opened.close();
  };
  const opened = database;
  return { address, database: opened, close: () => (closing ??= close(opened)) };
}
