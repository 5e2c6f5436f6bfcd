/**
 * Hot: batches of reads in internal messages, written and read by hand: all rows that one process reads from another
 * come so. Columns recur in the cells of a batch, so each is written once.
 *
 * Invariant: the bytes are those that the codec of the same fields writes, and either reads what the other has written.
 */
import { type ByteString, type Int64, invalidArgument, varintLength } from '../../base/index.ts';
import type { Cell, ReadBatch, RowFragment } from '../../model/index.ts';
import {
  byteString,
  bytes,
  count,
  type Definition,
  flag,
  int64Length,
  lengthDelimited,
  integer,
  list,
  listOf,
  message,
  MessageCodec,
  type MessageWriter,
  missingField,
  optional,
  PART_BYTES,
  required,
  text,
  textLength,
  type WireReader,
} from '../../protobuf/index.ts';

type Column = Pick<Cell, 'family' | 'qualifier'>;

/** A cell of a batch: its column is one of the batch's list. */
interface BatchCell extends Omit<Cell, 'family' | 'qualifier'> {
  readonly column: number;
}

interface Batch {
  readonly columns: readonly Column[];
  readonly fragments: readonly (Omit<RowFragment, 'cells'> & { readonly cells: readonly BatchCell[] })[];
  readonly scannedTo?: ByteString;
}

export const labels: MessageCodec<readonly string[]> = listOf('Labels', text);

/** By fields: the definition. */
const BY_FIELDS: MessageCodec<Batch> = message('ReadBatch', {
  columns: list(1, message<Column>('BatchColumn', { family: required(1, text), qualifier: required(2, byteString) })),
  fragments: list(
    2,
    message<Batch['fragments'][number]>('BatchFragment', {
      row: required(1, byteString),
      last: required(2, flag),
      cells: list(
        3,
        message<BatchCell>('BatchCell', {
          column: required(1, count),
          timestamp: required(2, integer),
          value: required(3, bytes),
          labels: optional(4, labels),
        }),
      ),
    }),
  ),
  scannedTo: optional(3, byteString),
});

const VARINT = 0;
const LENGTH = 2;
const COLUMNS_TAG = 1 * 8 + LENGTH;
const FRAGMENTS_TAG = 2 * 8 + LENGTH;
const SCANNED_TO_TAG = 3 * 8 + LENGTH;
const FAMILY_TAG = 1 * 8 + LENGTH;
const QUALIFIER_TAG = 2 * 8 + LENGTH;
const ROW_TAG = 1 * 8 + LENGTH;
const LAST_TAG = 2 * 8 + VARINT;
const CELLS_TAG = 3 * 8 + LENGTH;
const COLUMN_TAG = 1 * 8 + VARINT;
const TIMESTAMP_TAG = 2 * 8 + VARINT;
const VALUE_TAG = 3 * 8 + LENGTH;
const LABELS_TAG = 4 * 8 + LENGTH;

/** The columns of a batch, and what is known of its parts before they are written. */
class Outline {
  readonly columns: Column[] = [];
  /** By cell, in their order: the number of its column, and its bytes. */
  readonly columnOf: number[] = [];
  readonly cellBytes: number[] = [];
  readonly fragmentBytes: number[] = [];
  /** Those of all fragments, without long values: these may be parts of their own (`encodeParts`). */
  bytes = 0;
  readonly #numbers = new Map<string, number>();
  #last: Column | undefined;
  #lastNumber = 0;

  constructor(fragments: readonly RowFragment[]) {
    for (const { row, cells } of fragments) {
      let sum = lengthDelimited(row.length) + 2;
      for (const cell of cells) sum += lengthDelimited(this.#cell(cell));
      this.fragmentBytes.push(sum);
      this.bytes += lengthDelimited(sum);
      for (const { value } of cells) if (value.length >= PART_BYTES) this.bytes -= value.length;
    }
  }

  #cell(cell: Cell): number {
    const column = this.#numberOf(cell);
    let sum = 2 + varintLength(column) + int64Length(cell.timestamp) + lengthDelimited(cell.value.length);
    if (cell.labels !== undefined) sum += lengthDelimited(labels.encode(cell.labels).length);
    this.columnOf.push(column);
    this.cellBytes.push(sum);
    return sum;
  }

  #numberOf({ family, qualifier }: Column): number {
    if (this.#last?.family === family && this.#last.qualifier === qualifier) return this.#lastNumber;
    const key = `${family}\0${qualifier}`;
    let known = this.#numbers.get(key);
    if (known === undefined) {
      known = this.columns.push({ family, qualifier }) - 1;
      this.#numbers.set(key, known);
    }
    this.#last = this.columns[known];
    return (this.#lastNumber = known);
  }
}

/** What was read, until all columns are known. */
interface Found {
  readonly columns: Column[];
  readonly fragments: { readonly row: ByteString; readonly last: boolean; readonly cells: number }[];
  readonly columnOf: number[];
  readonly timestamps: Int64[];
  readonly values: Uint8Array[];
  readonly labelLists: (readonly string[] | undefined)[];
}

class ReadBatchCodec extends MessageCodec<ReadBatch> {
  constructor() {
    super(BY_FIELDS.proto);
  }

  writeFields(writer: MessageWriter, { fragments, scannedTo }: ReadBatch): void {
    const outline = new Outline(fragments);
    writer.expect(outline.bytes);
    for (const column of outline.columns) writeColumn(writer, column);
    let cell = 0;
    for (const [i, fragment] of fragments.entries()) {
      writer.count(FRAGMENTS_TAG);
      writer.count(outline.fragmentBytes[i]!);
      writer.count(ROW_TAG);
      writer.byteString(fragment.row);
      writer.count(LAST_TAG);
      writer.count(fragment.last ? 1 : 0);
      for (const one of fragment.cells) {
        writeCell(writer, one, outline.columnOf[cell]!, outline.cellBytes[cell]!);
        cell++;
      }
    }
    if (scannedTo === undefined) return;
    writer.count(SCANNED_TO_TAG);
    writer.byteString(scannedTo);
  }

  readFields(reader: WireReader, depth: number): ReadBatch {
    const found: Found = { columns: [], fragments: [], columnOf: [], timestamps: [], values: [], labelLists: [] };
    let scannedTo: ByteString | undefined;
    while (reader.next()) {
      if (reader.field === 1) found.columns.push(readColumn(reader.message()));
      else if (reader.field === 2) readFragment(reader.message(), found, depth);
      else if (reader.field === 3) scannedTo = reader.byteString();
      else reader.skip();
    }
    const fragments = fragmentsOf(found);
    return scannedTo === undefined ? { fragments } : { fragments, scannedTo };
  }

  define(): Definition {
    return BY_FIELDS.define();
  }
}

export const readBatch: MessageCodec<ReadBatch> = new ReadBatchCodec();

function writeColumn(writer: MessageWriter, { family, qualifier }: Column): void {
  writer.count(COLUMNS_TAG);
  writer.count(lengthDelimited(textLength(family)) + lengthDelimited(qualifier.length));
  writer.count(FAMILY_TAG);
  writer.text(family);
  writer.count(QUALIFIER_TAG);
  writer.byteString(qualifier);
}

function writeCell(writer: MessageWriter, cell: Cell, column: number, cellBytes: number): void {
  writer.count(CELLS_TAG);
  writer.count(cellBytes);
  writer.count(COLUMN_TAG);
  writer.count(column);
  writer.count(TIMESTAMP_TAG);
  writer.int64(cell.timestamp);
  writer.count(VALUE_TAG);
  writer.bytes(cell.value);
  if (cell.labels === undefined) return;
  writer.count(LABELS_TAG);
  writer.bytes(labels.encode(cell.labels));
}

function readColumn(reader: WireReader): Column {
  let family: string | undefined;
  let qualifier: ByteString | undefined;
  while (reader.next()) {
    if (reader.field === 1) family = reader.text();
    else if (reader.field === 2) qualifier = reader.byteString();
    else reader.skip();
  }
  if (family === undefined) throw missingField('BatchColumn', 'family');
  if (qualifier === undefined) throw missingField('BatchColumn', 'qualifier');
  return { family, qualifier };
}

function readFragment(reader: WireReader, found: Found, depth: number): void {
  let row: ByteString | undefined;
  let last: boolean | undefined;
  let cells = 0;
  while (reader.next()) {
    if (reader.field === 1) row = reader.byteString();
    else if (reader.field === 2) last = reader.int64() !== 0;
    else if (reader.field === 3) {
      readCell(reader.message(), found, depth);
      cells++;
    } else reader.skip();
  }
  if (row === undefined) throw missingField('BatchFragment', 'row');
  if (last === undefined) throw missingField('BatchFragment', 'last');
  found.fragments.push({ row, last, cells });
}

function readCell(reader: WireReader, found: Found, depth: number): void {
  let column: Int64 | undefined;
  let timestamp: Int64 | undefined;
  let value: Uint8Array | undefined;
  let its: readonly string[] | undefined;
  while (reader.next()) {
    if (reader.field === 1) column = reader.int64();
    else if (reader.field === 2) timestamp = reader.int64();
    else if (reader.field === 3) value = reader.bytes();
    else if (reader.field === 4) its = labels.read(reader, depth);
    else reader.skip();
  }
  if (column === undefined) throw missingField('BatchCell', 'column');
  if (timestamp === undefined) throw missingField('BatchCell', 'timestamp');
  if (value === undefined) throw missingField('BatchCell', 'value');
  found.columnOf.push(Number(column));
  found.timestamps.push(timestamp);
  found.values.push(value);
  found.labelLists.push(its);
}

function fragmentsOf({ columns, fragments, columnOf, timestamps, values, labelLists }: Found): RowFragment[] {
  let next = 0;
  return fragments.map(({ row, last, cells: length }) => {
    const cells: Cell[] = [];
    for (const end = next + length; next < end; next++) {
      const column = columns[columnOf[next]!];
      if (column === undefined) throw invalidArgument(`invalid batch of a read: it has no column ${columnOf[next]}`);
      const { family, qualifier } = column;
      const [timestamp, value, its] = [timestamps[next]!, values[next]!, labelLists[next]];
      cells.push(
        its === undefined
          ? { family, qualifier, timestamp, value }
          : { family, qualifier, timestamp, value, labels: its },
      );
    }
    return { row, last, cells };
  });
}
