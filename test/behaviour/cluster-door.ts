/**
 * A cluster of tablet servers in this process, each with a front door of its own: all of them over one store and one
 * lock service in memory, so that what one door changes comes to the others as in a cluster of machines.
 */
import { Client } from '../../src/client/index.ts';
import {
  ByteBudget,
  InlineWorkers,
  LocalTransport,
  MemoryFileSystem,
  MemoryLockService,
  Metrics,
  silentLogger,
} from '../../src/env/index.ts';
import { rawCallHandler, RequestDecoder } from '../../src/grpc/index.ts';
import { Master } from '../../src/master/index.ts';
import { LIMITS } from '../../src/model/index.ts';
import { nativeCodecs, systemClock, systemRandom } from '../../src/platform/index.ts';
import { MemoryLayerCache } from '../../src/resources/index.ts';
import { type ServerOptions, startServer } from '../../src/server/index.ts';
import { COMPACTION_TASK, type CompactionJob, compactFiles } from '../../src/tablet/index.ts';
import { TabletServer, type TabletServerSettings } from '../../src/tabletserver/index.ts';
import { SETTINGS } from '../cluster.ts';

export type DoorOptions = Omit<ServerOptions, 'service' | 'env' | 'address' | 'passer' | 'decoder'>;

/** What stays when the processes of a cluster end. */
export class ClusterStorage {
  readonly fileSystem = new MemoryFileSystem();
  readonly lockService = new MemoryLockService();
  readonly backupStore = new MemoryFileSystem();
}

export interface ClusterDoors {
  /** One address a server. */
  readonly addresses: readonly string[];
  close(): Promise<void>;
}

export async function openClusterDoors(
  servers: number,
  { fileSystem, lockService, backupStore }: ClusterStorage = new ClusterStorage(),
  options: DoorOptions = {},
  { keepDeletedMs = 0, ...settings }: Partial<TabletServerSettings> & { readonly keepDeletedMs?: number } = {},
): Promise<ClusterDoors> {
  const codecs = nativeCodecs();
  const shared = {
    fileSystem,
    backupStore: async () => backupStore,
    lockService,
    transport: new LocalTransport(systemClock),
    clock: systemClock,
    random: systemRandom,
    codecs,
    logger: silentLogger,
    workers: new InlineWorkers({
      [COMPACTION_TASK]: (job: CompactionJob) => compactFiles({ fileSystem, codecs, clock: systemClock }, job),
    }),
  };
  const envOf = () => ({ ...shared, metrics: new Metrics(), requestBudget: new ByteBudget(1 << 27) });
  const closing: (() => Promise<void>)[] = [];
  const addresses: string[] = [];
  for (let index = 0; index < servers; index++) {
    const env = envOf();
    const address = `server-${index}`;
    const memoryLayers = new MemoryLayerCache(env);
    await memoryLayers.start();
    const client = await Client.open({ env, limits: LIMITS.default, memoryLayers });
    const decoder = new RequestDecoder(env.clock);
    const server = await TabletServer.start({
      env,
      address,
      memoryLayers,
      settings: { ...SETTINGS, ...settings },
      rawCalls: rawCallHandler(client.rowsOf(address), env, decoder),
      onDoorFiles: (paths) => client.doorFilesChanged(paths),
    });
    const passer = client.callPasser(address);
    const door = await startServer({ ...options, service: client, env, passer, decoder, address: '127.0.0.1:0' });
    addresses.push(door.address);
    closing.push(async () => {
      await door.close();
      await server.close();
      client.close();
      memoryLayers.stop();
    });
  }
  const master = await Master.start({ env: envOf(), address: 'master', keepDeletedMs });
  await master.assigned;
  return {
    addresses,
    close: async () => {
      await master.close();
      await Promise.all(closing.map((close) => close()));
    },
  };
}
