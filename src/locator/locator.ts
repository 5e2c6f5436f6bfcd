/**
 * Finds the server of a row (paper section 5.1): the lock service's file `root` -> the root tablet -> METADATA tablets
 * -> users' tablets. Locations are cached; a miss reads the row of METADATA and the ten after it. A caller refused with
 * "not serving" drops the location and requests it again.
 *
 * Invariant: of the callers that miss in one table one climbs, under its own context, and the others wait for it, each
 * under its own. If it ends because METADATA is not served, or the lock service does not answer, they fail as it does,
 * and so do those that come soon after: each would ask the same again. Otherwise they check again, and one of them
 * climbs anew.
 *
 * Three round trips if nothing is known, at most six if all that is known is stale: `locator.roundTrips` counts them.
 */
import { assert, BigtableError, type ByteString, Code, quote, successor } from '../base/index.ts';
import {
  type Clock,
  type LockService,
  type Metrics,
  type RequestContext,
  type Transport,
  within,
} from '../env/index.ts';
import type { RowFilter } from '../filter/index.ts';
import {
  decodeLocation,
  decodeRootFile,
  keysOfTable,
  LOCATION_FAMILY,
  lookupKey,
  METADATA_TABLE_ID,
  metadataKey,
  ROOT_RANGE,
  type TabletLocation,
} from '../metadata/index.ts';
import { rangeContains } from '../model/index.ts';
import { isNotServing, notLocated, readTablet } from '../protocol/index.ts';
import { type AssignedTablet, LocationCache } from './location-cache.ts';
import { RowCollector } from './row-collector.ts';

export const ROOT_PATH = 'root';

/** Rows read in addition to the missing one. */
const PREFETCHED = 10;
/** A location takes about 300 bytes: 30 MB. */
const CACHE_ENTRIES = 100_000;
/** A failed climb answers other callers for this long. */
const FAILURE_MS = 100;
/** Stale entries dropped on one level before the caller has to wait. */
const ATTEMPTS = 3;
const LOCATION_ONLY: RowFilter = { kind: 'familyNameRegex', regex: LOCATION_FAMILY };

/**
 * A row, or with `before` the rows just below it; `from`: the first key of METADATA at or above this is that of the
 * tablet.
 */
interface Target {
  readonly tableId: string;
  readonly row: ByteString | undefined;
  readonly from: ByteString;
  readonly before: boolean;
}

export interface LocatorOptions {
  readonly clock: Clock;
  readonly transport: Transport;
  readonly lockService: LockService;
  readonly metrics: Metrics;
  readonly cacheEntries?: number;
}

export class Locator {
  readonly #options: LocatorOptions;
  readonly #cache: LocationCache;
  /** By table: a climb under way, which other callers that miss wait for. Its failure, if it is theirs, too. */
  readonly #climbs = new Map<string, Promise<BigtableError | undefined>>();
  /** By table: the last climb, where it failed, for a moment. */
  readonly #failures = new Map<string, { readonly error: BigtableError; readonly atMs: number }>();

  constructor(options: LocatorOptions) {
    this.#options = options;
    this.#cache = new LocationCache(options.cacheEntries ?? CACHE_ENTRIES);
  }

  /** The cached location of the row's tablet. */
  cached(tableId: string, row: ByteString): AssignedTablet | undefined {
    return this.#cache.find(tableId, row);
  }

  /** Drops a location that proved stale. */
  drop(location: AssignedTablet): void {
    this.#cache.drop(location);
  }

  /**
   * The tablet of the row. "Not serving" while it is assigned to no server; NOT_FOUND if METADATA has no such tablet,
   * so no such table.
   */
  locate(tableId: string, row: ByteString, context: RequestContext): Promise<AssignedTablet> {
    return this.#locate({ tableId, row, from: successor(lookupKey(tableId, row)), before: false }, context);
  }

  /** The tablet of the rows just below `end`, as a reverse scan needs it; undefined = the table's last. */
  locateBefore(tableId: string, end: ByteString | undefined, context: RequestContext): Promise<AssignedTablet> {
    return this.#locate({ tableId, row: end, from: metadataKey(tableId, end), before: true }, context);
  }

  async #locate(target: Target, context: RequestContext): Promise<AssignedTablet> {
    const { tableId, row, before } = target;
    assert(before || row !== undefined, 'a location is that of a row, or of the rows below one');
    const climb = climbOf(tableId, row);
    for (;;) {
      const known = before ? this.#cache.findBefore(tableId, row) : this.#cache.find(tableId, row!);
      if (known !== undefined) return known;
      const { clock } = this.#options;
      const last = this.#failures.get(climb);
      if (last !== undefined && clock.monotonicMs() - last.atMs < FAILURE_MS) throw last.error;
      const other = this.#climbs.get(climb);
      if (other === undefined) return this.#climbForAll(climb, target, context);
      const failure = await within(other, context, clock);
      if (failure !== undefined) throw failure;
    }
  }

  async #climbForAll(name: string, target: Target, context: RequestContext): Promise<AssignedTablet> {
    assert(!this.#climbs.has(name), 'one caller climbs for a table at a time');
    this.#failures.delete(name);
    let failure: BigtableError | undefined;
    let done = (_failure: BigtableError | undefined): void => {};
    this.#climbs.set(name, new Promise((resolve) => (done = resolve)));
    try {
      return await this.#climb(target, context, (error) => (failure = error));
    } finally {
      if (failure !== undefined) this.#failed(name, failure);
      this.#climbs.delete(name);
      done(failure);
    }
  }

  /** Callers that climb soon after are answered by this. */
  #failed(climb: string, error: BigtableError): void {
    assert(isOfAll(error), 'what is of one caller is not shared');
    const nowMs = this.#options.clock.monotonicMs();
    for (const [other, { atMs }] of this.#failures) if (nowMs - atMs >= FAILURE_MS) this.#failures.delete(other);
    this.#failures.set(climb, { error, atMs: nowMs });
  }

  /** `onShared`: called with a failure that callers for other rows have, too. */
  async #climb(
    target: Target,
    context: RequestContext,
    onShared: (error: BigtableError) => void,
  ): Promise<AssignedTablet> {
    const { tableId, row = '' } = target;
    const reading = isRoot(target) ? this.#readRoot(context) : this.#readAbove(target, context);
    const found = await reading.catch((thrown: unknown) => {
      if (thrown instanceof BigtableError && isOfAll(thrown)) onShared(thrown);
      throw thrown;
    });
    const { server } = found;
    if (server === undefined) throw notLocated(tableId, row);
    const location = { ...found, server };
    this.#cache.add(location);
    return location;
  }

  async #readRoot(context: RequestContext): Promise<TabletLocation> {
    const { clock, lockService, metrics } = this.#options;
    metrics.add('locator.roundTrips');
    const file = await within(lockService.read(ROOT_PATH), context, clock);
    if (file === undefined) throw notLocated(METADATA_TABLE_ID, '');
    return decodeRootFile(file.contents);
  }

  /** From the METADATA tablet above; if the key's row would begin the next METADATA tablet, from that. */
  async #readAbove({ tableId, row, from, before }: Target, context: RequestContext): Promise<TabletLocation> {
    let start = from;
    for (let attempt = 1; ; ) {
      const cached = this.#cache.find(METADATA_TABLE_ID, start);
      const above = cached ?? (await this.locate(METADATA_TABLE_ID, start, context));
      try {
        const found = await this.#readLocations(above, start, context);
        const { end } = above.range;
        if (found.length === 0 && end !== undefined && end < keysOfTable(tableId).end!) {
          assert(end > start, 'a climb over METADATA advances');
          start = end;
          continue;
        }
        const first = found[0];
        if (first === undefined || first.tableId !== tableId || (!before && !rangeContains(first.range, row!))) {
          throw new BigtableError(
            Code.NOT_FOUND,
            `METADATA has no tablet of table ${tableId} for row ${quote(row ?? '')}`,
            { details: { noTablet: true } },
          );
        }
        for (const { server, ...rest } of found.slice(1))
          if (server !== undefined) this.#cache.add({ ...rest, server });
        return first;
      } catch (error) {
        if (!(error instanceof BigtableError && isNotServing(error))) throw error;
        this.#cache.drop(above);
        if (cached === undefined && isOfAll(error)) this.#failed(climbOf(METADATA_TABLE_ID, start), error);
        if (cached === undefined || attempt++ === ATTEMPTS) throw error;
      }
    }
  }

  async #readLocations(above: AssignedTablet, start: ByteString, context: RequestContext): Promise<TabletLocation[]> {
    const { transport, metrics } = this.#options;
    metrics.add('locator.roundTrips');
    const ranges = [{ start, end: above.range.end }];
    const message = {
      tableId: METADATA_TABLE_ID,
      ranges,
      filter: LOCATION_ONLY,
      rowsLimit: 1 + PREFETCHED,
      reversed: false,
    };
    const rows = new RowCollector();
    for await (const batch of readTablet(transport, above.server.address, message, context)) rows.add(batch);
    return rows.take().flatMap(({ row, cells }) => decodeLocation(row, cells) ?? []);
  }
}

function isRoot({ tableId, row }: Pick<Target, 'tableId' | 'row'>): boolean {
  return tableId === METADATA_TABLE_ID && row !== undefined && rangeContains(ROOT_RANGE, row);
}

/** METADATA, or the lock service, is not available: the caller's own time, rows and budget have other codes. */
function isOfAll({ code }: BigtableError): boolean {
  return code === Code.UNAVAILABLE;
}

/** What callers for other rows wait for, too. */
function climbOf(tableId: string, row: ByteString | undefined): string {
  return isRoot({ tableId, row }) ? ROOT_PATH : tableId;
}
