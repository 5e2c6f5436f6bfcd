/**
 * A server with a tablet server a thread: each thread takes connections from the one listening socket, answers the rows it serves itself, and passes the
 * rest on to the threads that serve them. Which thread gets a connection is decided by the one that is free first. The threads share the limits of
 * connections evenly, as they do memory.
 */
import { mustThreadModule, openThreadedDatabase, type ThreadedDatabase } from '../boot/index.ts';
import { silentLogger } from '../env/index.ts';
import { checkedAddress, checkedConnections, type RunningServer, type ServerOptions } from './server.ts';
import { LISTENER_FD, openSharedListener } from './shared-listener.ts';
import { warnOfFiles } from './warn-of-files.ts';

export interface ThreadedServerOptions
  extends Omit<ServerOptions, 'service' | 'env' | 'listenerFd' | 'sharers' | 'compactionsAtOnce'> {
  readonly database: Omit<Parameters<typeof openThreadedDatabase>[0], 'module'>;
}

/** The options of the server in each thread. */
export type ThreadServerOptions = Omit<ServerOptions, 'service' | 'env'>;

export interface ThreadedServer extends RunningServer {
  readonly database: ThreadedDatabase;
}

/** Opens the database and serves it; `close` ends both. Fails as `startServer` and `openThreadedDatabase` do. */
export async function startThreadedServer({ database: open, ...door }: ThreadedServerOptions): Promise<ThreadedServer> {
  const { host, port } = checkedAddress(door);
  const { tabletServers, logger = silentLogger } = open;
  const compactionsAtOnce = open.settings?.compactionsAtOnce ?? 1;
  const maxConnections = checkedConnections({ ...door, compactionsAtOnce }, tabletServers, logger);
  const listener = await openSharedListener(host, port);
  const address = host.includes(':') ? `[${host}]:${listener.port}` : `${host}:${listener.port}`;
  let database: ThreadedDatabase | undefined;
  try {
    database = await openThreadedDatabase({ ...open, module: mustThreadModule('./thread-entry.ts', import.meta.url) });
    await warnOfFiles(door, database.env.logger);
    await database.listen({
      ...door,
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
