/**
 * Rows to ReadRowsResponse messages (google.bigtable.v2.ReadRowsResponse.CellChunk), written straight into bytes: the
 * hottest path of a server, so by hand (docs/decisions/0006-grpc-codec.md).
 *
 * - Row key only in the first chunk of a row and of a message, family and qualifier only where they change.
 * - A value above PIECE_BYTES is cut; all its chunks but the last carry value_size, the value's whole size.
 * - The last chunk of a row carries commit_row. The last cell of a fragment that does not end its row is held back: the
 *   next fragment may end the row without a cell.
 * - A message ends between rows if it can. Some clients do not follow a row over the end of a message: for them
 *   (framing 'whole') rows are never parted and values never cut, however large. Others look for the row key in the
 *   first chunk of every message, inside a value too (framing 'keyed'), where the protocol needs none and stricter
 *   clients allow none.
 *
 * Invariant: but for whole rows, no message exceeds PARTING_BYTES plus one chunk (a piece of a value, a row key, a
 * column): it stays under 1 MiB.
 */
import { asBuffer, assert, type ByteString, Pool, varintLength, viewOf } from '../../base/index.ts';
import type { Cell, RowFragment } from '../../model/index.ts';
import { lendMessage, MESSAGE_BUFFER_BYTES, takeMessageBuffer } from '../../wire/index.ts';
import { int64Length, lengthDelimited } from '../../protobuf/index.ts';
import { writeBytes, writeHead, writeInt64, writeText } from '../bytes/wire-writer.ts';

/** Between rows a message is handed out once it holds this much (larger ones gain next to nothing), */
const FULL_BYTES = 64 * 1024;
/** and inside a row once it holds this much. */
const PARTING_BYTES = 512 * 1024;
const PIECE_BYTES = 384 * 1024;
/** Cells after which the caller consults the clock. */
const STRETCH_CELLS = 256;
/** Sizes of buffers: most reads are of one small row, scans fill many messages of about the same size. */
const FIRST_BYTES = 4 * 1024;
const NEXT_BYTES = MESSAGE_BUFFER_BYTES;
/** Values from this size on become a part of their own: they are not copied. */
const PART_BYTES = 16 * 1024;

/**
 * Buffers for first messages. Most are small and copied out as soon as they are complete, so the next read finds one
 * free.
 */
const firstBuffers = new Pool<Buffer>(1);

const EMPTY_FRAGMENT: RowFragment = { row: '', cells: [], last: false };
const EMPTY_BYTES = Buffer.alloc(0);

/** The ways in which rows cross the ends of messages; see above. */
export type RowFraming = 'parted' | 'keyed' | 'whole';

/**
 *   writer.begin(fragment);
 *   for (;;) {
 *     const done = writer.advance();
 *     if (writer.full) send(writer.take());
 *     if (done) break;
 *     // a good place to yield
 *   }
 */
export class ChunkWriter {
  /** Rows and cells written so far; a row counts when it is committed. */
  rows = 0;
  cells = 0;
  readonly #wholeRows: boolean;
  readonly #keyInsideValues: boolean;
  /** The message: parts that are full, and the one being filled. */
  #parts: Buffer[] = [];
  #partsBytes = 0;
  #bytes: Buffer = EMPTY_BYTES;
  #used = 0;
  #nextBytes = FIRST_BYTES;
  /** The last cell of a fragment that does not end its row: it is written when the next fragment comes. */
  #held: Cell | undefined;
  #row: ByteString | undefined;
  /** The column of the last chunk; undefined at the beginning of a row. */
  #family: string | undefined;
  #qualifier: ByteString = '';
  #fragment: RowFragment = EMPTY_FRAGMENT;
  #nextCell = 0;
  /** The value being cut, the bytes of it that are written (0 = no value is being cut), and if it is the row's last. */
  #value: Uint8Array = EMPTY_BYTES;
  #valueAt = 0;
  #valueEndsRow = false;

  constructor(framing: RowFraming) {
    this.#wholeRows = framing === 'whole';
    this.#keyInsideValues = framing === 'keyed';
  }

  /** True when the message should be taken before more is written. */
  get full(): boolean {
    return this.mayEnd && this.messageBytes >= (this.insideRow ? PARTING_BYTES : FULL_BYTES);
  }

  /** True where the message may end. */
  get mayEnd(): boolean {
    return !this.insideRow || !this.#wholeRows;
  }

  /** Size of the message so far. */
  get messageBytes(): number {
    return this.#partsBytes + this.#used;
  }

  /** True while a row has begun and is not yet committed. */
  get insideRow(): boolean {
    return this.#row !== undefined;
  }

  /**
   * True when the message is the first buffer, which the next writer reuses: the caller of `take` copies it
   * synchronously.
   */
  get isShort(): boolean {
    return this.#parts.length === 0 && this.#bytes.length === FIRST_BYTES;
  }

  /**
   * The message so far, in one buffer or several, no longer the writer's (but see `isShort`); undefined where there is
   * nothing. The memory of one buffer is reused once a connection has sent it.
   */
  take(): Buffer | readonly Buffer[] | undefined {
    if (this.messageBytes === 0) return undefined;
    if (this.isShort) firstBuffers.give(this.#bytes);
    const last = viewOf(this.#bytes, 0, this.#used);
    const isOnePart = this.#parts.length === 0;
    if (isOnePart && this.#bytes.length === NEXT_BYTES) lendMessage(last, this.#bytes);
    const message = isOnePart ? last : [...this.#parts, last];
    this.#parts = [];
    this.#partsBytes = 0;
    this.#bytes = EMPTY_BYTES;
    this.#used = 0;
    return message;
  }

  /** Sets the fragment to write; the one before must be done. */
  begin(fragment: RowFragment): void {
    assert(
      this.#row === undefined || this.#row === fragment.row,
      'a row of a read begins when the one before it has ended',
    );
    assert(this.#valueAt === 0, 'a fragment begins when the values of the one before it are written');
    this.#fragment = fragment;
    this.#nextCell = 0;
    const held = this.#held;
    if (held === undefined || (fragment.cells.length === 0 && !fragment.last)) return;
    this.#held = undefined;
    this.#writeCell(held, fragment.last && fragment.cells.length === 0);
  }

  /**
   * Writes until the message is full, the fragment is done or STRETCH_CELLS cells are written. True when the fragment
   * is done.
   */
  advance(): boolean {
    const { row, cells, last } = this.#fragment;
    const end = cells.length;
    const stretchEnd = Math.min(this.#nextCell + STRETCH_CELLS, end);
    while (!this.full) {
      if (this.#valueAt > 0) {
        this.#writePiece();
        continue;
      }
      if (this.#nextCell === stretchEnd) break;
      const cell = cells[this.#nextCell++]!;
      this.#row = row;
      this.cells++;
      if (last || this.#nextCell < end) this.#writeCell(cell, this.#nextCell === end);
      else this.#held = cell;
    }
    return this.#nextCell === end && this.#valueAt === 0;
  }

  #writeCell(cell: Cell, endsRow: boolean): void {
    const { value } = cell;
    if (value.length <= PIECE_BYTES || this.#wholeRows) return this.#writeChunk(cell, value, 0, endsRow);
    this.#value = value;
    this.#valueAt = PIECE_BYTES;
    this.#valueEndsRow = endsRow;
    this.#writeChunk(cell, value.subarray(0, PIECE_BYTES), value.length, false);
  }

  #writePiece(): void {
    const value = this.#value;
    const from = this.#valueAt;
    const piece = value.subarray(from, from + PIECE_BYTES);
    if (from + piece.length < value.length) {
      this.#valueAt += piece.length;
      return this.#writeChunk(undefined, piece, value.length, false);
    }
    this.#value = EMPTY_BYTES;
    this.#valueAt = 0;
    this.#writeChunk(undefined, piece, 0, this.#valueEndsRow);
  }

  /**
   * Writes a chunk: the first one of `cell`, or, if that is undefined, a further piece of the value. `valueSize`: the
   * size of the whole value if more pieces follow, else 0.
   */
  #writeChunk(cell: Cell | undefined, value: Uint8Array, valueSize: number, endsRow: boolean): void {
    const newFamily = cell !== undefined && cell.family !== this.#family;
    const newColumn = newFamily || (cell !== undefined && cell.qualifier !== this.#qualifier);
    const needsRow =
      this.#family === undefined || (this.messageBytes === 0 && (cell !== undefined || this.#keyInsideValues));
    const row = needsRow ? this.#row : undefined;
    const family = newFamily ? cell.family : undefined;
    const qualifier = newColumn ? cell!.qualifier : undefined;
    const timestamp = cell === undefined ? 0 : cell.timestamp;
    const labels = cell?.labels;
    const familyBytes = family === undefined ? 0 : lengthDelimited(family.length);
    const qualifierBytes = qualifier === undefined || qualifier === '' ? 0 : lengthDelimited(qualifier.length);
    let size = endsRow ? 2 : 0;
    if (row !== undefined) size += lengthDelimited(row.length);
    if (family !== undefined) size += lengthDelimited(familyBytes);
    if (qualifier !== undefined) size += lengthDelimited(qualifierBytes);
    if (timestamp !== 0) size += 1 + int64Length(timestamp);
    if (labels) for (const label of labels) size += lengthDelimited(label.length);
    if (value.length > 0) size += lengthDelimited(value.length);
    if (valueSize > 0) size += 1 + varintLength(valueSize);

    const isPart = value.length >= PART_BYTES;
    this.#ensureSpace(lengthDelimited(size) - (isPart ? value.length : 0));
    const bytes = this.#bytes;
    let at = writeHead(bytes, this.#used, 0x0a, size);
    const end = at + size - (isPart ? value.length : 0);
    if (row !== undefined) at = writeText(bytes, at, 0x0a, row);
    if (family !== undefined) {
      at = writeHead(bytes, at, 0x12, familyBytes);
      at = writeText(bytes, at, 0x0a, family);
    }
    if (qualifier !== undefined) {
      at = writeHead(bytes, at, 0x1a, qualifierBytes);
      if (qualifier !== '') at = writeText(bytes, at, 0x0a, qualifier);
    }
    if (timestamp !== 0) at = writeInt64(bytes, at, 0x20, timestamp);
    if (labels) for (const label of labels) at = writeText(bytes, at, 0x2a, label);
    let cut = 0;
    if (isPart) cut = at = writeHead(bytes, at, 0x32, value.length);
    else if (value.length > 0) at = writeBytes(bytes, at, 0x32, value);
    if (valueSize > 0) at = writeHead(bytes, at, 0x38, valueSize);
    if (endsRow) at = writeHead(bytes, at, 0x48, 1);
    this.#used = at;
    assert(at === end, 'a cell chunk has the size that was computed for it');
    if (isPart) this.#insert(value, cut);
    if (endsRow) this.#endRow();
    else if (cell !== undefined) {
      this.#family = cell.family;
      this.#qualifier = cell.qualifier;
    }
  }

  #endRow(): void {
    assert(this.#held === undefined, 'the last cell of a row ends it');
    this.#row = undefined;
    this.#family = undefined;
    this.rows++;
  }

  /** Puts the value into the message at `at`, before what was already written after that position. */
  #insert(value: Uint8Array, at: number): void {
    this.#parts.push(this.#bytes.subarray(0, at), asBuffer(value));
    this.#partsBytes += at + value.length;
    this.#bytes = this.#bytes.subarray(at);
    this.#used -= at;
  }

  #ensureSpace(more: number): void {
    if (this.#used + more <= this.#bytes.length) return;
    if (this.#used > 0) this.#parts.push(this.#bytes.subarray(0, this.#used));
    this.#partsBytes += this.#used;
    const bytes = Math.max(more, this.#nextBytes);
    if (bytes === NEXT_BYTES) this.#bytes = takeMessageBuffer();
    else this.#bytes = (bytes === FIRST_BYTES ? firstBuffers.take() : undefined) ?? Buffer.allocUnsafeSlow(bytes);
    this.#nextBytes = NEXT_BYTES;
    this.#used = 0;
  }
}
