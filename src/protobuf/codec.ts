/**
 * Codecs: how values of this program are written as protobuf. A codec of a message is made of its fields (fields.ts),
 * and prints its own definition for a .proto file (proto-file.ts).
 *
 * Readers are told how deep they are: a message nested deeper than MAX_DEPTH is refused, so that no bytes make a reader
 * run out of stack.
 */
import { type BigtableError, type ByteString, type Int64, invalidArgument } from '../base/index.ts';
import { MessageWriter } from './message-writer.ts';
import { WireReader } from './wire-reader.ts';

/** As deep as the messages of protobuf's own readers may be nested. */
const MAX_DEPTH = 100;

export const WireType = { varint: 0, fixed64: 1, length: 2 } as const;
export type WireType = (typeof WireType)[keyof typeof WireType];

/** Reads and writes the value of one field, without its tag. */
export interface Codec<T> {
  /** Its type in a .proto file. */
  readonly proto: string;
  readonly wireType: WireType;
  write(writer: MessageWriter, value: T): void;
  read(reader: WireReader, depth: number): T;
  /** The definition of its type; undefined for the types that protobuf has. */
  define(): Definition | undefined;
}

/** A type as a .proto file defines it. */
export interface Definition {
  readonly name: string;
  readonly lines: readonly string[];
  /** The types of its fields. */
  readonly uses: readonly Codec<unknown>[];
}

/** A codec of whole messages. */
export abstract class MessageCodec<T> implements Codec<T> {
  readonly proto: string;
  readonly wireType = WireType.length;

  constructor(name: string) {
    this.proto = name;
  }

  /** True where a message may have so many parts that it is written and read in steps. */
  get isLong(): boolean {
    return false;
  }

  /** True for a value that is so short that it is written in one step. */
  isBrief(_value: T): boolean {
    return !this.isLong;
  }

  /** The message without its length. */
  abstract writeFields(writer: MessageWriter, value: T): void;
  /** Reads to the end of `reader`. INVALID_ARGUMENT where a field is malformed or missing. */
  abstract readFields(reader: WireReader, depth: number): T;
  abstract define(): Definition;

  write(writer: MessageWriter, value: T): void {
    const start = writer.begin();
    this.writeFields(writer, value);
    writer.end(start);
  }

  read(reader: WireReader, depth: number): T {
    this.#checkDepth(depth);
    return this.readFields(reader.message(), depth + 1);
  }

  #checkDepth(depth: number): void {
    if (depth >= MAX_DEPTH)
      throw invalidArgument(`invalid protobuf message: ${this.proto} is nested more than ${MAX_DEPTH} deep`);
  }

  /** As `writeFields`, in steps: one here, more in a message that may be long. */
  *writeFieldsInSteps(writer: MessageWriter, value: T): Generator<void, void> {
    this.writeFields(writer, value);
    yield;
  }

  /** As `readFields`, in steps: one here, more in a message that may be long. */
  *readFieldsInSteps(reader: WireReader, depth: number): Generator<void, T> {
    const value = this.readFields(reader, depth);
    yield;
    return value;
  }

  *writeInSteps(writer: MessageWriter, value: T): Generator<void, void> {
    const start = writer.begin();
    yield* this.writeFieldsInSteps(writer, value);
    writer.end(start);
  }

  *readInSteps(reader: WireReader, depth: number): Generator<void, T> {
    this.#checkDepth(depth);
    return yield* this.readFieldsInSteps(reader.message(), depth + 1);
  }

  /** As `encode`; the caller may pause between two steps. */
  *encodeInSteps(value: T): Generator<void, Buffer> {
    const writer = new MessageWriter();
    yield* this.writeFieldsInSteps(writer, value);
    return writer.take();
  }

  /** As `decode`; the caller may pause between two steps. */
  *decodeInSteps(bytes: Buffer): Generator<void, T> {
    return yield* this.readFieldsInSteps(new WireReader(bytes), 0);
  }

  encode(value: T): Buffer {
    const writer = new MessageWriter();
    this.writeFields(writer, value);
    return writer.take();
  }

  /** As `encode`, but the message's own long byte arrays are parts of the answer, and not copied. */
  encodeParts(value: T): Buffer | readonly Buffer[] {
    const writer = new MessageWriter(true);
    this.writeFields(writer, value);
    return writer.takeParts();
  }

  /** The value; its byte arrays are views of `bytes`. INVALID_ARGUMENT for bytes that are no such message. */
  decode(bytes: Buffer): T {
    return this.readFields(new WireReader(bytes), 0);
  }
}

function scalar<T>(
  proto: string,
  wireType: WireType,
  write: (writer: MessageWriter, value: T) => void,
  read: (reader: WireReader) => T,
): Codec<T> {
  return { proto, wireType, write, read, define: () => undefined };
}

/** Text, as UTF-8. */
export const text: Codec<string> = scalar(
  'string',
  WireType.length,
  (writer, value) => writer.text(value),
  (reader) => reader.text(),
);

/** A byte string. */
export const byteString: Codec<ByteString> = scalar(
  'bytes',
  WireType.length,
  (writer, value) => writer.byteString(value),
  (reader) => reader.byteString(),
);

export const bytes: Codec<Uint8Array> = scalar(
  'bytes',
  WireType.length,
  (writer, value) => writer.bytes(value),
  (reader) => reader.bytes(),
);

export const flag: Codec<boolean> = scalar(
  'bool',
  WireType.varint,
  (writer, value) => writer.count(value ? 1 : 0),
  (reader) => reader.int64() !== 0,
);

/** An integer from 0 to 2^53 - 1. */
export const count: Codec<number> = scalar(
  'uint64',
  WireType.varint,
  (writer, value) => writer.count(value),
  (reader) => {
    const value = reader.int64();
    if (typeof value === 'number' && value >= 0) return value;
    throw beyond(reader, value);
  },
);

/** An integer from -2^53 + 1 to 2^53 - 1. */
export const whole: Codec<number> = scalar(
  'int64',
  WireType.varint,
  (writer, value) => writer.int64(value),
  (reader) => {
    const value = reader.int64();
    if (typeof value === 'number') return value;
    throw beyond(reader, value);
  },
);

export const integer: Codec<Int64> = scalar(
  'int64',
  WireType.varint,
  (writer, value) => writer.int64(value),
  (reader) => reader.int64(),
);

/** Any number: sizes that are estimated, counters. */
export const number: Codec<number> = scalar(
  'double',
  WireType.fixed64,
  (writer, value) => writer.double(value),
  (reader) => reader.double(),
);

/** One of several names, each with its number from 1 on. */
export function choice<T extends string>(name: string, numbers: Readonly<Record<T, number>>): Codec<T> {
  const names = Object.keys(numbers) as T[];
  const byNumber = new Map(names.map((one) => [numbers[one], one]));
  const prefix = constantCase(name);
  return {
    proto: name,
    wireType: WireType.varint,
    write: (writer, value) => writer.count(numbers[value]),
    read(reader) {
      const value = reader.int64();
      const found = byNumber.get(Number(value));
      if (found !== undefined) return found;
      throw invalidArgument(`invalid protobuf message: ${value} is no ${name} that this version knows`);
    },
    define: () => ({
      name,
      lines: [
        `enum ${name} {`,
        `  ${prefix}_UNSPECIFIED = 0;`,
        ...names.map((one) => `  ${prefix}_${constantCase(one)} = ${numbers[one]};`),
        '}',
      ],
      uses: [],
    }),
  };
}

/** A type that another one stands for. */
export function mapped<T, U>(codec: Codec<U>, to: (value: T) => U, from: (value: U) => T): Codec<T> {
  return {
    proto: codec.proto,
    wireType: codec.wireType,
    write: (writer, value) => codec.write(writer, to(value)),
    read: (reader, depth) => from(codec.read(reader, depth)),
    define: () => codec.define(),
  };
}

/** A type that contains itself. */
export function lazy<T>(proto: string, codec: () => Codec<T>): Codec<T> {
  return {
    proto,
    wireType: WireType.length,
    write: (writer, value) => codec().write(writer, value),
    read: (reader, depth) => codec().read(reader, depth),
    define: () => codec().define(),
  };
}

function constantCase(name: string): string {
  return name
    .replaceAll('-', '_')
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .toUpperCase();
}

/** The error for bytes that lack a required field of a message. */
export function missingField(message: string, field: string): BigtableError {
  return invalidArgument(`invalid protobuf message: ${message} lacks its field ${field}`);
}

function beyond(reader: WireReader, value: Int64): BigtableError {
  return invalidArgument(
    `invalid protobuf message: field ${reader.field} is ${value}, out of the range of its type in this program`,
  );
}
