/**
 * Faults that hit where two protocols meet: an unload and a split, a sweep and a move, a lost answer and a split of
 * METADATA. Chance alone brings such a pair together in one run of many thousands, so some runs look for one of them
 * again and again. Each waits for the first half of its pair and begins the other half in its midst.
 *
 * They are drawn from the seed by themselves: the other runs are what they would be without them.
 */
import { BigtableError, successor } from '../../src/base/index.ts';
import type { Random } from '../../src/env/index.ts';
import {
  isMetadataTablet,
  METADATA_TABLE_ID,
  type MetadataCommit,
  type MetadataKey,
} from '../../src/metadata/index.ts';
import { rangeContains } from '../../src/model/index.ts';
import { callServer, type MasterCalls, SERVERS_DIRECTORY, type TabletServerCalls } from '../../src/protocol/index.ts';
import type { TabletServer } from '../../src/tabletserver/index.ts';
import type { Cluster } from './cluster.ts';
import { worldContext } from './world-context.ts';

const MEETINGS = [
  'split in an unload',
  'shutdown in an unload',
  'split of METADATA under commits',
  'sweep beside a move',
  'sweep in a recovery',
  'sweep at a reused address',
  'split in a merge',
] as const;
export type Meeting = (typeof MEETINGS)[number];

export function isMeeting(kind: string): kind is Meeting {
  return MEETINGS.some((meeting) => meeting === kind);
}

/** The share of runs that have meetings, all of one kind. */
const MEETINGS_SHARE = 0.35;
const MIN_MEETINGS = 3;
const MORE_MEETINGS = 6;
const TIMEOUT_MS = 5000;
const POLL_MS = 20;
/** Tablets that are split at once. */
const MANY_SPLITS = 8;
/** Calls that are late beside a sweep. */
const LATE_READS = 3;
const LATE_LOADS = 20;
/** How slow METADATA's server is, at most, while its caller dies. */
const SLOW_COMMIT_MS = 3000;
/** Reads of METADATA that are late in a merge, and by how much, at most. */
const LATE_READS_OF_MERGE = 6;
const MERGE_READ_MS = 40;
/** How late the removal of a dead server's file is. */
const LATE_REMOVAL_MS = 8000;

export interface DrawnMeeting {
  readonly kind: Meeting;
  readonly atMs: number;
  readonly durationMs: number;
  readonly severity: number;
}

/** `random`: of this purpose alone. They begin between the two times. */
export function drawMeetings(random: Random, beginMs: number, endMs: number): DrawnMeeting[] {
  if (random.float() >= MEETINGS_SHARE) return [];
  const kind = MEETINGS[Math.floor(random.float() * MEETINGS.length)]!;
  const count = MIN_MEETINGS + Math.floor(random.float() * MORE_MEETINGS);
  return Array.from({ length: count }, () => ({
    kind,
    atMs: beginMs + random.float() * (endMs - beginMs),
    durationMs: 200 + random.float() ** 2 * 5000,
    severity: random.float(),
  }));
}

/** `untilMs`: nothing begins after it. */
export function meet(
  cluster: Cluster,
  { kind, durationMs, severity }: Omit<DrawnMeeting, 'atMs'>,
  untilMs: number,
): void {
  const isOver = (): boolean => cluster.scheduler.nowMs >= untilMs;
  switch (kind) {
    case 'split in an unload':
      return splitInUnload(cluster, severity, isOver);
    case 'shutdown in an unload':
      return shutDownInUnload(cluster, durationMs, severity, isOver);
    case 'split of METADATA under commits':
      return splitMetadataUnderCommits(cluster, durationMs, isOver);
    case 'sweep beside a move':
      return sweepBesideMove(cluster, severity, isOver);
    case 'sweep in a recovery':
      return sweepInRecovery(cluster, severity, isOver);
    case 'sweep at a reused address':
      return sweepAtReusedAddress(cluster, durationMs, isOver);
    case 'split in a merge':
      return splitInMerge(cluster, severity, isOver);
  }
}

/** While a server flushes a tablet to release it, a call to split the tablet comes. */
function splitInUnload(cluster: Cluster, severity: number, isOver: () => boolean): void {
  const { network, scheduler } = cluster;
  network.onNextCall(
    'unload',
    (machine, message) => {
      const served = servedOf(cluster, machine, (message as Message<'unload'>).tablets[0]!.key);
      const row = served && rowInside(served);
      if (isOver() || served === undefined || row === undefined) return;
      scheduler.after(20 * severity, undefined, 'split in an unload', () => {
        void split(cluster, machine, served.tableId, row);
      });
    },
    flushes,
  );
  mergeSome(cluster);
}

/** While a server flushes a tablet to release it, it is told to end. Its storage is slow. */
function shutDownInUnload(cluster: Cluster, durationMs: number, severity: number, isOver: () => boolean): void {
  const { network, scheduler, store } = cluster;
  network.onNextCall(
    'unload',
    (machine) => {
      const seat = cluster.seatOf(machine);
      if (isOver() || seat === undefined) return;
      store.slowMachines.set(machine, 1000 * severity);
      scheduler.after(durationMs, undefined, 'end of slow machine', () => store.slowMachines.delete(machine));
      scheduler.after(50 * severity, undefined, 'shutdown in an unload', () => void cluster.shutDown(seat));
    },
    flushes,
  );
  mergeSome(cluster);
}

/**
 * Several tablets are split, and the answers to the commits are lost. Before these are sent again METADATA, which has
 * grown by them, may be split between the two rows of one.
 */
function splitMetadataUnderCommits(cluster: Cluster, durationMs: number, isOver: () => boolean): void {
  for (let i = 0; i < MANY_SPLITS; i++) {
    const { machine, served } = someTablet(cluster) ?? {};
    const row = served?.tablet.middleRow();
    if (machine === undefined || served === undefined || row === undefined) continue;
    cluster.network.changeNextCall(
      'commit',
      () => (isOver() ? undefined : { answerLostMs: 1000 + durationMs }),
      (message) => (message as Message<'commit'>).commits.some(splitsUsersTablet),
    );
    void split(cluster, machine, served.tableId, row);
  }
}

/**
 * Files are written and their commit is late; a sweep lists them, and is slow to read METADATA. Meanwhile the commit is
 * done and the server ends, so the tablet moves, and its next server is slow to learn of it.
 */
function sweepBesideMove(cluster: Cluster, severity: number, isOver: () => boolean): void {
  const { network, scheduler } = cluster;
  network.changeNextCall(
    'commit',
    (_machine, message) => {
      const commit = (message as Message<'commit'>).commits.find(namesFiles);
      const seat = cluster.seatOf(commit?.rows[0]?.row?.server?.address);
      if (isOver() || seat === undefined) return undefined;
      void cluster.sweep();
      const late = (ms: number) => () => (isOver() ? undefined : { lateMs: ms * severity });
      for (let i = 0; i < LATE_READS; i++) network.changeNextCall('read', late(600), readsMetadata);
      for (let i = 0; i < LATE_LOADS; i++) network.changeNextCall('load', late(4000));
      scheduler.after(60 * severity, undefined, 'shutdown beside a sweep', () => void cluster.shutDown(seat));
      return { lateMs: 40 };
    },
    (message) => (message as Message<'commit'>).commits.some(namesFiles),
  );
}

/**
 * A server dies as soon as it lives. Its file is slow to be removed, and meanwhile the master, which looks at all
 * servers and sweeps, deletes its log.
 */
function sweepInRecovery(cluster: Cluster, severity: number, isOver: () => boolean): void {
  const { locks, scheduler, servers } = cluster;
  const seat = servers[Math.floor(severity * servers.length)]!;
  cluster.crash(seat);
  const crashAgain = (): void => {
    if (isOver()) return;
    const { server } = seat;
    if (server === undefined) return void scheduler.after(POLL_MS, undefined, 'look', crashAgain);
    cluster.onFence(server.name, () => {
      locks.hold(`remove ${SERVERS_DIRECTORY}${server.name}`, LATE_REMOVAL_MS);
      scheduler.after(200 * severity, undefined, 'sweep in a recovery', () => {
        void cluster.sweep().then(() => locks.missAll());
      });
    });
    cluster.crash(seat);
  };
  crashAgain();
}

/**
 * A server dies while METADATA's server is slow to carry out its commit of files. Its successor has its address, and the
 * master sweeps before it can know that the server is dead.
 */
function sweepAtReusedAddress(cluster: Cluster, durationMs: number, isOver: () => boolean): void {
  const { network, scheduler, store } = cluster;
  network.onNextCall(
    'commit',
    (machine, message) => {
      const commit = (message as Message<'commit'>).commits.find(namesFiles);
      const seat = cluster.seatOf(commit?.rows[0]?.row?.server?.address);
      if (isOver() || seat === undefined || seat.name === machine) return;
      store.slowMachines.set(machine, SLOW_COMMIT_MS);
      scheduler.after(durationMs, undefined, 'end of slow machine', () => store.slowMachines.delete(machine));
      cluster.crash(seat);
      const sweep = (): void => {
        if (seat.server !== undefined) void cluster.sweep();
        else if (!isOver()) scheduler.after(POLL_MS, undefined, 'look', sweep);
      };
      sweep();
    },
    (message) => (message as Message<'commit'>).commits.some(namesFiles),
  );
}

/** Two tablets are merged, and the upper one is split between two looks of the master at their rows. */
function splitInMerge(cluster: Cluster, severity: number, isOver: () => boolean): void {
  const { network, scheduler } = cluster;
  network.onNextCall('mergeTablets', (_machine, message) => {
    const { row } = message as MasterCalls['mergeTablets']['message'];
    const upper = tabletsOfUsers(cluster).find(({ served }) => served.range.start === row);
    const inside = upper && rowInside(upper.served);
    if (isOver() || upper === undefined || inside === undefined) return;
    const lateMs = MERGE_READ_MS * severity;
    for (let i = 0; i < LATE_READS_OF_MERGE; i++) network.changeNextCall('read', () => ({ lateMs }), readsMetadata);
    // each look is two reads
    scheduler.after(3 * lateMs, undefined, 'split in a merge', () => {
      void split(cluster, upper.machine, upper.served.tableId, inside);
    });
  });
  mergeSome(cluster);
}

interface TabletAt {
  readonly machine: string;
  readonly served: ServedTablet;
}

type ServedTablet = ReturnType<TabletServer['tablets']['all']> extends Iterable<infer T> ? T : never;
type Message<M extends keyof TabletServerCalls> = TabletServerCalls[M]['message'];

function flushes(message: unknown): boolean {
  const { tablets, flush } = message as Message<'unload'>;
  return flush && tablets.length > 0;
}

function splitsUsersTablet({ event, rows }: MetadataCommit): boolean {
  return event.kind === 'split' && rows.length > 1 && rows.every(({ key }) => !isMetadataTablet(key));
}

/** A commit of files that were written just before. */
function namesFiles({ event, rows }: MetadataCommit): boolean {
  return event.kind === 'compacted' && rows.every(({ key }) => !isMetadataTablet(key));
}

function readsMetadata(message: unknown): boolean {
  return (message as { readonly tableId: string }).tableId === METADATA_TABLE_ID;
}

function tabletsOfUsers({ servers }: Cluster): TabletAt[] {
  const all = servers.flatMap(({ name, server }) =>
    [...(server?.tablets.all() ?? [])].map((served) => ({ machine: name, served })),
  );
  return all.filter(({ served }) => served.tableId !== METADATA_TABLE_ID);
}

function someTablet(cluster: Cluster): TabletAt | undefined {
  const all = tabletsOfUsers(cluster);
  return all[Math.floor(cluster.scheduler.random.float() * all.length)];
}

/** A row at which the tablet can be split; undefined where there is none. */
function rowInside({ tablet, range }: ServedTablet): string | undefined {
  const row = tablet.middleRow() ?? successor(range.start);
  return rangeContains(range, row) ? row : undefined;
}

/** Has the master merge two tablets, which are unloaded for that. */
function mergeSome(cluster: Cluster): void {
  const served = someTablet(cluster)?.served;
  const row = served?.range.end;
  if (served === undefined || row === undefined) return;
  const { client, env } = cluster.clients[0]!;
  const { name } = served.host.schema(served.tableId);
  client.mergeTablets(worldContext(env, TIMEOUT_MS), name, row).catch((thrown: unknown) => {
    refused(cluster, 'a merge was refused', { table: name, row }, thrown);
  });
}

/** The judge of logs sees it, too. */
function refused(cluster: Cluster, what: string, fields: object, thrown: unknown): void {
  if (!(thrown instanceof BigtableError)) throw thrown;
  cluster.onLog?.('world', 'info', what, { ...fields, error: thrown.message });
}

async function split(cluster: Cluster, machine: string, tableId: string, row: string): Promise<void> {
  const { env } = cluster.clients[0]!;
  const message = { tableId, row, near: 'row' } as const;
  await callServer(env.transport, machine, 'split', message, worldContext(env, TIMEOUT_MS)).catch((thrown: unknown) => {
    refused(cluster, 'a split was refused', { tableId, row }, thrown);
  });
}

function servedOf(cluster: Cluster, machine: string, key: MetadataKey): ServedTablet | undefined {
  const served = cluster.seatOf(machine)?.server?.tablets.all() ?? [];
  return [...served].find((tablet) => tablet.key === key);
}
