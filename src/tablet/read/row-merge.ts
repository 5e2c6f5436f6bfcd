/**
 * One row of several layers, merged: a walk over their cursors in the order of entries, newest layer first if entries
 * are equal. A deletion comes before all that it hides, so it is applied when it is met: older cursors seek past a
 * deleted row, family or column, and the deleted ranges of a column are kept until it ends. Merge operands are folded
 * with those of older layers down to a put.
 *
 * Merged reads take turns with a few of these objects: one has twenty fields, and costs more to make than a short row
 * costs to merge.
 *
 * With `keepDeletions` the walk also returns the deletions, each once and no finer one next to a coarser, as a layer
 * holds them. A merge entry then stays one unless a put was found.
 */
import { assert, type ByteString, checksInvariants, type Int64, Pool } from '../../base/index.ts';
import { foldAggregates } from '../../memtable/index.ts';
import {
  type AggregateKind,
  type ColumnKey,
  CursorState,
  EntryKind,
  familyEnd,
  familyOf,
  isDeletion,
  type LayerCursor,
} from '../../model/index.ts';
import { coversAll, HiddenVersions, timestampBelow, type VersionRange } from './hidden-versions.ts';
import { type MergeSource, isOnRow } from './merge-source.ts';

export const MergeOutcome = {
  /** The fields hold an entry. */
  ready: 0,
  needsLoad: 1,
  /** Many entries were stepped over; call `advance` again after a pause. */
  yield: 2,
  /** The row has no more entries. */
  ended: 3,
} as const;
export type MergeOutcome = (typeof MergeOutcome)[keyof typeof MergeOutcome];

export interface RowMergeOptions {
  readonly aggregateOf: (family: string) => AggregateKind | undefined;
  readonly keepDeletions: boolean;
  /** Called for every entry that is stepped over: true if it is time for a pause. */
  readonly budgetSpent: () => boolean;
}

const EMPTY_VALUE = new Uint8Array(0);
const MAX_SPARE = 64;
const spare = new Pool<RowMerge>(MAX_SPARE);
const NO_OPTIONS: RowMergeOptions = { aggregateOf: () => undefined, keepDeletions: false, budgetSpent: () => false };

export class RowMerge {
  column: ColumnKey = '';
  kind: EntryKind = EntryKind.put;
  timestamp: Int64 = 0;
  rangeEnd: Int64 | undefined;
  /** Every source that was on the row, newest first. The caller fills it before `start`. */
  readonly members: MergeSource[] = [];

  #options = NO_OPTIONS;
  #row: ByteString = '';
  /** The row at which a member arrived last: the next one to leave the row probably arrives there, too. */
  #nextRow: ByteString = '';
  /** The members that are in the row, or need a load. */
  #active: MergeSource[] = [];
  #loading = false;
  /** The cursor on the value of the present cell, unless it was folded; undefined for deletions. */
  #cell: LayerCursor | undefined;
  #folded: Uint8Array | undefined;

  // the goal of `seekColumn`; undefined once it is reached
  #goal: ColumnKey | undefined;
  #goalFamily = '';
  #goalTimestamp: Int64 | undefined;

  /** The range deletions met in #hiddenColumn. */
  readonly #hidden = new HiddenVersions();
  #hiddenColumn: ColumnKey = '';

  // for keepDeletions: the coarser deletions that were returned, and ranges that are not returned yet
  #rowDeleted = false;
  #familyDeleted: string | undefined;
  #columnDeleted: ColumnKey | undefined;
  #rangesMet = false;
  #ranges: VersionRange[] = [];

  /** One for a merged read, until its `release`. */
  static take(options: RowMergeOptions): RowMerge {
    const merge = spare.take() ?? new RowMerge();
    assert(merge.members.length === 0 && merge.#active.length === 0, 'a spare merge refers to no layer');
    merge.#options = options;
    return merge;
  }

  /** The merged read has ended: refers to nothing of it any more. The caller must not use it again. */
  release(): void {
    this.#options = NO_OPTIONS;
    this.members.length = 0;
    this.#active.length = 0;
    this.#nextRow = '';
    this.#cell = undefined;
    this.#folded = undefined;
    spare.give(this);
  }

  /** Begins a row; all members are on its first entry. */
  start(row: ByteString): void {
    const members = this.members;
    assert(members.length > 0, 'a row that is merged lies in a layer');
    if (checksInvariants) assertMembers(row, members);
    this.#row = row;
    const active = this.#active;
    active.length = 0;
    for (let i = 0; i < members.length; i++) active.push(members[i]!);
    this.#loading = false;
    this.#goal = undefined;
    if (!this.#hidden.isEmpty) this.#hidden.clear();
    this.#rowDeleted = false;
    this.#familyDeleted = undefined;
    this.#columnDeleted = undefined;
    this.#rangesMet = false;
    if (this.#ranges.length > 0) this.#ranges = [];
  }

  get valueLength(): number {
    return this.#folded?.length ?? this.#cell?.valueLength ?? 0;
  }

  value(): Uint8Array {
    return this.#folded ?? this.#cell?.value() ?? EMPTY_VALUE;
  }

  /** The members whose load `advance` waits for. */
  waitingFor(): MergeSource[] {
    return this.#active.filter(({ cursor }) => cursor.state === CursorState.needsLoad);
  }

  /** Leaves the entry that was returned; then `advance`. */
  next(): void {
    if (isDeletion(this.kind)) return;
    assert(!this.#loading, 'a merge continues from a cell when no layer is loading');
    for (let i = this.#active.length - 1; i >= 0; i--) {
      const source = this.#active[i]!;
      if (!this.#standsOnCell(source.cursor)) continue;
      source.cursor.next();
      this.#moved(source);
    }
  }

  /** As in LayerCursor; then `advance`. `ready`: the fields hold an entry, from which the seek never goes back. */
  seekColumn(column: ColumnKey, timestamp: Int64 | undefined, ready: boolean): void {
    assert(!this.#options.keepDeletions, 'a merge that keeps deletions is walked, not seeked in');
    if (
      ready &&
      (this.column > column || (this.column === column && (timestamp === undefined || this.timestamp <= timestamp)))
    )
      return;
    this.#goal = column;
    this.#goalFamily = familyOf(column);
    this.#goalTimestamp = timestamp;
  }

  /** Continues to the next entry to return, or as far as it can. */
  advance(): MergeOutcome {
    if (this.#loading) this.#loaded();
    for (;;) {
      if (this.#loading) return MergeOutcome.needsLoad;
      if (this.#returnRange()) return MergeOutcome.ready;
      const best = this.#best();
      if (this.#rangesMet && this.#rangesEnd(best)) continue;
      if (best === undefined) return MergeOutcome.ended;
      if (this.#visit(best)) return MergeOutcome.ready;
      if (this.#options.budgetSpent()) return MergeOutcome.yield;
    }
  }

  /** The active source with the first entry, the newest of equals. */
  #best(): MergeSource | undefined {
    const active = this.#active;
    let best = active[0];
    for (let i = 1; i < active.length; i++) {
      const source = active[i]!;
      if (isBefore(source.cursor, best!.cursor)) best = source;
    }
    return best;
  }

  /** Visits the first entry of all; returns true if it is to be returned. */
  #visit(best: MergeSource): boolean {
    const cursor = best.cursor;
    if (this.#goal !== undefined && this.#approach(best, this.#goal)) return false;
    if (isDeletion(cursor.kind)) return this.#applyDeletion(best);
    const { column, timestamp } = cursor;
    if (!this.#hidden.isEmpty && column === this.#hiddenColumn) {
      const range = this.#hidden.over(best.age, timestamp);
      if (range !== undefined) {
        const below = timestampBelow(range);
        if (below === undefined) cursor.seekColumn(`${column}\0`);
        else cursor.seekColumn(column, below);
        this.#moved(best);
        return false;
      }
    }
    this.column = column;
    this.timestamp = timestamp;
    this.rangeEnd = undefined;
    this.kind = cursor.kind;
    this.#cell = cursor;
    this.#folded = undefined;
    if (this.kind === EntryKind.merge) this.#fold(best);
    return true;
  }

  /**
   * Moves a source that is before the goal nearer to it, if no other layer depends on what it steps over: of all
   * deletions only those of the family and the column of the goal matter. Returns false if the entry must be visited.
   */
  #approach(best: MergeSource, goal: ColumnKey): boolean {
    const { column, kind, timestamp } = best.cursor;
    if (kind === EntryKind.rowDeletion) return false;
    const oldest = best === this.#active[this.#active.length - 1];
    const beforeTimestamp =
      this.#goalTimestamp !== undefined && (isDeletion(kind) ? oldest : timestamp > this.#goalTimestamp);
    if (column > goal || (column === goal && !beforeTimestamp)) {
      if (!isDeletion(kind)) this.#goal = undefined;
      return false;
    }
    if (oldest || column === goal) best.cursor.seekColumn(goal, this.#goalTimestamp);
    else if (column < this.#goalFamily) best.cursor.seekColumn(this.#goalFamily);
    else if (kind === EntryKind.familyDeletion) return false;
    else best.cursor.seekColumn(goal);
    this.#moved(best);
    return true;
  }

  /** Applies the deletion and moves past it. Returns true if it is to be returned. */
  #applyDeletion(best: MergeSource): boolean {
    const { column, kind, timestamp, rangeEnd } = best.cursor;
    let isReturned = this.#options.keepDeletions && !this.#rowDeleted;
    switch (kind) {
      case EntryKind.rowDeletion:
        this.#active = this.#active.filter((source) => source.age <= best.age || !best.speaksOf(source));
        this.#rowDeleted = true;
        break;
      case EntryKind.familyDeletion:
        this.#sendOlder(best, familyEnd(column));
        this.#familyDeleted = column;
        break;
      case EntryKind.columnDeletion:
        this.#sendOlder(best, `${column}\0`);
        isReturned &&= this.#familyDeleted !== familyOf(column);
        this.#columnDeleted = column;
        break;
      default:
        if (this.#hiddenColumn !== column) this.#hidden.clear();
        this.#hiddenColumn = column;
        this.#hidden.add(best.age, timestamp, rangeEnd);
        this.#rangesMet = this.#options.keepDeletions;
        isReturned = false;
    }
    best.cursor.next();
    this.#moved(best);
    if (isReturned) this.#returnDeletion(column, kind, 0, undefined);
    return isReturned;
  }

  #sendOlder(best: MergeSource, column: ColumnKey): void {
    for (let i = this.#active.length - 1; this.#active[i] !== best; i--) {
      const source = this.#active[i]!;
      source.cursor.seekColumn(column);
      this.#moved(source);
    }
  }

  /**
   * Combines a merge entry with those of the same cell in older layers, down to the first put or to where a deletion
   * hides the rest.
   */
  #fold(best: MergeSource): void {
    const aggregate = this.#options.aggregateOf(familyOf(this.column));
    const ranges = !this.#hidden.isEmpty && this.#hiddenColumn === this.column;
    if (!this.#options.keepDeletions) this.kind = EntryKind.put;
    for (let i = this.#active.indexOf(best) + 1; i < this.#active.length; i++) {
      const { cursor, age } = this.#active[i]!;
      if (!this.#standsOnCell(cursor)) continue;
      if (ranges && this.#hidden.over(age, this.timestamp) !== undefined) return;
      this.#folded = foldAggregates(aggregate, cursor.value(), this.#folded ?? best.cursor.value());
      if (cursor.kind !== EntryKind.put) continue;
      this.kind = EntryKind.put;
      return;
    }
  }

  #standsOnCell(cursor: LayerCursor): boolean {
    return (
      cursor.state === CursorState.ready &&
      cursor.kind >= EntryKind.put &&
      cursor.timestamp === this.timestamp &&
      cursor.column === this.column
    );
  }

  /** Called after the last range deletion of a column: prepares the ranges to return. True if there are any. */
  #rangesEnd(best: MergeSource | undefined): boolean {
    if (best !== undefined && best.cursor.column === this.#hiddenColumn && best.cursor.kind === EntryKind.rangeDeletion)
      return false;
    this.#rangesMet = false;
    const column = this.#hiddenColumn;
    if (this.#rowDeleted || this.#familyDeleted === familyOf(column) || this.#columnDeleted === column) return false;
    this.#ranges = this.#hidden.union().reverse();
    return true;
  }

  #returnRange(): boolean {
    const range = this.#ranges.pop();
    if (range === undefined) return false;
    if (coversAll(range)) this.#returnDeletion(this.#hiddenColumn, EntryKind.columnDeletion, 0, undefined);
    else this.#returnDeletion(this.#hiddenColumn, EntryKind.rangeDeletion, range.start, range.end);
    return true;
  }

  #returnDeletion(column: ColumnKey, kind: EntryKind, timestamp: Int64, rangeEnd: Int64 | undefined): void {
    this.column = column;
    this.kind = kind;
    this.timestamp = timestamp;
    this.rangeEnd = rangeEnd;
    this.#cell = undefined;
    this.#folded = undefined;
  }

  /** Called after a move of the source: it may have left the row. */
  #moved(source: MergeSource): void {
    const { cursor } = source;
    if (cursor.state === CursorState.needsLoad) {
      this.#loading = true;
      return;
    }
    cursor.expectRow?.(this.#nextRow);
    if (!isOnRow(cursor, this.#row)) {
      source.arrived();
      this.#nextRow = source.row;
      const index = this.#active.indexOf(source);
      assert(index >= 0, 'a layer leaves a row once');
      this.#active.splice(index, 1);
    }
  }

  #loaded(): void {
    this.#loading = false;
    for (let i = this.#active.length - 1; i >= 0; i--) this.#moved(this.#active[i]!);
  }
}

function assertMembers(row: ByteString, members: readonly MergeSource[]): void {
  for (const [i, source] of members.entries()) {
    assert(isOnRow(source.cursor, row), 'a row is merged from layers that are on it');
    assert(i === 0 || members[i - 1]!.age < source.age, 'layers are merged newest first');
  }
}

/** The order of the entries of two cursors in one row (compareEntries of the model, without making entries). */
function isBefore(a: LayerCursor, b: LayerCursor): boolean {
  const aColumn = a.column;
  const bColumn = b.column;
  if (aColumn !== bColumn) return aColumn < bColumn;
  const aKind = a.kind;
  const bKind = b.kind;
  if (aKind >= EntryKind.put) return bKind >= EntryKind.put && a.timestamp > b.timestamp;
  if (bKind >= EntryKind.put) return true;
  return aKind !== bKind ? aKind < bKind : a.timestamp < b.timestamp;
}
