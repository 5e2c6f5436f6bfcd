/**
 * A linked-list test: clients write nodes that refer only to acknowledged nodes, while processes of the cluster are
 * killed; then, with a cluster that is whole, the table is read and judged.
 *
 * A fault comes after some seconds of work since the last one was recovered from, sooner where few nodes are to be
 * written; some come while the last one is recovered from. Clients wait for the next fault when they have written their
 * share for this one, so that a quick machine has as many faults as a slow one.
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SeededRandom } from '../../src/env/index.ts';
import { Cluster, type ClusterOptions, doorOf } from '../cluster/cluster.ts';
import { Doors } from '../cluster/doors.ts';
import { Failures } from '../cluster/failures.ts';
import { drawFaults, type Fault, nameOf } from '../cluster/faults.ts';
import { inflict, type Inflicted, waitFor } from '../cluster/inflict.ts';
import { Chain } from './chain.ts';
import type { Finding } from './findings.ts';
import { FAMILY, TABLE } from './nodes.ts';
import { scanAll } from './scan.ts';
import { type BadRow, Verification, type VerificationCounts } from './verification.ts';
import { Writer } from './writer.ts';

export interface RunOptions extends ClusterOptions {
  readonly nodes: number;
  readonly clients: number;
  readonly seed: number;
  readonly say: (line: string) => void;
}

export interface RunResult {
  readonly findings: readonly Finding[];
  readonly acknowledged: number;
  readonly unknown: number;
  /** Faults by name. */
  readonly faults: Readonly<Record<string, number>>;
  readonly failures: number;
  readonly splits: number;
  readonly writtenMs: number;
  readonly readMs: number;
  /** Undefined: the table could not be read. */
  readonly verification: VerificationCounts | undefined;
  /** The most memory of this process. */
  readonly memoryBytes: number;
}

/** Nodes of one bulk write, and of so many lists that a chain has side by side. */
const WIDTH = 1000;
const SPLITS = ['4', '8', 'c'];
/** The table grows to about so many tablets. */
const TABLETS = 24;
/** What a node takes in files, about. */
const NODE_BYTES = 200;
const MIB = 1024 * 1024;
const MAX_TABLET_BYTES = 64 * MIB;
const MAX_LOG_BYTES = 16 * MIB;
/** The work between two faults: so long, or this share of all nodes if they are written sooner. */
const MIN_WORK_MS = 2000;
const MAX_WORK_MS = 8000;
const WORK_SHARE = 1 / 32;
/** The share of its nodes that a client may write during a fault, and again between two. */
const ALLOWED_SHARE = 1 / 16;
/** Killed processes start again so late at most. */
const MAX_DOWN_MS = 5000;
/** The share of the faults that is followed by another one before it is recovered from, and how soon. */
const FOLLOWED_SHARE = 0.3;
const MAX_FOLLOWED_MS = 12_000;
/** Every client has written again so long after a fault, and the cluster is whole. */
const PATIENCE_MS = 90_000;
const READ_MS = 10_000;

export class Run {
  readonly #options: RunOptions;
  readonly #cluster: Cluster;
  readonly #random: SeededRandom;
  readonly #failures: Failures;
  readonly #writers: readonly Writer[];
  /** The way of the test's own calls. */
  readonly #doors: Doors;
  readonly #findings: Finding[] = [];
  readonly #faults: Record<string, number> = {};

  private constructor(
    options: RunOptions,
    cluster: Cluster,
    parts: { random: SeededRandom; failures: Failures; writers: readonly Writer[]; doors: Doors },
  ) {
    this.#options = options;
    this.#cluster = cluster;
    this.#random = parts.random;
    this.#failures = parts.failures;
    this.#writers = parts.writers;
    this.#doors = parts.doors;
  }

  static async start(options: RunOptions): Promise<Run> {
    const { nodes, clients, seed, tools } = options;
    const cluster = await Cluster.start({ ...options, serverSettings: settingsFor(nodes, options.servers) });
    const addresses = cluster.servers.map(({ machine }) => doorOf(machine));
    const random = new SeededRandom(seed);
    const failures = new Failures(join(tools.logs, 'failed-calls.log'));
    const doors = await Doors.at(addresses, new SeededRandom(seed));
    await doors.any().createTable(TABLE, { families: { [FAMILY]: { maxVersions: 1 } }, splits: SPLITS });
    const writers: Writer[] = [];
    for (let number = 0; number < clients; number++) {
      const own = new SeededRandom(seed + number + 1);
      // half of them find the owners of rows by themselves
      const way = number % 2 === 0 ? await Doors.at(addresses, own) : Doors.over([await cluster.connect()], own);
      const size = Math.floor(nodes / clients) + (number < nodes % clients ? 1 : 0);
      writers.push(new Writer({ seed, number, chain: new Chain(size, WIDTH), doors: way, random: own, failures }));
    }
    return new Run(options, cluster, { random, failures, writers, doors });
  }

  async run(): Promise<RunResult> {
    const startMs = performance.now();
    const isWritten = await this.#write();
    const writtenMs = performance.now() - startMs;
    const chains = this.#writers.map(({ chain }) => chain);
    const verification = new Verification(this.#options.seed, chains);
    const splits = isWritten ? await this.#verify(verification) : undefined;
    const readMs = performance.now() - startMs - writtenMs;
    await this.#close();
    const acknowledged = this.#acknowledged;
    return {
      findings: this.#findings,
      acknowledged,
      unknown: chains.reduce((sum, { begun }) => sum + begun, 0) - acknowledged,
      faults: this.#faults,
      failures: this.#failures.count,
      splits: splits ?? 0,
      writtenMs,
      readMs,
      verification: splits === undefined ? undefined : verification.counts,
      memoryBytes: process.resourceUsage().maxRSS * 1024,
    };
  }

  get #acknowledged(): number {
    return this.#writers.reduce((sum, { chain }) => sum + chain.acknowledged, 0);
  }

  get #areDone(): boolean {
    return this.#writers.every(({ isDone }) => isDone);
  }

  /** Writes all nodes under faults; returns whether the cluster is whole after that. */
  async #write(): Promise<boolean> {
    const work = Promise.all(this.#writers.map((writer) => writer.run()));
    const { seed, servers, store } = this.#options;
    let lastDead: Inflicted['deadServers'] = [];
    // all kinds of kills, also of a member of etcd
    for (const fault of drawFaults({ seed, servers, store, canCut: false, isShort: false, only: 'kill' })) {
      const before = this.#acknowledged;
      this.#allow();
      const workMs = MIN_WORK_MS + this.#random.float() * (MAX_WORK_MS - MIN_WORK_MS);
      const share = this.#options.nodes * WORK_SHARE;
      await waitFor(() => this.#areDone || this.#acknowledged - before >= share, workMs);
      if (this.#areDone) break;
      lastDead = await this.#inflict(fault, lastDead);
      if (this.#findings.length > 0) break;
    }
    if (this.#findings.length > 0) for (const writer of this.#writers) writer.stop();
    await work;
    await this.#cluster.heal();
    const isWhole = await waitFor(() => this.#cluster.isWhole, PATIENCE_MS);
    if (!isWhole) this.#find('served', `the cluster is not whole in the end: not running: ${this.#down()}`);
    return isWhole;
  }

  #allow(): void {
    for (const writer of this.#writers) writer.allow(writer.chain.size * ALLOWED_SHARE);
  }

  /** One fault until it is recovered from, or until it is time for the next one. */
  async #inflict(fault: Fault, spared: Inflicted['deadServers']): Promise<Inflicted['deadServers']> {
    const cluster = this.#cluster;
    this.#faults[nameOf(fault)] = (this.#faults[nameOf(fault)] ?? 0) + 1;
    this.#allow();
    const { what, deadServers, atMs } = await inflict(cluster, fault, spared);
    await pause(fault.holdMs > 0 ? fault.holdMs : this.#random.float() * MAX_DOWN_MS);
    const healedMs = performance.now();
    await cluster.heal();
    // a generation shows that the client writes again
    for (const writer of this.#writers) writer.allow(1);
    const isFollowed = this.#random.float() < FOLLOWED_SHARE;
    const followedMs = this.#random.float() * MAX_FOLLOWED_MS;
    const haveWritten = (): boolean =>
      this.#writers.every(({ answeredCallMs, isDone }) => answeredCallMs > healedMs || isDone);
    const isServed = await waitFor(haveWritten, isFollowed ? followedMs : PATIENCE_MS);
    const recovered = isServed
      ? 'all clients write again'
      : isFollowed
        ? 'the next fault comes'
        : 'not all clients write again';
    const percent = Math.floor((100 * this.#acknowledged) / this.#options.nodes);
    this.#options.say(
      `${what}: ${recovered} after ${seconds(performance.now() - atMs)}; ${percent} % of the nodes are acknowledged`,
    );
    if (!isServed && !isFollowed)
      this.#find('served', `${what}: not all clients have written again ${seconds(PATIENCE_MS)} after its end`);
    return deadServers;
  }

  /** Reads and judges the table; returns how often it was split, undefined if it cannot be read. */
  async #verify(verification: Verification): Promise<number | undefined> {
    const table = this.#doors.any().table(TABLE);
    this.#options.say(`${this.#acknowledged} nodes are acknowledged; the table is read`);
    try {
      const tablets = (await table.tablets({ timeoutMs: READ_MS })).length;
      const splits = tablets - SPLITS.length - 1;
      if (splits === 0 && isToSplit(this.#options.nodes))
        this.#find('splits', `it has the ${tablets} tablets that it began with`);
      await scanAll(this.#doors, (row) => verification.see(row));
      verification.end();
      await this.#tell(verification);
      return splits;
    } catch (error) {
      this.#find('served', `the table cannot be read: ${error}`);
      return undefined;
    }
  }

  /** The rows that are wrong or missing, each with its tablet. */
  async #tell({ badRows, counts }: Verification): Promise<void> {
    const { holes, wrong } = counts;
    if (holes > 0) this.#find('holes', `${holes} acknowledged nodes are missing`);
    if (wrong > 0) this.#find('nodes', `${wrong} rows are wrong`);
    for (const { key, what, isHole } of badRows)
      this.#find(isHole ? 'holes' : 'nodes', `row ${key}: ${what}; ${await this.#placeOf(key)}`);
  }

  /** The tablet of a row, its server, and what a read of the row alone says. */
  async #placeOf(key: BadRow['key']): Promise<string> {
    const table = this.#doors.any().table(TABLE);
    try {
      const row = await table.get(key, { timeoutMs: READ_MS });
      const tablets = await table.tablets({ timeoutMs: READ_MS });
      const tablet = tablets.findLast(({ start }) => start.compare(Buffer.from(key)) <= 0)!;
      const rows = `${tablet.start} up to ${tablet.end ?? 'the end'}`;
      return `a read of it finds ${row === undefined ? 'nothing' : 'it'}; tablet ${rows} at server ${tablet.server}`;
    } catch (error) {
      return `its tablet is unknown: ${error}`;
    }
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#writers.map((writer) => writer.close()), this.#doors.close()]);
    // none of these faults lets a process end itself
    for (const { program, end } of this.#cluster.ownEnds)
      this.#find('processes', `${program.name} ended itself with ${end}`);
    for (const { program, end } of await this.#cluster.close())
      this.#find('processes', `${program.name} ended with ${end} after SIGTERM`);
    for (const alarm of this.#cluster.alarms) this.#find('processes', `a log says: ${alarm}`);
  }

  #down(): string {
    const { masters, servers } = this.#cluster;
    return [...masters, ...servers]
      .filter(({ isReady }) => !isReady)
      .map(({ name }) => name)
      .join(', ');
  }

  #find(kind: Finding['kind'], what: string): void {
    this.#findings.push({ kind, what });
    this.#options.say(`FOUND: ${what}`);
  }
}

/** Tablets so small that the table is split again and again as it grows, and files that are written as often. */
function settingsFor(nodes: number, servers: number): readonly string[] {
  const tabletBytes = tabletBytesFor(nodes);
  const logBytes = Math.round(Math.min(Math.max((tabletBytes * TABLETS) / servers / 8, MIB), MAX_LOG_BYTES));
  return ['--tablet-bytes', String(tabletBytes), '--log-limit-bytes', String(logBytes)];
}

const tabletBytesFor = (nodes: number): number =>
  Math.round(Math.min(Math.max((nodes * NODE_BYTES) / TABLETS, MIB), MAX_TABLET_BYTES));

/** Each of the first tablets grows to twice its size at least. */
const isToSplit = (nodes: number): boolean => nodes * NODE_BYTES > 2 * tabletBytesFor(nodes) * (SPLITS.length + 1);

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
