/**
 * Faults that hit where two protocols meet: an unload and a split, a sweep and a move, a lost answer and a split of
 * METADATA. Chance alone brings such a pair together in one run of many thousands, so some runs look for one of them
 * again and again. Each waits for the first half of its pair and begins the other half in its midst.
 *
 * They are drawn from the seed by themselves: the other runs are what they would be without them.
 */
import { successor } from '../../src/base/index.ts';
import type { Random } from '../../src/env/index.ts';
import { metadataKey } from '../../src/metadata/index.ts';
import { MASTER_PATH, type MasterCalls, type ReadMessage, SERVERS_DIRECTORY } from '../../src/protocol/index.ts';
import type { Cluster } from './cluster.ts';
import { SESSION_MS } from './locks.ts';
import {
  call,
  flushes,
  mergeSome,
  type Message,
  namesFiles,
  rowInside,
  servedOf,
  someTablet,
  split,
  splitsUsersTablet,
  tabletsOfUsers,
} from './meeting-steps.ts';
import {
  commitBesideSweep,
  deathsBesideSweep,
  divisionsBesideSweep,
  sweepBesideSilentServer,
} from './sweep-meetings.ts';

const MEETINGS = [
  'split in an unload',
  'shutdown in an unload',
  'split of METADATA under commits',
  'commit beside a sweep',
  'deaths beside a sweep',
  'divisions beside a sweep',
  'sweep in a recovery',
  'sweep at a reused address',
  'split in a merge',
  'flush in a load',
  'grant without an answer',
  'unheard change of a schema',
  'sweep beside a silent server',
  'crash under slow appends',
] as const;
/** Drawn by themselves, so that the meetings of other runs stayed what they were. */
const LATER_MEETINGS = ['crash after a check', 'pause under slow appends', 'lower division beside a sweep'] as const;
export type Meeting = (typeof MEETINGS)[number] | (typeof LATER_MEETINGS)[number];

export function isMeeting(kind: string): kind is Meeting {
  return [...MEETINGS, ...LATER_MEETINGS].some((meeting) => meeting === kind);
}

/** The share of runs that have meetings, all of one kind. */
const MEETINGS_SHARE = 0.5;
const LATER_SHARE = 0.06;
const MIN_MEETINGS = 3;
const MORE_MEETINGS = 6;
const POLL_MS = 20;
/** Tablets that are split at once. */
const MANY_SPLITS = 8;
/** How slow METADATA's server is, at most, while its caller dies. */
const SLOW_COMMIT_MS = 3000;
/** How slow the storage of a server is that loads a tablet, at most, and how often it is flushed meanwhile. */
const SLOW_LOAD_MS = 200;
const FLUSHES = 6;
/** How long a server is not notified of changes of schemas, at least, and how late watches are then, at most. */
const UNHEARD_MS = 3000;
const UNHEARD_LAG_MS = 8000;
/** How slow the appends of a server are, at most, before it dies. */
const SLOW_APPEND_MS = 2000;
/** How late the removal of a dead server's file is. */
const LATE_REMOVAL_MS = 8000;
/** The log of a server whose session is over has a fence within this time, often. */
const FENCED_MS = 2000;
/** What a process had sent when it died is lost within this time. */
const LOST_MS = 100;
/** So long at least does nothing become durable, so that checks meet changes that are not. */
const MIN_STALLED_MS = 3000;
/** A check that was answered has reached its client within this time, ms. */
const ANSWERED_MS = 2;

export interface DrawnMeeting {
  readonly kind: Meeting;
  readonly atMs: number;
  readonly durationMs: number;
  readonly severity: number;
}

/** `aside`: draws for a purpose alone. The meetings begin between the two times. */
export function drawMeetings(aside: (purpose: string) => Random, beginMs: number, endMs: number): DrawnMeeting[] {
  return [
    ...drawSome(aside('meetings'), MEETINGS_SHARE, MEETINGS, beginMs, endMs),
    ...drawSome(aside('later meetings'), LATER_SHARE, LATER_MEETINGS, beginMs, endMs),
  ];
}

function drawSome(
  random: Random,
  share: number,
  kinds: readonly Meeting[],
  beginMs: number,
  endMs: number,
): DrawnMeeting[] {
  if (random.float() >= share) return [];
  const kind = kinds[Math.floor(random.float() * kinds.length)]!;
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
    case 'commit beside a sweep':
      return commitBesideSweep(cluster, isOver);
    case 'deaths beside a sweep':
      return deathsBesideSweep(cluster, severity, isOver);
    case 'divisions beside a sweep':
      return divisionsBesideSweep(cluster, severity, isOver);
    case 'sweep in a recovery':
      return sweepInRecovery(cluster, severity, isOver);
    case 'sweep at a reused address':
      return sweepAtReusedAddress(cluster, durationMs, isOver);
    case 'split in a merge':
      return splitInMerge(cluster, isOver);
    case 'flush in a load':
      return flushInLoad(cluster, durationMs, severity, isOver);
    case 'grant without an answer':
      return grantWithoutAnswer(cluster);
    case 'unheard change of a schema':
      return unheardChange(cluster, durationMs, severity, isOver);
    case 'sweep beside a silent server':
      return sweepBesideSilentServer(cluster, isOver);
    case 'crash under slow appends':
      return crashUnderSlowAppends(cluster, durationMs, severity);
    case 'crash after a check':
      return crashAfterCheck(cluster, durationMs, isOver);
    case 'pause under slow appends':
      return pauseUnderSlowAppends(cluster, durationMs);
    case 'lower division beside a sweep':
      return divisionsBesideSweep(cluster, severity, isOver, 'lower');
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
      locks.changeNextCall(`remove ${SERVERS_DIRECTORY}${server.name}`, () => ({ lateMs: LATE_REMOVAL_MS }));
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
function splitInMerge(cluster: Cluster, isOver: () => boolean): void {
  const { network } = cluster;
  network.onNextCall('mergeTablets', (_machine, message) => {
    const { row } = message as MasterCalls['mergeTablets']['message'];
    const upper = tabletsOfUsers(cluster).find(({ served }) => served.range.start === row);
    const inside = upper && rowInside(upper.served);
    if (isOver() || upper === undefined || inside === undefined) return;
    const { tableId } = upper.served;
    const key = metadataKey(tableId, row);
    const reads = (start: string) => (read: unknown) => (read as ReadMessage).ranges[0]?.start === start;
    // a look is two reads
    const splitBeforeNextLook = (): void =>
      network.changeNextCall('read', () => ({ after: split(cluster, upper.machine, tableId, inside) }), reads(key));
    network.onNextCall('read', splitBeforeNextLook, reads(successor(key)));
  });
  mergeSome(cluster);
}

/** While a server loads a tablet its own log is trimmed. Its storage is slow. */
function flushInLoad(cluster: Cluster, durationMs: number, severity: number, isOver: () => boolean): void {
  const { network, scheduler, store } = cluster;
  network.onNextCall('load', (machine) => {
    if (isOver() || cluster.seatOf(machine)?.server === undefined) return;
    store.slowMachines.set(machine, SLOW_LOAD_MS * severity);
    scheduler.after(durationMs, undefined, 'end of slow machine', () => store.slowMachines.delete(machine));
    for (let i = 0; i < FLUSHES; i++)
      scheduler.after(i * SLOW_LOAD_MS, undefined, 'flush in a load', () => void call(cluster, machine, 'flush', {}));
  });
  mergeSome(cluster);
}

/** The master dies. The next one takes its lock, and does not learn it. */
function grantWithoutAnswer(cluster: Cluster): void {
  const seat = cluster.masters.find(({ master }) => master !== undefined);
  if (seat === undefined) return;
  const loseGrant = (): void =>
    cluster.locks.changeNextCall(`tryAcquire ${MASTER_PATH}`, () => ({
      losesAnswer: (lock) => {
        // another session has it yet
        if (lock === undefined) loseGrant();
        return lock !== undefined;
      },
    }));
  loseGrant();
  cluster.crash(seat);
}

/**
 * Appends of a server are slow, so that calls on a row find changes that are not durable yet. It dies in the midst, and
 * the last appends may be lost.
 */
function crashUnderSlowAppends(cluster: Cluster, durationMs: number, severity: number): void {
  const { scheduler, store } = cluster;
  const { machine } = someTablet(cluster) ?? {};
  const seat = cluster.seatOf(machine);
  if (machine === undefined || seat === undefined) return;
  store.slowMachines.set(machine, SLOW_APPEND_MS * severity);
  scheduler.after(durationMs / 2, undefined, 'crash under slow appends', () => {
    store.slowMachines.delete(machine);
    cluster.crash(seat);
  });
}

/**
 * Nothing that a server writes becomes durable for a while. Clients contend on one of its rows, and it dies as soon as it has answered a check that changed
 * nothing, on a row that another call changes then: what the check saw is lost, if it was not durable.
 */
function crashAfterCheck(cluster: Cluster, durationMs: number, isOver: () => boolean): void {
  const { network, scheduler, store } = cluster;
  const { machine } = someTablet(cluster) ?? {};
  if (machine === undefined) return;
  store.stalledMachines.add(machine);
  let isAwaited = true;
  const end = (): void => {
    if (!isAwaited) return;
    isAwaited = false;
    store.stalledMachines.delete(machine);
    cluster.onFocus(undefined);
  };
  scheduler.after(MIN_STALLED_MS + durationMs, undefined, 'end of stalled machine', end);
  /** By row, changes that are not answered. */
  const underWay = new Map<string, number>();
  const count = (row: string, change: number): void => void underWay.set(row, (underWay.get(row) ?? 0) + change);
  const follow = (method: 'mutateRow' | 'readModifyWriteRow' | 'checkAndMutateRow'): void =>
    network.changeNextCall(method, (called, message) => {
      if (!isAwaited || isOver()) return undefined;
      follow(method);
      const { row } = message as Message<typeof method>;
      if (called !== machine) return undefined;
      if (underWay.size === 0) cluster.onFocus(row);
      count(row, 1);
      const afterAnswer = (answer: unknown): void => {
        count(row, -1);
        if (
          method === 'checkAndMutateRow' &&
          changesNothing(message as Message<typeof method>, answer) &&
          underWay.get(row)
        )
          crash();
      };
      return { afterAnswer };
    });
  const crash = (): void => {
    if (!isAwaited) return;
    const seat = cluster.seatOf(machine);
    scheduler.after(ANSWERED_MS, undefined, 'crash after a check', () => {
      if (isOver() || seat === undefined) return end();
      cluster.crash(seat);
      scheduler.after(LOST_MS, undefined, 'end of stalled machine', end);
    });
  };
  for (const method of ['mutateRow', 'readModifyWriteRow', 'checkAndMutateRow'] as const) follow(method);
}

function changesNothing({ whenTrue, whenFalse }: Message<'checkAndMutateRow'>, isFound: unknown): boolean {
  return (isFound ? whenTrue : whenFalse).length === 0;
}

/**
 * Appends of a server are slow, and it stands still until others have fenced its log. What it has sent arrives when it
 * goes on.
 */
function pauseUnderSlowAppends(cluster: Cluster, durationMs: number): void {
  const { scheduler, store } = cluster;
  const { machine } = someTablet(cluster) ?? {};
  const seat = cluster.seatOf(machine);
  if (machine === undefined || seat === undefined) return;
  store.slowMachines.set(machine, SLOW_APPEND_MS);
  scheduler.after(SLOW_APPEND_MS / 2, undefined, 'pause under slow appends', () => {
    seat.process?.pause(SESSION_MS + FENCED_MS + durationMs);
  });
  scheduler.after(SLOW_APPEND_MS, undefined, 'end of slow machine', () => store.slowMachines.delete(machine));
}

/** A server is not notified of changes of schemas for a while, and all watches are late. */
function unheardChange(cluster: Cluster, durationMs: number, severity: number, isOver: () => boolean): void {
  const { locks, network, scheduler, servers } = cluster;
  const deaf = servers[Math.floor(severity * servers.length)]!.name;
  let isEnded = false;
  const lose = (): void =>
    network.changeNextCall('schemaChanged', (machine) => {
      if (isEnded || isOver()) return undefined;
      lose();
      return { isLost: machine === deaf };
    });
  lose();
  locks.health.watchLagMs = UNHEARD_LAG_MS;
  scheduler.after(UNHEARD_MS + durationMs, undefined, 'all is heard again', () => {
    isEnded = true;
    // others of its kind may have begun meanwhile
    locks.health.watchLagMs = locks.usualLagMs;
  });
}
