/**
 * Encodes by hand the answers of writes: MutateRowsResponse, CheckAndMutateRowResponse and ReadModifyWriteRowResponse;
 * and the ReadRowsResponse that reports how far a scan has come.
 *
 * Invariant: a large value becomes a part of its own and is not copied.
 */
import { asBuffer, assert, type BigtableError, type ByteString, varintLength, viewOf } from '../../base/index.ts';
import type { Cell } from '../../model/index.ts';
import { statusBytes } from '../rpc/status.ts';
import { int64Length, lengthDelimited } from '../../protobuf/index.ts';
import { writeBytes, writeHead, writeInt64, writeText } from '../bytes/wire-writer.ts';

/** Values from this size on become a part of their own: the message then needs several frames anyway. */
const PART_BYTES = 64 * 1024;

const EMPTY_BYTES = Buffer.alloc(0);
const MATCHED = Buffer.of(0x08, 1);

/** CheckAndMutateRowResponse. */
export function checkAndMutateAnswer(predicateMatched: boolean): Buffer {
  return predicateMatched ? MATCHED : EMPTY_BYTES;
}

/**
 * MutateRowsResponse of the entries [from, to), by their outcomes; undefined = done. `rateLimit`: the bytes of that
 * field, if the answer has it.
 */
export function mutateRowsAnswer(
  outcomes: readonly (BigtableError | undefined)[],
  from: number,
  to: number,
  rateLimit: Uint8Array = EMPTY_BYTES,
): Buffer {
  const statuses: Uint8Array[] = [];
  let size = rateLimit.length;
  for (let i = from; i < to; i++) {
    const error = outcomes[i];
    const status = error === undefined ? EMPTY_BYTES : statusBytes(error);
    statuses.push(status);
    size += lengthDelimited(entrySize(i, status));
  }
  const bytes = Buffer.allocUnsafe(size);
  let at = 0;
  for (let i = from; i < to; i++) {
    const status = statuses[i - from]!;
    at = writeHead(bytes, at, 0x0a, entrySize(i, status));
    if (i > 0) at = writeHead(bytes, at, 0x08, i);
    at = writeBytes(bytes, at, 0x12, status);
  }
  bytes.set(rateLimit, at);
  return bytes;
}

function entrySize(index: number, status: Uint8Array): number {
  return (index > 0 ? 1 + varintLength(index) : 0) + lengthDelimited(status.length);
}

/** ReadRowsResponse without rows: the scan has passed all rows up to this one. */
export function scannedAnswer(lastScannedRow: ByteString): Buffer {
  const bytes = Buffer.allocUnsafe(lengthDelimited(lastScannedRow.length));
  writeText(bytes, 0, 0x12, lastScannedRow);
  return bytes;
}

/**
 * ReadModifyWriteRowResponse, in one buffer, or in several where values are large. `cells`: one for each column, in the
 * order of columns.
 */
export function rowAnswer(row: ByteString, cells: readonly Cell[]): Buffer | readonly Buffer[] {
  let rowSize = row === '' ? 0 : lengthDelimited(row.length);
  let partBytes = 0;
  for (let i = 0; i < cells.length; i++) {
    if (beginsFamily(cells, i)) rowSize += lengthDelimited(familySize(cells, i));
    const { length } = cells[i]!.value;
    if (length >= PART_BYTES) partBytes += length;
  }
  const bytes = Buffer.allocUnsafe(lengthDelimited(rowSize) - partBytes);
  const parts: Buffer[] = [];
  let cut = 0;
  let at = writeHead(bytes, 0, 0x0a, rowSize);
  if (row !== '') at = writeText(bytes, at, 0x0a, row);
  for (let i = 0; i < cells.length; i++) {
    const cell = cells[i]!;
    assert(cell.labels === undefined, 'cells that are written have no labels');
    const { family, qualifier, timestamp, value } = cell;
    if (beginsFamily(cells, i)) {
      at = writeHead(bytes, at, 0x12, familySize(cells, i));
      if (family !== '') at = writeText(bytes, at, 0x0a, family);
    }
    at = writeHead(bytes, at, 0x12, columnSize(cell));
    if (qualifier !== '') at = writeText(bytes, at, 0x0a, qualifier);
    at = writeHead(bytes, at, 0x12, cellSize(cell));
    if (timestamp !== 0) at = writeInt64(bytes, at, 0x08, timestamp);
    if (value.length >= PART_BYTES) {
      at = writeHead(bytes, at, 0x12, value.length);
      parts.push(viewOf(bytes, cut, at), asBuffer(value));
      cut = at;
    } else if (value.length > 0) {
      at = writeBytes(bytes, at, 0x12, value);
    }
  }
  assert(at === bytes.length, 'an answer has the size that was computed for it');
  if (parts.length === 0) return bytes;
  if (cut < at) parts.push(viewOf(bytes, cut, at));
  return parts;
}

function beginsFamily(cells: readonly Cell[], i: number): boolean {
  return i === 0 || cells[i]!.family !== cells[i - 1]!.family;
}

/** Size of the family that begins with the cell at `from`. */
function familySize(cells: readonly Cell[], from: number): number {
  const { family } = cells[from]!;
  let size = family === '' ? 0 : lengthDelimited(family.length);
  for (let i = from; i < cells.length && cells[i]!.family === family; i++)
    size += lengthDelimited(columnSize(cells[i]!));
  return size;
}

function columnSize(cell: Cell): number {
  const { length } = cell.qualifier;
  return (length === 0 ? 0 : lengthDelimited(length)) + lengthDelimited(cellSize(cell));
}

function cellSize({ timestamp, value }: Cell): number {
  return (timestamp === 0 ? 0 : 1 + int64Length(timestamp)) + (value.length > 0 ? lengthDelimited(value.length) : 0);
}
