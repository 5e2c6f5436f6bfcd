/**
 * A cluster of real processes, each on a machine of its own: masters, tablet servers, etcd and the store. A supervisor
 * starts again, at the same address, what ends by itself.
 */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type Database } from '../../src/embedded/index.ts';
import { userEnvironment } from '../cli/user-environment.ts';
import { Etcd } from './etcd.ts';
import type { Machine, Network, Role } from './network.ts';
import { Program } from './program.ts';
import { directoryStore, s3Store, type Store, type StoreKind } from './store.ts';
import type { Tools } from './tools.ts';

export interface ClusterOptions {
  readonly network: Network;
  readonly tools: Tools;
  readonly store: StoreKind;
  readonly servers: number;
  /** More arguments of the tablet servers. Default: none. */
  readonly serverSettings?: readonly string[];
}

/** A process that has ended though nobody ended it. */
export interface OwnEnd {
  readonly program: Program;
  readonly end: number | string;
}

/** The cluster's part of etcd's keys. */
export const PREFIX = 'cluster-test';

const MASTERS = 2;
const ETCD_MEMBERS = 3;
const INTERNAL_PORT = 7001;
const DOOR_PORT = 8086;
/** The supervisor waits so long before it starts a process again. */
const RESTART_MS = 1000;
/** Nothing that a log says may match: the process has found a mistake of its own, or damage. */
const ALARMING = /AssertionError|invariant|is damaged|CorruptionError|TypeError|RangeError|ReferenceError|unhandled/i;
const MAX_ALARMS = 20;

export class Cluster {
  readonly network: Network;
  readonly etcd: Etcd;
  readonly store: Store;
  readonly masters: readonly Program[];
  readonly servers: readonly Program[];
  /** Ends that nobody had ordered. */
  readonly ownEnds: OwnEnd[] = [];
  /** Lines of logs that no fault explains. */
  readonly alarms: string[] = [];
  readonly #lockAddress: string;
  readonly #secretFile: string;
  /** The master that was the last one to say that it is the master. */
  #active: Program | undefined;
  /** When it said so. */
  activeSinceMs = 0;
  #isClosing = false;

  private constructor(
    { network, tools, serverSettings = [] }: ClusterOptions,
    machines: ReadonlyMap<Role, readonly Machine[]>,
    store: Store,
  ) {
    this.network = network;
    this.store = store;
    this.etcd = new Etcd(machines.get('etcd')!, tools);
    this.#lockAddress = `etcd://${this.etcd.endpoints.join(',')}/${PREFIX}`;
    this.#secretFile = join(tools.scratch, 'secret');
    writeFileSync(this.#secretFile, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 });
    const role = (command: string, machine: Machine, more: readonly string[] = []): Program =>
      new Program({
        machine,
        command: [
          ...[...tools.edubba, command, '--lock', this.#lockAddress],
          ...['--files', store.address, '--cluster-address', `${machine.address}:${INTERNAL_PORT}`],
          ...['--cluster-secret-file', this.#secretFile, '--log-level', 'info', '--metrics-address', 'off', ...more],
        ],
        env: { ...userEnvironment(), ...store.env },
        ready: /^listening on /,
        logFile: join(tools.logs, `${machine.name}.log`),
        onLine: (program, line) => this.#heard(program, line),
        onEnd: (program, end, wasMeant) => this.#ended(program, end, wasMeant),
      });
    this.masters = machines.get('master')!.map((machine) => role('master', machine));
    this.servers = machines
      .get('server')!
      .map((machine) =>
        role('tabletserver', machine, ['--address', doorOf(machine), '--insecure-public', ...serverSettings]),
      );
  }

  /** Starts all of it. */
  static async start(options: ClusterOptions): Promise<Cluster> {
    const { network, tools, store, servers } = options;
    const add = async (role: Role, count: number): Promise<readonly Machine[]> => {
      const machines: Machine[] = [];
      while (machines.length < count) machines.push(await network.add(role));
      return machines;
    };
    const machines = new Map<Role, readonly Machine[]>([
      ['etcd', await add('etcd', ETCD_MEMBERS)],
      ['master', await add('master', MASTERS)],
      ['server', await add('server', servers)],
    ]);
    const place = store === 's3' ? s3Store((await add('store', 1))[0]!, tools) : directoryStore(tools);
    const cluster = new Cluster(options, machines, place);
    await Promise.all([cluster.etcd.start(), place.start()]);
    await Promise.all([...cluster.masters, ...cluster.servers].map((program) => program.start()));
    return cluster;
  }

  /** A client of the library that finds the owner of each row by itself and calls it directly. */
  connect(): Promise<Database> {
    return connect(this.#lockAddress, { cluster: { secretFile: this.#secretFile } });
  }

  /** The master that has the lock, as far as it is known. */
  get activeMaster(): Program | undefined {
    return this.#active;
  }

  get isWhole(): boolean {
    const programs = [...this.masters, ...this.servers];
    return programs.every((program) => program.isReady) && this.etcd.members.every((member) => member.isRunning);
  }

  machinesOf(role: Role): readonly Machine[] {
    switch (role) {
      case 'client':
        return [this.network.client];
      case 'etcd':
        return this.etcd.members.map(({ machine }) => machine);
      case 'store':
        return this.store.machine === undefined ? [] : [this.store.machine];
      case 'master':
        return this.masters.map(({ machine }) => machine);
      case 'server':
        return this.servers.map(({ machine }) => machine);
    }
  }

  /** Ends every fault, and starts again what does not run. */
  async heal(): Promise<void> {
    this.network.heal();
    this.etcd.delay(0);
    this.store.trouble(0, 0);
    for (const program of [...this.masters, ...this.servers, ...this.etcd.members]) program.continue();
    const ended = this.etcd.members.filter((member) => !member.isRunning);
    await Promise.all(ended.map((member) => this.etcd.startMember(member)));
    await Promise.all([...this.masters, ...this.servers].map((program) => this.startAgain(program)));
  }

  /** Starts a process that does not run. Where it does not come up, the supervisor tries again. */
  async startAgain(program: Program): Promise<void> {
    if (!program.isRunning) await program.start().catch(() => {});
  }

  /** Ends each role in good order, servers first; returns what did not end with status 0. */
  async close(): Promise<readonly OwnEnd[]> {
    this.#isClosing = true;
    const bad: OwnEnd[] = [];
    for (const programs of [this.servers, this.masters]) {
      await Promise.all(
        programs.map(async (program) => {
          const end = await program.end('SIGTERM');
          if (end !== undefined && end !== 0) bad.push({ program, end });
        }),
      );
    }
    return bad;
  }

  #heard(program: Program, line: string): void {
    if (/is the master$/.test(line)) {
      this.#active = program;
      this.activeSinceMs = performance.now();
    }
    if (ALARMING.test(line) && this.alarms.length < MAX_ALARMS) this.alarms.push(`${program.name}: ${line}`);
  }

  #ended(program: Program, end: number | string, wasMeant: boolean): void {
    if (program === this.#active) this.#active = undefined;
    if (wasMeant) return;
    this.ownEnds.push({ program, end });
    setTimeout(() => {
      if (!this.#isClosing) void this.startAgain(program);
    }, RESTART_MS);
  }
}

/** The front door of a tablet server. */
export const doorOf = ({ address }: Machine): string => `${address}:${DOOR_PORT}`;
