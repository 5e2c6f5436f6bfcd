/**
 * commitlog: redo records, their encoding, the server's commit log with group commit, and the reading of logs for recovery.
 */
export { isAfter, type LogRecord, Origin, type RecordBody, type RedoPoint, type RowChange } from './record.ts';
