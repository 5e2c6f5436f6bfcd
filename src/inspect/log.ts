/**
 * Reads a commit log: its appends in order, each with its records. Reading is checking: damage or a gap ends it with a
 * CorruptionError, as it would end a recovery. Formats: docs/formats/commit-log.md, and below it that of the file
 * system's logs.
 */
import type { ByteString, Int64 } from '../base/index.ts';
import { type LogRecord, readAppends } from '../commitlog/index.ts';
import type { FileSystem, LogAppend, LogPosition } from '../env/index.ts';
import { mergedState, type Mutation, type RowRange } from '../model/index.ts';

/** The number of mutations of each kind. */
export type MutationCounts = Readonly<Partial<Record<Mutation['kind'], number>>>;

export interface InspectedRecord {
  readonly tableId: string;
  readonly epoch: number;
  readonly sequence: number;
  readonly commitMicros: Int64;
  readonly origin: LogRecord['origin'];
  readonly change:
    | {
        readonly kind: 'rows';
        readonly rows: number;
        readonly firstRow: ByteString | undefined;
        readonly lastRow: ByteString | undefined;
        readonly mutations: MutationCounts;
        /** Bytes of all values, inputs and states. */
        readonly valueBytes: number;
      }
    | { readonly kind: 'dropRows'; readonly range: RowRange };
  /** The whole record. */
  readonly record: LogRecord;
}

export interface InspectedAppend {
  readonly position: LogPosition;
  readonly sizeBytes: number;
  readonly records: readonly InspectedRecord[];
}

export interface LogPart {
  /** From the append at this position on. Default: all appends. */
  readonly from?: LogPosition | undefined;
  /** Up to, without, the append at this position. Default: to the end. */
  readonly before?: LogPosition | undefined;
}

/**
 * The appends of the log or of a part of it. One append is held in memory at a time. A log that does not exist has
 * none.
 */
export async function* inspectLog(
  fileSystem: Pick<FileSystem, 'readLog'>,
  path: string,
  { from, before }: LogPart = {},
): AsyncIterable<InspectedAppend> {
  let sizeBytes = 0;
  // appends come one by one, so the error names the one that was read last
  const watched = {
    async *readLog(log: string, start?: LogPosition): AsyncIterable<LogAppend> {
      for await (const append of fileSystem.readLog(log, start)) {
        if (before !== undefined && append.position >= before) return;
        sizeBytes = append.bytes.length;
        yield append;
      }
    },
  };
  for await (const { position, records } of readAppends(watched, path, from))
    yield { position, sizeBytes, records: records.map(summaryOf) };
}

function summaryOf(record: LogRecord): InspectedRecord {
  const { tableId, epoch, sequence, commitMicros, origin, body } = record;
  const head = { tableId, epoch, sequence, commitMicros, origin, record };
  if (body.kind === 'dropRows') return { ...head, change: body };
  const counts: Partial<Record<Mutation['kind'], number>> = {};
  let valueBytes = 0;
  for (const { mutations } of body.rows) {
    for (const mutation of mutations) {
      counts[mutation.kind] = (counts[mutation.kind] ?? 0) + 1;
      valueBytes += valueBytesOf(mutation);
    }
  }
  const { rows } = body;
  return {
    ...head,
    change: {
      kind: 'rows',
      rows: rows.length,
      firstRow: rows[0]?.row,
      lastRow: rows.at(-1)?.row,
      mutations: counts,
      valueBytes,
    },
  };
}

function valueBytesOf(mutation: Mutation): number {
  switch (mutation.kind) {
    case 'setCell':
      return mutation.value.length;
    case 'addToCell':
      return mutation.input instanceof Uint8Array ? mutation.input.length : 8;
    case 'mergeToCell':
      return mergedState(mutation).length;
    default:
      return 0;
  }
}
