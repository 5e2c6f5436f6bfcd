/**
 * A simulated cluster: masters, tablet servers and clients, each a process of its own, built of the real parts. Each
 * tablet server has a front door, which takes calls of clients. A supervisor starts again what has ended, at the same
 * address or at another one.
 */
import { Code, toBigtableError } from '../../src/base/index.ts';
import { Client } from '../../src/client/index.ts';
import { ByteBudget, type Env, InlineWorkers, type Logger, Metrics, type Random, sleep } from '../../src/env/index.ts';
import { rawCallHandler } from '../../src/grpc/index.ts';
import { Master, type SortedLogSizes } from '../../src/master/index.ts';
import { LIMITS } from '../../src/model/index.ts';
import { MemoryLayerCache } from '../../src/resources/index.ts';
import { nativeCodecs } from '../../src/platform/index.ts';
import {
  callMaster,
  decodePeerFile,
  logPathOf,
  MASTER_PATH,
  SERVERS_DIRECTORY,
  type TabletServerCalls,
} from '../../src/protocol/index.ts';
import type { Service } from '../../src/service/index.ts';
import { COMPACTION_TASK, type CompactionJob, compactFiles } from '../../src/tablet/index.ts';
import { TabletServer, type TabletServerSettings } from '../../src/tabletserver/index.ts';
import { DoorClient, doorOf, type DoorParts, FrontDoor } from './front-door.ts';
import { LateCalls } from './late-calls.ts';
import { SimLockService } from './locks.ts';
import { SimNetwork } from './network.ts';
import { type ClockErrors, SimProcess } from './process.ts';
import type { Scheduler } from './scheduler.ts';
import { SimStore } from './store.ts';
import { worldContext } from './world-context.ts';

const KIB = 1 << 10;
const MIB = 1 << 20;

/** Small, so that files, splits and compactions come soon; sooner in some runs than in others. */
function drawSettings(random: Random, { hasSmallParts }: ClusterSize): TabletServerSettings {
  const oneOf = (...values: readonly number[]): number => values[Math.floor(random.float() * values.length)]!;
  return {
    limits: LIMITS.default,
    blockSizeBytes: 512,
    blockCacheBytes: MIB,
    scanCacheBytes: 0,
    indexBytes: MIB,
    inMemoryBytes: MIB,
    logLimitBytes: oneOf(16, 64, 256, 256, 256) * KIB,
    tabletBytes: oneOf(8, 32, 64) * KIB,
    metadataTabletBytes: oneOf(8, 40) * KIB,
    majorCompactionMs: oneOf(10_000, 20_000),
    compactionsAtOnce: oneOf(1, 2, 3),
    // while METADATA is not served no flush ends: little is enough to make writes wait for one
    memtableBytes: oneOf(48, 256, 256, 256, 256, 256) * KIB,
    durability: random.float() < BUFFERED_SHARE ? 'buffered' : 'synced',
    // a tablet of METADATA comes in several parts, between which it may change
    ...(random.float() < SMALL_BATCHES_SHARE && { readBatchBytes: oneOf(500, 2000) }),
    ...(hasSmallParts && { readBatchBytes: oneOf(500, 1000) }),
  };
}

/** The share of runs in which servers have little room: writes and flushes wait, rows are sorted in several runs. */
const NARROW_SHARE = 0.12;

function drawLimits(random: Random, drawn: TabletServerSettings): Partial<TabletServerSettings> {
  if (random.float() >= NARROW_SHARE) return {};
  return {
    memtableBytes: Math.ceil(drawn.memtableBytes / (1 + 15 * random.float())),
    flushLimits: { count: 1 + Math.floor(3 * random.float()), bytes: 1 + Math.floor(8 * KIB * random.float()) },
    rowsSortedAtOnce: 1 + Math.floor(20 * random.float()),
    ...(random.float() < 0.3 && { durability: 'buffered' as const }),
    maxUnsyncedBytes: 1 + Math.floor(KIB * random.float()),
  };
}

/** Logs of the dead are sorted in many parts, in few, or not at all. */
function drawSortedLogs(random: Random): SortedLogSizes {
  const partBytes = [1 * KIB, 4 * KIB, 16 * KIB, 64 * MIB][Math.floor(random.float() * 4)]!;
  return { partBytes, leastBytes: partBytes / 4, leastBytesOfFew: 1.5 * partBytes, leastCallBytes: partBytes };
}

/** The share of runs in which reads come in small parts. */
const SMALL_BATCHES_SHARE = 0.25;

/** The share of runs in which users' writes are acknowledged before they are durable: what they lose is judged less. */
const BUFFERED_SHARE = 0.12;
/** The share of masters whose wait for the lock can be ended in good order. */
const ENDED_STANDBY_SHARE = 0.7;
/** Delay between the end of a role and its next start, at most. */
const MAX_RESTART_MS = 3000;
const OPEN_AGAIN_MS = 500;
const SWEEP_TIMEOUT_MS = 10_000;
/** What calls of clients may hold at a front door: in some runs there is not enough for all. */
const DOOR_BYTES = [2 * KIB, 64 * MIB];
/** Some clients keep so few locations that they lose those of other tables again and again. */
const FEW_LOCATIONS = 3;
const FEW_LOCATIONS_SHARE = 0.15;

export interface ClusterSize {
  readonly masters: number;
  readonly servers: number;
  readonly clients: number;
  /** The wall clocks differ by up to this much, ms. */
  readonly maxOffsetMs: number;
  readonly maxDrift: number;
  /** Reads come in small parts. Default: in some runs. */
  readonly hasSmallParts?: boolean;
  /** Deleted tables are kept that long. Default: they are not. */
  readonly keepDeletedMs?: number | undefined;
  /** Logs keep so much for change streams. Default: that of the product. */
  readonly changeLogBytes?: number | undefined;
  /** Front doors and tablet servers follow views, policies and memory layers. Default: there are none. */
  readonly followsResources?: boolean;
}

/** The front door of a tablet server. */
export interface Door {
  readonly name: string;
  readonly client: Client;
}

/** One place where processes of a kind run, one after another. */
export interface Seat {
  readonly name: string;
  /** The process that runs there now; undefined between two. */
  process: SimProcess | undefined;
  starts: number;
  /** The tablet server that runs there, once it has started. */
  server: TabletServer | undefined;
  /** Closes its front door. */
  closeDoor: (() => Promise<void>) | undefined;
  /** The client side of that door. */
  door: Door | undefined;
  /** The same of a master. */
  master: Master | undefined;
  /** Ends the wait of a master that stands by. */
  standBy: AbortController | undefined;
  /** What the process measures. */
  metrics: Metrics | undefined;
}

export interface ClientSeat {
  readonly process: SimProcess;
  readonly client: Client;
  /** The data API, over the front door of any server. */
  readonly doors: Service;
  readonly env: Env;
}

export class Cluster {
  readonly scheduler: Scheduler;
  readonly network: SimNetwork;
  readonly store: SimStore;
  readonly locks: SimLockService;
  readonly masters: readonly Seat[];
  readonly servers: readonly Seat[];
  readonly clients: ClientSeat[] = [];
  readonly counts = {
    masterStarts: 0,
    serverStarts: 0,
    masterDeaths: 0,
    serverDeaths: 0,
    doorCalls: 0,
    callsPassedOn: 0,
    logsWithLosses: 0,
    lateCalls: 0,
  };
  /** By kind, the faults that have begun. */
  readonly faultCounts: Record<string, number> = {};
  /** Called when a fault begins or ends. */
  onFault: (what: string) => void = () => {};
  /** Called with a row that all clients contend on from now on; undefined: they contend on all rows again. */
  onFocus: (row: string | undefined) => void = () => {};
  /** Called when the tablets that a server serves, or may serve, have changed. */
  onServing: () => void = () => {};
  /** Called, once a log, when those who replay it may miss changes that its server has acknowledged. */
  onLoss: (log: string) => void = () => {};
  /** Called with each lasting file of the lock service that is written, or removed (undefined). */
  onLockFile: (path: string, contents: Uint8Array | undefined) => void = () => {};
  /** Called with each line of a log. */
  onLog: ((process: string, level: string, message: string, fields: object) => void) | undefined;
  readonly #lateCalls: LateCalls;
  readonly #size: ClusterSize;
  readonly #doors: DoorParts;
  readonly #doorBytes: number;
  /** True: servers and masters whose clock is off do not start. */
  readonly #comparesClocks: boolean;
  readonly #codecs = nativeCodecs();
  readonly #draw;
  readonly #sortedLogs: SortedLogSizes;
  readonly #settings: TabletServerSettings;
  /** Called, by log, when it is fenced. */
  readonly #awaitedFences = new Map<string, () => void>();
  /** Logs of servers that ended in good order. */
  readonly #wholeLogs = new Set<string>();
  /** Logs that were reported to `onLoss`. */
  readonly #lost = new Set<string>();
  /** False: what ends is not started again. */
  #restarts = true;

  constructor(scheduler: Scheduler, size: ClusterSize, doors: DoorParts) {
    this.scheduler = scheduler;
    this.#size = size;
    this.#doors = doors;
    this.#draw = scheduler.fork('cluster');
    this.#doorBytes = DOOR_BYTES[this.#draw.float() < 0.3 ? 0 : 1]!;
    this.#comparesClocks = this.#draw.float() < 0.5;
    const settings = drawSettings(scheduler.fork('settings'), size);
    const { changeLogBytes } = size;
    this.#settings = {
      ...settings,
      ...drawLimits(scheduler.aside('limits of servers'), settings),
      ...(changeLogBytes !== undefined && { changeLogBytes }),
    };
    this.#sortedLogs = drawSortedLogs(scheduler.fork('sorted logs'));
    this.#lateCalls = new LateCalls(scheduler.fork('late calls'), this.counts);
    this.network = new SimNetwork(scheduler);
    this.store = new SimStore(scheduler);
    this.locks = new SimLockService(scheduler);
    this.store.logJudge.ownLogsAreRead = size.keepDeletedMs !== undefined;
    const seats = (kind: string, count: number): Seat[] =>
      Array.from({ length: count }, (_, i) => ({
        name: `${kind}-${i}`,
        process: undefined,
        starts: 0,
        server: undefined,
        closeDoor: undefined,
        door: undefined,
        master: undefined,
        standBy: undefined,
        metrics: undefined,
      }));
    this.masters = seats('master', size.masters);
    this.servers = seats('server', size.servers);
    this.#observe();
  }

  /** True: users' writes are acknowledged before they are durable. */
  get isBuffered(): boolean {
    return this.#settings.durability === 'buffered';
  }

  /** Logs keep few bytes for change streams. */
  get keepsFewChanges(): boolean {
    return this.#size.changeLogBytes !== undefined;
  }

  /** Starts everything; resolves when the clients are open. */
  async start(): Promise<void> {
    for (const seat of this.servers) this.#startServer(seat);
    for (const seat of this.masters) this.#startMaster(seat);
    for (let i = 0; i < this.#size.clients; i++) {
      const process = this.#process(`client-${i}`);
      const env = this.#env(process);
      this.clients.push({ process, env, client: await this.#openClient(env), doors: this.#callDoors(process) });
    }
  }

  #callDoors(process: SimProcess): Service {
    const transport = this.network.plainTransportOf(process, 64 * MIB);
    const doors = this.servers.map(({ name }) => doorOf(name));
    const random = this.scheduler.fork(`doors of ${process.name}`);
    return this.#doors.serviceOverRpc(({ headers }) => new DoorClient(transport, doors, random, headers));
  }

  /** Tries again while the lock service cannot be reached. */
  async #openClient(env: Env): Promise<Client> {
    const options = this.#draw.float() < FEW_LOCATIONS_SHARE ? { cacheEntries: FEW_LOCATIONS } : {};
    for (;;) {
      try {
        return await Client.open({ env, limits: LIMITS.default, ...options });
      } catch (thrown) {
        if (toBigtableError(thrown).code !== Code.UNAVAILABLE) throw thrown;
        await sleep(env.clock, OPEN_AGAIN_MS);
      }
    }
  }

  /** The seat on that machine; undefined for a client's. */
  seatOf(machine: string | undefined): Seat | undefined {
    return [...this.masters, ...this.servers].find(({ name }) => name === machine);
  }

  /** Kills what runs at the seat; its successor comes after a while. */
  crash(seat: Seat): void {
    const { process } = seat;
    if (process === undefined) return;
    process.kill();
    this.#ended(seat, process);
  }

  /** Ends what runs at the seat in good order, as a signal does; its successor comes after a while. */
  async shutDown(seat: Seat): Promise<void> {
    const { process, server, master } = seat;
    const role = server ?? master;
    if (process === undefined) return;
    if (role === undefined) return seat.standBy?.abort();
    await seat.closeDoor?.();
    try {
      await role.close();
      if (server !== undefined) this.#wholeLogs.add(logPathOf(server.name));
    } catch (thrown) {
      const error = toBigtableError(thrown);
      this.onLog?.(process.name, 'warn', 'did not end in good order', { error: error.message });
    }
    this.#ended(seat, process);
  }

  /** The file by which others find the role is removed, as by an operator's mistake. */
  async removeFile({ name, server }: Seat): Promise<void> {
    const isMaster = this.masters.some((seat) => seat.name === name);
    const path = isMaster ? MASTER_PATH : server && SERVERS_DIRECTORY + server.name;
    const file = path === undefined ? undefined : await this.locks.service.read(path);
    if (file === undefined || decodePeerFile(file.path, file.contents).address !== name) return;
    await this.locks.service.remove(file.path);
  }

  /** What ends from now on is not started again, and nothing does: all processes die. */
  stop(): void {
    this.#restarts = false;
    for (const seat of [...this.masters, ...this.servers]) seat.process?.kill();
    for (const { process } of this.clients) process.kill();
  }

  /** The servers that run. */
  liveServers(): TabletServer[] {
    return this.servers.flatMap(({ server }) => server ?? []);
  }

  /** The front doors that are open. */
  openDoors(): Door[] {
    return this.servers.flatMap(({ door }) => door ?? []);
  }

  /** The time service of the machines has set what faults have set wrong. */
  setClocksRight(): void {
    for (const { process } of [...this.masters, ...this.servers]) process?.setClockRight();
  }

  /** Has the master delete files that nothing refers to, if it can be reached. */
  async sweep(): Promise<void> {
    const { env } = this.clients[0]!;
    const context = worldContext(env, SWEEP_TIMEOUT_MS);
    for (const { name } of this.masters)
      await callMaster(env.transport, name, 'sweep', {}, context).catch(() => undefined);
  }

  /** Calls `run`, once, when the log of the server is fenced. */
  onFence(server: string, run: () => void): void {
    this.#awaitedFences.set(logPathOf(server), run);
  }

  /** A call of a master reaches its server once more. */
  repeatCall(): Promise<void> {
    const addressOf = (name: string): string | undefined =>
      this.liveServers().find((server) => server.name === name)?.address;
    return this.#lateCalls.repeatOne(this.clients[0]!.env, addressOf);
  }

  /** Shows the judges what happens. */
  #observe(): void {
    const judge = this.store.metadataJudge;
    judge.live = {
      isLive: (log) => this.liveServers().some((server) => logPathOf(server.name) === log && server.leaseHeld()),
      holderOf: (file) =>
        this.liveServers().find((server) => server.leaseHeld() && server.heldFiles().includes(file))?.address,
    };
    const { logJudge } = this.store;
    logJudge.onSealed = (log) => {
      this.#awaitedFences.get(log)?.();
      this.#awaitedFences.delete(log);
      if (!this.isBuffered || this.#lost.has(log) || (this.#wholeLogs.has(log) && !logJudge.broken.has(log))) return;
      this.#lost.add(log);
      this.counts.logsWithLosses++;
      this.onLoss(log);
    };
    this.locks.onChange = (path, contents) => {
      judge.lockFileChanged(path, contents);
      this.onLockFile(path, contents);
    };
    this.locks.onKeptAlive = () => this.onServing();
    this.network.onCall = (method, message) => {
      this.#lateCalls.called(method, message);
      if (method.startsWith('/')) this.counts.doorCalls++;
      else if (method === 'passedWrite' || method === 'passedRead') this.counts.callsPassedOn++;
      if (method === 'commit') judge.asked((message as TabletServerCalls['commit']['message']).commits);
    };
  }

  #startServer(seat: Seat): void {
    const process = this.#occupy(seat);
    process.later(0, 'start', () => {
      this.#openServer(seat, process).then(
        ({ server, client, closeDoor }) => {
          if (seat.process !== process) return;
          seat.server = server;
          seat.closeDoor = closeDoor;
          seat.door = { name: process.name, client };
        },
        (thrown: unknown) => this.#failed(seat, process, thrown),
      );
    });
    let served = 0;
    process.afterEvent = () => {
      const { size = 0 } = seat.server?.tablets ?? {};
      if (size !== served) this.onServing();
      served = size;
    };
  }

  /** A tablet server, and its front door over a client library of the same process. */
  async #openServer(
    seat: Seat,
    process: SimProcess,
  ): Promise<{ readonly server: TabletServer; readonly client: Client; readonly closeDoor: () => Promise<void> }> {
    const env = this.#envOf(seat, process);
    const { decoder } = this.#doors;
    let server: TabletServer | undefined;
    let isRead = false;
    const isDoorCurrent = (): boolean => isRead && server?.leaseHeld() === true;
    const followed = this.#size.followsResources === true ? { memoryLayers: new MemoryLayerCache(env) } : {};
    await followed.memoryLayers?.start();
    const client = await Client.open({ env, limits: LIMITS.default, isDoorCurrent, ...followed });
    if (followed.memoryLayers !== undefined)
      for (const files of [client.appProfiles, client.authorizedViews, client.policySource]) await files.start();
    server = await TabletServer.start({
      env,
      address: seat.name,
      settings: this.#settings,
      comparesClocks: this.#comparesClocks,
      rawCalls: rawCallHandler(client.rowsOf(seat.name), env, decoder),
      ...followed,
      onDoorFiles: (paths) => client.doorFilesChanged(paths),
      onEnd: () => this.#ended(seat, process),
    });
    // what was changed before it had its lock
    await client.readDoorFilesAgain();
    isRead = true;
    const door = new FrontDoor({ service: client, env, passer: client.callPasser(seat.name), decoder });
    const stop = await this.network.plainTransportOf(process, this.#doorBytes).serve(doorOf(seat.name), door);
    const closeDoor = async (): Promise<void> => {
      await stop();
      client.close();
    };
    return { server, client, closeDoor };
  }

  #startMaster(seat: Seat): void {
    const process = this.#occupy(seat);
    if (this.#draw.float() < ENDED_STANDBY_SHARE) seat.standBy = new AbortController();
    process.later(0, 'start', () => {
      Master.start({
        env: this.#envOf(seat, process),
        address: seat.name,
        comparesClocks: this.#comparesClocks,
        sortedLogs: this.#sortedLogs,
        ...(this.#size.keepDeletedMs !== undefined && { keepDeletedMs: this.#size.keepDeletedMs }),
        ...(seat.standBy && { signal: seat.standBy.signal }),
        onEnd: () => this.#ended(seat, process),
      }).then(
        (master) => {
          if (seat.process === process) seat.master = master;
        },
        (thrown: unknown) => this.#failed(seat, process, thrown),
      );
    });
  }

  #envOf(seat: Seat, process: SimProcess): Env {
    const env = this.#env(process);
    seat.metrics = env.metrics;
    return env;
  }

  #occupy(seat: Seat): SimProcess {
    seat.starts++;
    this.counts[this.masters.includes(seat) ? 'masterStarts' : 'serverStarts']++;
    seat.process = this.#process(`${seat.name}.${seat.starts}`);
    return seat.process;
  }

  #failed(seat: Seat, process: SimProcess, thrown: unknown): void {
    this.onLog?.(process.name, 'error', 'could not start', { error: toBigtableError(thrown).message });
    this.#ended(seat, process);
  }

  /** A process has ended: the machine is free for its successor. */
  #ended(seat: Seat, process: SimProcess): void {
    if (seat.process !== process) return;
    this.counts[this.masters.includes(seat) ? 'masterDeaths' : 'serverDeaths']++;
    process.kill();
    seat.process = undefined;
    seat.server = undefined;
    seat.closeDoor = undefined;
    seat.door = undefined;
    seat.master = undefined;
    seat.standBy = undefined;
    seat.metrics = undefined;
    if (!this.#restarts) return;
    this.scheduler.after(this.#draw.float() * MAX_RESTART_MS, undefined, `restart ${seat.name}`, () => {
      if (seat.process !== undefined || !this.#restarts) return;
      if (this.masters.includes(seat)) this.#startMaster(seat);
      else this.#startServer(seat);
    });
  }

  #process(name: string): SimProcess {
    const { maxOffsetMs, maxDrift } = this.#size;
    const errors: ClockErrors = {
      offsetMs: (2 * this.#draw.float() - 1) * maxOffsetMs,
      drift: (2 * this.#draw.float() - 1) * maxDrift,
    };
    return new SimProcess(this.scheduler, name, errors);
  }

  #env(process: SimProcess): Env {
    const { clock } = process;
    const fileSystem = this.store.fileSystemOf(process);
    const codecs = this.#codecs;
    return {
      fileSystem,
      lockService: this.locks.clientOf(process),
      transport: this.network.transportOf(process),
      clock,
      random: this.scheduler.fork(process.name),
      workers: new InlineWorkers({
        [COMPACTION_TASK]: (job: CompactionJob) => compactFiles({ fileSystem, codecs, clock }, job),
      }),
      codecs,
      logger: this.#logger(process),
      metrics: new Metrics(),
      requestBudget: new ByteBudget(64 * MIB),
    };
  }

  #logger(process: SimProcess): Logger {
    const at =
      (level: string) =>
      (message: string, fields?: object): void =>
        this.onLog?.(process.name, level, message, fields ?? {});
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), access() {} };
  }
}
