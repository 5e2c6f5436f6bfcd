/**
 * Hot: set-cells in internal messages, written and read by hand, since nearly all writes consist of them. The codec of
 * fields makes an object for each, and moves its value each time that the length of a message around it becomes known.
 *
 * Invariant: the bytes are those that the codec of the same fields writes, and either reads what the other has written.
 */
import type { ByteString, Int64 } from '../../base/index.ts';
import {
  type CellRun,
  columnAt,
  isCellRun,
  type Mutation,
  type Mutations,
  type SetCell,
  setCell,
  timestampAt,
  valueAt,
  valueLengthAt,
} from '../../model/index.ts';
import {
  byteString,
  bytes,
  type Definition,
  int64Length,
  integer,
  lengthDelimited,
  listOf,
  message,
  MessageCodec,
  type MessageWriter,
  missingField,
  present,
  required,
  STEP_ITEMS,
  text,
  textLength,
  type WireReader,
} from '../../protobuf/index.ts';

type Fields = Omit<SetCell, 'kind'>;

/** By fields: the definition. */
const BY_FIELDS = message<Fields>('MutationSetCell', {
  family: required(1, text),
  qualifier: required(2, byteString),
  timestamp: present(3, integer),
  value: required(4, bytes),
});

const LENGTH = 2;
const FAMILY_TAG = 1 * 8 + LENGTH;
const QUALIFIER_TAG = 2 * 8 + LENGTH;
const TIMESTAMP_TAG = 3 * 8;
const VALUE_TAG = 4 * 8 + LENGTH;
/** Mutation.set_cell. */
const SET_CELL_TAG = 1 * 8 + LENGTH;
/** Mutations.items. */
const ITEM_TAG = 1 * 8 + LENGTH;

function cellBytes(family: string, qualifier: ByteString, timestamp: Int64 | undefined, valueBytes: number): number {
  const timestampBytes = timestamp === undefined ? 0 : 1 + int64Length(timestamp);
  return (
    lengthDelimited(textLength(family)) +
    lengthDelimited(qualifier.length) +
    timestampBytes +
    lengthDelimited(valueBytes)
  );
}

function writeCell(
  writer: MessageWriter,
  family: string,
  qualifier: ByteString,
  timestamp: Int64 | undefined,
  value: Uint8Array,
): void {
  writer.count(FAMILY_TAG);
  writer.text(family);
  writer.count(QUALIFIER_TAG);
  writer.byteString(qualifier);
  if (timestamp !== undefined) {
    writer.count(TIMESTAMP_TAG);
    writer.int64(timestamp);
  }
  writer.count(VALUE_TAG);
  writer.bytes(value);
}

class SetCellCodec extends MessageCodec<SetCell> {
  /** The names that were read last: most cells have the column of the one before. */
  #family = '';
  #qualifier: ByteString = '';

  constructor() {
    super(BY_FIELDS.proto);
  }

  override write(writer: MessageWriter, { family, qualifier, timestamp, value }: SetCell): void {
    writer.count(cellBytes(family, qualifier, timestamp, value.length));
    writeCell(writer, family, qualifier, timestamp, value);
  }

  writeFields(writer: MessageWriter, { family, qualifier, timestamp, value }: SetCell): void {
    writeCell(writer, family, qualifier, timestamp, value);
  }

  readFields(reader: WireReader): SetCell {
    let family: string | undefined;
    let qualifier: ByteString | undefined;
    let timestamp: Int64 | undefined;
    let value: Uint8Array | undefined;
    while (reader.next()) {
      if (reader.field === 1) this.#family = family = reader.textLike(this.#family);
      else if (reader.field === 2) this.#qualifier = qualifier = reader.byteStringLike(this.#qualifier);
      else if (reader.field === 3) timestamp = reader.int64();
      else if (reader.field === 4) value = reader.bytes();
      else reader.skip();
    }
    if (family !== undefined && qualifier !== undefined && value !== undefined)
      return setCell(family, qualifier, timestamp, value);
    const missing = family === undefined ? 'family' : qualifier === undefined ? 'qualifier' : 'value';
    throw missingField(this.proto, missing);
  }

  define(): Definition {
    return BY_FIELDS.define();
  }
}

export const setCellCodec: MessageCodec<SetCell> = new SetCellCodec();

/** The mutations of a row: a list, or a run of set-cells, which is written as the same list. */
export class MutationsCodec extends MessageCodec<Mutations> {
  readonly #list: MessageCodec<readonly Mutation[]>;

  constructor(mutation: MessageCodec<Mutation>) {
    super('Mutations');
    this.#list = listOf('Mutations', mutation);
  }

  override get isLong(): boolean {
    return true;
  }

  override isBrief(value: Mutations): boolean {
    return value.length < STEP_ITEMS;
  }

  override write(writer: MessageWriter, value: Mutations): void {
    if (!isCellRun(value)) return this.#list.write(writer, value);
    writer.count(runBytes(value));
    writeRun(writer, value, 0, value.length);
  }

  writeFields(writer: MessageWriter, value: Mutations): void {
    if (isCellRun(value)) writeRun(writer, value, 0, value.length);
    else this.#list.writeFields(writer, value);
  }

  override *writeInSteps(writer: MessageWriter, value: Mutations): Generator<void, void> {
    if (!isCellRun(value)) return yield* this.#list.writeInSteps(writer, value);
    writer.count(runBytes(value));
    yield* this.writeFieldsInSteps(writer, value);
  }

  override *writeFieldsInSteps(writer: MessageWriter, value: Mutations): Generator<void, void> {
    if (!isCellRun(value)) return yield* this.#list.writeFieldsInSteps(writer, value);
    for (let from = 0; from < value.length; from += STEP_ITEMS) {
      const to = Math.min(from + STEP_ITEMS, value.length);
      writeRun(writer, value, from, to);
      if (to - from === STEP_ITEMS) yield;
    }
  }

  readFields(reader: WireReader, depth: number): Mutations {
    return this.#list.readFields(reader, depth);
  }

  override readFieldsInSteps(reader: WireReader, depth: number): Generator<void, Mutations> {
    return this.#list.readFieldsInSteps(reader, depth);
  }

  define(): Definition {
    return this.#list.define();
  }
}

function cellBytesAt(run: CellRun, at: number): number {
  const { family, qualifier } = columnAt(run, at);
  return cellBytes(family, qualifier, timestampAt(run, at), valueLengthAt(run, at));
}

function runBytes(run: CellRun): number {
  let sum = 0;
  for (let at = run.from; at < run.from + run.length; at++)
    sum += lengthDelimited(lengthDelimited(cellBytesAt(run, at)));
  return sum;
}

/** Cells [from, to) of the run. */
function writeRun(writer: MessageWriter, run: CellRun, from: number, to: number): void {
  for (let at = run.from + from; at < run.from + to; at++) {
    const bytes = cellBytesAt(run, at);
    writer.count(ITEM_TAG);
    writer.count(lengthDelimited(bytes));
    writer.count(SET_CELL_TAG);
    writer.count(bytes);
    const { family, qualifier } = columnAt(run, at);
    writeCell(writer, family, qualifier, timestampAt(run, at), valueAt(run, at));
  }
}
