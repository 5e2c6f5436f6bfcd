/**
 * Reads a commit log's records, for recovery. Format: docs/formats/commit-log.md.
 *
 * Invariant: what is yielded is what was appended, in order: each append tells where the one before it lies. What is missing, at the beginning or,
 * in a log that is trimmed while it is read, behind what was read, must lie below the low-water mark that the log itself tells.
 */
import { CorruptionError } from '../base/index.ts';
import type { FileSystem, LogPosition } from '../env/index.ts';
import { AppendDecoder } from './append-decoder.ts';
import type { EncodedRecord, LogRecord } from './record.ts';

export interface PositionedRecord {
  /** Position of the append that holds the record; several records may share it. */
  readonly position: LogPosition;
  readonly record: LogRecord;
}

export interface RecordsOfAppend<R = LogRecord> {
  readonly position: LogPosition;
  readonly records: readonly R[];
}

/** The records of `readAppends`, one by one. */
export async function* readRecords(
  fileSystem: Pick<FileSystem, 'readLog'>,
  path: string,
  from?: LogPosition,
): AsyncIterable<PositionedRecord> {
  for await (const { position, records } of readAppends(fileSystem, path, from))
    for (const record of records) yield { position, record };
}

/**
 * The appends at `from` and above (all, by default), in log order, each with its records. The consumer paces itself; an append is read at
 * a time. DATA_LOSS (CorruptionError) where anything is damaged or missing, FAILED_PRECONDITION where a newer Edubba wrote it.
 */
export async function* readAppends(
  fileSystem: Pick<FileSystem, 'readLog'>,
  path: string,
  from?: LogPosition,
): AsyncIterable<RecordsOfAppend> {
  for await (const { position, records } of readEncodedAppends(fileSystem, path, from))
    yield { position, records: records.map((record) => record.decode()) };
}

/** The same, with records that are decoded when their owner wants them. They keep the append's bytes. */
export async function* readEncodedAppends(
  fileSystem: Pick<FileSystem, 'readLog'>,
  path: string,
  from?: LogPosition,
): AsyncIterable<RecordsOfAppend<EncodedRecord>> {
  /** Behind the last append that is missing; 0 where none is. What is missing before `from` is nobody's matter. */
  let missingBefore = 0;
  let previous: number | undefined = from === undefined ? 0 : undefined;
  let lowWater = 0;
  let nextSequence = 0;
  for await (const append of fileSystem.readLog(path, from)) {
    const { position } = append;
    const decoder = new AppendDecoder(path, append);
    const { header } = decoder;
    if (previous !== undefined && header.previous !== previous) {
      if (header.previous < previous || (previous > 0 && !append.afterTrim))
        throw new CorruptionError(path, position, missing(header.previous));
      // some later append tells that this was given up
      missingBefore = header.previous;
    }
    if (header.firstSequence < nextSequence)
      throw new CorruptionError(path, position, `record ${header.firstSequence} follows record ${nextSequence - 1}`);
    lowWater = Math.max(lowWater, header.lowWater);
    previous = position + 1;
    nextSequence = header.firstSequence + header.count;
    const records: EncodedRecord[] = [];
    for (let record = decoder.nextEncoded(); record; record = decoder.nextEncoded()) records.push(record);
    yield { position, records };
  }
  if (missingBefore > lowWater)
    throw new CorruptionError(
      path,
      missingBefore,
      `${missing(missingBefore)}; only what lies below ${lowWater} was given up`,
    );
}

function missing(previous: number): string {
  return previous === 0 ? 'the log begins anew' : `the append at ${previous - 1} is missing before it`;
}
