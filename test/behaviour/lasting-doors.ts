/**
 * The doors of databases that can be closed and opened again: in this process, through the wire, and through the wire
 * of a server with two threads, or of servers of a cluster.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { type DatabaseSettings, openDatabase } from '../../src/boot/index.ts';
import { type Database, overService } from '../../src/embedded/index.ts';
import { ByteBudget, requestContext } from '../../src/env/index.ts';
import { systemClock } from '../../src/platform/index.ts';
import { startServer, startThreadedServer } from '../../src/server/index.ts';
import { ClusterStorage, openClusterDoors } from './cluster-door.ts';
import { type OpenDoor, through } from './doors.ts';

/** Settings that all of them have. A cluster has a backup store of its own, in memory. */
export type LastingSettings = Partial<Pick<DatabaseSettings, 'hotTabletPercent' | 'keepDeletedMs' | 'backupStore'>>;

export interface LastingDatabase {
  /** Once at a time. On a cluster each call leads to another server. */
  open(): Promise<OpenDoor>;
  remove(): Promise<void>;
}

const BUDGET = new ByteBudget(64 * 1024 * 1024);

/** The database by the library. Its `close` closes the door. */
export async function openLibrary(lasting: LastingDatabase): Promise<Database> {
  const { service, close } = await lasting.open();
  return overService(service, { clock: systemClock, requestBudget: BUDGET }, close);
}

/** The open door of a database; another one after `reopen`. */
export class LastingDoor implements OpenDoor {
  #database!: LastingDatabase;
  #door!: OpenDoor;

  /** Opens the database before the tests of a suite, has `prepare` fill it, and removes it after them. */
  constructor(make: () => Promise<LastingDatabase>, prepare: (door: OpenDoor) => Promise<void>) {
    let alive: NodeJS.Timeout;
    before(async () => {
      alive = setInterval(() => {}, 60_000);
      this.#database = await make();
      this.#door = await this.#database.open();
      await prepare(this);
    });
    after(async () => {
      await this.close();
      await this.#database.remove();
      clearInterval(alive);
    });
  }

  get service(): OpenDoor['service'] {
    return this.#door.service;
  }

  get context(): OpenDoor['context'] {
    return this.#door.context;
  }

  get address(): OpenDoor['address'] {
    return this.#door.address;
  }

  close(): Promise<void> {
    return this.#door.close();
  }

  async reopen(): Promise<void> {
    await this.close();
    this.#door = await this.#database.open();
  }
}

type Open = (directory: string, settings: LastingSettings) => Promise<OpenDoor>;

async function inDirectory(open: Open, settings: LastingSettings): Promise<LastingDatabase> {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-doors-'));
  return { open: () => open(directory, settings), remove: () => rm(directory, { recursive: true }) };
}

async function inProcess(directory: string, settings: LastingSettings): Promise<OpenDoor> {
  const { service, env, close } = await openDatabase({ directory, settings });
  return { service, context: requestContext({ budget: env.requestBudget }), address: undefined, close };
}

async function served(directory: string, settings: LastingSettings): Promise<OpenDoor> {
  const { service, env, close } = await openDatabase({ directory, settings });
  const server = await startServer({ service, env, address: '127.0.0.1:0' });
  return through(server.address, async () => {
    await server.close();
    await close();
  });
}

async function threaded(directory: string, settings: LastingSettings): Promise<OpenDoor> {
  const database = { directory, tabletServers: 2, settings };
  const server = await startThreadedServer({ address: '127.0.0.1:0', database });
  return through(server.address, () => server.close());
}

async function clustered({ backupStore: _ofDirectories, ...settings }: LastingSettings): Promise<LastingDatabase> {
  const storage = new ClusterStorage();
  let opened = 0;
  return {
    open: async () => {
      const { addresses, close } = await openClusterDoors(3, storage, {}, settings);
      return through(addresses[opened++ % addresses.length] as string, close);
    },
    remove: async () => {},
  };
}

export const LASTING_DOORS: readonly {
  readonly name: string;
  make(settings?: LastingSettings): Promise<LastingDatabase>;
}[] = [
  { name: 'in this process', make: (settings = {}) => inDirectory(inProcess, settings) },
  { name: 'a server', make: (settings = {}) => inDirectory(served, settings) },
  { name: 'a server of two threads', make: (settings = {}) => inDirectory(threaded, settings) },
  { name: 'a cluster of three servers', make: (settings = {}) => clustered(settings) },
];
