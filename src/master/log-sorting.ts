/**
 * Has the logs of dead servers sorted by the live ones before their tablets are given away (paper section 6.5;
 * docs/decisions/0092-sorted-logs.md), so that each tablet reads its own records only. A log that is short is not: all
 * of its readers together read it in less time.
 *
 * Invariant: sorted files only save time and memory. Whatever fails here, the tablets are given away, and their servers
 * read the log. Only fenced logs are sorted. METADATA is not needed for it, and METADATA's tablets wait for it, too:
 * one server that reads a long log takes no less time than several that sort it.
 */
import { assert, toBigtableError } from '../base/index.ts';
import { findReplayStart, listSorted, type LogPart } from '../commitlog/index.ts';
import type { Env, RequestContext } from '../env/index.ts';
import { isDeposed, LOGS_DIRECTORY } from '../protocol/index.ts';
import type { LiveServer } from './live-server.ts';
import type { Servers } from './servers.ts';

/** Which logs are sorted, and how they are cut. */
export interface SortedLogSizes {
  /** Size of a part. */
  readonly partBytes: number;
  /** A shorter log is read whole by each server. */
  readonly leastBytes: number;
  /** The same where fewer than MANY_SERVERS read it. */
  readonly leastBytesOfFew: number;
  /** A shorter log is sorted, too, if its short appends cost this much: each server would call the store for each. */
  readonly leastCallBytes: number;
}

/** A log at its limit, by default, is read by a few servers in less time than they take to sort it. */
const SIZES: SortedLogSizes = {
  partBytes: 32 << 20,
  leastBytes: 12 << 20,
  leastBytesOfFew: 72 << 20,
  leastCallBytes: 1 << 20,
};
/** A server may keep this much more than the size of a part in memory: cuts are estimates, and rows are noted. */
const MEMORY_SHARE = 4 / 3;
const MANY_SERVERS = 4;
/** Attempts at a part, each by another server. */
const MAX_ATTEMPTS = 3;
/** Time for one part, after which a server is not waited for: the tablets are given away. */
const PART_MS = 10_000;

export interface LogSortingOptions {
  readonly env: Env;
  readonly servers: Servers;
  readonly context: () => RequestContext;
  /** Default: parts of 32 MiB, of logs of 12 MiB and, where few servers read them, 72 MiB; of 1 MiB that calls cost. */
  readonly sizes?: SortedLogSizes | undefined;
}

export class LogSorting {
  readonly #options: LogSortingOptions;
  readonly #sizes: SortedLogSizes;
  /** By dead server. Undefined: it is over. */
  readonly #logs = new Map<string, Promise<void> | undefined>();
  /** By server that sorts, what ends the wait for each of its calls. */
  readonly #calls = new Map<string, Set<() => void>>();

  constructor(options: LogSortingOptions) {
    this.#options = options;
    this.#sizes = options.sizes ?? SIZES;
  }

  /** Resolves when those of the logs that are to be sorted are; undefined if there is nothing to wait for. */
  sorted(logs: readonly string[]): Promise<unknown> | undefined {
    const { env, servers } = this.#options;
    // without a server no tablet can be given away: the first that comes sorts
    if (env.fileSystem.cutLog === undefined || servers.all().length === 0) return undefined;
    const sortings: Promise<void>[] = [];
    for (const log of logs) {
      const name = log.slice(LOGS_DIRECTORY.length);
      if (!servers.remembersDead(name)) continue;
      if (!this.#logs.has(name))
        this.#logs.set(
          name,
          this.#sort(name, log).finally(() => this.#isOver(name)),
        );
      const sorting = this.#logs.get(name);
      if (sorting !== undefined) sortings.push(sorting);
    }
    return sortings.length === 0 ? undefined : Promise.all(sortings);
  }

  /** Forgets the dead servers whose logs were deleted. */
  forget(): void {
    for (const name of this.#logs.keys()) if (!this.#options.servers.remembersDead(name)) this.#logs.delete(name);
  }

  /** The server is dead: no answer of it is waited for. */
  endAt(name: string): void {
    for (const end of this.#calls.get(name) ?? []) end();
  }

  /** True when the call has ended, false if its server is found dead before. */
  #unlessDead(name: string, call: Promise<unknown>): Promise<boolean> {
    const calls = this.#calls.get(name) ?? new Set();
    this.#calls.set(name, calls);
    return new Promise((resolve, reject) => {
      const end = (): void => {
        calls.delete(end);
        if (calls.size === 0) this.#calls.delete(name);
        resolve(false);
      };
      calls.add(end);
      call.then(() => resolve(true), reject).finally(end);
    });
  }

  #isOver(name: string): void {
    if (this.#logs.has(name)) this.#logs.set(name, undefined);
  }

  async #sort(name: string, log: string): Promise<void> {
    const { env, servers } = this.#options;
    const { fileSystem, logger, clock } = env;
    try {
      // only a fenced log ends
      if (!(await servers.isDead(name))) return;
      const readers = servers.all().length;
      const { partBytes, leastBytes, leastBytesOfFew, leastCallBytes } = this.#sizes;
      // what is kept for change streams alone is not replayed
      const from = await findReplayStart(fileSystem, log);
      const { sizeBytes, callCostBytes, positions } = await fileSystem.cutLog!(log, partBytes, from);
      const isCostly = readers > 1 && callCostBytes >= leastCallBytes;
      if (!isCostly && sizeBytes < (readers >= MANY_SERVERS ? leastBytes : leastBytesOfFew)) return;
      const startMs = clock.monotonicMs();
      const parts = await this.#missing(log, [from, ...positions]);
      const left = await this.#sortParts(name, parts);
      const fields = { server: name, bytes: sizeBytes, parts: parts.length, tookMs: clock.monotonicMs() - startMs };
      if (left === 0) logger.info('the log of a dead server was sorted', fields);
      else logger.warn('the log of a dead server was sorted in part only', { ...fields, left });
    } catch (thrown) {
      const error = toBigtableError(thrown).message;
      logger.warn('the log of a dead server was not sorted: each server will read all of it', { server: name, error });
    }
  }

  /** The parts that begin at the positions, without those that an earlier master has had sorted. */
  async #missing(log: string, begins: readonly number[]): Promise<LogPart[]> {
    const keyOf = ({ from, to }: LogPart): string => `${from} ${to}`;
    const existing = new Set((await listSorted(this.#options.env.fileSystem, log)).map(keyOf));
    return begins.map((from, i) => ({ from, to: begins[i + 1] })).filter((part) => !existing.has(keyOf(part)));
  }

  /**
   * Each server sorts one part of the log after another; the part of one that fails goes to another one. Returns the
   * number of those that none has sorted.
   */
  async #sortParts(name: string, parts: readonly LogPart[]): Promise<number> {
    const { clock } = this.#options.env;
    const rounds = 1 + Math.ceil(parts.length / Math.max(1, this.#options.servers.all().length));
    const endMs = clock.monotonicMs() + rounds * PART_MS;
    const waiting = parts.map((part) => ({ part, attempts: 0 }));
    /** Servers that sort a part of this log, or have failed to. */
    const taken = new Set<string>();
    const working = new Set<Promise<void>>();
    let left = parts.length;
    while (left > 0) {
      for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
        const server = this.#freest(taken);
        if (server === undefined) break;
        waiting.shift();
        taken.add(server.name);
        const { part } = next;
        const attempts = next.attempts + 1;
        const work = this.#sortPart(server, name, part, endMs).then((isSorted) => {
          working.delete(work);
          if (isSorted) {
            left--;
            taken.delete(server.name);
          } else if (attempts < MAX_ATTEMPTS) waiting.push({ part, attempts });
        });
        working.add(work);
      }
      if (working.size === 0) break;
      await Promise.race(working);
    }
    assert(left >= 0, 'each part is sorted once');
    return left;
  }

  /** The server, of those that are not taken, that sorts the fewest parts of any logs. */
  #freest(taken: ReadonlySet<string>): LiveServer | undefined {
    const load = ({ name }: LiveServer): number => this.#calls.get(name)?.size ?? 0;
    let best: LiveServer | undefined;
    for (const server of this.#options.servers.all())
      if (!taken.has(server.name) && (best === undefined || load(server) < load(best))) best = server;
    return best;
  }

  /** False if the server has failed. */
  async #sortPart(server: LiveServer, name: string, { from, to }: LogPart, endMs: number): Promise<boolean> {
    const { servers, context, env } = this.#options;
    const within = context();
    const message = {
      server: name,
      start: from,
      ...(to !== undefined && { end: to }),
      maxBytes: Math.ceil(this.#sizes.partBytes * MEMORY_SHARE),
    };
    try {
      const deadlineMs = Math.min(within.deadlineMs, endMs);
      const sorting = servers.caller.callUntilDone(server, 'sortLog', message, { ...within, deadlineMs });
      return await this.#unlessDead(server.name, sorting);
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (isDeposed(error)) throw error;
      env.logger.info('a tablet server did not sort a part of a log', { server: server.name, error: error.message });
      return false;
    }
  }
}
