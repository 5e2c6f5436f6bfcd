/**
 * Splits of tablets, done by their server (paper sections 4 and 5.2; docs/decisions/0015-splits-and-merges.md): on
 * demand, and of those that have grown above their size. One commit replaces the row in METADATA by two; only then are
 * two tablets served, which share the existing files.
 *
 * Invariants: one split a tablet at a time, and none while it is loaded or unloaded; a caller that names one of the two
 * keys waits until the split is over, however it ends. The root tablet is never split. METADATA's other tablets are
 * split after a row (metadata-boundary.ts), and only because they have grown.
 */
import { assert, BigtableError, type ByteString, Code, quote, toBigtableError } from '../base/index.ts';
import type { Logger, Metrics, RequestContext } from '../env/index.ts';
import { type MetadataKey, METADATA_TABLE_ID, metadataKey } from '../metadata/index.ts';
import { rangeContains } from '../model/index.ts';
import { notServing } from '../protocol/index.ts';
import { isAfterRow, middleBoundary } from './metadata-boundary.ts';
import { isRace } from './races.ts';
import type { TabletLoader } from './tablet-loader.ts';
import { kindOf, type ServedTablet, type TabletKind, type TabletMap } from './tablet-map.ts';
import type { ServedTabletHost } from './tablet-host.ts';

export interface TabletSplitsOptions {
  /** A tablet of a user's table whose files are larger than this is split. */
  readonly tabletBytes: number;
  /** The same for METADATA's tablets. */
  readonly metadataTabletBytes: number;
  readonly tablets: TabletMap;
  readonly loader: TabletLoader;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly serverContext: () => RequestContext;
  /** Two tablets replace one. */
  readonly onSplit: (children: readonly ServedTablet[]) => void;
}

export class TabletSplits {
  readonly #options: TabletSplitsOptions;
  readonly #limits: Readonly<Record<TabletKind, number>>;
  /** Under both keys that come of it. */
  readonly #running = new Map<MetadataKey, Promise<void>>();
  /** Tablets whose files have changed, in the order in which they are examined. */
  readonly #changed = new Set<ServedTablet>();
  /** The split under way that no call requested: one at a time. */
  #own: Promise<void> | undefined;
  #stopped = false;

  constructor(options: TabletSplitsOptions) {
    this.#options = options;
    const { tabletBytes, metadataTabletBytes } = options;
    this.#limits = { users: tabletBytes, metadata: metadataTabletBytes, root: Number.POSITIVE_INFINITY };
  }

  /** Resolves, never rejects, when the split under way of that tablet is over. */
  under(key: MetadataKey): Promise<void> | undefined {
    return this.#running.get(key)?.catch(() => {});
  }

  /** Begins no more, and waits for those under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.allSettled([...this.#running.values(), this.#own]);
  }

  /** Splits the tablet if it has grown too large, some time soon. */
  filesChanged(served: ServedTablet): void {
    if (this.#stopped) return;
    this.#changed.add(served);
    this.#splitNext();
  }

  #splitNext(): void {
    while (!this.#stopped && this.#own === undefined) {
      const [served] = this.#changed;
      if (served === undefined) return;
      this.#changed.delete(served);
      this.#own = this.#splitIfLarge(served)
        ?.catch((thrown: unknown) => {
          // the next change of its files retries
          const error = toBigtableError(thrown);
          if (this.#options.tablets.has(served) && !isRace(error)) {
            this.#options.logger.warn('a tablet could not be split', { table: served.tableId, error: error.message });
          }
          return undefined;
        })
        .then((children = []) => {
          this.#own = undefined;
          for (const child of children) this.#changed.add(child);
          this.#splitNext();
        });
    }
  }

  /** Undefined if the tablet is small enough, or there is no row at which it could be split. */
  #splitIfLarge(served: ServedTablet): Promise<readonly ServedTablet[] | undefined> | undefined {
    if (!this.#options.tablets.has(served) || this.#running.has(served.key)) return undefined;
    const kind = kindOf(served);
    if (served.tablet.sizeBytes() < this.#limits[kind]) return undefined;
    if (kind === 'metadata') return this.#splitMetadata(served);
    const loading = served.tablet.loadIndexes();
    if (loading !== undefined) return loading.then(() => this.#splitAtMiddle(served));
    return this.#splitAtMiddle(served);
  }

  #splitAtMiddle(served: ServedTablet): Promise<readonly ServedTablet[] | undefined> | undefined {
    if (!this.#options.tablets.has(served) || this.#running.has(served.key)) return undefined;
    const row = served.tablet.middleRow();
    return row === undefined ? undefined : this.#begin(served, row);
  }

  /** Its rows are read to find the place. */
  async #splitMetadata(served: ServedTablet): Promise<readonly ServedTablet[] | undefined> {
    const { tablets, serverContext } = this.#options;
    const boundary = await middleBoundary(served.tablet, serverContext());
    if (boundary === undefined || !tablets.has(served) || this.#running.has(served.key)) return undefined;
    return this.#begin(served, boundary);
  }

  /**
   * Splits the tablet that holds `row` before that row, or near its middle. "Not serving" if the tablet is split,
   * released or deleted first: nothing was done, and the caller reads METADATA again.
   */
  async split(served: ServedTablet, row: ByteString, near: 'row' | 'middle'): Promise<void> {
    try {
      await this.#splitNear(served, row, near);
    } catch (thrown) {
      throw isRace(toBigtableError(thrown)) ? notServing(served.tableId, row) : thrown;
    }
  }

  async #splitNear(served: ServedTablet, row: ByteString, near: 'row' | 'middle'): Promise<void> {
    const { tablets } = this.#options;
    const under = this.under(served.key);
    if (under !== undefined) {
      await under;
      throw notServing(served.tableId, row);
    }
    if (near === 'row') {
      assert(rangeContains(served.range, row), 'a split is at a row of its tablet');
      if (row !== served.range.start) await this.#begin(served, row);
      return;
    }
    // the indexes of files do not show rows that are only in memory
    await served.tablet.flush();
    const loading = served.tablet.loadIndexes();
    if (loading !== undefined) await loading;
    if (!tablets.has(served) || this.#running.has(served.key)) throw notServing(served.tableId, row);
    const middle = served.tablet.middleRow();
    if (middle === undefined) {
      throw new BigtableError(
        Code.FAILED_PRECONDITION,
        `the tablet that begins at ${quote(served.range.start)} has no two rows between which it could be split`,
      );
    }
    await this.#begin(served, middle);
  }

  #begin(served: ServedTablet, row: ByteString): Promise<readonly ServedTablet[]> {
    if (this.#stopped) return Promise.reject(new BigtableError(Code.UNAVAILABLE, 'the tablet server is ending'));
    assert(kindOf(served) !== 'root', 'the root tablet is never split');
    assert(row > served.range.start && rangeContains(served.range, row), 'no part of a split is empty');
    const keys = [served.key, metadataKey(served.tableId, row)];
    assert(!keys.some((key) => this.#running.has(key)), 'one split of a tablet runs at a time');
    const split = this.#split(served, row).finally(() => {
      for (const key of keys) this.#running.delete(key);
    });
    const over = split.then(() => {});
    over.catch(() => {});
    for (const key of keys) this.#running.set(key, over);
    return split;
  }

  async #split(served: ServedTablet, row: ByteString): Promise<readonly ServedTablet[]> {
    const { loader, tablets, metrics, serverContext, onSplit } = this.#options;
    const { tablet, host, tableId } = served;
    const hosts: ServedTabletHost[] = [];
    const parts = await tablet.divide(row, async (states) => {
      // no commit changes its rows any more
      if (tableId === METADATA_TABLE_ID && !(await isAfterRow(tablet, row, serverContext())))
        throw notServing(tableId, row);
      const [low, high] = await host.split(states);
      const schema = host.schema(tableId);
      const pair = [loader.hostOf(low, schema), loader.hostOf(high, schema)] as const;
      hosts.push(...pair);
      return pair;
    });
    // the server has ended meanwhile: METADATA has two tablets, and this server has neither
    if (!tablets.has(served)) throw notServing(tableId, row);
    const children = loader.replace(
      served,
      parts.map((part, i) => ({ host: hosts[i]!, tablet: part })),
    );
    metrics.add('tabletserver.splits');
    onSplit(children);
    return children;
  }
}
