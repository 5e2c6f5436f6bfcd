/**
 * The sorted logs of dead servers, for recovery (paper section 6.5; docs/decisions/0092-sorted-logs.md): sorts parts of
 * them when the master requests it, and finds the files that all servers have made of a log.
 *
 * Invariant: sorted files only save time and memory. A log that has none is read whole, and so is one whose files are
 * damaged; a part that is missing is sorted here. One part is sorted at a time, which bounds the memory.
 */
import { assert, type BigtableError, Code, toBigtableError, unavailable } from '../base/index.ts';
import {
  findReplayStart,
  listSorted,
  type LogPart,
  SortedLog,
  type SortedPart,
  sortedPath,
  sortLog,
} from '../commitlog/index.ts';
import type { Env } from '../env/index.ts';
import { LOGS_DIRECTORY, logPathOf } from '../protocol/index.ts';

/** Bytes in memory of a part that is sorted because it was missing. */
const MISSING_PART_BYTES = 32 << 20;

export interface LogSorterOptions {
  readonly env: Pick<Env, 'fileSystem' | 'clock' | 'codecs' | 'logger' | 'metrics'>;
  readonly serverName: string;
  /** As `SortOptions.rowsAtOnce`. */
  readonly rowsAtOnce?: number | undefined;
}

export class LogSorter {
  readonly #options: LogSorterOptions;
  /** By the part, those that are sorted or wait for it. */
  readonly #underWay = new Map<string, Promise<void>>();
  #last: Promise<unknown> = Promise.resolve();
  #files = 0;
  #isStopped = false;

  constructor(options: LogSorterOptions) {
    this.#options = options;
  }

  /** Sorts no more. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Sorts the part of the fenced log of a dead server; a call joins an earlier one of the same part. */
  sort(server: string, part: LogPart, maxBytes: number): Promise<void> {
    const key = `${server} ${part.from} ${part.to}`;
    let sorting = this.#underWay.get(key);
    if (sorting === undefined) {
      sorting = this.#last.then(() => this.#sort(server, part, maxBytes)).finally(() => this.#underWay.delete(key));
      this.#underWay.set(key, sorting);
      this.#last = sorting.catch(() => {});
    }
    return sorting;
  }

  /**
   * The sorted form of a log at that path; undefined if there is none, or none that can be used. Parts that are missing
   * are sorted first.
   */
  async find(log: string): Promise<SortedLog | undefined> {
    const { fileSystem, codecs, logger } = this.#options.env;
    // an adapter without it has logs that no other server reads
    if (fileSystem.cutLog === undefined) return undefined;
    try {
      const sorted = await listSorted(fileSystem, log);
      if (sorted.length === 0) return undefined;
      const from = await findReplayStart(fileSystem, log);
      let { parts, missing } = chain(sorted, from);
      if (parts.length === 0) return undefined;
      if (missing.length > 0) {
        const server = log.slice(LOGS_DIRECTORY.length);
        for (const part of missing) await this.sort(server, part, MISSING_PART_BYTES);
        ({ parts, missing } = chain(await listSorted(fileSystem, log), from));
        if (missing.length > 0) return undefined;
      }
      return await SortedLog.open(log, parts, { fileSystem, checksum: codecs.checksum });
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (!isUnusable(error)) throw error;
      logger.warn('the sorted files of a log cannot be used; the log is read instead', { log, error: error.message });
      return undefined;
    }
  }

  async #sort(server: string, part: LogPart, maxBytes: number): Promise<void> {
    const { env, serverName, rowsAtOnce } = this.#options;
    const isStopped = (): boolean => this.#isStopped;
    if (this.#isStopped) throw unavailable('the tablet server is ending');
    const log = logPathOf(server);
    const pathOf = (one: LogPart): string => sortedPath(log, one, `${serverName}-${this.#files++}`);
    const bytes = await sortLog({ env, log, part, maxBytes, pathOf, isStopped, rowsAtOnce });
    if (this.#isStopped) throw unavailable('the tablet server is ending');
    env.metrics.add('log.sortedBytes', bytes);
  }
}

/** True if the files are of no use, while the log may be. */
export function isUnusable({ code }: BigtableError): boolean {
  return code === Code.NOT_FOUND || code === Code.DATA_LOSS || code === Code.OUT_OF_RANGE;
}

/**
 * Parts that follow one another, of those that there are, and the parts that are missing between them. `from`: what is
 * before it is not needed. Nothing is missing if some of the parts are all of the log from there on; two masters may
 * have cut it in different places.
 */
export function chain(all: readonly SortedPart[], from = 0): { parts: SortedPart[]; missing: LogPart[] } {
  const whole = wholeFrom(from, all, new Set());
  if (whole !== undefined) return { parts: whole, missing: [] };
  const parts: SortedPart[] = [];
  const missing: LogPart[] = [];
  let at = from;
  while (at !== END) {
    let next: SortedPart | undefined;
    for (const part of all) {
      if (part.from < at) continue;
      if (next === undefined || part.from < next.from || (part.from === next.from && endOf(part) > endOf(next)))
        next = part;
    }
    if (next === undefined || next.from > at) missing.push({ from: at, to: next?.from });
    if (next === undefined) break;
    parts.push(next);
    at = endOf(next);
  }
  assert(missing.length > 0, 'parts of which none make the whole log leave a gap');
  return { parts, missing };
}

const END = Number.POSITIVE_INFINITY;

function endOf({ to }: LogPart): number {
  return to ?? END;
}

/** Parts from that position to the end of the log. `deadEnds`: positions from which there are none. */
function wholeFrom(from: number, all: readonly SortedPart[], deadEnds: Set<number>): SortedPart[] | undefined {
  if (from === END) return [];
  if (deadEnds.has(from)) return undefined;
  for (const part of all) {
    if (part.from !== from) continue;
    const rest = wholeFrom(endOf(part), all, deadEnds);
    if (rest !== undefined) return [part, ...rest];
  }
  deadEnds.add(from);
  return undefined;
}
