/**
 * Meetings of a sweep with what changes METADATA's rows meanwhile. A sweep reads rows that were committed at different
 * instants: the worst happens between two parts of what it reads.
 */
import { isMetadataTablet, type MetadataKey, parseMetadataKey, USER_RANGE } from '../../src/metadata/index.ts';
import type { ReadBatch } from '../../src/model/index.ts';
import { type ReadMessage, SERVERS_DIRECTORY } from '../../src/protocol/index.ts';
import type { Cluster } from './cluster.ts';
import {
  compact,
  found,
  merge,
  type Message,
  namesFiles,
  readsMetadata,
  rowInside,
  someTablet,
  split,
  type TabletAt,
  tabletsOfUsers,
} from './meeting-steps.ts';

/** A sweep stands still in its midst for this long at most: less than its calls may take. */
const HELD_MS = 4500;
/** What has to happen meanwhile happens within this time, or not at all. */
const PATIENCE_MS = 3000;
/** Tablets that their next servers learn of late. */
const LATE_LOADS = 20;
const LATE_LOAD_MS = 4000;
/** A commit that arrives is done within this time. */
const COMMIT_MS = 100;
/** The share of divisions that begin with a merge. */
const MERGED_SHARE = 0.5;
/** The tablets of a dead server have another one within this time, often. */
const GIVEN_MS = 500;
/** A server that starts has announced itself within this time, at latest. */
const ANNOUNCED_MS = 1000;

/**
 * The master sweeps, and reads rows of users' tablets until there are enough, or all. Before it goes on, `act` is called
 * with the keys that it has read, and the machine that it reads from, and is waited for.
 */
function sweepInTwo(
  cluster: Cluster,
  isOver: () => boolean,
  isEnough: (read: readonly MetadataKey[]) => boolean,
  act: (read: readonly MetadataKey[], metadataMachine: string) => Promise<void>,
): void {
  const { network } = cluster;
  network.onNextCall('holdings', () => {
    if (isOver()) return;
    const read: MetadataKey[] = [];
    let held: Promise<unknown> | undefined;
    const reach = (machine: string, part: unknown, isLast: boolean): Promise<unknown> | undefined => {
      const { fragments } = (part ?? { fragments: [] }) as ReadBatch;
      for (const { row, last } of fragments) if (last) read.push(row as MetadataKey);
      const isEnd = isLast && part === undefined;
      if (held !== undefined || !(isEnd || isEnough(read))) return undefined;
      cluster.onLog?.('world', 'info', 'a sweep stands still', { read });
      held = Promise.race([act(read, machine), pause(cluster, HELD_MS)]);
      return held;
    };
    /** The sweep goes from one tablet of METADATA to the next. */
    const readFrom = (start: string): void =>
      network.changeNextCall(
        'read',
        (machine, message) => {
          const { end } = (message as ReadMessage).ranges[0]!;
          if (end !== undefined) readFrom(end);
          return { afterPart: (part) => reach(machine, part, end === undefined), ...(held && { after: held }) };
        },
        (message) => readsMetadata(message) && (message as ReadMessage).ranges[0]?.start === start,
      );
    readFrom(USER_RANGE.start);
  });
  void cluster.sweep();
}

function pause({ scheduler }: Cluster, delayMs: number): Promise<void> {
  return new Promise((resolve) => scheduler.after(delayMs, undefined, 'end of pause', resolve));
}

/**
 * Files are written, and their commit arrives when a sweep, which has listed them, has read the row of their tablet.
 * Then the tablet's server ends, and its next one is slow to learn of the tablet.
 */
export function commitBesideSweep(cluster: Cluster, isOver: () => boolean): void {
  const { network } = cluster;
  network.changeNextCall(
    'commit',
    (_machine, message) => {
      const [row] = (message as Message<'commit'>).commits.find(namesFiles)?.rows ?? [];
      const seat = cluster.seatOf(row?.row?.server?.address);
      if (isOver() || row === undefined || seat === undefined) return undefined;
      let arrive = (): void => {};
      const isRead = new Promise<void>((resolve) => (arrive = resolve));
      sweepInTwo(
        cluster,
        isOver,
        (read) => read.includes(row.key),
        async (read) => {
          if (!read.includes(row.key)) return;
          arrive();
          await pause(cluster, COMMIT_MS);
          for (let i = 0; i < LATE_LOADS; i++)
            network.changeNextCall('load', () => (isOver() ? undefined : { lateMs: LATE_LOAD_MS }));
          await cluster.shutDown(seat);
        },
      );
      return { after: Promise.race([isRead, pause(cluster, PATIENCE_MS)]) };
    },
    (message) => (message as Message<'commit'>).commits.some(namesFiles),
  );
}

/**
 * Files are written, and their server reaches neither METADATA nor the master until a sweep is over, which has listed
 * them. Its lock holds, and then it commits the files.
 */
export function sweepBesideSilentServer(cluster: Cluster, isOver: () => boolean): void {
  const { network } = cluster;
  const isOf = (address: string) => (message: unknown) =>
    (message as Message<'commit'>).commits.some(({ rows }) => rows.some(({ row }) => row?.server?.address === address));
  network.changeNextCall(
    'commit',
    (machine, message) => {
      const row = (message as Message<'commit'>).commits.find(namesFiles)?.rows[0]?.row;
      const seat = cluster.seatOf(row?.server?.address);
      const { server } = seat ?? {};
      if (isOver() || server === undefined || seat === undefined || seat.name === machine) return undefined;
      let isHeard = false;
      const lose = (method: 'commit' | 'holdings', isMeant: (message: unknown) => boolean): void =>
        network.changeNextCall(
          method,
          () => {
            if (isHeard || isOver()) return undefined;
            lose(method, isMeant);
            return { isLost: true };
          },
          isMeant,
        );
      lose('commit', isOf(seat.name));
      lose('holdings', (call) => (call as Message<'holdings'>).to === server.name);
      void Promise.race([cluster.sweep(), pause(cluster, HELD_MS)]).then(() => {
        isHeard = true;
      });
      return { isLost: true };
    },
    (message) => (message as Message<'commit'>).commits.some(namesFiles),
  );
}

/**
 * A sweep lists the log of a server that is about to announce itself, and asks the others. The server is given a tablet
 * whose row the sweep has read, and dies: its log, which no row that was read has named, is that of a dead server now.
 */
export function deathsBesideSweep(cluster: Cluster, severity: number, isOver: () => boolean): void {
  const { locks, servers } = cluster;
  const seat = servers[Math.floor(severity * servers.length)]!;
  locks.changeNextCall(`write ${SERVERS_DIRECTORY}`, () => {
    if (isOver()) return {};
    sweepInTwo(
      cluster,
      isOver,
      () => false,
      async (_read, metadataMachine) => {
        await found(cluster, () => seat.server, ANNOUNCED_MS);
        const others = tabletsOfUsers(cluster).map(({ machine }) => machine);
        for (const machine of new Set(others)) {
          if (machine === seat.name || machine === metadataMachine || seat.server?.tablets.size !== 0) continue;
          await endAt(cluster, machine);
          await found(cluster, () => seat.server?.tablets.size || undefined, GIVEN_MS);
        }
        await endAt(cluster, seat.name);
      },
    );
    return { lateMs: ANNOUNCED_MS / 2 };
  });
  void endAt(cluster, seat.name);
}

/** The server loses its file, and ends at once. */
async function endAt(cluster: Cluster, machine: string): Promise<void> {
  const seat = cluster.seatOf(machine);
  const server = seat?.server;
  if (seat === undefined || server === undefined) return;
  await cluster.removeFile(seat);
  await found(cluster, () => seat.server !== server || undefined, PATIENCE_MS);
}

/**
 * A tablet is divided anew behind the back of a sweep, which has asked the servers what they hold while none had the
 * tablet: it is split, or merged with the one before it, whose row the sweep has read, and then split. The upper part is
 * compacted, so that files of before are needed by the lower one alone. `compacted`: the lower one is.
 */
export function divisionsBesideSweep(
  cluster: Cluster,
  severity: number,
  isOver: () => boolean,
  compacted: 'upper' | 'lower' = 'upper',
): void {
  const { network } = cluster;
  network.changeNextCall(
    'load',
    (_machine, message) => {
      const { key } = (message as Message<'load'>).tablets.find(({ key: each }) => !isMetadataTablet(each))!;
      if (isOver()) return undefined;
      let load = (): void => {};
      const isAsked = new Promise<void>((resolve) => (load = resolve));
      const before = severity < MERGED_SHARE ? tabletBefore(cluster, key) : undefined;
      sweepInTwo(
        cluster,
        isOver,
        (read) => read.includes(before?.served.key ?? key),
        async () => {
          load();
          const moved = await found(cluster, () => servedBy(cluster, key), PATIENCE_MS);
          // below what the sweep has read, also of the merged tablet
          const row = moved && rowInside((before ?? moved).served);
          if (moved === undefined || row === undefined) return;
          if (before !== undefined) await merge(cluster, moved.served, moved.served.range.start);
          const now = await found(cluster, () => servedBy(cluster, key), PATIENCE_MS);
          if (now !== undefined) await divide(cluster, now, row, compacted);
        },
      );
      return { after: Promise.race([isAsked, pause(cluster, PATIENCE_MS)]) };
    },
    (message) => (message as Message<'load'>).tablets.some(({ key }) => !isMetadataTablet(key)),
  );
  const some = someTablet(cluster);
  if (some !== undefined) void endAt(cluster, some.machine);
}

/** The tablet before that one in its table, as the rows of METADATA are ordered. */
function tabletBefore(cluster: Cluster, key: MetadataKey): TabletAt | undefined {
  const { tableId } = parseMetadataKey(key);
  const before = tabletsOfUsers(cluster).filter(({ served }) => served.tableId === tableId && served.key < key);
  return before.sort((a, b) => (a.served.key < b.served.key ? 1 : -1))[0];
}

function servedBy(cluster: Cluster, key: MetadataKey): TabletAt | undefined {
  return tabletsOfUsers(cluster).find(({ served }) => served.key === key);
}

async function divide(
  cluster: Cluster,
  { machine, served }: TabletAt,
  row: string,
  compacted: 'upper' | 'lower',
): Promise<void> {
  await split(cluster, machine, served.tableId, row);
  const start = compacted === 'upper' ? row : served.range.start;
  const part = tabletsOfUsers(cluster).find(
    ({ served: { tableId, range } }) => tableId === served.tableId && range.start === start,
  );
  if (part !== undefined) await compact(cluster, part);
}
