/**
 * Schedules the compactions of a server's tablets: merging compactions as files grow in number, major ones within a set
 * time and on demand (docs/decisions/0011-compactions.md), and last those that reads have earned
 * (docs/decisions/0045-merges-for-reads.md). The memtable budget does all other minor compactions, which wait for none
 * of these.
 *
 * Invariants: at most `maxRunning` run concurrently, one a tablet; a failed one is logged and retried after a while; a
 * tablet with too many files lets writes wait until it has fewer, METADATA's excepted.
 */
import { assert, BigtableError, Code, toBigtableError } from '../base/index.ts';
import {
  type Clock,
  type Logger,
  type Metrics,
  Pacer,
  type Random,
  type RequestContext,
  type Timer,
  within,
} from '../env/index.ts';
import { METADATA_TABLE_ID } from '../metadata/index.ts';
import { type CompactionKind, TOO_CROWDED } from '../tablet/index.ts';
import { isRace } from './races.ts';
import type { ServedTablet, TabletMap } from './tablet-map.ts';
import { WaitList } from './wait-list.ts';

const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 60_000;
/** The interval of the search for tablets whose major compaction is due; it is shorter if the set time is short. */
const SEARCH_MS = 60_000;
/**
 * Major compactions begin between this share of the set time and the whole of it, spread over tablets, and so end
 * within it.
 */
const EARLIEST_SHARE = 0.7;
const LATEST_SHARE = 0.95;

export interface CompactionScheduleOptions {
  /** The limit of concurrent compactions. */
  readonly maxRunning: number;
  /** The time within which deleted data is gone from files. */
  readonly majorMs: number;
  readonly tablets: Pick<TabletMap, 'all' | 'has'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

interface Demand {
  /** The number of callers that wait for it. */
  waiting: number;
  readonly done: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: BigtableError) => void;
}

/** The schedule's state of a tablet. */
interface Standing {
  /** The share of `majorMs` after which its major compaction begins. */
  readonly share: number;
  failures: number;
  retryAtMs: number;
}

export class CompactionSchedule {
  readonly #options: CompactionScheduleOptions;
  readonly #standings = new WeakMap<ServedTablet, Standing>();
  /** Tablets whose files or schema have changed since they were examined. */
  readonly #changed = new Set<ServedTablet>();
  /** Examined tablets without a compaction that is due, but with one that reads have earned. */
  readonly #earned = new Set<ServedTablet>();
  /** Major compactions that callers wait for. */
  readonly #demands = new Map<ServedTablet, Demand>();
  readonly #running = new Map<ServedTablet, Promise<void>>();
  readonly #waiting: WaitList;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: CompactionScheduleOptions) {
    // 0: a database that is only read
    assert(options.maxRunning >= 0, 'the limit of concurrent compactions is not negative');
    this.#options = options;
    this.#waiting = new WaitList(options.clock, 'a compaction');
    this.#scheduleSearch();
  }

  /** Something that decides over compactions of the tablet has changed. */
  changed(served: ServedTablet): void {
    this.#changed.add(served);
    this.#waiting.wake();
    this.#startMore();
  }

  /** The number of compactions of files under way. */
  get running(): number {
    return this.#running.size;
  }

  /** Tablets that are to be examined, and compacted if that is due. */
  get waiting(): number {
    return this.#demands.size + this.#changed.size + this.#earned.size;
  }

  /**
   * Begins a major compaction soon. Callers that request it before it begins share it; if all of them cancel before
   * that, it is dropped. One that has begun continues, whichever callers cancel.
   */
  async compact(served: ServedTablet, context: RequestContext): Promise<void> {
    if (this.#stopped) throw ending();
    let demand = this.#demands.get(served);
    if (demand === undefined) {
      let ends: Pick<Demand, 'resolve' | 'reject'> | undefined;
      const done = new Promise<void>((resolve, reject) => (ends = { resolve, reject }));
      assert(ends !== undefined, 'a promise runs its executor synchronously');
      demand = { waiting: 0, done, ...ends };
      this.#demands.set(served, demand);
    }
    demand.waiting++;
    this.#startMore();
    try {
      await within(demand.done, context, this.#options.clock);
    } finally {
      demand.waiting--;
      assert(demand.waiting >= 0, 'no more callers leave a compaction than waited for it');
      if (demand.waiting === 0 && this.#demands.get(served) === demand) this.#demands.delete(served);
    }
  }

  /** True when writes to the tablet must wait. */
  isBehind(served: ServedTablet): boolean {
    return served.tableId !== METADATA_TABLE_ID && served.tablet.crowding >= TOO_CROWDED;
  }

  /** Waits until the tablet has fewer files; UNAVAILABLE if the server ends first. */
  async wait(served: ServedTablet, context: RequestContext): Promise<void> {
    this.#options.metrics.add('tabletserver.writesThatWaitedForCompactions');
    // the files of a tablet that was loaded just now may not have been examined yet
    if (!this.#changed.has(served)) this.changed(served);
    while (this.isBehind(served) && this.#options.tablets.has(served)) {
      if (this.#stopped) throw ending();
      await this.#waiting.next(context);
    }
  }

  /** Begins no more. Those under way end with their tablets. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    for (const { reject } of this.#demands.values()) reject(ending());
    this.#demands.clear();
    this.#waiting.wake();
  }

  #startMore(): void {
    while (!this.#stopped && this.#running.size < this.#options.maxRunning) {
      const next = this.#choose();
      if (next === undefined) return;
      this.#start(...next);
    }
  }

  /** Demands first, then METADATA's tablets, then those with the most files, then what reads have earned. */
  #choose(): [ServedTablet, CompactionKind, Demand | undefined] | undefined {
    for (const [served, demand] of this.#demands) {
      if (this.#running.has(served)) continue;
      assert(demand.waiting > 0, 'a compaction on demand begins while a caller waits for it');
      this.#demands.delete(served);
      return [served, 'major', demand];
    }
    let best: ServedTablet | undefined;
    let kind: CompactionKind | undefined;
    for (const served of this.#changed) {
      if (this.#running.has(served) || this.#standing(served).retryAtMs > this.#options.clock.monotonicMs()) continue;
      const isServed = this.#options.tablets.has(served);
      const due = isServed
        ? (served.tablet.dueCompaction() ?? (this.#isMajorDue(served) ? 'major' : undefined))
        : undefined;
      if (due !== undefined) {
        if (best === undefined || weight(served) > weight(best)) [best, kind] = [served, due];
        continue;
      }
      this.#changed.delete(served);
      if (isServed && served.tablet.earnedCompaction() !== undefined) this.#earned.add(served);
    }
    return best === undefined || kind === undefined ? this.#chooseEarned() : [best, kind, undefined];
  }

  /** Leaves a slot free for the next compaction that is due. */
  #chooseEarned(): [ServedTablet, CompactionKind, undefined] | undefined {
    if (this.#running.size >= Math.max(1, this.#options.maxRunning - 1)) return undefined;
    for (const served of this.#earned) {
      this.#earned.delete(served);
      if (this.#running.has(served) || !this.#options.tablets.has(served)) continue;
      const kind = served.tablet.earnedCompaction();
      if (kind !== undefined) return [served, kind, undefined];
    }
    return undefined;
  }

  #start(served: ServedTablet, kind: CompactionKind, demand: Demand | undefined): void {
    assert(!this.#stopped, 'no compaction begins after the end');
    assert(!this.#running.has(served), 'one compaction of a tablet runs at a time');
    assert(this.#running.size < this.#options.maxRunning, 'no more compactions run than the limit allows');
    const run = this.#run(served, kind, demand).finally(() => {
      this.#running.delete(served);
      this.#changed.add(served);
      this.#waiting.wake();
      this.#startMore();
    });
    this.#running.set(served, run);
  }

  async #run(served: ServedTablet, kind: CompactionKind, demand: Demand | undefined): Promise<void> {
    const standing = this.#standing(served);
    try {
      await served.tablet.compact(kind);
      standing.failures = 0;
      standing.retryAtMs = 0;
      demand?.resolve();
    } catch (thrown) {
      const error = toBigtableError(thrown);
      demand?.reject(error);
      const { clock, logger, metrics } = this.#options;
      const delayMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** standing.failures++);
      standing.retryAtMs = clock.monotonicMs() + delayMs;
      clock.timer(delayMs, () => this.#startMore());
      if (this.#stopped || !this.#options.tablets.has(served) || isRace(error)) return;
      metrics.add('tabletserver.failedCompactions');
      logger.error(`a ${kind} compaction failed and will be tried again`, {
        table: served.tableId,
        error: error.message,
        retryMs: delayMs,
      });
    }
  }

  #standing(served: ServedTablet): Standing {
    let standing = this.#standings.get(served);
    if (standing === undefined) {
      const share = EARLIEST_SHARE + (LATEST_SHARE - EARLIEST_SHARE) * this.#options.random.float();
      this.#standings.set(served, (standing = { share, failures: 0, retryAtMs: 0 }));
    }
    return standing;
  }

  #isMajorDue(served: ServedTablet): boolean {
    const { clock, majorMs } = this.#options;
    const since = served.tablet.uncollectedSinceMicros;
    // a file of so late a time was written by a clock that was ahead: its age is unknown
    return since !== undefined && Math.abs(clock.nowMicros() - since) >= majorMs * 1000 * this.#standing(served).share;
  }

  #scheduleSearch(): void {
    const { clock, majorMs } = this.#options;
    this.#timer = clock.timer(
      Math.min(SEARCH_MS, Math.max(1, majorMs / 50)),
      () => void this.#search().then(() => this.#stopped || this.#scheduleSearch()),
    );
  }

  async #search(): Promise<void> {
    const pacer = new Pacer(this.#options.clock);
    for (const served of [...this.#options.tablets.all()]) {
      if (this.#stopped) return;
      if (this.#isMajorDue(served)) this.changed(served);
      if (pacer.due()) await pacer.pause();
    }
  }
}

function weight({ tableId, tablet }: ServedTablet): number {
  return tableId === METADATA_TABLE_ID ? Number.POSITIVE_INFINITY : tablet.crowding;
}

function ending(): BigtableError {
  return new BigtableError(Code.UNAVAILABLE, 'the tablet server is ending');
}
