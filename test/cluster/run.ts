/**
 * A cluster test: rounds, each with one fault under load. In each round the fault begins, lasts, and ends; all tablets
 * are served again; the load stops, and its histories are judged.
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Admin } from './admin.ts';
import { Cluster, type ClusterOptions, doorOf } from './cluster.ts';
import { Contention, type ContentionCounts } from './contention.ts';
import { Failures } from './failures.ts';
import { drawFaults, type Fault, nameOf } from './faults.ts';
import type { Finding } from './findings.ts';
import { inflict, type Inflicted, waitFor } from './inflict.ts';
import { TABLE as CONTENDED } from '../linearizability/calls.ts';
import { Ledger, type LedgerCounts } from './ledger.ts';
import { LockWatch, type LostLock } from './lock-watch.ts';
import { Probes } from './probes.ts';

export interface RunOptions extends ClusterOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly isShort: boolean;
  readonly only: string;
  readonly say: (line: string) => void;
}

export interface RunResult {
  /** What is wrong, each with the round in which it was found. */
  readonly findings: readonly Finding[];
  /** Rounds by fault. */
  readonly faults: Readonly<Record<string, number>>;
  readonly contention: ContentionCounts;
  readonly ledger: LedgerCounts;
  readonly failures: number;
  /** From a death to its detection, and from there until all tablets were served. */
  readonly recoveries: readonly { readonly detectedMs: number; readonly servedMs: number }[];
  /** From the instant in which the lock was free until an admin call was answered. */
  readonly failOversMs: readonly number[];
}

/** A file of the scratch folder: the histories of all rows (contention.ts). */
const HISTORIES = 'histories';
/** The load runs so long before a fault, and after all is served again. */
const BEFORE_MS = 1500;
const AFTER_MS = 1000;
/** A death is detected, and all is served, within this time: else the round goes on. */
const DEATH_PATIENCE_MS = 45_000;
const RECOVERY_MS = 10_000;
/** After the end of a fault all is served within this time. */
const HEALED_MS = 30_000;
const HEAL_PATIENCE_MS = 90_000;
const FAIL_OVER_MS = 5000;
/** The lost lock is seen at most so long after an admin call that was answered because of it. */
const LOCK_PATIENCE_MS = 3000;
const MAX_SHOWN = 5;

export class Run {
  readonly #options: RunOptions;
  readonly #cluster: Cluster;
  readonly #failures: Failures;
  readonly #contention: Contention;
  readonly #ledger: Ledger;
  readonly #probes: Probes;
  readonly #admin: Admin;
  readonly #locks: LockWatch;
  readonly #findings: Finding[] = [];
  readonly #faults: Record<string, number> = {};
  readonly #recoveries: { detectedMs: number; servedMs: number }[] = [];
  readonly #failOversMs: number[] = [];
  /** Servers that died in the last round. */
  #lastDead: Inflicted['deadServers'] = [];
  #where = 'start';

  private constructor(
    options: RunOptions,
    cluster: Cluster,
    load: { failures: Failures; contention: Contention; ledger: Ledger; probes: Probes; admin: Admin },
  ) {
    this.#options = options;
    this.#cluster = cluster;
    this.#failures = load.failures;
    this.#contention = load.contention;
    this.#ledger = load.ledger;
    this.#probes = load.probes;
    this.#admin = load.admin;
    this.#locks = new LockWatch(cluster.etcd);
  }

  static async start(options: RunOptions): Promise<Run> {
    const cluster = await Cluster.start(options);
    const doors = cluster.servers.map(({ machine }) => doorOf(machine));
    const { seed, tools } = options;
    const failures = new Failures(join(tools.logs, 'failed-calls.log'));
    const historiesFile = join(tools.scratch, HISTORIES);
    const contention = await Contention.open({ addresses: doors, seed, failures, historiesFile });
    const ledger = await Ledger.open(doors, seed + 1, failures);
    const probes = await Probes.open(doors, seed + 2, [
      ...contention.probes.map((row) => ({ table: CONTENDED, row })),
      ...ledger.probes.map((row) => ({ table: ledger.table, row })),
    ]);
    const admin = await Admin.open(doors, seed + 3);
    return new Run(options, cluster, { failures, contention, ledger, probes, admin });
  }

  async run(): Promise<RunResult> {
    const { seed, servers, store, minutes, isShort, only } = this.#options;
    const canCut = this.#options.network.hasNamespaces;
    const endMs = performance.now() + minutes * 60_000;
    this.#ledger.begin();
    let round = 0;
    for (const fault of drawFaults({ seed, servers, store, canCut, isShort, only })) {
      if (!isShort && performance.now() > endMs) break;
      this.#where = `round ${++round}`;
      this.#faults[nameOf(fault)] = (this.#faults[nameOf(fault)] ?? 0) + 1;
      this.#contention.begin(round, seed + round);
      await this.#round(fault);
      for (const { kind, what } of await this.#contention.end()) this.#find(kind, what);
      if (this.#findings.length > 0 && !this.#probes.isAllServed) break;
    }
    this.#where = 'the end';
    // what was found before says why it cannot be read
    await this.#ledger
      .end()
      .catch((error: unknown) => this.#find('served', `the spread rows cannot be read: ${error}`));
    for (const { kind, what } of await this.#contention.endAll()) this.#find(kind, what);
    for (const finding of this.#ledger.findings) this.#find('durable', finding);
    for (const alarm of this.#cluster.alarms) this.#find('processes', `a log says: ${alarm}`);
    await this.#close();
    return {
      findings: this.#findings,
      faults: this.#faults,
      contention: this.#contention.counts,
      ledger: this.#ledger.counts,
      failures: this.#failures.count,
      recoveries: this.#recoveries,
      failOversMs: this.#failOversMs,
    };
  }

  async #round(fault: Fault): Promise<void> {
    const cluster = this.#cluster;
    const endsBefore = cluster.ownEnds.length;
    await pause(BEFORE_MS);
    const failuresBefore = this.#failures.count;
    const beganMs = performance.now();
    const inflicted = await inflict(cluster, fault, this.#lastDead);
    this.#lastDead = inflicted.deadServers;
    this.#probes.mark();
    await Promise.all([
      pause(fault.holdMs),
      inflicted.deadServers.length > 0 ? this.#recovery(inflicted) : undefined,
      inflicted.lostMaster === undefined ? undefined : this.#failOver(inflicted),
    ]);
    const { what, lostMaster, deadServers, mayEnd } = inflicted;
    const { allServedMs } = this.#probes;
    const healed = await this.#heal(inflicted);
    await pause(AFTER_MS);
    const failures = this.#failures.count - failuresBefore;
    const served =
      allServedMs === undefined ? 'not all was served' : `all served after ${seconds(allServedMs - beganMs)}`;
    this.#say(`${what}: ${served} while it lasted, ${healed} after its end; ${failures} failed calls`);
    if (lostMaster !== undefined && deadServers.length === 0 && failures > 0) {
      const shown = this.#failures.since(beganMs).slice(0, MAX_SHOWN).join('\n  ');
      this.#find('masters', `${what}: ${failures} data calls failed:\n  ${shown}`);
    }
    for (const { program, end } of cluster.ownEnds.slice(endsBefore))
      if (!mayEnd.includes(program)) this.#find('processes', `${what}: ${program.name} ended itself with ${end}`);
  }

  /** Waits until all tablets of the dead are served, and measures that. */
  async #recovery({ what, atMs, lostMaster }: Inflicted): Promise<void> {
    const isServed = await waitFor(() => this.#probes.isAllServed, DEATH_PATIENCE_MS);
    if (!isServed)
      return this.#find('served', `${what}: not served ${DEATH_PATIENCE_MS} ms after it: ${this.#unserved()}`);
    const lost = this.#locks.lostSince(atMs).filter(({ path }) => path.startsWith('servers/'));
    if (lost.length === 0) return this.#say(`${what}: it had none of the tablets`);
    const servedMs = this.#probes.allServedMs!;
    // a master that has only just taken over could not know of it earlier
    const detectedMs = Math.max(
      atMs,
      lost.at(-1)?.atMs ?? 0,
      lostMaster === undefined ? 0 : this.#cluster.activeSinceMs,
    );
    this.#recoveries.push({ detectedMs: detectedMs - atMs, servedMs: servedMs - detectedMs });
    this.#say(`${what}: detected after ${seconds(detectedMs - atMs)}, all served after ${seconds(servedMs - atMs)}`);
    if (servedMs - detectedMs <= RECOVERY_MS) return;
    const late = this.#probes.slowest.filter(({ atMs }) => atMs - detectedMs > RECOVERY_MS);
    const rows = late.map(({ row, atMs }) => `${row} ${seconds(atMs - detectedMs)}`).join(', ');
    this.#find(
      'served',
      `${what}: tablets were served later than ${seconds(RECOVERY_MS)} after its detection: ${rows}`,
    );
  }

  async #failOver({ what, atMs, deadServers }: Inflicted): Promise<void> {
    const answeredMs = await this.#admin.answered();
    if (answeredMs === undefined) return this.#find('masters', `${what}: no admin call was answered within a minute`);
    const lost = (): LostLock | undefined => this.#locks.lostSince(atMs).find(({ path }) => path === 'master');
    await waitFor(() => lost() !== undefined, LOCK_PATIENCE_MS);
    const free = lost();
    if (free === undefined)
      return this.#find('masters', `${what}: an admin call was answered before the lock was lost`);
    const tookMs = answeredMs - free.atMs;
    this.#failOversMs.push(tookMs);
    this.#say(`${what}: lock free after ${seconds(free.atMs - atMs)}, admin call answered ${seconds(tookMs)} later`);
    // without the tablets of METADATA that died with it no table can be created
    if (tookMs > FAIL_OVER_MS && deadServers.length === 0)
      this.#find('masters', `${what}: an admin call was answered ${seconds(tookMs)} after the lock was free`);
  }

  /** Ends the fault, and waits until all is served by a cluster that is whole; returns how long that took. */
  async #heal({ what }: Inflicted): Promise<string> {
    const healedMs = performance.now();
    await this.#cluster.heal();
    this.#probes.mark();
    const isWhole = await waitFor(() => this.#probes.isAllServed && this.#cluster.isWhole, HEAL_PATIENCE_MS);
    const servedMs = this.#probes.allServedMs;
    if (!isWhole)
      this.#find('served', `${what}: not whole ${HEAL_PATIENCE_MS} ms after the end of the fault: ${this.#unserved()}`);
    else if (servedMs! - healedMs > HEALED_MS)
      this.#find('served', `${what}: all tablets were served ${seconds(servedMs! - healedMs)} after its end`);
    return seconds(performance.now() - healedMs);
  }

  async #close(): Promise<void> {
    this.#locks.close();
    await Promise.all([this.#probes.close(), this.#admin.close(), this.#contention.close(), this.#ledger.close()]);
    for (const { program, end } of await this.#cluster.close())
      this.#find('processes', `${program.name} ended with ${end} after SIGTERM`);
  }

  #unserved(): string {
    const { masters, servers } = this.#cluster;
    const down = [...masters, ...servers].filter(({ isReady }) => !isReady).map(({ name }) => name);
    return `${JSON.stringify(this.#probes.unserved)}; not running: ${down.join(', ') || 'none'}`;
  }

  #say(line: string): void {
    this.#options.say(`${this.#where}: ${line}`);
  }

  #find(kind: Finding['kind'], what: string): void {
    this.#findings.push({ kind, what: `${this.#where}: ${what}` });
    this.#options.say(`FOUND in ${this.#where}: ${what}`);
  }
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
