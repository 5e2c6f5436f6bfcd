/**
 * Measures when all tablets are served: reads a row of each of them again and again, through a door drawn by chance,
 * and remembers the first answer to a read that was sent after a mark.
 */
import { SeededRandom } from '../../src/env/index.ts';
import { Doors } from './doors.ts';

export interface Probe {
  readonly table: string;
  readonly row: string;
}

const EVERY_MS = 300;
const TIMEOUT_MS = 2000;
/** Reads of one row at once; those to a door that is stopped wait for their timeout. */
const MAX_AT_ONCE = 8;

export class Probes {
  readonly #doors: Doors;
  readonly #probes: readonly Probe[];
  readonly #underWay: number[];
  #markMs = performance.now();
  /** By probe: when the first read was answered that was sent after the mark. */
  #answeredMs: (number | undefined)[] = [];
  #timer: NodeJS.Timeout | undefined;

  private constructor(doors: Doors, probes: readonly Probe[]) {
    this.#doors = doors;
    this.#probes = probes;
    this.#underWay = probes.map(() => 0);
    this.mark();
    this.#timer = setInterval(() => probes.forEach((_, i) => void this.#send(i)), EVERY_MS);
  }

  static async open(addresses: readonly string[], seed: number, probes: readonly Probe[]): Promise<Probes> {
    return new Probes(await Doors.at(addresses, new SeededRandom(seed)), probes);
  }

  /** What is answered to reads from now on counts. */
  mark(): void {
    this.#markMs = performance.now();
    this.#answeredMs = this.#probes.map(() => undefined);
  }

  /** When the last tablet was served again after the mark; undefined: one is not yet. */
  get allServedMs(): number | undefined {
    let lastMs = 0;
    for (const atMs of this.#answeredMs) {
      if (atMs === undefined) return undefined;
      lastMs = Math.max(lastMs, atMs);
    }
    return lastMs;
  }

  /** By row: when its tablet was served again, the latest first. */
  get slowest(): readonly { readonly row: string; readonly atMs: number }[] {
    return this.#probes
      .flatMap(({ row }, i) => (this.#answeredMs[i] === undefined ? [] : { row, atMs: this.#answeredMs[i] }))
      .sort((a, b) => b.atMs - a.atMs);
  }

  get isAllServed(): boolean {
    return this.allServedMs !== undefined;
  }

  get unserved(): readonly Probe[] {
    return this.#probes.filter((_, i) => this.#answeredMs[i] === undefined);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#doors.close();
  }

  async #send(i: number): Promise<void> {
    if (this.#underWay[i]! >= MAX_AT_ONCE) return;
    const { table, row } = this.#probes[i]!;
    const sentMs = performance.now();
    this.#underWay[i]!++;
    try {
      await this.#doors.any().table(table).get(row, { timeoutMs: TIMEOUT_MS });
      if (sentMs >= this.#markMs) this.#answeredMs[i] ??= performance.now();
    } catch {
      // it is sent again
    }
    this.#underWay[i]!--;
  }
}
