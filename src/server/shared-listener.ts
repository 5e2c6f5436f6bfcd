/**
 * One listening socket for all threads of the process (docs/decisions/0013-threads-and-their-listener.md). It is put where standard input was, at descriptor 0:
 * the only place where a thread that listens on it, and ends, does not close it for all the others.
 *
 * Invariant: the main thread alone opens and closes it. One process has one at a time. POSIX alone.
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
  /** The port is free; connections that nobody has taken yet are cut off. */
  close(): void;
}

/** Listens on the address. To be called before anything else is at work: the socket gets the lowest descriptor that is free. ALREADY_EXISTS where the address is in use. */
export async function openSharedListener(host: string, port: number): Promise<SharedListener> {
  if (platform() === 'win32')
    throw new BigtableError(Code.UNIMPLEMENTED, 'several tablet servers cannot share a port on Windows: use one');
  // the first socket of an event loop makes it open other descriptors, so this one goes before; it tells whether the address is free, too
  const first = await listen(host, port);
  const chosen = portOf(first);
  await closed(first);
  closeSync(LISTENER_FD);
  const second = await listen(host, chosen).catch((error: unknown) => {
    openSync('/dev/null', 'r');
    throw error;
  });
  // this thread takes no connections; the socket stays open
  await closed(second);
  if (!fstatSync(LISTENER_FD).isSocket())
    throw unavailable(
      'the listening socket did not get its place: another part of this program opened a file in that instant',
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
