/**
 * commitlog: redo records, their encoding, the server's commit log with group commit, and for recovery the reading and
 * the sorting of logs.
 */
export { encodeRows } from './append-encoder.ts';
export {
  findReplayStart,
  readAppends,
  readEncodedAppends,
  readReplayedAppends,
  recordsOf,
  type RecordsOfAppend,
} from './log-reader.ts';
export {
  type EncodedRecord,
  isAfter,
  type LogRecord,
  type NewRecord,
  Origin,
  type RecordBody,
  type RedoPoint,
  type RedoRecord,
  type RowSpan,
} from './record.ts';
export { sortLog, type SortOptions } from './sort-log.ts';
export {
  listSorted,
  logOfSorted,
  type LogPart,
  SORTED_DIRECTORY,
  type SortedIndex,
  type SortedPart,
  sortedPath,
} from './sorted-format.ts';
export { readSortedIndex, SortedLog } from './sorted-log.ts';
export { type Appended, type LogAppend, ServerLog, type ServerLogOptions } from './server-log.ts';
