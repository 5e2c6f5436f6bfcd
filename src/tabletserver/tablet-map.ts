/**
 * The tablets that a server serves, by table and by range. Ranges of a table never overlap: METADATA's rows partition
 * it, and the server serves only tablets of such rows.
 */
import { assert, type ByteString, checksInvariants } from '../base/index.ts';
import {
  assertDisjoint,
  METADATA_TABLE_ID,
  type MetadataKey,
  metadataKey,
  type MetadataRow,
  ROOT_KEY,
} from '../metadata/index.ts';
import { rangeContains, type RowRange } from '../model/index.ts';
import type { DivideCommit, TabletApi, TabletHost } from '../tablet/index.ts';

/** The host of a tablet as far as its server needs it: the last commit of a closing tablet, and its split into two. */
export interface ServedHost extends Pick<TabletHost, 'commit' | 'schema'> {
  /** The row as the last commit left it. */
  readonly row: MetadataRow;
  /** True where the row is to name other past owners. */
  readonly isOutdated: boolean;
  split(parts: Parameters<DivideCommit>[0]): Promise<readonly [MetadataRow, MetadataRow]>;
}

/** A tablet under one assignment to this server. */
export interface ServedTablet {
  readonly key: MetadataKey;
  readonly tableId: string;
  readonly range: RowRange;
  readonly epoch: number;
  readonly tablet: TabletApi;
  readonly host: ServedHost;
  /** Bytes of memtables that the budget counts for it. */
  countedBytes: number;
  /** Calls about its rows since it was loaded. */
  requests: number;
}

export class TabletMap {
  readonly #tables = new Map<string, ServedTablet[]>();
  readonly #byKey = new Map<MetadataKey, ServedTablet>();

  get size(): number {
    return this.#byKey.size;
  }

  all(): IterableIterator<ServedTablet> {
    return this.#byKey.values();
  }

  get(key: MetadataKey): ServedTablet | undefined {
    return this.#byKey.get(key);
  }

  /** True when this very tablet is served: another may be served under its key. */
  has(served: ServedTablet): boolean {
    return this.#byKey.get(served.key) === served;
  }

  /** Those of the table, by their rows. */
  ofTable(tableId: string): readonly ServedTablet[] {
    return [...(this.#tables.get(tableId) ?? [])];
  }

  find(tableId: string, row: ByteString): ServedTablet | undefined {
    const list = this.#tables.get(tableId);
    if (list === undefined) return undefined;
    const found = list.length === 1 ? list[0] : list[firstAbove(list, row) - 1];
    return found !== undefined && rangeContains(found.range, row) ? found : undefined;
  }

  add(served: ServedTablet): void {
    const { tableId } = served;
    assert(!this.#byKey.has(served.key), 'a tablet is served once');
    assert(served.key === metadataKey(tableId, served.range.end), 'a tablet is served under its own key');
    let list = this.#tables.get(tableId);
    if (list === undefined) this.#tables.set(tableId, (list = []));
    const at = firstAbove(list, served.range.start);
    const [before, after] = [list[at - 1], list[at]];
    assert(
      before === undefined || (before.range.end !== undefined && before.range.end <= served.range.start),
      'a tablet lies above the one before it',
    );
    assert(
      after === undefined || (served.range.end !== undefined && served.range.end <= after.range.start),
      'a tablet lies below the one after it',
    );
    list.splice(at, 0, served);
    this.#byKey.set(served.key, served);
    if (checksInvariants) this.assertConsistent();
  }

  delete(served: ServedTablet): void {
    if (!this.has(served)) return;
    this.#byKey.delete(served.key);
    const { tableId } = served;
    const list = this.#tables.get(tableId);
    assert(list !== undefined, 'a tablet known by its key is known by its range');
    const at = list.indexOf(served);
    assert(at >= 0, 'a tablet known by its key is known by its range');
    list.splice(at, 1);
    if (list.length === 0) this.#tables.delete(tableId);
    if (checksInvariants) this.assertConsistent();
  }

  /** Walks all tablets: both maps have the same ones, disjoint and in the order of their ranges. */
  assertConsistent(): void {
    let count = 0;
    for (const [tableId, list] of this.#tables) {
      assert(list.length > 0, 'a table in the map has tablets');
      assert(
        list.every((one) => one.tableId === tableId && this.has(one)),
        'a tablet known by its range is known by its key',
      );
      assertDisjoint(list.map(({ range }) => range));
      count += list.length;
    }
    assert(count === this.#byKey.size, 'the two maps have the same tablets');
  }
}

/**
 * The order in which a closing server releases tablets: they commit to METADATA, and METADATA's own to the root tablet.
 */
export const TABLET_KINDS = ['users', 'metadata', 'root'] as const;
export type TabletKind = (typeof TABLET_KINDS)[number];

export function kindOf({ tableId, key }: ServedTablet): TabletKind {
  if (key === ROOT_KEY) return 'root';
  return tableId === METADATA_TABLE_ID ? 'metadata' : 'users';
}

/** The index of the first tablet that starts above `row`. */
function firstAbove(list: readonly ServedTablet[], row: ByteString): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list[middle]!.range.start <= row) low = middle + 1;
    else high = middle;
  }
  return low;
}
