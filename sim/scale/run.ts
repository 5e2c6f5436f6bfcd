/**
 * What the scale run does, and what it measures: a cold start, a minute in which nothing happens, a death each second
 * for a minute, and half as many servers again.
 */
import { assert } from '../../src/base/index.ts';
import type { MetadataKey } from '../../src/metadata/index.ts';
import { type ScaleSize, ScaleWorld } from './world.ts';

const REST_MS = 60_000;
const RETURN_MS = 10_000;
/** A time without a move: balancing begins 5 s after what makes it due. */
const QUIET_MS = 20_000;
/** No part lasts longer. */
const MAX_MS = 3_600_000;

export interface ScaleFigures {
  readonly coldStartMs: number;
  /** What the master does in a second in which nothing happens. */
  readonly rest: { readonly cpuMs: number; readonly calls: number; readonly lockCalls: number };
  /** The longest time from the detection of a death until all tablets of the dead were served. */
  readonly recoveryMs: number;
  /** The same for deaths that are detected when a lease has lapsed: until then tablets are given to the dead. */
  readonly unseenRecoveryMs: number;
  /** The most calls of the lock service about one dead server. */
  readonly lockCallsPerDeath: number;
  readonly balanceMs: number;
  readonly moves: number;
  /** The number of moves that even numbers take. */
  readonly leastMoves: number;
  /** CPU time of the master in each part, ms. */
  readonly cpuMs: Readonly<Record<string, number>>;
  readonly trace: string;
}

export interface ScaleOptions {
  readonly seed: number;
  readonly size: ScaleSize;
  /** The number of servers that die, one each `deathMs`, which is a second by default. */
  readonly deaths: number;
  readonly deathMs?: number;
  readonly onLine?: (line: string) => void;
}

export async function runScale(options: ScaleOptions): Promise<ScaleFigures> {
  const world = new ScaleWorld(options.seed, options.size);
  const run = new ScaleRun(world, options);
  return world.scheduler.run(run.all(), MAX_MS);
}

class ScaleRun {
  readonly #world: ScaleWorld;
  readonly #options: ScaleOptions;
  readonly #cpuMs: Record<string, number> = {};

  constructor(world: ScaleWorld, options: ScaleOptions) {
    this.#world = world;
    this.#options = options;
  }

  async all(): Promise<ScaleFigures> {
    const { scheduler } = this.#world;
    await this.#world.prepare();
    const coldStartMs = await this.#charged('cold start', () => this.#coldStart());
    await this.#settled();
    const rest = await this.#rest();
    const seen = await this.#charged('deaths', () => this.#deaths('at once'));
    await this.#settled();
    const balance = await this.#charged('balance', () => this.#balance());
    await this.#settled();
    const unseen = await this.#charged('unseen deaths', () => this.#deaths('after its lease'));
    return {
      coldStartMs,
      rest,
      recoveryMs: seen.recoveryMs,
      unseenRecoveryMs: unseen.recoveryMs,
      lockCallsPerDeath: Math.max(seen.lockCallsPerDeath, unseen.lockCallsPerDeath),
      ...balance,
      cpuMs: this.#cpuMs,
      trace: scheduler.trace(),
    };
  }

  async #charged<T>(part: string, work: () => Promise<T>): Promise<T> {
    const before = this.#world.masterCpu?.usedMs ?? 0;
    const result = await work();
    this.#cpuMs[part] = this.#world.masterCpu.usedMs - before;
    this.#note(`${part}: ${this.#cpuMs[part].toFixed(0)} ms of the master's CPU`);
    return result;
  }

  #note(line: string): void {
    this.#options.onLine?.(`${(this.#world.scheduler.nowMs / 1000).toFixed(1)} s: ${line}`);
  }

  async #coldStart(): Promise<number> {
    const world = this.#world;
    await Promise.all(Array.from({ length: world.size.servers }, () => world.startServer()));
    const beganMs = world.scheduler.nowMs;
    const master = await world.startMaster();
    await master.assigned;
    assert(world.owners.size === world.tablets, 'all tablets are served once all are assigned');
    this.#note(`all tablets are served after ${((world.scheduler.nowMs - beganMs) / 1000).toFixed(1)} s`);
    return world.scheduler.nowMs - beganMs;
  }

  async #rest(): Promise<ScaleFigures['rest']> {
    const world = this.#world;
    const now = (): number[] => [
      world.masterCpu.usedMs,
      Object.values(world.masterTransport.calls).reduce((sum, calls) => sum + calls, 0),
      world.masterLockCalls,
    ];
    const before = now();
    await world.sleep(REST_MS);
    const [cpuMs, calls, lockCalls] = now().map((value, i) => ((value - before[i]!) / REST_MS) * 1000);
    const lock = lockCalls!.toFixed(1);
    this.#note(
      `at rest, a second: ${cpuMs!.toFixed(1)} ms of CPU, ${calls!.toFixed(0)} calls, ${lock} of the lock service`,
    );
    return { cpuMs: cpuMs!, calls: calls!, lockCalls: lockCalls! };
  }

  async #deaths(seen: 'at once' | 'after its lease'): Promise<{ recoveryMs: number; lockCallsPerDeath: number }> {
    const world = this.#world;
    const draw = world.scheduler.fork(`deaths seen ${seen}`);
    const recoveries: Promise<number>[] = [];
    const names: string[] = [];
    for (let i = 0; i < this.#options.deaths; i++) {
      const alive = world.servers.filter(({ isAnnounced }) => isAnnounced);
      const victim = alive[Math.floor(draw.float() * alive.length)];
      assert(victim !== undefined, 'servers die more slowly than they return');
      names.push(victim.name);
      const detected = world.detected(victim);
      const had = new Set(victim.tablets.keys());
      world.kill(victim, seen);
      recoveries.push(this.#recovery(had, detected));
      world.scheduler.after(RETURN_MS, undefined, 'return', () => void world.startServer());
      await world.sleep(this.#options.deathMs ?? 1000);
    }
    const times = await Promise.all(recoveries);
    times.sort((a, b) => a - b);
    const median = times[Math.floor(times.length / 2)]!;
    this.#note(
      `recoveries took ${(median / 1000).toFixed(1)} s in the median, ${(times.at(-1)! / 1000).toFixed(1)} s at most`,
    );
    const lockCallsPerDeath = Math.max(...names.map((name) => world.lockCalls.get(name) ?? 0));
    this.#note(`the master made at most ${lockCallsPerDeath} calls of the lock service about a dead server`);
    return { recoveryMs: times.at(-1)!, lockCallsPerDeath };
  }

  /** From the detection until all of the tablets were served by a server that lived then. */
  async #recovery(had: Set<MetadataKey>, detected: Promise<void>): Promise<number> {
    const { scheduler } = this.#world;
    const served = new Promise<void>((resolve) => this.#whenServed(had, resolve));
    await detected;
    const beganMs = scheduler.nowMs;
    await served;
    return scheduler.nowMs - beganMs;
  }

  readonly #left = new Set<{ readonly keys: Set<MetadataKey>; readonly onServed: () => void }>();

  #whenServed(keys: Set<MetadataKey>, onServed: () => void): void {
    if (keys.size === 0) return onServed();
    this.#left.add({ keys, onServed });
    this.#world.onServed = (key) => {
      for (const one of this.#left) {
        if (!one.keys.delete(key) || one.keys.size > 0) continue;
        this.#left.delete(one);
        one.onServed();
      }
    };
  }

  /** Resolves when every tablet is served, and the master moves none. */
  async #settled(): Promise<void> {
    const world = this.#world;
    for (let quietMs = 0; quietMs < QUIET_MS; quietMs += 1000) {
      const before = this.#moves();
      await world.sleep(1000);
      if (world.owners.size < world.tablets || this.#moves() !== before) quietMs = -1000;
    }
  }

  #moves(): number {
    return Number(this.#world.masterMetrics.snapshot()['master.movedTablets'] ?? 0);
  }

  async #balance(): Promise<{ balanceMs: number; moves: number; leastMoves: number }> {
    const world = this.#world;
    const added = world.size.servers / 2;
    const beganMs = world.scheduler.nowMs;
    const movesBefore = this.#moves();
    await Promise.all(Array.from({ length: added }, () => world.startServer()));
    const leastMoves = leastMovesOf(world.numbers());
    let lastMs = beganMs;
    for (let quietMs = 0, moves = movesBefore; quietMs < QUIET_MS; quietMs += 1000) {
      await world.sleep(1000);
      if (this.#moves() === moves) continue;
      moves = this.#moves();
      lastMs = world.scheduler.nowMs;
      quietMs = -1000;
    }
    const numbers = world.numbers();
    const difference = Math.max(...numbers) - Math.min(...numbers);
    const took = ((lastMs - beganMs) / 1000).toFixed(1);
    const moved = this.#moves() - movesBefore;
    this.#note(`${moved} moves of at least ${leastMoves} took ${took} s; numbers differ by ${difference}`);
    const isEven = difference <= Math.max(1, Math.floor((0.1 * world.size.tablets) / numbers.length));
    return {
      balanceMs: isEven ? lastMs - beganMs : Number.POSITIVE_INFINITY,
      moves: moved,
      leastMoves,
    };
  }
}

function leastMovesOf(numbers: readonly number[]): number {
  const total = numbers.reduce((sum, number) => sum + number, 0);
  const least = Math.floor(total / numbers.length);
  const roundedUp = total - least * numbers.length;
  return [...numbers]
    .sort((a, b) => b - a)
    .reduce((sum, number, i) => sum + Math.max(0, number - least - (i < roundedUp ? 1 : 0)), 0);
}
