/**
 * What the steps of a large cluster cost, milliseconds. CPU time is that of one end of a call: half of what
 * sim/scale/measure.ts prints for both ends. docs/decisions/0069-scale-run.md has the table, and says what is assumed
 * in place of measured.
 */

/** A call of the lock service, until its answer. */
export const LOCK_SERVICE_MS = 2.6;
/** An append to a log until it is durable, and the write of a small file. */
export const APPEND_MS = 5;
export const FILE_WRITE_MS = 10;
/** The files of a tablet are opened: two reads of storage, one after the other. */
export const OPEN_FILES_MS = 10;
/** The log of a dead server, 64 MiB, is read from storage, or written to it, at 200 MB/s. */
export const READ_LOG_MS = 320;
/** A list of files, or a read of a few. */
export const FILE_READ_MS = 5;

/** CPU time. */
export const CPU = {
  /** A call: encoded, sent, received, decoded. */
  callMs: 0.02,
  /** A tablet in a status. */
  statusTabletMs: 0.001,
  /** A row of METADATA in a scan. */
  scanRowMs: 0.018,
  /** A read of one row. */
  readRowMs: 0.155,
  /** A call of commits, and each row in it. */
  commitCallMs: 0.07,
  commitRowMs: 0.052,
  /** A tablet that is loaded, without the read of its row; all of it is the server's. */
  loadMs: 0.25,
  /** A tablet that is released, with its flush; all of it is the server's. */
  unloadMs: 0.61,
  /** A memtable that is written to a file; all of it is the server's. */
  flushMs: 1,
  /** A log of 64 MiB that is decoded. */
  replayLogMs: 297,
  /** The same, sorted and written. */
  sortLogMs: 1700,
  /** A tablet in a message that has it loaded or released. */
  tabletRefMs: 0.002,
  /** A plan of many moves, at the master. */
  planMs: 350,
} as const;
