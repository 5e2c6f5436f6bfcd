/**
 * A position in one block: decodes entries as it moves over them. Hot path of scans and point reads: no object per
 * entry, keys are bytes until their text is requested.
 *
 * Every number that is read is checked against the block's bounds. A block that passed its checksum and is malformed
 * results in a CorruptionError, never in a wrong entry, and every move goes forward.
 */
import {
  assert,
  type ByteString,
  CorruptionError,
  type Int64,
  Pool,
  readInt64BE,
  VarintReader,
} from '../../base/index.ts';
import { type ColumnKey, EntryKind } from '../../model/index.ts';
import type { Block } from './block.ts';
import {
  HAS_KIND,
  KNOWN_FLAGS,
  RESTART,
  SAME_COLUMN,
  SAME_ROW,
  TIMESTAMP_DELTA,
  TIMESTAMP_FULL,
  TIMESTAMP_MASK,
  TIMESTAMP_SAME,
} from '../format/entry-flags.ts';
import { KeyBuffer } from './key-buffer.ts';
import { RowDigests } from '../format/row-digests.ts';
import type { SeekTarget } from '../format/seek-target.ts';

const NO_BYTES = Buffer.alloc(0);
const KNOWN_KIND = new Uint8Array(256);
for (const kind of Object.values(EntryKind)) KNOWN_KIND[kind] = 1;

/** Cursors are reused for their buffers: most live for one short read. */
const freeCursors = new Pool<BlockCursor>(64);

export function takeBlockCursor(): BlockCursor {
  return freeCursors.take() ?? new BlockCursor();
}

/** The caller must not use the cursor any more. */
export function giveBlockCursor(cursor: BlockCursor): void {
  cursor.close();
  freeCursors.give(cursor);
}

export class BlockCursor {
  kind: EntryKind = EntryKind.put;
  timestamp: Int64 = 0;
  rangeEnd: Int64 | undefined;
  valueLength = 0;
  /** Offset in the block at which the present entry begins. */
  entryAt = 0;
  /** True if the present entry is a restart point. */
  isRestart = false;
  #valueAt = 0;
  readonly #row = new KeyBuffer();
  readonly #column = new KeyBuffer(true);
  #block: Block | undefined;
  #bytes: Buffer = NO_BYTES;
  #end = 0;
  /** Stands after the present entry. */
  readonly #reader = new VarintReader(NO_BYTES);

  get row(): ByteString {
    return this.#row.text;
  }

  get column(): ColumnKey {
    return this.#column.text;
  }

  expectRow(row: ByteString): void {
    this.#row.expect(row);
  }

  value(): Uint8Array {
    if (this.valueLength === 0) return NO_BYTES;
    const { memory, memoryAt } = this.#openBlock();
    return Buffer.from(memory, memoryAt + this.#valueAt, this.valueLength);
  }

  /** Before the first entry of `block`. */
  open(block: Block): void {
    this.#block = block;
    this.#bytes = block.bytes;
    this.#end = block.entriesEnd;
    this.#reader.bytes = block.bytes;
    this.#reader.offset = 0;
  }

  /** Releases the block. */
  close(): void {
    this.#block = undefined;
    this.#bytes = NO_BYTES;
    this.#end = 0;
    this.#reader.bytes = NO_BYTES;
    this.#reader.offset = 0;
  }

  /** To the next entry. False at the end of the block; the cursor has not moved then. */
  next(): boolean {
    const at = this.#reader.offset;
    if (at >= this.#end) return false;
    try {
      this.#decode(at);
    } catch (error) {
      if (error instanceof RangeError) throw this.#corrupt(at, error);
      throw error;
    }
    return true;
  }

  /** To the first entry that is not before the target. False, at the last entry, if all entries are before it. */
  seek(target: SeekTarget): boolean {
    const block = this.#openBlock();
    const search = this.#search(block);
    // restart points up to `low` are before the target, those from `high` on are not
    let low = -1;
    let high = block.restarts;
    let current = -1;
    if (search) {
      search.narrow(target.row);
      low = search.low;
      high = search.high;
      assert(low < high && high <= block.restarts, 'digests narrow the search to restart points of the block');
    }
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      this.#jump(block.restart(middle));
      current = middle;
      if (this.isBefore(target)) low = middle;
      else high = middle;
    }
    // no entry lies between the two restart points: the answer is the upper one
    if (high < block.restarts && (low < 0 || search?.isMarked(low))) {
      if (current !== high) this.#jump(block.restart(high));
      return true;
    }
    const from = Math.max(low, 0);
    if (current !== from) this.#jump(block.restart(from));
    return target.column === undefined ? this.#walkToRow(target.row) : this.#walkTo(target);
  }

  /**
   * To the first entry of the row, which begins at that restart point, or after it, before the next. False, at any
   * entry, if another row is there.
   */
  seekRowAt(row: ByteString, restart: number, isAfter: boolean): boolean {
    const block = this.#openBlock();
    assert(restart < block.restarts, 'the restart point is one of the block');
    this.#jump(block.restart(restart));
    if (!isAfter) return this.#row.equals(row);
    return this.#row.compare(row) < 0 && this.#walkToRow(row) && this.#row.equals(row);
  }

  #walkTo(target: SeekTarget): boolean {
    while (this.isBefore(target)) if (!this.next()) return false;
    return true;
  }

  /**
   * To the first entry at or above the row, from one before it. Compares each row once, however many entries it has.
   */
  #walkToRow(row: ByteString): boolean {
    const key = this.#row;
    while (key.compare(row) < 0) {
      const { changes } = key;
      while (key.changes === changes) if (!this.next()) return false;
    }
    return true;
  }

  /**
   * Offsets at which the rows below `row` begin, ascending. `isLimited`: a row at or above `row` follows them in the
   * block; the cursor is then on it, and otherwise at the end of the block.
   */
  rowsBelow(row: ByteString): { readonly starts: number[]; readonly isLimited: boolean } {
    this.open(this.#openBlock());
    const starts: number[] = [];
    let before = -1;
    while (this.next()) {
      if (this.#row.changes === before) continue;
      before = this.#row.changes;
      if (this.#row.compare(row) >= 0) return { starts, isLimited: true };
      starts.push(this.entryAt);
    }
    return { starts, isLimited: false };
  }

  /** The last row of the block below `row`, to which the first row must be. Moves the cursor. */
  lastRowBelow(row: ByteString): ByteString {
    const block = this.#openBlock();
    let low = 0;
    let high = block.restarts;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      this.#jump(block.restart(middle));
      if (this.#row.compare(row) < 0) low = middle;
      else high = middle;
    }
    this.#jump(block.restart(low));
    let below = this.row;
    while (this.next() && this.#row.compare(row) < 0) below = this.row;
    return below;
  }

  /** Back to an entry on which this cursor stood before, by its offset in the block. */
  seekEntry(entryAt: number): void {
    const block = this.#openBlock();
    assert(entryAt >= 0 && entryAt < this.#end, 'the entry is in the block');
    let low = 0;
    let high = block.restarts;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (block.restart(middle) <= entryAt) low = middle;
      else high = middle;
    }
    this.#jump(block.restart(low));
    while (this.entryAt < entryAt) assert(this.next(), 'the entry is in the block');
    assert(this.entryAt === entryAt, 'an entry begins at the offset');
  }

  /** True if the present entry is before the target. */
  isBefore(target: SeekTarget): boolean {
    const order = this.#row.compare(target.row);
    if (order !== 0 || target.column === undefined) return order < 0;
    const columnOrder = this.#column.compare(target.column);
    return columnOrder !== 0 ? columnOrder < 0 : target.isVersionBefore(this.kind, this.timestamp);
  }

  /** Grows whenever the row changes. */
  get rowChanges(): number {
    return this.#row.changes;
  }

  /** True if the present entry is of this row. */
  isIn(row: ByteString): boolean {
    return this.#row.equals(row);
  }

  /**
   * Digests of the restart points' rows. Made at the second search: most blocks that are searched twice are searched
   * often.
   */
  #search(block: Block): RowDigests | undefined {
    if (block.search || block.restarts === 1 || block.searches++ === 0) return block.search;
    const { restarts } = block;
    this.#jump(block.restart(restarts - 1));
    const last = this.row;
    this.#jump(block.restart(0));
    const search = new RowDigests(restarts, this.row, last);
    for (let restart = 0; restart < restarts; restart++) {
      this.#jump(block.restart(restart));
      const next = restart + 1 < restarts ? block.restart(restart + 1) : this.#end;
      this.#row.digestInto(search, restart, this.#reader.offset === next ? 1 : 0);
    }
    block.search = search;
    return search;
  }

  #openBlock(): Block {
    assert(this.#block, 'a block is open');
    return this.#block;
  }

  /** To the restart point at this offset. */
  #jump(offset: number): void {
    this.#reader.offset = offset;
    if (!this.next() || !this.isRestart) throw this.#corrupt(offset, new RangeError('no restart point'));
  }

  #decode(at: number): void {
    const reader = this.#reader;
    const bytes = this.#bytes;
    const flags = bytes[at]!;
    if (flags > KNOWN_FLAGS) throw new RangeError(`flags ${flags}`);
    reader.offset = at + 1;
    this.entryAt = at;
    this.isRestart = (flags & RESTART) !== 0;
    if ((flags & SAME_ROW) === 0) this.#decodeKey(this.#row);
    if ((flags & SAME_COLUMN) === 0) this.#decodeKey(this.#column);
    if (this.isRestart && (flags & (SAME_ROW | SAME_COLUMN)) !== 0) throw new RangeError(`flags ${flags}`);
    const mode = flags & TIMESTAMP_MASK;
    if (mode !== TIMESTAMP_SAME) this.timestamp = mode === 0 ? 0 : this.#decodeTimestamp(mode);
    this.rangeEnd = undefined;
    let kind: number = EntryKind.put;
    if ((flags & HAS_KIND) !== 0) {
      kind = bytes[reader.offset++]!;
      if (KNOWN_KIND[kind] !== 1) throw new RangeError(`unknown kind ${kind}`);
    }
    this.kind = kind as EntryKind;
    this.valueLength = 0;
    if (kind >= EntryKind.put) {
      this.valueLength = reader.next();
      this.#valueAt = reader.offset;
      reader.offset += this.valueLength;
    } else if (kind === EntryKind.rangeDeletion) {
      this.#decodeRangeEnd();
    }
    if (reader.offset > this.#end) throw new RangeError(`the entry ends after ${this.#end}`);
  }

  #decodeKey(key: KeyBuffer): void {
    const reader = this.#reader;
    const shared = this.isRestart ? 0 : reader.next();
    const count = reader.next();
    const at = reader.offset;
    if (shared > key.length || at + count > this.#end) throw new RangeError(`a key of ${shared} + ${count} bytes`);
    key.replace(shared, this.#bytes, at, count);
    reader.offset = at + count;
  }

  #decodeTimestamp(mode: number): Int64 {
    const reader = this.#reader;
    if (mode === TIMESTAMP_FULL) {
      reader.offset += 8;
      return readInt64BE(this.#bytes, reader.offset - 8);
    }
    assert(mode === TIMESTAMP_DELTA, 'a timestamp is stored in one of four ways');
    const coded = reader.next();
    const before = this.isRestart ? 0 : this.timestamp;
    if (typeof before !== 'number') throw new RangeError(`a delta to ${before}`);
    return before + (coded % 2 === 0 ? coded / 2 : -(coded + 1) / 2);
  }

  #decodeRangeEnd(): void {
    const reader = this.#reader;
    const hasEnd = this.#bytes[reader.offset++]!;
    if (hasEnd > 1) throw new RangeError(`flag ${hasEnd}: expected 0 or 1`);
    if (hasEnd === 0) return;
    this.rangeEnd = readInt64BE(this.#bytes, reader.offset);
    reader.offset += 8;
  }

  #corrupt(at: number, cause: RangeError): CorruptionError {
    const { file, offset } = this.#openBlock();
    return new CorruptionError(file, offset + at, `entry: ${cause.message}`, cause);
  }
}
