/**
 * An SSTable as one tablet has it. After a split two tablets share the files of their parent, each for its own range.
 * After a merge a tablet may list a file for parts of its range only (clips), because the other rows of the file were
 * compacted, deleted or changed elsewhere since (docs/decisions/0015-splits-and-merges.md).
 *
 * Invariant: no entry and no deletion outside of the clips is ever seen. A file without clips counts in the whole range
 * of the tablet; no read requests rows outside of that.
 */
import { assert, type ByteString, checksInvariants, type Int64 } from '../../base/index.ts';
import {
  type ColumnKey,
  intersectRanges,
  isEmptyRange,
  type Layer,
  type LayerCursor,
  rangeContains,
  type RowRange,
  type RowRangeDeletion,
} from '../../model/index.ts';
import { type SsTable, totalEntries } from '../../sstable/index.ts';
import { ClippedCursor } from './clipped-cursor.ts';

export class TabletFile implements Layer {
  /** Number of reads that hold it. For LayerSet only. */
  reads = 0;
  /** Sorted, disjoint; undefined = the tablet's whole range. */
  readonly clips: readonly RowRange[] | undefined;
  /** Approximate bytes of the rows of this tablet. */
  readonly sizeBytes: number;
  /** Approximate number of its entries. */
  readonly entryCount: number;
  /** The share of this tablet in the bytes of the file. */
  readonly share: number;
  /** True if the file has rows or deletions of other tablets. */
  readonly hasForeignRows: boolean;
  /**
   * True if the file holds fewer than all records that the tablet had in its time: it cannot be merged with its
   * neighbours in age, but only with all files.
   */
  readonly isPartial: boolean;
  readonly hasOnlyPuts: boolean;
  readonly #ssTable: SsTable;
  readonly #deletions: readonly RowRangeDeletion[];
  /** The parts of the tablet's range for which the file counts. */
  readonly #parts: readonly RowRange[];
  #isClosed = false;

  /** Takes over the SSTable, which is closed with the file. */
  constructor(ssTable: SsTable, range: RowRange, clips?: readonly RowRange[]) {
    this.#ssTable = ssTable;
    const parts = clips ?? [range];
    this.#parts = parts;
    if (checksInvariants && clips !== undefined) assertDisjoint(clips);
    const deletions = ssTable.rowRangeDeletions();
    this.hasForeignRows = !isWithin(ssTable, parts);
    this.clips = this.hasForeignRows ? clips : undefined;
    this.#deletions = this.clips === undefined ? deletions : clippedTo(deletions, this.clips);
    this.sizeBytes = this.hasForeignRows
      ? parts.reduce((sum, { start, end }) => sum + ssTable.sizeInRange(start, end), 0)
      : ssTable.sizeBytes;
    this.share = this.sizeBytes / ssTable.sizeBytes;
    const { lineage, entries } = ssTable.properties;
    this.entryCount = this.share * totalEntries(entries);
    this.hasOnlyPuts = this.#deletions.length === 0 && totalEntries(entries) === entries.put;
    this.isPartial = this.clips !== undefined || (lineage !== undefined && !covers(lineage.range, range));
  }

  get path(): string {
    return this.#ssTable.path;
  }

  /** As `SsTable.isInMemory`. */
  get isInMemory(): boolean {
    return this.#ssTable.isInMemory;
  }

  /** True if its Bloom filter is in memory, and tells which rows it has. */
  get hasRowFilter(): boolean {
    return this.properties.bloomFilter !== 'none' && this.#ssTable.hasIndex;
  }

  /** As `SsTable.hasIndex`. */
  get hasIndex(): boolean {
    return this.#ssTable.hasIndex;
  }

  /** As `SsTable.loadIndex`. */
  loadIndex(): Promise<void> {
    return this.#ssTable.loadIndex();
  }

  get group(): string {
    return this.#ssTable.group;
  }

  get maxTimestamp(): Int64 | undefined {
    return this.#ssTable.properties.maxTimestamp;
  }

  get properties(): SsTable['properties'] {
    return this.#ssTable.properties;
  }

  /** No row is below it. */
  get firstRow(): ByteString | undefined {
    return this.#ssTable.firstRow;
  }

  /** No row is above it. */
  get lastRow(): ByteString | undefined {
    return this.#ssTable.lastRow;
  }

  rowRangeDeletions(): readonly RowRangeDeletion[] {
    return this.#deletions;
  }

  mayContainRows(start: ByteString, end: ByteString | undefined): boolean {
    if (this.clips === undefined) return this.#ssTable.mayContainRows(start, end);
    return this.clips.some((clip) => {
      const common = intersectRanges(clip, { start, end });
      return !isEmptyRange(common) && this.#ssTable.mayContainRows(common.start, common.end);
    });
  }

  mayContainRow(row: ByteString): boolean {
    return this.#isOwn(row) && this.#ssTable.mayContainRow(row);
  }

  mayContainColumn(row: ByteString, column: ColumnKey): boolean {
    return this.#isOwn(row) && this.#ssTable.mayContainColumn(row, column);
  }

  cursor(): LayerCursor {
    assert(!this.#isClosed, 'a file that was closed is not read');
    const cursor = this.#ssTable.cursor();
    return this.clips === undefined ? cursor : new ClippedCursor(cursor, this.clips);
  }

  rowCursor(row: ByteString): LayerCursor {
    assert(!this.#isClosed, 'a file that was closed is not read');
    const cursor = this.#ssTable.rowCursor(row);
    return this.clips === undefined ? cursor : new ClippedCursor(cursor, this.clips);
  }

  /** At most `count` rows of this tablet, spread evenly over the bytes; no data is read. None without the index. */
  sampleRows(count: number): readonly ByteString[] {
    assert(count > 0, 'a sample has a row');
    if (!this.#ssTable.hasIndex) return [];
    // the rows of a whole file are not listed: it may have very many blocks
    const own = this.hasForeignRows
      ? this.blockBoundaries().flatMap(({ row }) => (this.#isInParts(row) ? [row] : []))
      : undefined;
    const length = own?.length ?? this.#ssTable.blockCount;
    const step = Math.max(1, length / count);
    return Array.from({ length: Math.min(count, length) }, (_, i) => {
      const at = Math.floor(i * step);
      return own?.[at] ?? this.#ssTable.firstRowOf(at);
    });
  }

  blockBoundaries(): ReturnType<SsTable['blockBoundaries']> {
    return this.#ssTable.blockBoundaries();
  }

  /**
   * The file as a tablet of that part of the range has it; undefined if it has nothing there. Both are open afterwards.
   */
  part(range: RowRange): TabletFile | undefined {
    if (!this.mayContainRows(range.start, range.end) && clippedTo(this.#deletions, [range]).length === 0)
      return undefined;
    assert(!this.#isClosed, 'a part is made of a file that is open');
    return new TabletFile(this.#ssTable.again(), range, this.clips && clippedTo(this.clips, [range]));
  }

  close(): void {
    assert(!this.#isClosed, 'a file is closed once');
    assert(this.reads === 0, 'a file is closed when no read holds it');
    this.#isClosed = true;
    this.#ssTable.close();
  }

  #isInParts(row: ByteString): boolean {
    return this.#parts.some((part) => rangeContains(part, row));
  }

  #isOwn(row: ByteString): boolean {
    return this.clips === undefined || this.#isInParts(row);
  }
}

function assertDisjoint(clips: readonly RowRange[]): void {
  for (const [i, clip] of clips.entries()) {
    assert(!isEmptyRange(clip), 'a part for which a file is listed holds rows');
    const end = clips[i - 1]?.end;
    assert(i === 0 || (end !== undefined && end <= clip.start), 'the parts for which a file is listed ascend');
  }
}

/** True if all rows and deletions of the SSTable surely lie in the parts. */
function isWithin(ssTable: SsTable, parts: readonly RowRange[]): boolean {
  const { firstRow, lastRow } = ssTable;
  const ofRows =
    firstRow === undefined ||
    lastRow === undefined ||
    parts.some((part) => rangeContains(part, firstRow) && rangeContains(part, lastRow));
  return ofRows && ssTable.rowRangeDeletions().every((deletion) => parts.some((part) => covers(part, deletion)));
}

function clippedTo(ranges: readonly RowRange[], parts: readonly RowRange[]): RowRange[] {
  return ranges.flatMap((range) =>
    parts.map((part) => intersectRanges(range, part)).filter((common) => !isEmptyRange(common)),
  );
}

function covers(outer: RowRange, inner: RowRange): boolean {
  return outer.start <= inner.start && (outer.end === undefined || (inner.end !== undefined && inner.end <= outer.end));
}
