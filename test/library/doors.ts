/** The two ways to a database that a program has: in this process, and through a server. */
import { connect, openDatabase } from '../../src/boot/index.ts';
import { type Database, open, overService } from '../../src/embedded/index.ts';
import { startServer } from '../../src/server/index.ts';

async function served(): Promise<Database> {
  const { service, env, close } = await openDatabase({ memory: true });
  const server = await startServer({ service, env, address: '127.0.0.1:0' });
  const remote = await connect(server.address);
  return overService(remote.service, remote.env, async () => {
    await remote.close();
    await server.close();
    await close();
  });
}

export const DOORS: readonly { readonly name: string; open(): Promise<Database> }[] = [
  { name: 'in this process', open: () => open(':memory:') },
  { name: 'a server', open: served },
];
