/**
 * Which tablets took how much of the server's time, by the minute (docs/decisions/0104-hot-tablets.md).
 *
 * The clock says for how long the thread has worked. This is divided among the tablets by their calls and rows, which
 * they count anyway: calls pay nothing for it. It is an estimate, since a row may be large or small.
 *
 * Bounds: the hottest tablets of each minute, for a day, within MAX_BYTES.
 */
import { assert } from '../base/index.ts';
import type { Clock, Random, Timer } from '../env/index.ts';
import { type HotTablet, hottest } from '../model/index.ts';
import type { TabletServerCalls } from '../protocol/index.ts';
import { MAX_HOT_TABLETS } from '../service/index.ts';
import { kindOf, type ServedTablet, type TabletMap } from './tablet-map.ts';

const MINUTE_MS = 60_000;
const MAX_AGE_MICROS = 24 * 60 * MINUTE_MS * 1000;
/** Tablets that are kept of a minute. */
const MAX_A_MINUTE = 20;
/** Memory of all that is kept. */
const MAX_BYTES = 4 * 1024 * 1024;
/** What an answer may take: a server may have many callers. */
const MAX_ANSWER_BYTES = 1024 * 1024;
const ENTRY_BYTES = 200;

export interface LoadHistoryParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly tablets: Pick<TabletMap, 'all'>;
  /** The full name of a table. */
  readonly nameOf: (tableId: string) => string | undefined;
  /** Tablets with less are not hot. */
  readonly leastPercent: number;
}

/** The beginning of a time that is measured. */
interface Mark {
  readonly atMicros: number;
  readonly atMs: number;
  readonly busyMs: number;
  readonly workOf: WeakMap<ServedTablet, number>;
}

/** Invariant: the measurements are in the order of their times. */
export class LoadHistory {
  readonly #parts: LoadHistoryParts;
  readonly #measured: HotTablet[] = [];
  #bytes = 0;
  /** The beginnings of the last minute that is over, and of the one that is not. */
  #last: Mark | undefined;
  #now: Mark | undefined;
  /** The last measurement of the minute that is not over, and of the one before. */
  #kept: { readonly atMicros: number; readonly tablets: readonly HotTablet[] } | undefined;
  #timer: Timer | undefined;

  constructor(parts: LoadHistoryParts) {
    this.#parts = parts;
  }

  /** Begins to measure, if the clock can. */
  start(): void {
    assert(this.#now === undefined, 'the load is measured once');
    if (this.#parts.clock.busyMs === undefined) return;
    this.#now = this.#mark();
    this.#wait();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /**
   * The hottest tablets of the instance. Those of the minute that is not over are measured together with the minute
   * before: a short time says little.
   */
  hot({ instance, startMicros, endMicros }: TabletServerCalls['hotTablets']['message']): readonly HotTablet[] {
    const wanted = [...this.#measured, ...this.#unfinished(endMicros)].filter(
      (each) =>
        each.table.startsWith(`${instance}/tables/`) && startMicros <= each.startMicros && each.startMicros < endMicros,
    );
    let bytes = 0;
    const found = hottest(wanted, MAX_HOT_TABLETS);
    const end = found.findIndex((each) => (bytes += bytesOf(each)) > MAX_ANSWER_BYTES);
    return end < 0 ? found : found.slice(0, end);
  }

  /** The same to all calls that ask for no later time than was measured: a list may be answered in pages. */
  #unfinished(endMicros: number): readonly HotTablet[] {
    const since = this.#last ?? this.#now;
    if (since === undefined) return [];
    const nowMicros = this.#parts.clock.nowMicros();
    if (this.#kept === undefined || this.#kept.atMicros < endMicros)
      this.#kept = { atMicros: nowMicros, tablets: this.#measure(since) };
    return this.#kept.tablets;
  }

  #wait(): void {
    this.#timer = this.#parts.clock.timer(MINUTE_MS, () => {
      this.#endMinute();
      this.#wait();
    });
  }

  #endMinute(): void {
    const begun = this.#now;
    assert(begun !== undefined, 'a minute that ends has begun');
    for (const each of this.#measure(begun)) {
      this.#measured.push(each);
      this.#bytes += bytesOf(each);
    }
    this.#kept = undefined;
    this.#last = begun;
    this.#now = this.#mark();
    this.#forget(this.#now.atMicros - MAX_AGE_MICROS);
  }

  #forget(beforeMicros: number): void {
    let count = 0;
    for (const each of this.#measured) {
      if (each.startMicros >= beforeMicros && this.#bytes <= MAX_BYTES) break;
      this.#bytes -= bytesOf(each);
      count++;
    }
    this.#measured.splice(0, count);
    assert(this.#bytes >= 0, 'a measurement is counted once');
  }

  #mark(): Mark {
    const { clock, tablets } = this.#parts;
    const workOf = new WeakMap<ServedTablet, number>();
    for (const served of tablets.all()) {
      const work = workDone(served);
      if (work > 0) workOf.set(served, work);
    }
    return { atMicros: clock.nowMicros(), atMs: clock.monotonicMs(), busyMs: clock.busyMs?.() ?? 0, workOf };
  }

  /** The tablets that were hot since then, the hottest first. METADATA's take their share and are not listed. */
  #measure({ atMicros, atMs, busyMs, workOf }: Mark): HotTablet[] {
    const { clock, random, tablets, nameOf, leastPercent } = this.#parts;
    const elapsedMs = clock.monotonicMs() - atMs;
    if (elapsedMs <= 0) return [];
    const busyPercent = Math.min(100, (100 * ((clock.busyMs?.() ?? 0) - busyMs)) / elapsedMs);
    let total = 0;
    const worked: { readonly served: ServedTablet; readonly work: number }[] = [];
    for (const served of tablets.all()) {
      const work = workDone(served) - (workOf.get(served) ?? 0);
      assert(work >= 0, 'counts of work only grow');
      total += work;
      if (work > 0 && kindOf(served) === 'users') worked.push({ served, work });
    }
    const endMicros = atMicros + Math.round(elapsedMs * 1000);
    return worked
      .sort((a, b) => b.work - a.work)
      .slice(0, MAX_A_MINUTE)
      .flatMap(({ served: { tableId, range }, work }) => {
        const table = nameOf(tableId);
        const cpuPercent = (busyPercent * work) / total;
        if (table === undefined || cpuPercent <= 0 || cpuPercent < leastPercent) return [];
        return [{ id: random.uniqueName(), table, range, startMicros: atMicros, endMicros, cpuPercent }];
      });
  }
}

/** Calls, and the rows of those that have many. */
function workDone({ requests, tablet }: ServedTablet): number {
  return requests + tablet.rowsDone;
}

function bytesOf({ table, range }: HotTablet): number {
  return ENTRY_BYTES + table.length + (range?.start.length ?? 0) + (range?.end?.length ?? 0);
}
