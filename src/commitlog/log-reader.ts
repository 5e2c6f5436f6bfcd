/**
 * Reads a commit log's records, for recovery. Format: docs/formats/commit-log.md.
 *
 * Invariant: the appends are yielded as they were written and in order: each has the position of the one before it.
 * Appends that are missing, at the beginning or, if the log is trimmed while it is read, after those that were read,
 * must lie below a low-water mark in the log.
 */
import { assert } from '../base/index.ts';
import type { FileSystem, LogAppend, LogPosition } from '../env/index.ts';
import { AppendDecoder } from './append-decoder.ts';
import { AppendOrder } from './append-order.ts';
import type { EncodedRecord, LogRecord } from './record.ts';

export interface PositionedRecord {
  /** Position of the append that holds the record; several records may share it. */
  readonly position: LogPosition;
  readonly record: LogRecord;
}

export interface RecordsOfAppend<R = LogRecord> {
  readonly position: LogPosition;
  /** Position of the append before it, plus 1; 0 in the first of the log. */
  readonly previous: LogPosition;
  readonly records: readonly R[];
}

/** Yields the records of `readAppends` one by one. */
export async function* readRecords(
  fileSystem: Pick<FileSystem, 'readLog'>,
  path: string,
  from?: LogPosition,
): AsyncIterable<PositionedRecord> {
  for await (const { position, records } of readAppends(fileSystem, path, from))
    for (const record of records) yield { position, record };
}

/**
 * Yields the appends at `from` and above (default: all) in log order, each with its records, one append at a time. The
 * consumer yields to the event loop. DATA_LOSS (CorruptionError) if anything is damaged or missing, FAILED_PRECONDITION
 * if a newer Edubba wrote it.
 */
export async function* readAppends(
  fileSystem: Pick<FileSystem, 'readLog'>,
  path: string,
  from?: LogPosition,
): AsyncIterable<RecordsOfAppend> {
  for await (const { records, ...append } of readEncodedAppends(fileSystem, path, from))
    yield { ...append, records: records.map((record) => record.decode()) };
}

/** Like `readAppends`, with records that are decoded on request. They keep the append's bytes. */
export async function* readEncodedAppends(
  fileSystem: Pick<FileSystem, 'readLog'>,
  path: string,
  from?: LogPosition,
): AsyncIterable<RecordsOfAppend<EncodedRecord>> {
  const order = new AppendOrder(path, from === undefined);
  for await (const append of fileSystem.readLog(path, from)) {
    const decoder = new AppendDecoder(path, append);
    order.next(append, decoder.header);
    yield { position: append.position, previous: decoder.header.previous, records: allOf(decoder) };
  }
  order.finish();
}

/** The records of one append, whatever is before it. */
export function recordsOf(path: string, append: LogAppend): EncodedRecord[] {
  return allOf(new AppendDecoder(path, append));
}

export function allOf(decoder: AppendDecoder): EncodedRecord[] {
  const records: EncodedRecord[] = [];
  for (let record = decoder.nextEncoded(); record; record = decoder.nextEncoded()) records.push(record);
  assert(records.length === decoder.header.count, 'an append yields the records that its header counts');
  return records;
}
