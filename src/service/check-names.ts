/**
 * The form of names, keys and times, which any request may carry, for any table. Each check throws INVALID_ARGUMENT
 * with the thing, its value and the limit. Patterns and sizes are Cloud Bigtable's (model's limits.ts).
 */
import { type BigtableError, type ByteString, type Int64, invalidArgument, isInt64, quote } from '../base/index.ts';
import type { Limits, RowRange } from '../model/index.ts';

const TABLE_NAME = /^projects\/[^/]+\/instances\/[^/]+\/tables\/[^/]+$/;
/** The same with a valid table id. */
const VALID_TABLE_NAME = /^projects\/[^/]+\/instances\/[^/]+\/tables\/[-_.a-zA-Z0-9]+$/;
const FAMILY_NAME = /^[-_.a-zA-Z0-9]+$/;

/** projects/P/instances/I/tables/T with a table id of 1..tableIdChars characters [-_.a-zA-Z0-9]. */
export function checkTableName(name: string, limits: Limits): void {
  const idStart = name.lastIndexOf('/') + 1;
  if (VALID_TABLE_NAME.test(name) && name.length - idStart <= limits.tableIdChars) return;
  if (!TABLE_NAME.test(name))
    throw invalidArgument(`table name ${quote(name, 200)} must be projects/PROJECT/instances/INSTANCE/tables/TABLE`);
  const id = quote(name.slice(idStart));
  throw invalidArgument(`table id ${id} must be 1 to ${limits.tableIdChars} characters of [-_.a-zA-Z0-9]`);
}

/** 1..rowKeyBytes bytes. */
export function checkRowKey(row: ByteString, limits: Limits, what = 'row key'): void {
  if (row.length === 0) throw invalidArgument(`${what} must not be empty`);
  if (row.length > limits.rowKeyBytes) throw tooLong(`${what} ${quote(row, 32)}`, row.length, limits.rowKeyBytes);
}

/** 1..familyNameChars characters of [-_.a-zA-Z0-9]. */
export function checkFamilyName(family: string, limits: Limits): void {
  if (!FAMILY_NAME.test(family) || family.length > limits.familyNameChars) {
    throw invalidArgument(
      `column family ${quote(family)} must be 1 to ${limits.familyNameChars} characters of [-_.a-zA-Z0-9]`,
    );
  }
}

/** 0..qualifierBytes bytes: the empty qualifier is one. */
export function checkQualifier(qualifier: ByteString, limits: Limits): void {
  if (qualifier.length > limits.qualifierBytes)
    throw tooLong(`qualifier ${quote(qualifier, 32)}`, qualifier.length, limits.qualifierBytes);
}

export function checkValue(value: Uint8Array, limits: Limits, what = 'value'): void {
  checkValueLength(value.length, limits, what);
}

export function checkValueLength(length: number, limits: Limits, what = 'value'): void {
  if (length > limits.valueBytes) throw tooLong(what, length, limits.valueBytes);
}

/** Within int64, and not below 0 if the limits say so. */
export function checkTimestamp(timestamp: Int64, limits: Limits): void {
  if (!isInt64(timestamp))
    throw invalidArgument(`timestamp ${String(timestamp)} must be a whole number of microseconds within int64`);
  if (limits.nonNegativeTimestamps && timestamp < 0)
    throw invalidArgument(`timestamp ${timestamp} must not be below 0`);
}

/** Bounds no longer than row keys, the start not above the end. Equal bounds make an empty range, which is allowed. */
export function checkRowRange(range: RowRange, limits: Limits): void {
  checkBound(range.start, limits);
  if (range.end === undefined) return;
  checkBound(range.end, limits);
  // (k, k] and (k, k) are empty too: their start is k NUL
  if (range.start > range.end && range.start !== `${range.end}\0`) {
    throw invalidArgument(`row range starts at ${quote(range.start)}, above its end ${quote(range.end)}`);
  }
}

/** A bound may be a key's successor, one byte longer. */
function checkBound(bound: ByteString, limits: Limits): void {
  if (bound.length > limits.rowKeyBytes + 1)
    throw tooLong(`bound of a row range ${quote(bound, 32)}`, bound.length, limits.rowKeyBytes);
}

function tooLong(what: string, size: number, limit: number): BigtableError {
  return invalidArgument(`${what} has ${size} bytes; the limit is ${limit}`);
}
