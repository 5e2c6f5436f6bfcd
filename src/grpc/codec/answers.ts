/**
 * Encodes by hand the usual answers of writes: MutateRowsResponse, CheckAndMutateRowResponse, and
 * ReadModifyWriteRowResponse of one column (protobuf-es encodes that of several columns); and the ReadRowsResponse that
 * reports how far a scan has come.
 */
import { type BigtableError, type ByteString, varintLength } from '../../base/index.ts';
import type { Cell } from '../../model/index.ts';
import { statusBytes } from '../rpc/status.ts';
import { int64Length, lengthDelimited, writeBytes, writeHead, writeInt64, writeText } from '../bytes/wire-writer.ts';

const EMPTY_BYTES = Buffer.alloc(0);
const MATCHED = Buffer.of(0x08, 1);

/** CheckAndMutateRowResponse. */
export function checkAndMutateAnswer(predicateMatched: boolean): Buffer {
  return predicateMatched ? MATCHED : EMPTY_BYTES;
}

/** MutateRowsResponse of the entries [from, to), by their outcomes; undefined = done. */
export function mutateRowsAnswer(outcomes: readonly (BigtableError | undefined)[], from: number, to: number): Buffer {
  const statuses: Uint8Array[] = [];
  let size = 0;
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

/** ReadModifyWriteRowResponse of one cell without labels; undefined where there is anything else. */
export function oneCellAnswer(row: ByteString, cells: readonly Cell[]): Buffer | undefined {
  const cell = cells[0];
  if (cell === undefined || cells.length > 1 || cell.labels !== undefined) return undefined;
  const { family, qualifier, timestamp, value } = cell;
  const cellSize =
    (timestamp === 0 ? 0 : 1 + int64Length(timestamp)) + (value.length > 0 ? lengthDelimited(value.length) : 0);
  const columnSize = (qualifier === '' ? 0 : lengthDelimited(qualifier.length)) + lengthDelimited(cellSize);
  const familySize = (family === '' ? 0 : lengthDelimited(family.length)) + lengthDelimited(columnSize);
  const rowSize = (row === '' ? 0 : lengthDelimited(row.length)) + lengthDelimited(familySize);
  const bytes = Buffer.allocUnsafe(lengthDelimited(rowSize));
  let at = writeHead(bytes, 0, 0x0a, rowSize);
  if (row !== '') at = writeText(bytes, at, 0x0a, row);
  at = writeHead(bytes, at, 0x12, familySize);
  if (family !== '') at = writeText(bytes, at, 0x0a, family);
  at = writeHead(bytes, at, 0x12, columnSize);
  if (qualifier !== '') at = writeText(bytes, at, 0x0a, qualifier);
  at = writeHead(bytes, at, 0x12, cellSize);
  if (timestamp !== 0) at = writeInt64(bytes, at, 0x08, timestamp);
  if (value.length > 0) writeBytes(bytes, at, 0x12, value);
  return bytes;
}
