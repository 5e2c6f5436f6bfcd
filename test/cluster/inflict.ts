/** Does to a cluster what a fault says, and tells what that was. The fault is ended by `Cluster.heal`. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import type { Fault } from './faults.ts';
import type { Machine } from './network.ts';
import type { Program } from './program.ts';

export interface Inflicted {
  /** What was done, for people. */
  readonly what: string;
  /** When it began. */
  readonly atMs: number;
  /** Tablet servers that died, or will have died when their leases have lapsed. */
  readonly deadServers: readonly Program[];
  /** The master that was taken away. */
  readonly lostMaster: Program | undefined;
  /** Processes that may end themselves because of it. */
  readonly mayEnd: readonly Program[];
}

/** In milliseconds, each way; an answer takes twice as long. Above 400 ms a call of etcd is tried again. */
const SLOW_ETCD_MS = [230, 400] as const;
const REFUSED_SHARE = 0.5;
const SLOW_STORE_MS = 2000;

/** Begins the fault. Servers that died in the last round are spared: they may not have tablets yet. */
export async function inflict(
  cluster: Cluster,
  { kind, between, choice }: Fault,
  spared: readonly Program[],
): Promise<Inflicted> {
  const { servers, masters } = cluster;
  const atMs = performance.now();
  const others = servers.filter((each) => !spared.includes(each));
  const candidates = others.length > 1 ? others : servers;
  const chosen = Math.floor(choice * candidates.length);
  const server = candidates[chosen]!;
  const second = candidates[(chosen + 1) % candidates.length]!;
  const master = cluster.activeMaster ?? masters[0]!;
  const nothing = { what: kind, atMs, deadServers: [], lostMaster: undefined, mayEnd: [] };
  const killed = async (dead: readonly Program[], lostMaster?: Program): Promise<Inflicted> => {
    const victims = lostMaster === undefined ? dead : [...dead, lostMaster];
    await Promise.all(victims.map((program) => program.end()));
    return { ...nothing, what: `${kind} (${names(victims)})`, deadServers: dead, lostMaster };
  };
  switch (kind) {
    case 'kill a server':
      return killed([server]);
    case 'kill two servers':
      return killed([server, second]);
    case 'kill all servers': {
      const inflicted = await killed(servers);
      for (const program of servers) void cluster.startAgain(program);
      return inflicted;
    }
    case 'kill a server and the master':
      return killed([server], master);
    case 'start a killed server at once': {
      const inflicted = await killed([server]);
      void cluster.startAgain(server);
      return inflicted;
    }
    case 'kill the master':
      return killed([], master);
    case 'stop a server for longer than its lease':
      server.stop();
      return { ...nothing, what: `${kind} (${server.name})`, deadServers: [server], mayEnd: [server] };
    case 'stop a server shortly':
      server.stop();
      return { ...nothing, what: `${kind} (${server.name})` };
    case 'stop the master for longer than its lease':
      master.stop();
      return { ...nothing, what: `${kind} (${master.name})`, lostMaster: master, mayEnd: [master] };
    case 'kill the leader of etcd': {
      const leader = await cluster.etcd.leader();
      await leader?.end();
      return { ...nothing, what: `${kind} (${leader?.name})` };
    }
    case 'stop the leader of etcd for longer than a lease': {
      const leader = await cluster.etcd.leader();
      leader?.stop();
      // once it goes on it may end leases that were renewed at another leader (decision 80)
      return { ...nothing, what: `${kind} (${leader?.name})`, mayEnd: [...masters, ...servers] };
    }
    case 'slow etcd': {
      const [leastMs, mostMs] = SLOW_ETCD_MS;
      const delayMs = Math.round(leastMs + choice * (mostMs - leastMs));
      cluster.etcd.delay(delayMs);
      return { ...nothing, what: `${kind} (answers take ${2 * delayMs} ms more)`, mayEnd: [...masters, ...servers] };
    }
    case 'refusing, slow store':
      cluster.store.trouble(REFUSED_SHARE, SLOW_STORE_MS);
      return nothing;
    case 'cut':
      return { ...nothing, ...cut(cluster, between!, choice) };
  }
}

/** One machine of a role is cut off from one or all machines of the other: which, the choice says. */
function cut(cluster: Cluster, [from, to]: NonNullable<Fault['between']>, choice: number): Partial<Inflicted> {
  const active = cluster.activeMaster ?? cluster.masters[0]!;
  const one = (role: typeof from): Machine => {
    const machines = cluster.machinesOf(role);
    return role === 'master' ? active.machine : machines[Math.floor(choice * machines.length)]!;
  };
  const [fromOne, toOne] = [one(from), one(to)];
  // another number of the same draw
  const isFromAll = (choice * 1000) % 1 < 0.7;
  const others = (role: typeof from, than: Machine): readonly Machine[] =>
    cluster.machinesOf(role).filter((machine) => machine !== than);
  let pairs: readonly (readonly [Machine, Machine])[];
  if (from === to)
    pairs = (isFromAll ? others(to, fromOne) : others(to, fromOne).slice(0, 1)).map((each) => [fromOne, each]);
  else if (to === 'etcd') pairs = (isFromAll ? cluster.machinesOf(to) : [toOne]).map((each) => [fromOne, each]);
  else if (from === 'etcd') pairs = (isFromAll ? cluster.machinesOf(from) : [fromOne]).map((each) => [each, toOne]);
  else pairs = [[fromOne, toOne]];
  for (const [sender, receiver] of pairs) cluster.network.cut(sender, receiver);
  const cutOff = new Set(pairs.flat());
  const mayEnd = [...cluster.masters, ...cluster.servers].filter(({ machine }) => cutOff.has(machine));
  const names = (machines: Iterable<Machine>): string => [...new Set([...machines].map(({ name }) => name))].join(', ');
  const what = `cut from ${names(pairs.map(([sender]) => sender))} to ${names(pairs.map(([, receiver]) => receiver))}`;
  return { what, mayEnd };
}

const names = (programs: readonly Program[]): string => programs.map(({ name }) => name).join(', ');

/** Resolves when `condition` holds, with true, or after that time, with false. */
export async function waitFor(condition: () => boolean, patienceMs: number): Promise<boolean> {
  for (const endMs = performance.now() + patienceMs; !condition(); await pause(50))
    if (performance.now() > endMs) return false;
  return true;
}
