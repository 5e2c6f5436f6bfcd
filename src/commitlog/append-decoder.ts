/**
 * Finds the records of one append and decodes them. Format: docs/formats/commit-log.md; errors: append-reader.ts.
 *
 * A record is found by its length and identified by table, epoch and sequence; its body is decoded on request. So
 * recovery skips records that are in SSTables already, and holds bytes instead of objects.
 */
import { assert } from '../base/index.ts';
import type { LogAppend } from '../env/index.ts';
import type { Mutations, RowRange } from '../model/index.ts';
import { APPEND_VERSION, AppendField, type AppendHeader, RecordField, RecordKind } from './append-format.ts';
import { AppendReader, INT64_BYTES } from './append-reader.ts';
import { BodyDecoder } from './body-decoder.ts';
import {
  type LogRecord,
  Origin,
  type RecordBody,
  type RecordOfAppend,
  type RedoRecord,
  type RowSpan,
} from './record.ts';

/** Length of a record's length. */
const LENGTH_BYTES = 4;
const ORIGINS: ReadonlySet<number> = new Set(Object.values(Origin));

/** One record of an append. */
class RecordInAppend implements RecordOfAppend {
  readonly tableId: string;
  readonly epoch: number;
  readonly sequence: number;
  readonly kind: number;
  /** Offset of its length. */
  readonly start: number;
  /** Offset after the epoch. */
  readonly at: number;
  readonly end: number;
  readonly #decoder: AppendDecoder;
  /** Row span, computed on first use: every tablet of the table asks during recovery, and most do not overlap. */
  #span: RowSpan | undefined;

  constructor(
    decoder: AppendDecoder,
    kind: number,
    tableId: string,
    epoch: number,
    sequence: number,
    start: number,
    at: number,
    end: number,
  ) {
    this.tableId = tableId;
    this.epoch = epoch;
    this.sequence = sequence;
    this.kind = kind;
    this.start = start;
    this.at = at;
    this.end = end;
    this.#decoder = decoder;
  }

  decode(): LogRecord {
    return this.#decoder.decode(this);
  }

  redo(): RedoRecord {
    return this.#decoder.redo(this);
  }

  encoded(): Uint8Array {
    return this.#decoder.encoded(this);
  }

  span(): RowSpan | undefined {
    if (this.kind !== RecordKind.rows) return undefined;
    const span = (this.#span ??= this.#decoder.spanOf(this));
    return span.first > span.last ? undefined : span;
  }

  touches(range: RowRange): boolean {
    if (this.kind !== RecordKind.rows) return this.#decoder.touches(this, range);
    // true for the tablet that wrote the record: its span is not needed then
    if (this.#span === undefined && this.#decoder.beginsIn(this, range)) return true;
    const { first, last } = (this.#span ??= this.#decoder.spanOf(this));
    if (first > last || last < range.start || (range.end !== undefined && first >= range.end)) return false;
    // every row has to be compared
    return this.#decoder.touches(this, range);
  }
}

export class AppendDecoder {
  readonly header: AppendHeader;
  readonly #reader: AppendReader;
  readonly #bodies: BodyDecoder;
  readonly #sequences: readonly number[] | undefined;
  #found = 0;
  /** Offset of the next record. */
  #next: number;
  /** The last table's id, and its bytes' offset and length: records of one table mostly follow one another. */
  #tableId = '';
  #tableIdAt = 0;
  #tableIdBytes = -1;

  /**
   * `path` is the log's, for messages. `sequences`: the records' numbers, where they do not follow one another as in a
   * log.
   */
  constructor(path: string, append: LogAppend, sequences?: readonly number[]) {
    this.#sequences = sequences;
    this.#reader = new AppendReader(path, append);
    this.#bodies = new BodyDecoder(this.#reader);
    this.header = this.#reader.checked(() => this.#header());
    this.#next = this.#reader.offset;
  }

  /** The next record; undefined after the last. Its values are views of the append: copy them to keep them. */
  next(): LogRecord | undefined {
    return this.nextEncoded()?.decode();
  }

  /** The next record, its body not decoded yet; undefined after the last. */
  nextEncoded(): RecordOfAppend | undefined {
    const reader = this.#reader;
    return reader.checked(() => {
      reader.offset = this.#next;
      if (this.#found < this.header.count) {
        const at = this.#found++;
        return this.#find(this.#sequences?.[at] ?? this.header.firstSequence + at);
      }
      if (this.#next !== reader.bytes.length)
        throw reader.corrupt(`${reader.bytes.length - this.#next} bytes follow the last record`);
      return undefined;
    });
  }

  /** Only for RecordInAppend, as all that follows. */
  decode(record: RecordInAppend): LogRecord {
    return this.#reader.checked(() => this.#record(record, () => this.#bodies.body(record.kind)));
  }

  encoded({ start, end }: RecordInAppend): Uint8Array {
    return this.#reader.bytes.subarray(start, end);
  }

  redo(record: RecordInAppend): RedoRecord {
    const { kind } = record;
    const body = (): RecordBody<Mutations> =>
      kind === RecordKind.rows ? this.#bodies.rowsOfRuns() : this.#bodies.body(kind);
    return this.#reader.checked(() => this.#record(record, body));
  }

  touches(record: RecordInAppend, range: RowRange): boolean {
    return this.#reader.checked(() => {
      this.#toBody(record);
      return this.#bodies.touches(record.kind, range);
    });
  }

  /** For records of rows. */
  beginsIn(record: RecordInAppend, range: RowRange): boolean {
    assert(record.kind === RecordKind.rows, 'a record of rows');
    return this.#reader.checked(() => {
      this.#toBody(record);
      return this.#bodies.beginsIn(range);
    });
  }

  /** For records of rows. */
  spanOf(record: RecordInAppend): RowSpan {
    assert(record.kind === RecordKind.rows, 'a record of rows');
    return this.#reader.checked(() => {
      this.#toBody(record);
      return this.#bodies.span();
    });
  }

  #toBody(record: RecordInAppend): void {
    const reader = this.#reader;
    reader.offset = record.at;
    reader.take(INT64_BYTES);
    reader.varint();
    reader.skipBytes();
  }

  #header(): AppendHeader {
    const reader = this.#reader;
    const version = reader.byte();
    if (version !== APPEND_VERSION) throw reader.tooNew(`version ${version}, this one reads ${APPEND_VERSION}`);
    const features = reader.varint();
    if (features !== 0) throw reader.tooNew(`required features 0x${features.toString(16)}`);
    return {
      previous: reader.varint(),
      count: reader.varint(),
      firstSequence: reader.varint(),
      lowWater: reader.varint(),
      ...this.#options(),
    };
  }

  #options(): Pick<AppendHeader, 'replayFrom'> {
    const reader = this.#reader;
    const size = reader.varint();
    if (size === 0) return {};
    let replayFrom: number | undefined;
    this.#optionalFields(size, (field) => {
      if (field !== AppendField.replayFrom) return reader.skipBytes();
      const end = reader.varint() + reader.offset;
      replayFrom = reader.varint();
      if (reader.offset !== end) throw reader.corrupt(`a position ends at ${reader.offset}, not at ${end}`);
    });
    return replayFrom === undefined ? {} : { replayFrom };
  }

  #find(sequence: number): RecordInAppend {
    const reader = this.#reader;
    const start = reader.take(LENGTH_BYTES);
    const length = reader.bytes.readUInt32LE(start);
    const end = reader.offset + length;
    if (end > reader.bytes.length) throw reader.corrupt(`a record of ${length} bytes exceeds the append`);
    this.#next = end;
    const kind = reader.byte();
    const tableId = this.#table();
    const epoch = reader.varint();
    if (reader.offset > end) throw reader.corrupt(`the head of a record of ${length} bytes exceeds the record`);
    return new RecordInAppend(this, kind, tableId, epoch, sequence, start, reader.offset, end);
  }

  #table(): string {
    const reader = this.#reader;
    const length = reader.varint();
    const at = reader.take(length);
    const { bytes } = reader;
    if (
      length === this.#tableIdBytes &&
      bytes.compare(bytes, this.#tableIdAt, this.#tableIdAt + length, at, at + length) === 0
    )
      return this.#tableId;
    this.#tableIdBytes = length;
    this.#tableIdAt = at;
    this.#tableId = bytes.toString('utf8', at, at + length);
    return this.#tableId;
  }

  #record<B>(
    { tableId, epoch, sequence, at, end }: RecordInAppend,
    decodeBody: () => B,
  ): Omit<LogRecord, 'body'> & { readonly body: B } {
    const reader = this.#reader;
    reader.offset = at;
    const commitMicros = reader.int64();
    const origin = reader.varint();
    if (!isOrigin(origin)) throw reader.tooNew(`a record of origin ${origin}`);
    const token = this.#fields();
    const body = decodeBody();
    if (reader.offset !== end)
      throw reader.corrupt(`the fields of a record that ends at ${end} end at ${reader.offset}`);
    const record = { tableId, epoch, sequence, commitMicros, origin, body };
    return token ? { ...record, token } : record;
  }

  /** The optional fields of a record: the token, if there is one. */
  #fields(): Uint8Array | undefined {
    const size = this.#reader.varint();
    if (size === 0) return undefined;
    let token: Uint8Array | undefined;
    this.#optionalFields(size, (field) => {
      if (field === RecordField.token) token = this.#reader.value();
      else if (field % 2 === 0) this.#reader.skipBytes();
      else throw this.#reader.tooNew(`a record with the required field ${field}`);
    });
    return token;
  }

  /** `read` reads or skips the contents of the field of that number. */
  #optionalFields(size: number, read: (field: number) => void): void {
    const reader = this.#reader;
    const end = reader.offset + size;
    while (reader.offset < end) read(reader.varint());
    if (reader.offset !== end)
      throw reader.corrupt(`optional fields of ${size} bytes end at ${reader.offset}, not at ${end}`);
  }
}

function isOrigin(value: number): value is Origin {
  return ORIGINS.has(value);
}
