/**
 * The service behind each door, for tests of what the library's words cannot say: in this process, through the wire,
 * and through the wire of a server with two threads, or of one server of a cluster.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BigtableError } from '../../src/base/index.ts';
import { connect, type DatabaseSettings, openDatabase } from '../../src/boot/index.ts';
import { type RequestContext, requestContext, SeededRandom } from '../../src/env/index.ts';
import { systemClock } from '../../src/platform/index.ts';
import { startServer, startThreadedServer } from '../../src/server/index.ts';
import type { Service } from '../../src/service/index.ts';
import { WireClient } from '../../src/wire/index.ts';
import { openClusterDoors } from './cluster-door.ts';

export interface OpenDoor {
  readonly service: Service;
  readonly context: RequestContext;
  /** The server's address; undefined where there is none. */
  readonly address: string | undefined;
  close(): Promise<void>;
}

/** What a test may ask of the database behind a door. */
export type DoorSettings = Partial<Pick<DatabaseSettings, 'keepDeletedMs'>>;

async function inProcess(settings?: DoorSettings): Promise<OpenDoor> {
  const { service, env, close } = await openDatabase({ memory: true, settings });
  return { service, context: requestContext({ budget: env.requestBudget }), address: undefined, close };
}

export async function through(address: string, after: () => Promise<void>): Promise<OpenDoor> {
  const { service, env, close } = await connect(address);
  return {
    service,
    context: requestContext({ budget: env.requestBudget }),
    address,
    close: async () => {
      await close();
      await after();
    },
  };
}

async function served(settings?: DoorSettings): Promise<OpenDoor> {
  const { service, env, close } = await openDatabase({ memory: true, settings });
  const server = await startServer({ service, env, address: '127.0.0.1:0' });
  return through(server.address, async () => {
    await server.close();
    await close();
  });
}

async function threaded(settings?: DoorSettings): Promise<OpenDoor> {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-doors-'));
  const database = { directory, tabletServers: 2, settings };
  const server = await startThreadedServer({ address: '127.0.0.1:0', database });
  return through(server.address, async () => {
    await server.close();
    await rm(directory, { recursive: true });
  });
}

async function clustered(settings?: DoorSettings): Promise<OpenDoor> {
  const { addresses, close } = await openClusterDoors(3, undefined, undefined, settings);
  return through(addresses[1] as string, close);
}

export const DOORS: readonly {
  readonly name: string;
  readonly isServer: boolean;
  open(settings?: DoorSettings): Promise<OpenDoor>;
}[] = [
  { name: 'in this process', isServer: false, open: inProcess },
  { name: 'a server', isServer: true, open: served },
  { name: 'a server of two threads', isServer: true, open: threaded },
  { name: 'a cluster of three servers', isServer: true, open: clustered },
];

/** A client of a server's door that sends what bytes it likes. `token`: goes with every call. */
export function wireClientOf({ address }: Pick<OpenDoor, 'address'>, seed = 1, token?: string): WireClient {
  return new WireClient({
    address: address as string,
    clock: systemClock,
    random: new SeededRandom(seed),
    errorOf: ({ code, message }) => new BigtableError(code, message),
    ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
  });
}
