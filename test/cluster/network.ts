/**
 * The machines of a cluster test. Each is a network namespace with one address, joined to the others by a bridge, so
 * that packets from one machine to another can be dropped in one direction. Without namespaces machines are addresses
 * of the loopback network, and nothing can be cut.
 *
 * The bridge is made in the namespace of this very process: it has to run in one of its own (scripts/cluster-test.mjs),
 * whose end removes everything.
 *
 * No machine asks where another one is (ARP): each has a fixed table. A cut sends the packets of one direction to an
 * address that nobody has, which leaves the other direction as it is.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readlinkSync } from 'node:fs';

export type Role = 'client' | 'etcd' | 'store' | 'master' | 'server';

export interface Machine {
  readonly role: Role;
  /** Such as "server-2". */
  readonly name: string;
  readonly address: string;
  /** The command that runs a program on this machine. */
  command(program: readonly string[]): readonly string[];
}

/** The last number of the address of the first machine of each role. */
const FIRST_HOST = { client: 1, etcd: 11, store: 21, master: 31, server: 41 } satisfies Record<Role, number>;
const BRIDGE = 'edubba0';
/** The network card of a machine inside its namespace. */
const CARD = 'eth0';
const NOBODY = '02:00:00:00:00:00';
const START_MS = 10_000;

class Host implements Machine {
  readonly role: Role;
  readonly name: string;
  readonly host: number;
  readonly address: string;
  /** The process that keeps the namespace; undefined for the machine of this process, and without namespaces. */
  readonly holder: ChildProcess | undefined;

  constructor(role: Role, number: number, network: string, holder?: ChildProcess) {
    this.role = role;
    this.name = `${role}-${number}`;
    this.host = FIRST_HOST[role] + number - 1;
    this.address = `${network}.${this.host}`;
    this.holder = holder;
  }

  command(program: readonly string[]): readonly string[] {
    return this.holder === undefined ? program : ['nsenter', `--net=/proc/${this.holder.pid}/ns/net`, '--', ...program];
  }

  /** The card's name as this machine calls it. */
  get card(): string {
    return this.holder === undefined ? BRIDGE : CARD;
  }

  get hardwareAddress(): string {
    return `02:00:00:00:01:${this.host.toString(16).padStart(2, '0')}`;
  }
}

export class Network {
  /** False: machines are loopback addresses. */
  readonly hasNamespaces: boolean;
  /** Where the test itself and its clients run. */
  readonly client: Machine;
  readonly #network: string;
  readonly #hosts: Host[] = [];
  /** Directions that are cut, and those whose packets are dropped for them. */
  readonly #cuts: { readonly from: Host; readonly to: Host }[] = [];

  constructor(hasNamespaces: boolean) {
    this.hasNamespaces = hasNamespaces;
    this.#network = hasNamespaces ? '10.77.0' : '127.77.0';
    const host = new Host('client', 1, this.#network);
    this.client = host;
    this.#hosts.push(host);
    if (!hasNamespaces) return;
    ip('link', 'set', 'lo', 'up');
    ip('link', 'add', BRIDGE, 'address', host.hardwareAddress, 'type', 'bridge');
    ip('addr', 'add', `${host.address}/24`, 'dev', BRIDGE);
    ip('link', 'set', BRIDGE, 'up');
  }

  /** One more machine of that role. */
  async add(role: Role): Promise<Machine> {
    const number = 1 + this.#hosts.filter((host) => host.role === role).length;
    if (!this.hasNamespaces) {
      const host = new Host(role, number, this.#network);
      this.#hosts.push(host);
      return host;
    }
    // it ends with this process, whose end closes its input
    const holder = spawn('unshare', ['--net', 'cat'], { stdio: ['pipe', 'ignore', 'inherit'] });
    await inNamespace(holder);
    const host = new Host(role, number, this.#network, holder);
    const outside = `ed${host.host}`;
    ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', CARD, 'netns', String(holder.pid));
    ip('link', 'set', outside, 'master', BRIDGE, 'up');
    this.#on(host, 'link', 'set', 'lo', 'up');
    this.#on(host, 'link', 'set', CARD, 'address', host.hardwareAddress, 'up');
    this.#on(host, 'addr', 'add', `${host.address}/24`, 'dev', CARD);
    for (const other of this.#hosts) {
      this.#tell(host, other, other.hardwareAddress);
      this.#tell(other, host, host.hardwareAddress);
    }
    this.#hosts.push(host);
    return host;
  }

  /** From now on what `from` sends to `to` is lost. The other direction goes on. */
  cut(from: Machine, to: Machine): void {
    assert.ok(this.hasNamespaces, 'loopback addresses cannot be cut');
    const cut = { from: this.#hostOf(from), to: this.#hostOf(to) };
    this.#cuts.push(cut);
    this.#tell(cut.from, cut.to, NOBODY);
  }

  /** Ends all cuts. */
  heal(): void {
    for (const { from, to } of this.#cuts.splice(0)) this.#tell(from, to, to.hardwareAddress);
  }

  close(): void {
    for (const { holder } of this.#hosts) holder?.kill('SIGKILL');
  }

  #hostOf(machine: Machine): Host {
    return this.#hosts.find((host) => host === machine)!;
  }

  /** `host` sends packets for `other` to that hardware address. */
  #tell(host: Host, other: Host, hardwareAddress: string): void {
    this.#on(
      host,
      ...['neigh', 'replace', other.address, 'lladdr', hardwareAddress, 'dev', host.card, 'nud', 'permanent'],
    );
  }

  #on(host: Host, ...args: readonly string[]): void {
    run(host.command(['ip', ...args]));
  }
}

const ip = (...args: readonly string[]): void => run(['ip', ...args]);

function run([file, ...args]: readonly string[]): void {
  const { status, stderr, error } = spawnSync(file!, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${[file, ...args].join(' ')}: ${error?.message ?? stderr}`);
}

/** Resolves when the process is in a network namespace of its own. */
async function inNamespace(holder: ChildProcess): Promise<void> {
  const own = readlinkSync('/proc/self/ns/net');
  for (const endMs = performance.now() + START_MS; performance.now() < endMs; ) {
    if (holder.exitCode !== null) break;
    if (holder.pid !== undefined && readlinkSync(`/proc/${holder.pid}/ns/net`) !== own) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error('a network namespace was not made');
}
