/**
 * A position in one block: decodes entries as it moves over them. A hot path (scans and point reads spend their time here): no object
 * an entry, keys as bytes until someone asks, no calls for what a loop does faster.
 *
 * Every number that is read is held against the block's bounds: a block that passed its checksum and still makes no sense gives a
 * CorruptionError, never a wrong entry, and every step moves forward.
 */
import { assert, type ByteString, CorruptionError, type Int64, readInt64BE, VarintReader } from '../../base/index.ts';
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
import { KeyText } from './key-text.ts';
import { RowDigests } from '../format/row-digests.ts';
import type { SeekTarget } from '../format/seek-target.ts';

const NO_BYTES = Buffer.alloc(0);
const KNOWN_KIND = new Uint8Array(256);
for (const kind of Object.values(EntryKind)) KNOWN_KIND[kind] = 1;

/** Most cursors live for one short read, and their buffers would cost it a good part of its time. */
const FREE_LIMIT = 64;
const free: BlockCursor[] = [];

export function takeBlockCursor(): BlockCursor {
  return free.pop() ?? new BlockCursor();
}

/** The cursor must not be used by the giver any more. */
export function giveBlockCursor(cursor: BlockCursor): void {
  cursor.close();
  if (free.length < FREE_LIMIT) free.push(cursor);
}

export class BlockCursor {
  kind: EntryKind = EntryKind.put;
  timestamp: Int64 = 0;
  rangeEnd: Int64 | undefined;
  valueLength = 0;
  /** Where in the block the present entry begins. */
  entryAt = 0;
  /** Whether the present entry is a restart point. */
  isRestart = false;
  #valueAt = 0;
  readonly #row = new KeyText();
  readonly #column = new KeyText(true);
  #block: Block | undefined;
  #bytes: Buffer = NO_BYTES;
  #end = 0;
  /** Stands behind the present entry. */
  readonly #reader = new VarintReader(NO_BYTES);

  get row(): ByteString {
    return this.#row.text;
  }

  get column(): ColumnKey {
    return this.#column.text;
  }

  value(): Uint8Array {
    if (this.valueLength === 0) return NO_BYTES;
    const { memory, memoryAt } = this.#opened();
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

  /** Gives up the block. */
  close(): void {
    this.#block = undefined;
    this.#bytes = NO_BYTES;
    this.#end = 0;
    this.#reader.bytes = NO_BYTES;
    this.#reader.offset = 0;
  }

  /** To the next entry; false at the end of the block, and nothing has changed. */
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

  /** To the first entry that is not before the target; false, and at the last entry, where all are. */
  seek(target: SeekTarget): boolean {
    const block = this.#opened();
    const search = this.#search(block);
    let low = -1;
    let high = block.restarts;
    let standsAt = -1;
    if (search) {
      search.narrow(target.row);
      low = search.low;
      high = search.high;
    }
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      this.#jump(block.restart(middle));
      standsAt = middle;
      if (this.isBefore(target)) low = middle;
      else high = middle;
    }
    // nothing stands between the two: the answer is the upper one
    if (high < block.restarts && (low < 0 || search?.isMarked(low))) {
      if (standsAt !== high) this.#jump(block.restart(high));
      return true;
    }
    const from = Math.max(low, 0);
    if (standsAt !== from) this.#jump(block.restart(from));
    return target.column === undefined ? this.#walkToRow(target.row) : this.#walkTo(target);
  }

  #walkTo(target: SeekTarget): boolean {
    while (this.isBefore(target)) if (!this.next()) return false;
    return true;
  }

  /** To the first entry at or above the row, from one before it: rows are compared once, however many entries they have. */
  #walkToRow(row: ByteString): boolean {
    const key = this.#row;
    while (key.compare(row) < 0) {
      const { changes } = key;
      while (key.changes === changes) if (!this.next()) return false;
    }
    return true;
  }

  /** Where in the block rows below `row` begin, ascending. Moves the cursor: where it stands then, if anywhere, is at or above `row`. */
  rowsBelow(row: ByteString): { readonly starts: number[]; readonly isLimited: boolean } {
    this.open(this.#opened());
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

  /** The last row of the block below `row`; its first must be below. Moves the cursor. */
  lastRowBelow(row: ByteString): ByteString {
    const block = this.#opened();
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

  /** Back to an entry where this cursor stood before. */
  seekEntry(entryAt: number): void {
    const block = this.#opened();
    let low = 0;
    let high = block.restarts;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (block.restart(middle) <= entryAt) low = middle;
      else high = middle;
    }
    this.#jump(block.restart(low));
    while (this.entryAt < entryAt) assert(this.next(), 'the entry is in the block');
  }

  /** Whether the present entry is before the target. */
  isBefore(target: SeekTarget): boolean {
    const order = this.#row.compare(target.row);
    if (order !== 0 || target.column === undefined) return order < 0;
    const columnOrder = this.#column.compare(target.column);
    return columnOrder !== 0 ? columnOrder < 0 : target.isVersionBefore(this.kind, this.timestamp);
  }

  /** Another number whenever the row has become another. */
  get rowChanges(): number {
    return this.#row.changes;
  }

  /** Whether the present entry is of this row. */
  isIn(row: ByteString): boolean {
    return this.#row.is(row);
  }

  /** What makes searching quick: made at the second search, as most blocks that are searched twice are searched many times. */
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

  #opened(): Block {
    assert(this.#block, 'a block is open');
    return this.#block;
  }

  /** To the entry of a restart point. */
  #jump(offset: number): void {
    this.#reader.offset = offset;
    if (!this.next() || !this.isRestart) throw this.#corrupt(offset, new RangeError('no restart point'));
  }

  #decode(at: number): void {
    const reader = this.#reader;
    const bytes = this.#bytes;
    const flags = bytes[at] as number;
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
      kind = bytes[reader.offset++] as number;
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
    if (reader.offset > this.#end) throw new RangeError(`the entry runs behind ${this.#end}`);
  }

  #decodeKey(key: KeyText): void {
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
    assert(mode === TIMESTAMP_DELTA, 'one of the four');
    const coded = reader.next();
    const before = this.isRestart ? 0 : this.timestamp;
    if (typeof before !== 'number') throw new RangeError(`a delta to ${before}`);
    return before + (coded % 2 === 0 ? coded / 2 : -(coded + 1) / 2);
  }

  #decodeRangeEnd(): void {
    const reader = this.#reader;
    const hasEnd = this.#bytes[reader.offset++] as number;
    if (hasEnd > 1) throw new RangeError(`${hasEnd} stands where 0 or 1 must`);
    if (hasEnd === 0) return;
    this.rangeEnd = readInt64BE(this.#bytes, reader.offset);
    reader.offset += 8;
  }

  #corrupt(at: number, cause: RangeError): CorruptionError {
    const { file, offset } = this.#opened();
    return new CorruptionError(file, offset + at, `entry: ${cause.message}`, cause);
  }
}
