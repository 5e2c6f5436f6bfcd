/**
 * base: the lowest room: byte strings and their order, 64-bit integers, varints, checksums, checks of options, errors
 * and assertions, and work in parallel. No I/O and no clock; imports no other room.
 */
export { offAbort, onAbort } from './abort-listeners.ts';
export {
  isText,
  asBuffer,
  type ByteString,
  compareBytes,
  copyBytes,
  fromBytes,
  isSuccessor,
  prefixEnd,
  quote,
  successor,
  toBytes,
  toText,
  utf8,
  viewOf,
} from './bytes.ts';
export { crc32c } from './checksum.ts';
export {
  AssertionError,
  assert,
  BigtableError,
  Code,
  type CodeName,
  CorruptionError,
  codeName,
  type ErrorOptions,
  invalidArgument,
  notFound,
  toBigtableError,
  unavailable,
} from './errors.ts';
export { inParallel } from './in-parallel.ts';
export { Places } from './places.ts';
export {
  addWrapping,
  INT64_MAX,
  INT64_MIN,
  type Int64,
  int64,
  int64Bytes,
  isInt64,
  readInt64BE,
  toBigInt,
  writeInt64BE,
} from './int64.ts';
export { checksInvariants } from './invariants.ts';
export { jsonBase64, jsonField, jsonKey, utf8Text } from './json-bytes.ts';
export { NumberTable } from './number-table.ts';
export {
  checkOptions,
  describeValue,
  isObjectOfNames,
  type OptionKind,
  type OptionTable,
  plainText,
  unreadable,
} from './options.ts';
export { derived, once, LendingPool, Pool, recurringText } from './pools.ts';
export { ownOf } from './record.ts';
export { didYouMean } from './similar.ts';
export { VarintReader, varintLength, writeVarint } from './varint.ts';
export { VERSION } from './version.ts';
