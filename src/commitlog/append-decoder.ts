/**
 * Reads the records of one append back. Format: docs/formats/commit-log.md.
 *
 * A record is found by its length and told apart by its table, epoch and sequence alone; its body is decoded when somebody wants it. So a recovery
 * passes over what is in SSTables already, and holds bytes in place of objects.
 *
 * The file system has checked the append's checksum, so bytes that make no sense are damage from before it was computed, or a
 * fault of the program: a CorruptionError in either case. What a later version wrote and this one must not skip is refused with
 * FAILED_PRECONDITION.
 */
import {
  BigtableError,
  type ByteString,
  Code,
  CorruptionError,
  type Int64,
  readInt64BE,
  toText,
  VarintReader,
} from '../base/index.ts';
import type { LogAppend } from '../env/index.ts';
import {
  CellBatchBuilder,
  intersectRanges,
  isEmptyRange,
  type Mutation,
  type Mutations,
  rangeContains,
  type RowMutations,
  type RowRange,
  setCell,
  type TimestampRange,
} from '../model/index.ts';
import {
  APPEND_VERSION,
  type AppendHeader,
  MutationKind,
  RangeFlag,
  RecordField,
  RecordKind,
} from './append-format.ts';
import { type EncodedRecord, type LogRecord, Origin, type RecordBody, type RedoRecord } from './record.ts';

/** Commit time, timestamps, integers. */
const INT64_BYTES = 8;
const ORIGINS: ReadonlySet<number> = new Set(Object.values(Origin));

/** One record's place in its append. */
class RecordInAppend implements EncodedRecord {
  readonly tableId: string;
  readonly epoch: number;
  readonly sequence: number;
  readonly kind: number;
  /** Behind the epoch. */
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
    at: number,
    end: number,
  ) {
    this.tableId = tableId;
    this.epoch = epoch;
    this.sequence = sequence;
    this.kind = kind;
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

  touches(range: RowRange): boolean {
    if (this.kind !== RecordKind.rows) return this.#decoder.touches(this, range);
    // the tablet that wrote it need not look further
    if (this.#span === undefined && this.#decoder.beginsIn(this, range)) return true;
    const { first, last } = (this.#span ??= this.#decoder.spanOf(this));
    if (first > last || last < range.start || (range.end !== undefined && first >= range.end)) return false;
    // one of the two is in it, or it lies between them: then every row must be asked
    return rangeContains(range, first) || rangeContains(range, last) || this.#decoder.touches(this, range);
  }
}

/** The lowest and the highest row of a record. */
interface RowSpan {
  readonly first: ByteString;
  readonly last: ByteString;
}

/** Span of a record without rows, the only one whose first row is above its last. */
const NO_ROWS: RowSpan = { first: '\xff', last: '' };

export class AppendDecoder {
  readonly header: AppendHeader;
  readonly #path: string;
  readonly #position: number;
  readonly #bytes: Buffer;
  readonly #reader: VarintReader;
  #found = 0;
  /** Where the next record begins. */
  #next: number;
  /** The last table's id, and where its bytes stand: records of one table mostly follow one another. */
  #tableId = '';
  #tableIdAt = 0;
  #tableIdBytes = -1;

  /** `path`: of the log, for messages. */
  constructor(path: string, append: LogAppend) {
    this.#path = path;
    this.#position = append.position;
    this.#bytes = append.bytes;
    this.#reader = new VarintReader(append.bytes);
    this.header = this.#checked(() => this.#header());
    this.#next = this.#reader.offset;
  }

  /** The next record, or undefined behind the last. Its values are views of the append: whoever applies them to a memtable copies them. */
  next(): LogRecord | undefined {
    return this.nextEncoded()?.decode();
  }

  /** The same, its body not decoded yet. */
  nextEncoded(): EncodedRecord | undefined {
    return this.#checked(() => {
      this.#reader.offset = this.#next;
      if (this.#found < this.header.count) return this.#find(this.header.firstSequence + this.#found++);
      if (this.#next !== this.#bytes.length)
        throw this.#corrupt(`${this.#bytes.length - this.#next} bytes follow the last record`);
      return undefined;
    });
  }

  /** For `RecordInAppend`. */
  decode(record: RecordInAppend): LogRecord {
    return this.#checked(() => this.#record(record, () => this.#body(record.kind)));
  }

  /** For `RecordInAppend`. */
  redo(record: RecordInAppend): RedoRecord {
    return this.#checked(() =>
      this.#record(record, () => (record.kind === RecordKind.rows ? this.#rowsOfRuns() : this.#body(record.kind))),
    );
  }

  /** For `RecordInAppend`. */
  touches(record: RecordInAppend, range: RowRange): boolean {
    return this.#checked(() => {
      this.#toBody(record);
      if (record.kind === RecordKind.dropRows) return !isEmptyRange(intersectRanges(this.#rowRange(), range));
      if (record.kind !== RecordKind.rows) throw this.#tooNew(`a record of kind ${record.kind}`);
      for (let left = this.#reader.next(); left > 0; left--) {
        if (rangeContains(range, this.#text())) return true;
        this.#passMutations();
      }
      return false;
    });
  }

  /** For `RecordInAppend`, of a record of rows: whether its first row is in the range. */
  beginsIn(record: RecordInAppend, range: RowRange): boolean {
    return this.#checked(() => {
      this.#toBody(record);
      return this.#reader.next() > 0 && rangeContains(range, this.#text());
    });
  }

  /** For `RecordInAppend`, of a record of rows. */
  spanOf(record: RecordInAppend): RowSpan {
    return this.#checked(() => {
      this.#toBody(record);
      let left = this.#reader.next();
      if (left === 0) return NO_ROWS;
      let first = this.#text();
      let last = first;
      for (this.#passMutations(); --left > 0; this.#passMutations()) {
        const row = this.#text();
        if (row > last) last = row;
        else if (row < first) first = row;
      }
      return { first, last };
    });
  }

  #toBody(record: RecordInAppend): void {
    const reader = this.#reader;
    reader.offset = record.at;
    this.#take(INT64_BYTES);
    reader.next();
    this.#take(reader.next());
  }

  #checked<T>(decode: () => T): T {
    try {
      return decode();
    } catch (error) {
      if (error instanceof RangeError) throw this.#corrupt(error.message, error);
      throw error;
    }
  }

  #corrupt(what: string, cause?: unknown): CorruptionError {
    return new CorruptionError(
      this.#path,
      this.#position,
      `at byte ${this.#reader.offset} of the append: ${what}`,
      cause,
    );
  }

  #tooNew(what: string): BigtableError {
    return new BigtableError(
      Code.FAILED_PRECONDITION,
      `${this.#path}: the append at ${this.#position} has ${what}: it was written by a newer Edubba`,
    );
  }

  #header(): AppendHeader {
    const reader = this.#reader;
    const version = this.#byte();
    if (version !== APPEND_VERSION) throw this.#tooNew(`version ${version}, this one reads ${APPEND_VERSION}`);
    const features = reader.next();
    if (features !== 0) throw this.#tooNew(`required features 0x${features.toString(16)}`);
    const header = {
      previous: reader.next(),
      count: reader.next(),
      firstSequence: reader.next(),
      lowWater: reader.next(),
    };
    // optional fields that later versions may add
    this.#take(reader.next());
    return header;
  }

  #find(sequence: number): RecordInAppend {
    const reader = this.#reader;
    const length = this.#bytes.readUInt32LE(this.#take(4));
    const end = reader.offset + length;
    if (end > this.#bytes.length) throw this.#corrupt(`a record of ${length} bytes reaches behind the end`);
    this.#next = end;
    const kind = this.#byte();
    const tableId = this.#table();
    const epoch = reader.next();
    if (reader.offset > end) throw this.#corrupt(`the head of a record of ${length} bytes reaches behind it`);
    return new RecordInAppend(this, kind, tableId, epoch, sequence, reader.offset, end);
  }

  #table(): string {
    const length = this.#reader.next();
    const at = this.#take(length);
    const bytes = this.#bytes;
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
    const commitMicros = this.#int64();
    const origin = reader.next();
    if (!isOrigin(origin)) throw this.#tooNew(`a record of origin ${origin}`);
    const token = this.#fields();
    const body = decodeBody();
    if (reader.offset !== end)
      throw this.#corrupt(`a record that ends at ${end} has its fields end at ${reader.offset}`);
    const record = { tableId, epoch, sequence, commitMicros, origin, body };
    return token ? { ...record, token } : record;
  }

  /** The token, where there is one. */
  #fields(): Uint8Array | undefined {
    const reader = this.#reader;
    const size = reader.next();
    const end = reader.offset + size;
    let token: Uint8Array | undefined;
    while (reader.offset < end) {
      const field = reader.next();
      if (field === RecordField.token) token = this.#value();
      else if (field % 2 === 0) this.#take(reader.next());
      else throw this.#tooNew(`a record with the required field ${field}`);
    }
    if (reader.offset !== end)
      throw this.#corrupt(`optional fields of ${size} bytes end at ${reader.offset}, not at ${end}`);
    return token;
  }

  #body(kind: number): LogRecord['body'] {
    if (kind === RecordKind.dropRows) return { kind: 'dropRows', range: this.#rowRange() };
    if (kind !== RecordKind.rows) throw this.#tooNew(`a record of kind ${kind}`);
    const rows: RowMutations<readonly Mutation[]>[] = [];
    for (let left = this.#reader.next(); left > 0; left--)
      rows.push({ row: this.#text(), mutations: this.#list(this.#reader.next()) });
    return { kind: 'rows', rows };
  }

  #list(count: number): Mutation[] {
    const mutations: Mutation[] = [];
    for (let left = count; left > 0; left--) mutations.push(this.#mutation());
    return mutations;
  }

  #rowsOfRuns(): RecordBody<Mutations> {
    const reader = this.#reader;
    const cells = new CellBatchBuilder(this.#bytes);
    const rows: RowMutations[] = [];
    for (let left = reader.next(); left > 0; left--) {
      const row = this.#text();
      const count = reader.next();
      const at = reader.offset;
      const from = cells.count;
      if (this.#cells(cells, count)) rows.push({ row, mutations: cells.runFrom(from) });
      else {
        cells.dropFrom(from);
        reader.offset = at;
        rows.push({ row, mutations: this.#list(count) });
      }
    }
    return { kind: 'rows', rows };
  }

  /** False where not all of the mutations are set-cells, or there are none. */
  #cells(cells: CellBatchBuilder, count: number): boolean {
    const reader = this.#reader;
    for (let left = count; left > 0; left--) {
      if (this.#byte() !== MutationKind.setCell) return false;
      const start = reader.offset;
      this.#passBytes();
      const middle = reader.offset;
      this.#passBytes();
      const end = reader.offset;
      // with their lengths
      if (!cells.toColumn(start, middle, middle, end)) {
        reader.offset = start;
        const family = this.#family();
        const qualifier = this.#take(reader.next());
        cells.addColumn(start, middle, middle, end, family, qualifier, reader.offset);
      }
      const timestamp = this.#int64();
      const value = this.#take(reader.next());
      cells.add(timestamp, value, reader.offset);
    }
    return count > 0;
  }

  #rowRange(): RowRange {
    const start = this.#text();
    const hasEnd = this.#byte();
    if (hasEnd > 1) throw this.#corrupt(`a row range with the flag ${hasEnd}`);
    return { start, end: hasEnd ? this.#text() : undefined };
  }

  #mutation(): Mutation {
    const kind = this.#byte();
    switch (kind) {
      case MutationKind.setCell:
        return setCell(this.#family(), this.#text(), this.#int64(), this.#value());
      case MutationKind.addIntegerToCell:
        return {
          kind: 'addToCell',
          family: this.#family(),
          qualifier: this.#text(),
          timestamp: this.#int64(),
          input: this.#int64(),
        };
      case MutationKind.addBytesToCell:
        return {
          kind: 'addToCell',
          family: this.#family(),
          qualifier: this.#text(),
          timestamp: this.#int64(),
          input: this.#value(),
        };
      case MutationKind.mergeToCell:
        return {
          kind: 'mergeToCell',
          family: this.#family(),
          qualifier: this.#text(),
          timestamp: this.#int64(),
          state: this.#value(),
        };
      case MutationKind.deleteFromColumn:
        return this.#deleteFromColumn();
      case MutationKind.deleteFromFamily:
        return { kind: 'deleteFromFamily', family: this.#family() };
      case MutationKind.deleteFromRow:
        return { kind: 'deleteFromRow' };
      default:
        throw this.#tooNew(`a mutation of kind ${kind}`);
    }
  }

  #deleteFromColumn(): Mutation {
    const family = this.#family();
    const qualifier = this.#text();
    const flags = this.#byte();
    if (flags > (RangeFlag.start | RangeFlag.end)) throw this.#corrupt(`a range of timestamps with the flags ${flags}`);
    if (flags === 0) return { kind: 'deleteFromColumn', family, qualifier };
    const range: TimestampRange = {
      ...(flags & RangeFlag.start ? { start: this.#int64() } : {}),
      ...(flags & RangeFlag.end ? { end: this.#int64() } : {}),
    };
    return { kind: 'deleteFromColumn', family, qualifier, range };
  }

  #passMutations(): void {
    for (let more = this.#reader.next(); more > 0; more--) this.#passMutation();
  }

  #passMutation(): void {
    const kind = this.#byte();
    switch (kind) {
      case MutationKind.setCell:
      case MutationKind.addIntegerToCell:
      case MutationKind.addBytesToCell:
      case MutationKind.mergeToCell:
        this.#passBytes();
        this.#passBytes();
        this.#take(INT64_BYTES);
        if (kind === MutationKind.addIntegerToCell) this.#take(INT64_BYTES);
        else this.#passBytes();
        return;
      case MutationKind.deleteFromColumn: {
        this.#passBytes();
        this.#passBytes();
        const flags = this.#byte();
        if (flags & RangeFlag.start) this.#take(INT64_BYTES);
        if (flags & RangeFlag.end) this.#take(INT64_BYTES);
        return;
      }
      case MutationKind.deleteFromFamily:
        return this.#passBytes();
      case MutationKind.deleteFromRow:
        return;
      default:
        throw this.#tooNew(`a mutation of kind ${kind}`);
    }
  }

  #passBytes(): void {
    this.#take(this.#reader.next());
  }

  /** Passes over `length` bytes and answers where they begin. */
  #take(length: number): number {
    const at = this.#reader.offset;
    if (at + length > this.#bytes.length) throw new RangeError(`${length} bytes at ${at} run behind the end`);
    this.#reader.offset = at + length;
    return at;
  }

  #byte(): number {
    return this.#bytes[this.#take(1)]!;
  }

  #int64(): Int64 {
    return readInt64BE(this.#bytes, this.#take(INT64_BYTES));
  }

  #text(): ByteString {
    const length = this.#reader.next();
    const at = this.#take(length);
    return this.#bytes.latin1Slice(at, at + length);
  }

  #family(): string {
    const family = this.#text();
    for (let i = 0; i < family.length; i++) if (family.charCodeAt(i) > 0x7f) return toText(family);
    return family;
  }

  #value(): Uint8Array {
    const length = this.#reader.next();
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }
}

function isOrigin(value: number): value is Origin {
  return ORIGINS.has(value);
}
