/**
 * One listening socket for all threads of the process (docs/decisions/0013-threads-and-their-listener.md). It replaces
 * standard input at descriptor 0: the only descriptor that a thread which listens on it does not close for all others
 * when it ends.
 *
 * Invariant: only the main thread opens and closes it. One process has one at a time. POSIX only.
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { platform } from 'node:os';
import { BigtableError, Code, unavailable } from '../base/index.ts';

/** The descriptor that Node, by libuv, never closes for a socket. */
export const LISTENER_FD = 0;
const BACKLOG = 1024;

export interface SharedListener {
  readonly port: number;
  /** Frees the port. Connections that no thread has accepted yet are closed. */
  close(): void;
}

/**
 * Listens on the address. Call it before anything else runs: the socket gets the lowest free descriptor. ALREADY_EXISTS
 * where the address is in use.
 */
export async function openSharedListener(host: string, port: number): Promise<SharedListener> {
  if (platform() === 'win32')
    throw new BigtableError(Code.UNIMPLEMENTED, 'several tablet servers cannot share a port on Windows: use one');
  // the first socket of an event loop makes it open other descriptors, so one is opened before; it finds the address in
  // use, too
  const first = await listen(host, port);
  const chosen = portOf(first);
  await closed(first);
  closeSync(LISTENER_FD);
  const second = await listen(host, chosen).catch((error: unknown) => {
    openSync('/dev/null', 'r');
    throw error;
  });
  // this thread accepts no connections; the socket stays open
  await closed(second);
  if (!fstatSync(LISTENER_FD).isSocket())
    throw unavailable(
      'the listening socket did not get descriptor 0: another part of this program opened a file in that instant',
    );
  return {
    port: chosen,
    close: () => {
      closeSync(LISTENER_FD);
      openSync('/dev/null', 'r');
    },
  };
}

function listen(host: string, port: number): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const inUse = error.code === 'EADDRINUSE';
      const message = inUse
        ? `${host}:${port} is already in use`
        : `cannot listen on ${host}:${port}: ${error.message}`;
      reject(new BigtableError(inUse ? Code.ALREADY_EXISTS : Code.UNAVAILABLE, message, { cause: error }));
    });
    server.listen({ host, port, backlog: BACKLOG }, () => resolve(server));
  });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw unavailable('the listening socket has no port');
  return address.port;
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
