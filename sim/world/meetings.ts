/**
 * Faults that hit where two protocols meet: an unload and a split, a sweep and a move, a lost answer and a split of
 * METADATA. Chance alone brings such a pair together in one run of many thousands, so some runs look for one of them
 * again and again. Each waits for the first half of its pair and begins the other half in its midst.
 *
 * They are drawn from the seed by themselves: the other runs are what they would be without them.
 */
import { BigtableError } from '../../src/base/index.ts';
import { type Env, type Random, requestContext, type RequestContext } from '../../src/env/index.ts';
import {
  isMetadataTablet,
  METADATA_TABLE_ID,
  type MetadataCommit,
  type MetadataKey,
} from '../../src/metadata/index.ts';
import { callServer, SERVERS_DIRECTORY, type TabletServerCalls } from '../../src/protocol/index.ts';
import type { TabletServer } from '../../src/tabletserver/index.ts';
import type { Cluster, Seat } from './cluster.ts';

const MEETINGS = [
  'split in an unload',
  'shutdown in an unload',
  'split of METADATA under commits',
  'sweep beside a move',
  'sweep in a recovery',
] as const;
export type Meeting = (typeof MEETINGS)[number];

/** The share of runs that have meetings, all of one kind. */
const MEETINGS_SHARE = 0.35;
const MIN_MEETINGS = 3;
const MORE_MEETINGS = 6;
const TIMEOUT_MS = 5000;
const POLL_MS = 20;
/** Tablets that are split at once. */
const MANY_SPLITS = 8;
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
export function meet(cluster: Cluster, { kind, durationMs, severity }: DrawnMeeting, untilMs: number): void {
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
  }
}

/** While a server flushes a tablet to release it, a call to split the tablet comes. */
function splitInUnload(cluster: Cluster, severity: number, isOver: () => boolean): void {
  const { network, scheduler } = cluster;
  network.onNextCall(
    'unload',
    (machine, message) => {
      const served = servedOf(cluster, machine, (message as Message<'unload'>).tablets[0]!.key);
      const row = served?.tablet.middleRow();
      if (isOver() || served === undefined || row === undefined) return undefined;
      scheduler.after(20 * severity, undefined, 'split in an unload', () => {
        void split(cluster, machine, served.tableId, row);
      });
      return undefined;
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
      const seat = seatOf(cluster, machine);
      if (isOver() || seat === undefined) return undefined;
      store.slowMachines.set(machine, 1000 * severity);
      scheduler.after(durationMs, undefined, 'end of slow machine', () => store.slowMachines.delete(machine));
      scheduler.after(50 * severity, undefined, 'shutdown in an unload', () => void cluster.shutDown(seat));
      return undefined;
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
    cluster.network.onNextCall(
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
  network.onNextCall(
    'commit',
    (_machine, message) => {
      const commit = (message as Message<'commit'>).commits.find(namesFiles);
      const seat = seatOf(cluster, commit?.rows[0]?.row?.server?.address);
      if (isOver() || seat === undefined) return undefined;
      void cluster.sweep();
      for (let i = 0; i < 3; i++) network.onNextCall('read', () => ({ lateMs: 600 * severity }), readsMetadata);
      for (let i = 0; i < 20; i++) network.onNextCall('load', () => ({ lateMs: 4000 * severity }));
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

/** One of the users' tablets that are served. */
function someTablet({
  scheduler,
  servers,
}: Cluster): { readonly machine: string; readonly served: ServedTablet } | undefined {
  const all = servers.flatMap(({ name, server }) =>
    [...(server?.tablets.all() ?? [])].map((served) => ({ machine: name, served })),
  );
  const ofUsers = all.filter(({ served }) => served.tableId !== METADATA_TABLE_ID);
  return ofUsers[Math.floor(scheduler.random.float() * ofUsers.length)];
}

/** Has the master merge two tablets, which are unloaded for that. */
function mergeSome(cluster: Cluster): void {
  const served = someTablet(cluster)?.served;
  const row = served?.range.end;
  if (served === undefined || row === undefined) return;
  const { client, env } = cluster.clients[0]!;
  const { name } = served.host.schema(served.tableId);
  client.mergeTablets(contextOf(env), name, row).catch(throwOthers);
}

function contextOf({ requestBudget, clock }: Env): RequestContext {
  const deadlineMs = clock.monotonicMs() + TIMEOUT_MS;
  return requestContext({ budget: requestBudget, deadlineMs, principal: 'simulator' });
}

function throwOthers(thrown: unknown): void {
  if (!(thrown instanceof BigtableError)) throw thrown;
}

async function split(cluster: Cluster, machine: string, tableId: string, row: string): Promise<void> {
  const { env } = cluster.clients[0]!;
  const message = { tableId, row, near: 'row' } as const;
  await callServer(env.transport, machine, 'split', message, contextOf(env)).catch((thrown: unknown) => {
    throwOthers(thrown);
    cluster.onLog?.('world', 'info', 'a split was refused', { tableId, row, error: String(thrown) });
  });
}

function servedOf(cluster: Cluster, machine: string, key: MetadataKey): ServedTablet | undefined {
  const served = seatOf(cluster, machine)?.server?.tablets.all() ?? [];
  return [...served].find((tablet) => tablet.key === key);
}

function seatOf({ servers }: Cluster, machine: string | undefined): Seat | undefined {
  return servers.find(({ name }) => name === machine);
}
