/**
 * Reads a commit log's records, for recovery. Format: docs/formats/commit-log.md.
 *
 * Invariant: the appends are yielded as they were written and in order: each has the position of the one before it.
 * Appends that are missing, at the beginning or, if the log is trimmed while it is read, after those that were read,
 * must lie below a low-water mark in the log.
 */
import { assert } from '../base/index.ts';
import type { FileSystem, LogAppend, LogMemo, LogPosition } from '../env/index.ts';
import { AppendDecoder } from './append-decoder.ts';
import { AppendOrder, type ReadingBegin } from './append-order.ts';
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

/** Like `readAppends`, with records that are decoded on request. They keep the append's bytes. `memo`: as `readLog`. */
export async function* readEncodedAppends(
  fileSystem: Pick<FileSystem, 'readLog'>,
  path: string,
  from?: LogPosition,
  memo?: LogMemo,
): AsyncIterable<RecordsOfAppend<EncodedRecord>> {
  yield* readFrom(fileSystem, path, from, from === undefined ? 'log' : 'part', memo);
}

/** Like `readEncodedAppends`, without those at the beginning that no replay needs, though they are kept. */
export async function* readReplayedAppends(
  fileSystem: Pick<FileSystem, 'readLog' | 'logTail'>,
  path: string,
): AsyncIterable<RecordsOfAppend<EncodedRecord>> {
  const from = await findReplayStart(fileSystem, path);
  yield* from === 0 ? readEncodedAppends(fileSystem, path) : readFrom(fileSystem, path, from, { replayFrom: from });
}

/**
 * Where a replay of the log begins; 0: at its beginning. Of a log that is written to the place may be later when it is
 * read again.
 */
export async function findReplayStart(
  fileSystem: Pick<FileSystem, 'readLog' | 'logTail'>,
  path: string,
): Promise<LogPosition> {
  const tail = (await fileSystem.logTail?.(path)) ?? 0;
  let from = 0;
  // a log that is short is not read twice
  if (tail > 0)
    for await (const append of fileSystem.readLog(path, tail))
      from = Math.max(from, new AppendDecoder(path, append).header.replayFrom ?? 0);
  return from;
}

async function* readFrom(
  fileSystem: Pick<FileSystem, 'readLog'>,
  path: string,
  from: LogPosition | undefined,
  begin: ReadingBegin,
  memo?: LogMemo,
): AsyncIterable<RecordsOfAppend<EncodedRecord>> {
  const order = new AppendOrder(path, begin);
  for await (const append of fileSystem.readLog(path, from, memo)) {
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
