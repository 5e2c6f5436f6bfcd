/**
 * The faults of a run: drawn before it begins, so that a failing run can be repeated with fewer of them. Each begins at
 * a time, and most last for a while. After `END_MS` everything is whole again.
 */
import type { Random } from '../../src/env/index.ts';
import { decodeRootFile, isMetadataTablet } from '../../src/metadata/index.ts';
import { decodePeerFile, MASTER_PATH, type TabletServerCalls } from '../../src/protocol/index.ts';
import type { Cluster, Seat } from './cluster.ts';
import { drawMeetings, type DrawnMeeting, isMeeting, meet, type Meeting } from './meetings.ts';
import { type LockServiceHealth, ROOT_PATH, SESSION_MS } from './locks.ts';
import type { Weather } from './network.ts';
import type { Action } from './process.ts';
import { Scheduler } from './scheduler.ts';
import type { StoreHealth } from './store.ts';

const BEGIN_MS = 8000;
/** In some runs the faults begin with the cluster itself. */
const EARLY_SHARE = 0.25;
export const END_MS = 50_000;

export type FaultKind =
  | Meeting
  | 'crash'
  | 'shutdown'
  | 'cascade'
  | 'blackout'
  | 'pause'
  | 'cut'
  | 'cut off'
  | 'island'
  | 'clock'
  | 'removed file'
  | 'slow machine'
  | 'no store'
  | 'slow store'
  | 'failing store'
  | 'unanswering store'
  | 'damaging store'
  | 'full store'
  | 'slow network'
  | 'losing network'
  | 'repeating network'
  | 'disordering network'
  | 'no lock service'
  | 'failing lock service'
  | 'no lists of the lock service'
  | 'slow lock service'
  | 'unanswering lock service'
  | 'late watches'
  | 'new lock service leader';

/** Weights: how often a kind is drawn. */
const KINDS: readonly (readonly [FaultKind, number])[] = [
  ['crash', 10],
  ['shutdown', 5],
  ['cascade', 6],
  ['blackout', 2],
  ['pause', 12],
  ['cut', 6],
  ['cut off', 4],
  ['island', 4],
  ['clock', 3],
  ['removed file', 2],
  ['slow machine', 4],
  ['no store', 4],
  ['slow store', 3],
  ['failing store', 2],
  ['unanswering store', 2],
  ['damaging store', 3],
  ['full store', 2],
  ['slow network', 3],
  ['losing network', 3],
  ['repeating network', 3],
  ['disordering network', 3],
  ['no lock service', 4],
  ['failing lock service', 2],
  ['no lists of the lock service', 1],
  ['slow lock service', 3],
  ['unanswering lock service', 3],
  ['late watches', 2],
  ['new lock service leader', 3],
];

export interface Fault {
  readonly kind: FaultKind;
  readonly atMs: number;
  readonly durationMs: number;
  /** The machine that it happens to, where it happens to one. */
  readonly machine: string;
  /** The other machine of a cut. */
  readonly other: string;
  /** How bad it is, from 0 to 1. */
  readonly severity: number;
  /** What happens to a machine begins in the midst of what it does then; undefined: whatever it does. */
  readonly during: { readonly action: Action; readonly count: number } | undefined;
}

/** Machines by what they do when the fault begins. */
const THE_MASTER = 'the master';
const THE_ROOT = "METADATA's server";
const THE_LOADER = 'the server that was given tablets last';

/** The share of faults that come soon after another one, or when that is noticed; and of those, on its machine. */
const FOLLOWING_SHARE = 0.4;
const FOLLOWS_WITHIN_MS = 4000;
const SAME_MACHINE_SHARE = 0.3;
/** The share of faults of machines that begin in the midst of an action. */
const DURING_SHARE = 0.65;
const ACTIONS: readonly Action[] = [
  'append',
  'append',
  'append',
  'append',
  'file',
  'message',
  'message',
  'lock service',
  'table change',
  'root file',
];
const MAX_ACTIONS = 4;
/** The share of these that hit the master: another one takes its place, and it works on. */
const DEPOSING_SHARE = 0.35;
const DEPOSING = new Set<FaultKind>(['no lock service', 'pause']);
/** A fault does not wait longer for the machine to act. */
const MAX_WAIT_MS = 3000;
/** The next machine of a cascade fails within this time after it was given tablets. */
const CASCADE_MS = 2500;
/** After the machine has begun the action, at most. */
const DURING_MS = 2;

/** Draws the faults of a run, by time. */
export function drawFaults(random: Random, machines: readonly string[], clients: readonly string[]): Fault[] {
  const beginMs = random.float() < EARLY_SHARE ? 0 : BEGIN_MS;
  const count = 4 + Math.floor(random.float() * 12);
  const total = KINDS.reduce((sum, [, weight]) => sum + weight, 0);
  const oneOf = <T>(choices: readonly T[]): T => choices[Math.floor(random.float() * choices.length)]!;
  const machine = (): string => oneOf([...machines, THE_MASTER, THE_ROOT, THE_LOADER]);
  let before: Fault | undefined;
  const faults = Array.from({ length: count }, (): Fault => {
    let left = random.float() * total;
    const kind = KINDS.find(([, weight]) => (left -= weight) < 0)?.[0] ?? 'crash';
    const followed = random.float() < FOLLOWING_SHARE ? before : undefined;
    const atMs = drawTime(random, beginMs, followed);
    const isDeposing = DEPOSING.has(kind) && random.float() < DEPOSING_SHARE;
    const action = isDeposing && random.float() < 0.5 ? 'table change' : oneOf(ACTIONS);
    const during =
      random.float() < DURING_SHARE ? { action, count: 1 + Math.floor(random.float() * MAX_ACTIONS) } : undefined;
    before = {
      kind,
      atMs,
      durationMs: Math.min(drawDuration(random, kind), END_MS - atMs),
      machine:
        isDeposing || during?.action === 'table change'
          ? THE_MASTER
          : during?.action === 'root file'
            ? oneOf([THE_MASTER, THE_ROOT])
            : followed !== undefined && random.float() < SAME_MACHINE_SHARE
              ? followed.machine
              : machine(),
      other: kind === 'island' || random.float() < 0.3 ? oneOf(clients) : machine(),
      severity: random.float(),
      during,
    };
    return before;
  });
  return faults.sort((a, b) => a.atMs - b.atMs);
}

/** Draws the meetings of a run, as faults. */
export function drawMeetingFaults(scheduler: Scheduler): Fault[] {
  const faultOf = (meeting: DrawnMeeting): Fault => ({ ...meeting, machine: '', other: '', during: undefined });
  return drawMeetings((purpose) => scheduler.aside(purpose), BEGIN_MS, END_MS - 1000).map(faultOf);
}

/** The kinds of meetings that the seed's run has. */
export function meetingsOf(seed: number): Set<Meeting> {
  const scheduler = new Scheduler(seed);
  const drawn = drawMeetings((purpose) => scheduler.aside(purpose), BEGIN_MS, END_MS - 1000);
  return new Set(drawn.map(({ kind }) => kind));
}

/** Half of the pauses are a little longer than a session lives: others go on without the process, and then it wakes. */
function drawDuration(random: Random, kind: FaultKind): number {
  if (kind === 'pause' && random.float() < 0.5) return SESSION_MS + random.float() * 6000;
  return 100 + random.float() ** (LONG.has(kind) ? 0.6 : 2) * 20_000;
}

/** `followed`: another fault, which this one follows. */
function drawTime(random: Random, beginMs: number, followed: Fault | undefined): number {
  const atMs = beginMs + random.float() * (END_MS - beginMs - 1000);
  const afterMs = (random.float() < 0.5 ? 0 : SESSION_MS) + random.float() * FOLLOWS_WITHIN_MS;
  if (followed === undefined || followed.atMs + afterMs > END_MS - 1000) return atMs;
  return followed.atMs + afterMs;
}

/** One line for a reader. */
export function describeFault({ kind, atMs, durationMs, machine, other, severity, during }: Fault): string {
  const who =
    kind === 'cut'
      ? `${machine} > ${other}`
      : kind === 'island'
        ? `${machine} with ${other}`
        : OF_MACHINES.has(kind)
          ? machine
          : '';
  const when = during !== undefined && OF_MACHINES.has(kind) ? `, at ${during.action} ${during.count}` : '';
  return `${(atMs / 1000).toFixed(2)} s ${kind} ${who} for ${(durationMs / 1000).toFixed(2)} s (${severity.toFixed(2)})${when}`;
}

/** They last longer than a lease more often than others do. */
const LONG = new Set<FaultKind>([
  'damaging store',
  'island',
  'no lock service',
  'no store',
  'pause',
  'slow lock service',
]);

const OF_MACHINES = new Set<FaultKind>([
  'crash',
  'shutdown',
  'cascade',
  'pause',
  'cut',
  'cut off',
  'clock',
  'removed file',
  'no lock service',
  'slow machine',
  'no store',
]);

/** Everything without a fault. */
interface Whole {
  readonly store: StoreHealth;
  readonly network: Weather;
  readonly locks: LockServiceHealth;
}

type Pair = readonly [string, string];

/** Schedules the faults and their ends. */
export function inflict(cluster: Cluster, faults: readonly Fault[]): void {
  const { scheduler, store, network, locks } = cluster;
  const whole: Whole = { store: { ...store.health }, network: { ...network.weather }, locks: { ...locks.health } };
  const inflictOne = async (fault: Fault): Promise<void> => {
    const [machine, other] = [await machineOf(cluster, fault.machine), await machineOf(cluster, fault.other)];
    if (fault.during !== undefined && (OF_MACHINES.has(fault.kind) || fault.kind === 'island'))
      await actsAt(cluster, machine, fault.during);
    cluster.faultCounts[fault.kind] = (cluster.faultCounts[fault.kind] ?? 0) + 1;
    const end = begin(cluster, { ...fault, machine, other }, whole);
    cluster.onFault(describeFault({ ...fault, machine, other }));
    if (end === undefined) return;
    scheduler.after(fault.durationMs, undefined, `end of ${fault.kind}`, () => {
      end();
      cluster.onFault(`end of ${fault.kind}`);
    });
  };
  for (const fault of faults) {
    scheduler.after(fault.atMs - scheduler.nowMs, undefined, `fault ${fault.kind}`, () => void inflictOne(fault));
  }
}

/** Resolves when the machine has done that so often, in its midst; at the latest after MAX_WAIT_MS. */
function actsAt(cluster: Cluster, machine: string, { action, count }: NonNullable<Fault['during']>): Promise<void> {
  const { scheduler } = cluster;
  return new Promise((resolve) => {
    scheduler.after(MAX_WAIT_MS, undefined, `fault of ${machine}`, resolve);
    cluster.seatOf(machine)?.process?.afterActions(action, count, () => {
      scheduler.after(scheduler.random.float() * DURING_MS, undefined, `fault of ${machine}`, resolve);
    });
  });
}

/** Returns the function that ends the fault; undefined for one that ends by itself. */
function begin(
  cluster: Cluster,
  { kind, durationMs, machine, other, severity }: Fault,
  whole: Whole,
): (() => void) | undefined {
  const { network, store, locks } = cluster;
  if (isMeeting(kind)) {
    meet(cluster, { kind, durationMs, severity }, END_MS);
    return undefined;
  }
  const seat = cluster.seatOf(machine);
  switch (kind) {
    case 'crash':
      if (seat) cluster.crash(seat);
      return undefined;
    case 'shutdown':
      if (seat) void cluster.shutDown(seat);
      return undefined;
    case 'cascade':
      cascade(cluster, seat, 1 + Math.round(severity));
      return undefined;
    case 'blackout': {
      // of the servers, or of all machines
      const seats = severity < 0.5 ? cluster.servers : [...cluster.masters, ...cluster.servers];
      for (const each of seats) cluster.crash(each);
      return undefined;
    }
    case 'pause':
      seat?.process?.pause(durationMs);
      return undefined;
    case 'clock': {
      const process = seat?.process;
      const ms = (severity - 0.5) * 60_000;
      process?.setClockForward(ms);
      return () => process?.setClockForward(-ms);
    }
    case 'removed file':
      if (seat) void cluster.removeFile(seat);
      return undefined;
    case 'cut':
      network.cut(machine, other);
      return () => network.join(machine, other);
    case 'cut off':
      network.cut(machine, '*');
      network.cut('*', machine);
      return () => {
        network.join(machine, '*');
        network.join('*', machine);
      };
    case 'island': {
      // the two reach each other, and the storage; nobody else, and not the lock service
      const islanders = [machine, other];
      const others = [...cluster.masters, ...cluster.servers, ...cluster.clients.map(({ process }) => process)]
        .map(({ name }) => name)
        .filter((name) => !islanders.includes(name));
      const pairs = islanders.flatMap((name) =>
        others.flatMap((each): Pair[] => [
          [name, each],
          [each, name],
        ]),
      );
      for (const [from, to] of pairs) network.cut(from, to);
      for (const name of islanders) locks.cut(name, true);
      return () => {
        for (const [from, to] of pairs) network.join(from, to);
        for (const name of islanders) locks.cut(name, false);
      };
    }
    case 'no lock service':
      locks.cut(machine, true);
      return () => locks.cut(machine, false);
    case 'slow machine':
      store.slowMachines.set(machine, 6000 * severity);
      return () => {
        store.slowMachines.delete(machine);
        // half of them fail in the end
        if (severity > 0.5 && seat) cluster.crash(seat);
      };
    case 'no store':
      store.cutMachines.add(machine);
      return () => store.cutMachines.delete(machine);
    case 'slow store':
      return change(store.health, whole.store, { slowShare: severity / 2, slowMs: 3000 });
    case 'failing store':
      return change(store.health, whole.store, { failedShare: severity / 5 });
    case 'unanswering store':
      return change(store.health, whole.store, { unansweredShare: severity / 5, lateShare: severity / 5 });
    case 'damaging store':
      store.health.damagedShare = severity / 3;
      return () => store.repair();
    case 'full store':
      // some begin in the midst of a split of METADATA
      if (severity < 0.5) return change(store.health, whole.store, { isFull: true });
      network.onNextCall('commit', () => fillStore(cluster, durationMs, whole), splitsMetadata);
      return undefined;
    case 'slow network':
      return change(network.weather, whole.network, { lateShare: severity / 2, lateMs: 2000 });
    case 'losing network':
      return change(network.weather, whole.network, { lostShare: severity / 20 });
    case 'repeating network':
      return change(network.weather, whole.network, { givenUpShare: severity / 10 });
    case 'disordering network':
      return change(network.weather, whole.network, { overtakenShare: severity / 4 });
    case 'failing lock service':
      return change(locks.health, whole.locks, { failedShare: severity / 2 });
    case 'no lists of the lock service':
      return change(locks.health, whole.locks, { failsLists: true });
    case 'slow lock service':
      return change(locks.health, whole.locks, { maxDelayMs: 5 + 4000 * severity });
    case 'unanswering lock service':
      return change(locks.health, whole.locks, { unansweredShare: severity / 2, lateShare: severity / 4 });
    case 'late watches':
      return change(locks.health, whole.locks, { watchLagMs: 10_000 * severity });
    case 'new lock service leader':
      return locks.loseLeader();
  }
}

/** The storage is full for a while. */
function fillStore({ scheduler, store }: Cluster, durationMs: number, whole: Whole): void {
  if (scheduler.nowMs >= END_MS) return;
  const end = change(store.health, whole.store, { isFull: true });
  scheduler.after(Math.min(durationMs, END_MS - scheduler.nowMs), undefined, 'end of full store', end);
}

/** True for the commit that splits a tablet of METADATA. */
function splitsMetadata(message: unknown): boolean {
  const { commits } = message as TabletServerCalls['commit']['message'];
  return commits.some(({ event, rows }) => event.kind === 'split' && isMetadataTablet(rows[0]!.key));
}

/** A machine fails, and then the one that is given tablets next, and so on: what kills one may kill the next. */
function cascade(cluster: Cluster, seat: Seat | undefined, left: number): void {
  const { scheduler, network } = cluster;
  if (seat) cluster.crash(seat);
  if (left === 0) return;
  network.onNextCall('load', (machine) => {
    scheduler.after(scheduler.random.float() * CASCADE_MS, undefined, 'cascade', () => {
      if (scheduler.nowMs < END_MS) cascade(cluster, cluster.seatOf(machine), left - 1);
    });
  });
}

/** The name of the machine, which may be given by what it does now. */
async function machineOf({ locks: { service }, masters, servers, network }: Cluster, machine: string): Promise<string> {
  if (machine === THE_LOADER) return network.calledLast.get('load') ?? servers[0]!.name;
  if (machine === THE_MASTER) {
    const file = await service.read(MASTER_PATH);
    return file ? decodePeerFile(file.path, file.contents).address : masters[0]!.name;
  }
  if (machine === THE_ROOT) {
    const file = await service.read(ROOT_PATH);
    return (file && decodeRootFile(file.contents).server?.address) ?? servers[0]!.name;
  }
  return machine;
}

/**
 * Changes some fields, and returns what sets them as they are in `whole`: overlapping faults of one kind end with the
 * first of them.
 */
function change<T extends object>(health: T, whole: T, fields: Partial<T>): () => void {
  const before = Object.fromEntries(Object.keys(fields).map((key) => [key, whole[key as keyof T]]));
  Object.assign(health, fields);
  return () => Object.assign(health, before);
}
