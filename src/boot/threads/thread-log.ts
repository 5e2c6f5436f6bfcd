/**
 * Log lines on their way from the thread of a tablet server to the main thread, which writes them.
 *
 * Invariant: a bounded number of lines is on its way, however busy the main thread is: further ones are dropped and
 * counted, lines of the access log sooner than others.
 */
import type { LogFields, Logger, LogLevel, Metrics } from '../../env/index.ts';

/** Lines that the main thread has not taken yet; of the access log fewer. */
const MAX_LINES = 2000;
const MAX_ACCESS_LINES = 1000;

/** Indexes of the counts in the memory that both threads share. */
const ON_THEIR_WAY = 0;
const DROPPED = 1;

export type LogNotice =
  | { readonly kind: 'log'; readonly level: LogLevel; readonly message: string; readonly fields: LogFields }
  | { readonly kind: 'access'; readonly fields: LogFields };

/** Allocates the shared memory in which both sides count. */
export function logCounts(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
}

/** The thread's side: sends its lines to the main thread. */
export function threadLogger(counts: Int32Array, post: (notice: LogNotice) => void): Logger {
  const send = (notice: LogNotice, most: number): void => {
    if (Atomics.load(counts, ON_THEIR_WAY) >= most) {
      Atomics.add(counts, DROPPED, 1);
      return;
    }
    Atomics.add(counts, ON_THEIR_WAY, 1);
    post(notice);
  };
  const log =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}) =>
      send({ kind: 'log', level, message, fields }, MAX_LINES);
  return {
    debug: log('debug'),
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
    access: (fields) => send({ kind: 'access', fields }, MAX_ACCESS_LINES),
  };
}

/** The main thread's side: logs a line, and before it the number of lines that were dropped. */
export function takeLine(
  notice: LogNotice,
  counts: Int32Array,
  thread: number,
  { logger, metrics }: { readonly logger: Logger; readonly metrics: Metrics },
): void {
  Atomics.sub(counts, ON_THEIR_WAY, 1);
  const dropped = Atomics.exchange(counts, DROPPED, 0);
  if (dropped > 0) {
    metrics.add('logLines.dropped', dropped);
    logger.warn('log lines of a thread were dropped: they are made faster than they are taken', {
      count: dropped,
      thread,
    });
  }
  const fields = { ...notice.fields, thread };
  if (notice.kind === 'access') logger.access(fields);
  else logger[notice.level](notice.message, fields);
}
