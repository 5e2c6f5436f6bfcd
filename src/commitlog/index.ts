/**
 * commitlog: redo records, their encoding, the server's commit log with group commit, and the reading of logs for
 * recovery.
 */
export { encodeRows } from './append-encoder.ts';
export { readAppends, readEncodedAppends, recordsOf, type RecordsOfAppend } from './log-reader.ts';
export {
  type EncodedRecord,
  isAfter,
  type LogRecord,
  type NewRecord,
  Origin,
  type RecordBody,
  type RedoPoint,
  type RedoRecord,
} from './record.ts';
export { type Appended, type LogAppend, ServerLog, type ServerLogOptions } from './server-log.ts';
