/** The logs of servers that died: full ones, which are to be replayed, and what of them was sorted. */
import type { LogPart } from '../../src/commitlog/index.ts';
import type { FileSystem, LogCuts } from '../../src/env/index.ts';
import { FILE_READ_MS } from './costs.ts';

const MIB = 1 << 20;
const LOG_BYTES = 64 * MIB;
/** What a master reads of a log to find where to cut it: its end, its slots, and headers of some, 16 at a time. */
const CUT_READS = 2 + 2 + 8;

export class DeadLogs {
  readonly #full = new Set<string>();
  /** By log, the beginnings of the parts that are sorted. */
  readonly #sorted = new Map<string, Set<number>>();
  #cuts: readonly number[] = [];

  /** The number of parts of a log, once one was cut. */
  get parts(): number {
    return this.#cuts.length + 1;
  }

  died(log: string): void {
    this.#full.add(log);
  }

  /** True when it holds records that are to be replayed. */
  isFull(log: string): boolean {
    return this.#full.has(log);
  }

  isSorted(log: string): boolean {
    return this.#sorted.get(log)?.size === this.parts;
  }

  /** The share of the log that the part has. */
  shareOf({ from, to = LOG_BYTES }: LogPart): number {
    return (to - from) / LOG_BYTES;
  }

  partIsSorted(log: string, { from }: LogPart): void {
    const parts = this.#sorted.get(log) ?? new Set();
    this.#sorted.set(log, parts.add(from));
  }

  /** The files as a master sees them; positions of logs are bytes. `wait`: the time that storage takes. */
  filesOf(files: FileSystem, wait: (ms: number) => Promise<void>): FileSystem {
    return new Proxy(files, {
      get: (target, name: keyof FileSystem) => {
        if (name === 'cutLog') return (log: string, partBytes: number) => this.#cut(log, partBytes, wait);
        const value = target[name];
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  async #cut(log: string, partBytes: number, wait: (ms: number) => Promise<void>): Promise<LogCuts> {
    await wait(CUT_READS * FILE_READ_MS);
    if (!this.#full.has(log)) return { sizeBytes: 0, callCostBytes: 0, positions: [] };
    const positions: number[] = [];
    for (let at = partBytes; at < LOG_BYTES; at += partBytes) positions.push(at);
    this.#cuts = positions;
    return { sizeBytes: LOG_BYTES, callCostBytes: 0, positions };
  }
}
