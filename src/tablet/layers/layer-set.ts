/**
 * The layers of a tablet, newest first: the active memtable, frozen ones on their way to disk, SSTables of all locality
 * groups. A read takes the list once, synchronously, and holds its files until it ends. The list is replaced, never
 * changed.
 *
 * Invariants: a file stays open while any list that is read contains it, and is discarded once it is in none. The files
 * of one group are listed by age; so are files of different groups that hold the same family, which happens after a
 * family was moved.
 */
import { assert, type ByteString, checksInvariants, type Int64, isSuccessor } from '../../base/index.ts';
import type { ColumnSpan } from '../../filter/index.ts';
import { Memtable } from '../../memtable/index.ts';
import {
  type ColumnKey,
  familyEnd,
  intersectRanges,
  isEmptyRange,
  type Layer,
  rangeContains,
  type RowRange,
  type RowRangeDeletion,
  setCell,
  TOKEN_FAMILY,
  TOKEN_GROUP,
} from '../../model/index.ts';
import { ANYWHERE, FileRegions } from './file-regions.ts';
import { crowdingOf } from './merge-choice.ts';
import type { OwnedFiles } from './owned-files.ts';
import { ReadCredits } from './read-credits.ts';
import type { TabletClips, TabletFiles } from '../contract/tablet-state.ts';
import type { TabletFile } from './tablet-file.ts';

/** A memtable and the part of the log that it covers. */
export interface MemtableLayer {
  readonly memtable: Memtable;
  /** Tokens of writes, by row: where a deletion of the row does not reach them. Undefined: none. */
  tokens: Memtable | undefined;
  /**
   * Position in the log of the server of the first record applied; undefined if there is none, or if it came from an
   * older log.
   */
  firstPosition: number | undefined;
  /**
   * True if versions of a column were deleted by a range of timestamps: nothing else makes older versions count again.
   */
  rangeDeletions: boolean;
}

function emptyLayer(): MemtableLayer {
  return { memtable: new Memtable(), tokens: undefined, firstPosition: undefined, rangeDeletions: false };
}

const NO_VALUE = Buffer.alloc(0);
const noAggregate = (): undefined => undefined;
const NO_FILES: readonly TabletFile[] = [];
const EMPTY_LAYERS: readonly Layer[] = [];
/** With fewer files each one is queried. */
const MIN_INDEXED_FILES = 4;

/** The rows and columns that a read needs. */
export class LayerNeed {
  readonly range: RowRange;
  /** The only row of the range, if it has one. */
  readonly row: ByteString | undefined;
  /** Columns as stored; undefined = all. */
  readonly spans: readonly ColumnSpan[] | undefined;

  constructor(range: RowRange, row?: ByteString, spans?: readonly ColumnSpan[]) {
    this.range = range;
    this.row = row;
    this.spans = spans;
  }
}

function bytesOf({ memtable, tokens }: MemtableLayer): number {
  return memtable.sizeBytes + (tokens?.sizeBytes ?? 0);
}

/** The reader of a hold. */
export interface LayerReader {
  layersChanged(): void;
}

export class LayerHold {
  readonly layers: readonly Layer[];
  /** The files among the layers. */
  readonly files: readonly TabletFile[];
  /** True once the set has other layers. */
  isStale = false;
  /** Called when the hold becomes stale. */
  reader: LayerReader | undefined;
  /** Index among the holds of the set; -1 once released. For LayerSet only. */
  index = 0;
  readonly #set: LayerSet;

  constructor(set: LayerSet, memtables: readonly Layer[], files: readonly TabletFile[]) {
    this.layers = files.length === 0 ? memtables : memtables.length === 0 ? files : memtables.concat(files);
    this.files = files;
    this.#set = set;
  }

  release(): void {
    if (this.index >= 0) this.#set.release(this);
  }
}

/** Finds the files that may have entries of a row, newest first. */
class FilesByRow {
  readonly #regions: FileRegions;
  readonly #files: readonly (readonly TabletFile[])[];

  constructor(files: readonly TabletFile[]) {
    // rows that a file deletes may lie anywhere
    this.#regions = new FileRegions(files.map((file) => (file.rowRangeDeletions().length > 0 ? ANYWHERE : file)));
    this.#files = this.#regions.filesByRegion(files);
  }

  over(row: ByteString): readonly TabletFile[] {
    return this.#files[this.#regions.regionOf(row)] as readonly TabletFile[];
  }
}

export class LayerSet {
  #active = emptyLayer();
  /** The active memtable and the frozen ones, newest first. */
  #memtables: readonly Memtable[] = [this.#active.memtable];
  /** Newest first. */
  #frozen: readonly MemtableLayer[] = [];
  #files: readonly TabletFile[];
  /** Those of tokens, and all others. */
  #tokenFiles: readonly TabletFile[] = NO_FILES;
  #cellFiles: readonly TabletFile[] = NO_FILES;
  /** Made when it is first needed, of files with cells. */
  #byRow: FilesByRow | undefined;
  #maxFiles = 0;
  #crowding = 0;
  /** An array for the reason that NumberTable gives: holds come and go with every read. */
  readonly #holds: LayerHold[] = [];
  readonly #replaced = new Set<TabletFile>();
  readonly #ownedFiles: OwnedFiles;
  /** What reads of these layers have earned towards compactions. */
  readonly credits: ReadCredits;
  #isRetired = false;

  /** `files`: newest first in each group. */
  constructor(files: readonly TabletFile[], ownedFiles: OwnedFiles, credits = new ReadCredits()) {
    this.credits = credits;
    this.#files = [...files].sort(byAge);
    this.#ownedFiles = ownedFiles;
    this.#measure();
  }

  get active(): MemtableLayer {
    return this.#active;
  }

  get oldestFrozen(): MemtableLayer | undefined {
    return this.#frozen.at(-1);
  }

  /** All files, newest first. */
  get files(): readonly TabletFile[] {
    return this.#files;
  }

  /** The number of files of the group that has the most. */
  get maxFiles(): number {
    return this.#maxFiles;
  }

  /** The crowding of the most crowded group (merge-choice.ts). */
  get crowding(): number {
    return this.#crowding;
  }

  get memtablesAreEmpty(): boolean {
    return this.#frozen.length === 0 && this.#active.memtable.isEmpty;
  }

  get memtables(): readonly Memtable[] {
    return this.#memtables;
  }

  get memtableBytes(): number {
    return this.#frozen.reduce((sum, layer) => sum + bytesOf(layer), bytesOf(this.#active));
  }

  /** The lowest log position that a memtable still needs. */
  get firstPosition(): number | undefined {
    let first = this.#active.firstPosition;
    for (const { firstPosition } of this.#frozen) {
      if (firstPosition !== undefined && (first === undefined || firstPosition < first)) first = firstPosition;
    }
    return first;
  }

  /** True if a layer newer than these files deletes ranges of versions. The files are neighbours in age. */
  deletesRangesAbove(files: readonly TabletFile[]): boolean {
    const newest = this.#files.findIndex((file) => files.includes(file));
    return (
      [this.#active, ...this.#frozen].some(({ rangeDeletions }) => rangeDeletions) ||
      this.#files.slice(0, Math.max(newest, 0)).some(({ properties }) => properties.entries.rangeDeletion > 0)
    );
  }

  /** Paths of the files that are listed or still read. */
  heldFiles(): string[] {
    return [...this.#files, ...this.#replaced].map((file) => file.path);
  }

  /**
   * Holds the layers that the read needs until they are released. A read of one row must seek that row in the same
   * slice. `pending`: layers above all others, for a transaction.
   */
  hold(need: LayerNeed, pending: readonly Layer[] = EMPTY_LAYERS): LayerHold {
    const { row, spans } = need;
    // a memtable without the row now has nothing that this read, of this instant, must show
    const memtables = row === undefined ? this.#memtables : layersForRow(this.#memtables, row, spans);
    return this.#hold(
      pending.length === 0 ? memtables : pending.concat(memtables),
      this.#cellFiles.length === 0
        ? NO_FILES
        : filesFor(row === undefined ? this.#cellFiles : this.#filesOver(row), need),
    );
  }

  /** The same for the layers that may have the token of a write of the row, and no cells of users. */
  holdTokens(row: ByteString, column: ColumnKey): LayerHold {
    const memtables = [this.#active, ...this.#frozen].flatMap(({ tokens }) => tokens ?? []);
    return this.#hold(
      memtables.filter((layer) => layer.mayContainRow(row)),
      this.#tokenFiles.filter((file) => file.mayContainColumn(row, column)),
    );
  }

  /** The row of the active memtable gets the token of a write that was made then. */
  addToken(row: ByteString, token: ByteString, micros: Int64): void {
    this.#active.tokens ??= new Memtable();
    this.#active.tokens.apply(row, [setCell(TOKEN_FAMILY, token, micros, NO_VALUE)], noAggregate);
  }

  #hold(memtables: readonly Layer[], files: readonly TabletFile[]): LayerHold {
    assert(!this.#isRetired, 'no read begins over the layers of a tablet that is released');
    for (const file of files) file.reads++;
    const hold = new LayerHold(this, memtables, files);
    hold.index = this.#holds.push(hold) - 1;
    return hold;
  }

  /** Holds these files of the list. */
  holdFiles(files: readonly TabletFile[]): LayerHold {
    assert(
      files.every((file) => this.#files.includes(file)),
      'a file is held while the list has it',
    );
    return this.#hold([], files);
  }

  /** Freezes the active memtable; an empty one takes its place. */
  freeze(): void {
    const frozen = this.#active;
    frozen.memtable.freeze();
    frozen.tokens?.freeze();
    this.#frozen = [frozen, ...this.#frozen];
    this.#active = emptyLayer();
    this.#memtables = [this.#active.memtable, ...this.#memtables];
    this.credits.spendMemtable();
  }

  /** The list with `newest` in front, without the files that the row deletions hide whole. */
  withNewest(newest: readonly TabletFile[], deletions: readonly RowRangeDeletion[]): readonly TabletFile[] {
    const covered = coveredFiles(this.#files, deletions);
    return [...newest, ...this.#files.filter((old) => !covered.includes(old))];
  }

  /** The list with `files` in the place of `merged`; undefined if the list does not have all of those any more. */
  withMerged(merged: readonly TabletFile[], files: readonly TabletFile[]): readonly TabletFile[] | undefined {
    if (!merged.every((file) => this.#files.includes(file))) return undefined;
    assert(merged.length > 0, 'a merge has inputs');
    const at = this.#files.findIndex((file) => merged.includes(file));
    return [...this.#files.slice(0, at), ...files, ...this.#files.slice(at).filter((file) => !merged.includes(file))];
  }

  /** Takes over a list made by `withNewest` or `withMerged`. Nothing may have changed since. */
  replaceOldestFrozen(files: readonly TabletFile[]): void {
    const replaced = this.oldestFrozen;
    assert(replaced !== undefined, 'a replaced memtable was frozen');
    this.#frozen = this.#frozen.slice(0, -1);
    this.#memtables = this.#memtables.slice(0, -1);
    assert(this.#memtables.length === this.#frozen.length + 1, 'each memtable is active or frozen, and none is both');
    // reads may have earned it by the frozen one
    this.credits.spendMemtable();
    this.replaceFiles(files);
    // if a read still uses it, the garbage collector frees it later
    for (const memtable of [replaced.memtable, replaced.tokens])
      if (memtable !== undefined && !this.#holds.some(({ layers }) => layers.includes(memtable))) memtable.recycle();
  }

  /** Takes over a list made by `withNewest` or `withMerged` since when nothing has changed. */
  replaceFiles(files: readonly TabletFile[]): void {
    assert(!this.#isRetired, 'the files of a released tablet no longer change');
    if (checksInvariants) assertLayerOrder(files, this.#replaced);
    const replaced = this.#files.filter((old) => !files.includes(old));
    this.#files = files;
    this.#measure();
    this.credits.keep(files);
    for (const old of replaced) {
      this.#replaced.add(old);
      if (old.reads === 0) this.#close(old);
    }
    for (const hold of [...this.#holds]) {
      hold.isStale = true;
      hold.reader?.layersChanged();
    }
  }

  #filesOver(row: ByteString): readonly TabletFile[] {
    if (this.#cellFiles.length < MIN_INDEXED_FILES) return this.#cellFiles;
    this.#byRow ??= new FilesByRow(this.#cellFiles);
    return this.#byRow.over(row);
  }

  #measure(): void {
    const byGroup = filesByGroup(this.#files);
    const groups = [...byGroup.values()];
    this.#tokenFiles = byGroup.get(TOKEN_GROUP) ?? NO_FILES;
    this.#cellFiles =
      this.#tokenFiles.length === 0 ? this.#files : this.#files.filter(({ group }) => group !== TOKEN_GROUP);
    this.#byRow = undefined;
    this.#maxFiles = Math.max(0, ...groups.map((files) => files.length));
    this.#crowding = Math.max(0, ...groups.map(crowdingOf));
  }

  /** Takes no further reads. Those in progress keep what they hold and are notified. */
  retire(): void {
    if (this.#isRetired) return;
    this.replaceFiles([]);
    this.#isRetired = true;
  }

  /** For LayerHold only. */
  release(hold: LayerHold): void {
    assert(this.#holds[hold.index] === hold, 'a hold is released once, by its set');
    const last = this.#holds.pop()!;
    if (last !== hold) {
      this.#holds[hold.index] = last;
      last.index = hold.index;
    }
    hold.index = -1;
    hold.reader = undefined;
    for (const file of hold.files) {
      file.reads--;
      assert(file.reads >= 0, 'a file is not released more often than held');
      if (file.reads === 0 && this.#replaced.has(file)) this.#close(file);
    }
    this.credits.readEnded();
  }

  #close(file: TabletFile): void {
    assert(this.#replaced.delete(file), 'a file is closed once it is out of the list');
    file.close();
    this.#ownedFiles.discard([file.path]);
  }
}

/**
 * The files that may change the result of the read: those that hold a column it needs, and those that delete rows of
 * such a file in their group. Newest first, as given.
 */
function filesFor(files: readonly TabletFile[], { range, row, spans }: LayerNeed): TabletFile[] {
  const inRange =
    row === undefined
      ? files.filter((file) => file.mayContainRows(range.start, range.end) || hidesRows(file, range))
      : layersForRow(files, row, spans);
  if (spans === undefined) return inRange;
  const groups = new Set<string>();
  const needed: TabletFile[] = [];
  for (const file of inRange.reverse()) {
    const { families, entries } = file.properties;
    if (families === undefined || families.some(({ family }) => isNeeded(family, spans))) {
      groups.add(file.group);
      needed.push(file);
    } else if (groups.has(file.group) && (entries.rowDeletion > 0 || file.rowRangeDeletions().length > 0)) {
      needed.push(file);
    }
  }
  return needed.reverse();
}

/**
 * The layers that may change the result of a read of the row, for files by their Bloom filters. `spans`: the stored
 * columns to read; undefined = all.
 */
export function layersForRow<L extends Layer>(
  layers: readonly L[],
  row: ByteString,
  spans: readonly ColumnSpan[] | undefined,
): L[] {
  const column = spans?.length === 1 ? columnOfSpan(spans[0]!) : undefined;
  // mostly one; an array literal of one takes less memory than an empty one that grows
  let found: L[] | undefined;
  for (const layer of layers) {
    if (!mayBearOn(layer, row, column) && !hidesRow(layer.rowRangeDeletions(), row)) continue;
    if (found === undefined) found = [layer];
    else found.push(layer);
  }
  return found ?? [];
}

function hidesRow(deletions: readonly RowRangeDeletion[], row: ByteString): boolean {
  for (const deletion of deletions) if (rangeContains(deletion, row)) return true;
  return false;
}

/** True if the layer may have an entry of the row or the column. */
function mayBearOn(layer: Layer, row: ByteString, column: ColumnKey | undefined): boolean {
  if (column !== undefined && layer.mayContainColumn !== undefined) return layer.mayContainColumn(row, column);
  return layer.mayContainRow?.(row) ?? true;
}

/** The only column of the span, if it has one. */
function columnOfSpan({ start, end }: ColumnSpan): ColumnKey | undefined {
  return start.includes('\0') && end !== undefined && isSuccessor(end, start) ? start : undefined;
}

function isNeeded(family: string, spans: readonly ColumnSpan[]): boolean {
  const end = familyEnd(family);
  return spans.some((span) => span.start < end && (span.end === undefined || span.end > family));
}

function hidesRows(layer: Layer, range: RowRange): boolean {
  return layer.rowRangeDeletions().some((deletion) => !isEmptyRange(intersectRanges(deletion, range)));
}

/** By group, in the given order. */
export function filesByGroup(files: readonly TabletFile[]): ReadonlyMap<string, readonly TabletFile[]> {
  const groups = new Map<string, TabletFile[]>();
  for (const file of files) {
    const group = groups.get(file.group);
    if (group === undefined) groups.set(file.group, [file]);
    else group.push(file);
  }
  return groups;
}

/** Paths as METADATA lists them, newest first in each group. */
export function pathsByGroup(files: readonly TabletFile[]): TabletFiles {
  return Object.fromEntries([...filesByGroup(files)].map(([group, files]) => [group, files.map(({ path }) => path)]));
}

/** The clips of files that do not count in the whole range; undefined if all do. */
export function clipsOf(files: readonly TabletFile[]): TabletClips | undefined {
  const clipped = files.flatMap(({ path, clips }): [string, readonly RowRange[]][] =>
    clips === undefined ? [] : [[path, clips]],
  );
  return clipped.length === 0 ? undefined : Object.fromEntries(clipped);
}

/**
 * Each file is listed once, none that was replaced is listed again, and in each group files are listed newest first.
 */
function assertLayerOrder(files: readonly TabletFile[], replaced: ReadonlySet<TabletFile>): void {
  assert(new Set(files.map(({ path }) => path)).size === files.length, 'a tablet lists each file once');
  assert(!files.some((file) => replaced.has(file)), 'a file that was replaced does not come back');
  for (const group of filesByGroup(files).values())
    for (let i = 1; i < group.length; i++)
      assert(byAge(group[i - 1]!, group[i]!) <= 0, 'files of a group are listed by age');
}

/** Newest first; files without a known age are older than all others. */
function byAge(a: TabletFile, b: TabletFile): number {
  const [x, y] = [a.properties.newest, b.properties.newest];
  if (x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined);
  return y.epoch - x.epoch || y.sequence - x.sequence;
}

/**
 * The files that one of the deletions hides whole. A file that itself deletes row ranges is kept: those may hide rows
 * of older files.
 */
export function coveredFiles(files: readonly TabletFile[], deletions: readonly RowRangeDeletion[]): TabletFile[] {
  return files.filter((file) => {
    const { firstRow, lastRow, group } = file;
    // tokens outlive their rows
    if (group === TOKEN_GROUP) return false;
    if (firstRow === undefined || lastRow === undefined || file.rowRangeDeletions().length > 0) return false;
    return deletions.some(({ start, end }) => start <= firstRow && (end === undefined || lastRow < end));
  });
}
