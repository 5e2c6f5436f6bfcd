/**
 * Encodes entries into one block after another; the counterpart of `block-cursor.ts`. Format: docs/formats/sstable.md,
 * "Block".
 *
 * A caller that writes a value into the file itself adds the entry without it (`addHead`): head, value and `tail` are
 * then the block.
 */
import { assert, type ByteString, type Int64, varintLength } from '../../base/index.ts';
import { type ColumnKey, EntryKind, type EntryPosition, type EntryStream } from '../../model/index.ts';
import { ByteWriter } from '../format/byte-writer.ts';
import {
  HAS_KIND,
  RESTART,
  SAME_COLUMN,
  SAME_ROW,
  TIMESTAMP_DELTA,
  TIMESTAMP_FULL,
  TIMESTAMP_SAME,
  TIMESTAMP_ZERO,
} from '../format/entry-flags.ts';
import { commonPrefix, NO_CUTS, type PageCut, separatorOf } from '../format/page-index.ts';

/** Entries after which a restart point is set. */
const RESTART_INTERVAL = 16;
/** Bytes after which one is set sooner: walking over large values is slow. */
const RESTART_BYTES = 768;
/** Bytes since the last restart point, as a multiple of the full keys' length, for one to be set sooner. */
const KEYS_TO_BYTES = 8;
/** A row that begins after this many bytes of a page begins another page. */
export const PAGE_BYTES = 4096;
/** Most bytes of an entry without keys and value. */
const OVERHEAD_BYTES = 48;
/** Longest varint of a timestamp's delta; else the timestamp is stored in full. */
const MAX_DELTA_BYTES = 7;

/** An entry to add: a cursor over a layer or over a block. */
export type EntrySource = Pick<
  EntryStream,
  'row' | 'column' | 'kind' | 'timestamp' | 'rangeEnd' | 'valueLength' | 'value'
>;

export class BlockBuilder {
  readonly #out: ByteWriter;
  readonly #restarts: number[] = [];
  #sinceRestart = 0;
  /** Offset after the full keys of the last restart point. */
  #restartKeysEnd = 0;
  #entries = 0;
  #row: ByteString = '';
  #column: ColumnKey = '';
  #timestamp: Int64 = 0;
  #first: EntryPosition | undefined;
  #cuts: PageCut[] = [];
  #pageAt = 0;

  constructor(blockSizeBytes: number) {
    this.#out = new ByteWriter(blockSizeBytes + 1024);
  }

  get entries(): number {
    return this.#entries;
  }

  /** The first entry's position; there must be one. */
  get first(): EntryPosition {
    assert(this.#first, 'the block has an entry');
    return this.#first;
  }

  get lastRow(): ByteString {
    return this.#row;
  }

  /** Where its pages begin, except the first. Checksums are not filled in. The caller may keep it. */
  get cuts(): readonly PageCut[] {
    return this.#cuts.length === 0 ? NO_CUTS : this.#cuts;
  }

  /** Upper bound of the block's length with this entry, without the first entry's keys. */
  sizeWith(entry: EntrySource): number {
    const first = this.#first;
    if (!first) return entry.valueLength;
    const rowBytes = entry.row === this.#row ? 0 : entry.row.length;
    const columnBytes = entry.column === this.#column ? 0 : entry.column.length;
    const tail = (this.#restarts.length + 1) * 4;
    return (
      this.#out.length +
      tail -
      first.row.length -
      first.column.length +
      rowBytes +
      columnBytes +
      entry.valueLength +
      OVERHEAD_BYTES
    );
  }

  add(entry: EntrySource): void {
    this.addHead(entry);
    if (entry.valueLength === 0) return;
    const value = entry.value();
    assert(value.length === entry.valueLength, 'a value has its length');
    this.#out.raw(value);
  }

  /** Adds the entry without the bytes of its value. */
  addHead(entry: EntrySource): void {
    const { row, column, kind, timestamp } = entry;
    const out = this.#out;
    const isPage = this.#isPageDue(row, column);
    if (isPage) {
      this.#cuts.push({ at: out.length, separator: separatorOf(this.#row, row), crc: 0 });
      this.#pageAt = out.length;
    }
    const restart = isPage || this.#entries === 0 || this.#isRestartDue(row, column);
    if (restart) {
      this.#restarts.push(out.length);
      this.#sinceRestart = 0;
      this.#timestamp = 0;
    }
    const sameRow = !restart && row === this.#row;
    const sameColumn = !restart && column === this.#column;
    const mode = timestampMode(timestamp, this.#timestamp);
    out.reserve(OVERHEAD_BYTES);
    out.byte(
      (restart ? RESTART : 0) |
        (sameRow ? SAME_ROW : 0) |
        (sameColumn ? SAME_COLUMN : 0) |
        mode |
        (kind === EntryKind.put ? 0 : HAS_KIND),
    );
    if (!sameRow) this.#putKey(row, this.#row, restart);
    if (!sameColumn) this.#putKey(column, this.#column, restart);
    if (restart) this.#restartKeysEnd = out.length;
    if (mode === TIMESTAMP_FULL) out.int64(timestamp);
    else if (mode === TIMESTAMP_DELTA) out.varint(zigzag((timestamp as number) - (this.#timestamp as number)));
    if (kind !== EntryKind.put) out.byte(kind);
    if (kind >= EntryKind.put) out.varint(entry.valueLength);
    else if (kind === EntryKind.rangeDeletion) this.#putRangeEnd(entry.rangeEnd);
    this.#first ??= { row, column, kind, timestamp };
    this.#row = row;
    this.#column = column;
    this.#timestamp = timestamp;
    this.#entries++;
    this.#sinceRestart++;
  }

  /** The whole block: valid until `clear`, which must follow. */
  end(): Buffer {
    assert(this.#entries > 0 && this.#restarts.length > 0, 'a block has an entry, which is a restart point');
    this.#putRestarts(this.#out);
    return this.#out.written();
  }

  /** The entries added so far: valid until the next change. */
  body(): Buffer {
    return this.#out.written();
  }

  /** The restart points, the end of the block. */
  tail(): Buffer {
    assert(this.#restarts.length > 0, 'a block has a restart point');
    const tail = new ByteWriter((this.#restarts.length + 1) * 4);
    this.#putRestarts(tail);
    return tail.written();
  }

  clear(): void {
    this.#out.clear();
    this.#restarts.length = 0;
    this.#entries = 0;
    this.#first = undefined;
    if (this.#cuts.length > 0) this.#cuts = [];
    this.#pageAt = 0;
  }

  /** A page begins with a row; full keys must not take much of the block, as with restart points. */
  #isPageDue(row: ByteString, column: ColumnKey): boolean {
    if (this.#out.length - this.#pageAt < PAGE_BYTES || row === this.#row) return false;
    return this.#out.length - this.#restartKeysEnd >= row.length + column.length;
  }

  /** Often enough for short walks, and never so often that full keys take much of the block. */
  #isRestartDue(row: ByteString, column: ColumnKey): boolean {
    const keyBytes = row.length + column.length;
    const bytes = this.#out.length - this.#restartKeysEnd;
    if (this.#sinceRestart >= RESTART_INTERVAL) return bytes >= keyBytes;
    return bytes >= RESTART_BYTES && bytes >= keyBytes * KEYS_TO_BYTES;
  }

  #putKey(key: ByteString, before: ByteString, restart: boolean): void {
    const shared = restart ? 0 : commonPrefix(key, before);
    if (!restart) this.#out.varint(shared);
    this.#out.string(key, shared);
  }

  #putRestarts(out: ByteWriter): void {
    out.reserve((this.#restarts.length + 1) * 4);
    for (const restart of this.#restarts) out.uint32(restart);
    out.uint32(this.#restarts.length);
  }

  #putRangeEnd(end: Int64 | undefined): void {
    this.#out.byte(end === undefined ? 0 : 1);
    if (end !== undefined) this.#out.int64(end);
  }
}

function timestampMode(timestamp: Int64, before: Int64): number {
  if (timestamp === 0) return TIMESTAMP_ZERO;
  if (timestamp === before) return TIMESTAMP_SAME;
  if (typeof timestamp !== 'number' || typeof before !== 'number') return TIMESTAMP_FULL;
  return varintLength(zigzag(timestamp - before)) <= MAX_DELTA_BYTES ? TIMESTAMP_DELTA : TIMESTAMP_FULL;
}

function zigzag(delta: number): number {
  return delta >= 0 ? 2 * delta : -2 * delta - 1;
}
