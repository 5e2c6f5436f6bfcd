/**
 * The ordered cache of tablet ranges: by table, the known locations, sorted by start and never overlapping. A location
 * learnt later replaces all that it overlaps.
 *
 * Invariant: at most `limitEntries` locations; beyond that the table whose first location was learnt longest ago is
 * evicted, METADATA's own last.
 */
import { assert, type ByteString, checksInvariants } from '../base/index.ts';
import { assertDisjoint, METADATA_TABLE_ID, type ServerLocation, type TabletLocation } from '../metadata/index.ts';
import { rangeContains } from '../model/index.ts';

/** A tablet that is assigned to a server. */
export type AssignedTablet = TabletLocation & { readonly server: ServerLocation };

export class LocationCache {
  readonly #limitEntries: number;
  readonly #tables = new Map<string, AssignedTablet[]>();
  #entries = 0;

  constructor(limitEntries: number) {
    assert(limitEntries >= 1, 'a cache of locations has space for one');
    this.#limitEntries = limitEntries;
  }

  get entries(): number {
    return this.#entries;
  }

  find(tableId: string, row: ByteString): AssignedTablet | undefined {
    const list = this.#tables.get(tableId);
    if (list === undefined) return undefined;
    const found = list.length === 1 ? list[0] : list[firstAbove(list, row) - 1];
    return found !== undefined && rangeContains(found.range, row) ? found : undefined;
  }

  /** The tablet of the rows just below `end`; undefined = the last one. */
  findBefore(tableId: string, end: ByteString | undefined): AssignedTablet | undefined {
    const list = this.#tables.get(tableId);
    if (list === undefined) return undefined;
    const last = list.at(-1)!;
    if (end === undefined) return last.range.end === undefined ? last : undefined;
    let at = firstAbove(list, end) - 1;
    if (list[at]?.range.start === end) at--;
    const found = list[at];
    return found !== undefined && (found.range.end === undefined || found.range.end >= end) ? found : undefined;
  }

  add(location: AssignedTablet): void {
    const list = this.#listOf(location.tableId);
    const { start, end } = location.range;
    let from = firstAbove(list, start);
    const before = list[from - 1];
    if (before && (before.range.end === undefined || before.range.end > start)) from--;
    let to = from;
    while (to < list.length && (end === undefined || list[to]!.range.start < end)) to++;
    list.splice(from, to - from, location);
    this.#entries += 1 - (to - from);
    if (this.#entries > this.#limitEntries) this.#shrink(location);
    assert(this.#entries >= 1 && this.#entries <= this.#limitEntries, 'the cache of locations keeps within its limit');
    if (checksInvariants) this.assertConsistent();
  }

  /** Drops this very location, if it is still the known one. */
  drop(location: AssignedTablet): void {
    const list = this.#tables.get(location.tableId);
    const at = list?.indexOf(location) ?? -1;
    if (list === undefined || at < 0) return;
    list.splice(at, 1);
    this.#entries--;
    if (list.length === 0) this.#tables.delete(location.tableId);
    if (checksInvariants) this.assertConsistent();
  }

  /** Walks all entries. */
  assertConsistent(): void {
    let entries = 0;
    for (const [tableId, list] of this.#tables) {
      assert(list.length > 0, 'a table in the cache has locations');
      assert(
        list.every((one) => one.tableId === tableId),
        'a location is kept under its own table',
      );
      assertDisjoint(list.map(({ range }) => range));
      entries += list.length;
    }
    assert(entries === this.#entries, 'the cache of locations has counted its entries');
  }

  #listOf(tableId: string): AssignedTablet[] {
    let list = this.#tables.get(tableId);
    if (list === undefined) this.#tables.set(tableId, (list = []));
    return list;
  }

  #shrink(newest: AssignedTablet): void {
    for (const [tableId, list] of this.#tables) {
      if (this.#entries <= this.#limitEntries) return;
      if (tableId === METADATA_TABLE_ID || tableId === newest.tableId) continue;
      this.#tables.delete(tableId);
      this.#entries -= list.length;
    }
    if (this.#entries <= this.#limitEntries) return;
    // one table by itself is larger than the cache: it begins anew, and METADATA's too if need be
    const list = this.#listOf(newest.tableId);
    this.#entries += 1 - list.length;
    list.splice(0, list.length, newest);
    if (this.#entries <= this.#limitEntries) return;
    this.#entries -= this.#tables.get(METADATA_TABLE_ID)?.length ?? 0;
    this.#tables.delete(METADATA_TABLE_ID);
  }
}

/** The index of the first location that starts above `row`. */
function firstAbove(list: readonly AssignedTablet[], row: ByteString): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list[middle]!.range.start <= row) low = middle + 1;
    else high = middle;
  }
  return low;
}
