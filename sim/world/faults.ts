/**
 * The faults of a run: drawn before it begins, so that a failing run can be repeated with fewer of them. Each begins at
 * a time, and most last for a while. After `END_MS` everything is whole again.
 */
import type { Random } from '../../src/env/index.ts';
import { decodeRootFile } from '../../src/metadata/index.ts';
import { decodePeerFile, MASTER_PATH } from '../../src/protocol/index.ts';
import type { Cluster, Seat } from './cluster.ts';
import type { LockServiceHealth } from './locks.ts';
import type { Weather } from './network.ts';
import type { StoreHealth } from './store.ts';

const BEGIN_MS = 8000;
/** In some runs the faults begin with the cluster itself. */
const EARLY_SHARE = 0.25;
export const END_MS = 50_000;

export type FaultKind =
  | 'crash'
  | 'pause'
  | 'cut'
  | 'cut off'
  | 'island'
  | 'clock'
  | 'slow store'
  | 'failing store'
  | 'unanswering store'
  | 'full store'
  | 'slow network'
  | 'losing network'
  | 'repeating network'
  | 'disordering network'
  | 'no lock service'
  | 'failing lock service'
  | 'slow lock service'
  | 'unanswering lock service'
  | 'late watches'
  | 'new lock service leader';

/** Weights: how often a kind is drawn. */
const KINDS: readonly (readonly [FaultKind, number])[] = [
  ['crash', 6],
  ['pause', 6],
  ['cut', 6],
  ['cut off', 4],
  ['island', 4],
  ['clock', 3],
  ['slow store', 3],
  ['failing store', 2],
  ['unanswering store', 2],
  ['full store', 1],
  ['slow network', 3],
  ['losing network', 3],
  ['repeating network', 3],
  ['disordering network', 3],
  ['no lock service', 4],
  ['failing lock service', 2],
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
}

/** Machines by what they do when the fault begins. */
const THE_MASTER = 'the master';
const THE_ROOT = "METADATA's server";

/** Draws the faults of a run, by time. */
export function drawFaults(random: Random, machines: readonly string[], clients: readonly string[]): Fault[] {
  const beginMs = random.float() < EARLY_SHARE ? 0 : BEGIN_MS;
  const count = 4 + Math.floor(random.float() * 12);
  const total = KINDS.reduce((sum, [, weight]) => sum + weight, 0);
  const oneOf = (names: readonly string[]): string => names[Math.floor(random.float() * names.length)]!;
  const machine = (): string => oneOf([...machines, THE_MASTER, THE_ROOT]);
  const faults = Array.from({ length: count }, (): Fault => {
    let left = random.float() * total;
    const kind = KINDS.find(([, weight]) => (left -= weight) < 0)?.[0] ?? 'crash';
    const atMs = beginMs + random.float() * (END_MS - beginMs - 1000);
    return {
      kind,
      atMs,
      durationMs: Math.min(100 + random.float() ** (LONG.has(kind) ? 0.6 : 2) * 20_000, END_MS - atMs),
      machine: machine(),
      other: kind === 'island' || random.float() < 0.3 ? oneOf(clients) : machine(),
      severity: random.float(),
    };
  });
  return faults.sort((a, b) => a.atMs - b.atMs);
}

/** One line for a reader. */
export function describeFault({ kind, atMs, durationMs, machine, other, severity }: Fault): string {
  const who =
    kind === 'cut'
      ? `${machine} > ${other}`
      : kind === 'island'
        ? `${machine} with ${other}`
        : OF_MACHINES.has(kind)
          ? machine
          : '';
  return `${(atMs / 1000).toFixed(2)} s ${kind} ${who} for ${(durationMs / 1000).toFixed(2)} s (${severity.toFixed(2)})`;
}

/** They last longer than a lease more often than others do. */
const LONG = new Set<FaultKind>(['island', 'no lock service', 'pause', 'slow lock service']);

const OF_MACHINES = new Set<FaultKind>(['crash', 'pause', 'cut', 'cut off', 'clock', 'no lock service']);

/** Everything without a fault. */
interface Whole {
  readonly store: StoreHealth;
  readonly network: Weather;
  readonly locks: LockServiceHealth;
}

type Pair = readonly [string, string];
const ROOT_PATH = 'root';

/** Schedules the faults and their ends. */
export function inflict(cluster: Cluster, faults: readonly Fault[]): void {
  const { scheduler, store, network, locks } = cluster;
  const whole: Whole = { store: { ...store.health }, network: { ...network.weather }, locks: { ...locks.health } };
  const inflictOne = async (fault: Fault): Promise<void> => {
    const [machine, other] = [await machineOf(cluster, fault.machine), await machineOf(cluster, fault.other)];
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

/** Returns the function that ends the fault; undefined for one that ends by itself. */
function begin(
  cluster: Cluster,
  { kind, durationMs, machine, other, severity }: Fault,
  whole: Whole,
): (() => void) | undefined {
  const { network, store, locks } = cluster;
  const seat = seatOf(cluster, machine);
  switch (kind) {
    case 'crash':
      if (seat) cluster.crash(seat);
      return undefined;
    case 'pause':
      seat?.process?.pause(durationMs);
      return undefined;
    case 'clock':
      seat?.process?.setClockForward((severity - 0.5) * 60_000);
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
    case 'slow store':
      return change(store.health, whole.store, { slowShare: severity / 2, slowMs: 3000 });
    case 'failing store':
      return change(store.health, whole.store, { failedShare: severity / 5 });
    case 'unanswering store':
      return change(store.health, whole.store, { unansweredShare: severity / 5, lateShare: severity / 5 });
    case 'full store':
      return change(store.health, whole.store, { isFull: true });
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

/** The name of the machine, which may be given by what it does now. */
async function machineOf({ locks: { service }, masters, servers }: Cluster, machine: string): Promise<string> {
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

function seatOf({ masters, servers }: Cluster, machine: string): Seat | undefined {
  return [...masters, ...servers].find(({ name }) => name === machine);
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
