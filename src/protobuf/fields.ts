/**
 * Messages as lists of fields, and those of single values. Messages of several kinds: kinds.ts.
 *
 * Readers skip fields that they do not know, and the last value of a field counts, as protobuf has it. A required field
 * that is missing makes the message invalid: so a field that is added to a message later is optional.
 */
import { assert, invalidArgument } from '../base/index.ts';
import { type Codec, type Definition, MessageCodec, missingField, WireType } from './codec.ts';
import type { MessageWriter } from './message-writer.ts';
import type { WireReader } from './wire-reader.ts';

/** A field and its tag: one of these for each way in which a property is written. */
interface AnyField {
  readonly number: number;
  /** The field's value before anything was read; undefined: none. */
  empty(): unknown;
  write(writer: MessageWriter, value: unknown): void;
  /** The value with what comes next; `before` is that of the fields before it. */
  read(reader: WireReader, depth: number, before: unknown): unknown;
  /** As `write` and `read`, with steps: where the field may have very many parts. */
  writeInSteps?(writer: MessageWriter, value: unknown): Generator<void, void>;
  /** Where there is `writeInSteps`: true for a value of one step. */
  isBrief?(value: unknown): boolean;
  readInSteps?(reader: WireReader, depth: number, before: unknown): Generator<void, unknown>;
  /** How a .proto file declares it, without name and number. */
  readonly declared: string;
  readonly codec: Codec<unknown>;
}

/** A field that always has a value of type V. */
interface Field<V> extends AnyField {
  readonly presence: 'required';
  /** Never there: it gives the field its type. */
  readonly typed?: (value: V) => V;
}

/** A field that may be undefined: `present` in the object even then, or left out of it. */
interface OptionalField<V> extends AnyField {
  readonly presence: 'present' | 'optional';
  readonly typed?: (value: V) => V;
}

/** A field for each property of T. */
export type FieldsOf<T> = {
  readonly [K in keyof T]-?: undefined extends T[K]
    ? OptionalField<Exclude<T[K], undefined>>
    : Field<Exclude<T[K], undefined>>;
};

function plain<V>(number: number, codec: Codec<V>, label: string): AnyField {
  const tag = number * 8 + codec.wireType;
  return {
    number,
    codec,
    declared: `${label}${codec.proto}`,
    empty: () => undefined,
    write(writer: MessageWriter, value: V) {
      writer.count(tag);
      codec.write(writer, value);
    },
    read: (reader, depth) => codec.read(reader, depth),
    ...(codec instanceof MessageCodec && codec.isLong && longMessage(tag, codec)),
  };
}

function longMessage<V>(
  tag: number,
  codec: MessageCodec<V>,
): Pick<AnyField, 'writeInSteps' | 'isBrief' | 'readInSteps'> {
  return {
    isBrief: (value: V) => codec.isBrief(value),
    *writeInSteps(writer: MessageWriter, value: V) {
      writer.count(tag);
      yield* codec.writeInSteps(writer, value);
    },
    readInSteps: (reader, depth) => codec.readInSteps(reader, depth),
  };
}

export function required<V>(number: number, codec: Codec<V>): Field<V> {
  return { ...plain(number, codec, ''), presence: 'required' };
}

/** For a property that is left out where it has no value. */
export function optional<V>(number: number, codec: Codec<V>): OptionalField<V> {
  return { ...plain(number, codec, 'optional '), presence: 'optional' };
}

/** For a property that is undefined where it has no value. */
export function present<V>(number: number, codec: Codec<V>): OptionalField<V> {
  return { ...plain(number, codec, 'optional '), presence: 'present' };
}

export function list<V>(number: number, codec: Codec<V>): Field<readonly V[]> {
  const tag = number * 8 + codec.wireType;
  return {
    number,
    codec,
    presence: 'required',
    declared: `repeated ${codec.proto}`,
    empty: () => [],
    write(writer: MessageWriter, items: readonly V[]) {
      for (const item of items) {
        writer.count(tag);
        codec.write(writer, item);
      }
    },
    read(reader, depth, before: V[]) {
      before.push(codec.read(reader, depth));
      return before;
    },
  };
}

/** Items of a long list that are one step. */
export const STEP_ITEMS = 32;
/** A message of a list that is not longer is read without steps. */
const BRIEF_BYTES = 2048;

/** A list that may have very many items: of which a message is written and read in steps. */
export function longList<V>(number: number, codec: Codec<V>): Field<readonly V[]> {
  const field = list(number, codec);
  const tag = number * 8 + codec.wireType;
  const long = codec instanceof MessageCodec && codec.isLong ? codec : undefined;
  return {
    ...field,
    isBrief: (items: readonly V[]) =>
      items.length < STEP_ITEMS && (long === undefined || items.every((item) => long.isBrief(item))),
    *writeInSteps(writer: MessageWriter, items: readonly V[]) {
      const start = writer.length;
      let done = 0;
      for (const item of items) {
        writer.count(tag);
        if (long === undefined || long.isBrief(item)) codec.write(writer, item);
        else yield* long.writeInSteps(writer, item);
        if (++done % STEP_ITEMS > 0) continue;
        writer.expect(((writer.length - start) / done) * (items.length - done));
        yield;
      }
    },
    *readInSteps(reader, depth, before: V[]) {
      const isBrief = long === undefined || reader.lengthAhead() <= BRIEF_BYTES;
      before.push(isBrief ? codec.read(reader, depth) : yield* long.readInSteps(reader, depth));
      if (before.length % STEP_ITEMS === 0) yield;
      return before;
    },
  };
}

const KEY_TAG = 1 * 8 + WireType.length;
const VALUE_NUMBER = 2;

/** By a key of text. The object that is read has no prototype. */
export function map<V>(number: number, codec: Codec<V>): Field<Readonly<Record<string, V>>> {
  const tag = number * 8 + WireType.length;
  const valueTag = VALUE_NUMBER * 8 + codec.wireType;
  return {
    number,
    codec,
    presence: 'required',
    declared: `map<string, ${codec.proto}>`,
    empty: () => Object.create(null),
    write(writer: MessageWriter, entries: Readonly<Record<string, V>>) {
      for (const [key, value] of Object.entries(entries)) {
        writer.count(tag);
        const start = writer.begin();
        writer.count(KEY_TAG);
        writer.text(key);
        writer.count(valueTag);
        codec.write(writer, value);
        writer.end(start);
      }
    },
    read(reader, depth, before: Record<string, V>) {
      const entry = reader.message();
      let key: string | undefined;
      let value: V | undefined;
      while (entry.next()) {
        if (entry.field === 1) key = entry.text();
        else if (entry.field === VALUE_NUMBER) value = codec.read(entry, depth + 1);
        else entry.skip();
      }
      if (key === undefined || value === undefined)
        throw invalidArgument('invalid protobuf message: an entry of a map lacks its key or its value');
      before[key] = value;
      return before;
    },
  };
}

interface NamedField extends AnyField {
  readonly name: string;
  readonly presence: 'required' | 'present' | 'optional';
}

class FieldsCodec<T extends object> extends MessageCodec<T> {
  readonly #fields: readonly NamedField[];
  /** By their numbers. */
  readonly #byNumber: (NamedField | undefined)[] = [];
  /** Those that may have very many parts. */
  readonly #long: readonly NamedField[];

  constructor(name: string, fields: FieldsOf<T>) {
    super(name);
    this.#fields = Object.entries<Omit<NamedField, 'name'>>(fields).map(([key, field]) => ({ ...field, name: key }));
    this.#long = this.#fields.filter(({ writeInSteps }) => writeInSteps !== undefined);
    for (const field of this.#fields) {
      const isFree = field.number > 0 && this.#byNumber[field.number] === undefined;
      assert(isFree, `${name}.${field.name} has a number of its own`);
      this.#byNumber[field.number] = field;
    }
  }

  override get isLong(): boolean {
    return this.#long.length > 0;
  }

  override isBrief(value: T): boolean {
    return this.#long.every((field) => {
      const item = this.#valueOf(value, field);
      return item === undefined || field.isBrief?.(item);
    });
  }

  writeFields(writer: MessageWriter, value: T): void {
    for (const field of this.#fields) {
      const item = this.#valueOf(value, field);
      if (item !== undefined) field.write(writer, item);
    }
  }

  override *writeFieldsInSteps(writer: MessageWriter, value: T): Generator<void, void> {
    for (const field of this.#fields) {
      const item = this.#valueOf(value, field);
      if (item === undefined) continue;
      if (field.writeInSteps === undefined) field.write(writer, item);
      else yield* field.writeInSteps(writer, item);
    }
  }

  readFields(reader: WireReader, depth: number): T {
    const object = this.#empty();
    while (reader.next()) {
      const field = this.#byNumber[reader.field];
      if (field === undefined) reader.skip();
      else object[field.name] = field.read(reader, depth, object[field.name]);
    }
    return this.#whole(object);
  }

  override *readFieldsInSteps(reader: WireReader, depth: number): Generator<void, T> {
    const object = this.#empty();
    while (reader.next()) {
      const field = this.#byNumber[reader.field];
      if (field === undefined) reader.skip();
      else if (field.readInSteps === undefined) object[field.name] = field.read(reader, depth, object[field.name]);
      else object[field.name] = yield* field.readInSteps(reader, depth, object[field.name]);
    }
    return this.#whole(object);
  }

  #valueOf(value: T, { name, presence }: NamedField): unknown {
    const item = (value as Record<string, unknown>)[name];
    assert(item !== undefined || presence !== 'required', `${this.proto} has its field ${name}`);
    return item;
  }

  /** In the order of the definition, so that all objects of a type are alike to the engine. */
  #empty(): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    for (const field of this.#fields) if (field.presence !== 'optional') object[field.name] = field.empty();
    return object;
  }

  #whole(object: Record<string, unknown>): T {
    for (const { name, presence } of this.#fields)
      if (presence === 'required' && object[name] === undefined) throw missingField(this.proto, name);
    return object as T;
  }

  define(): Definition {
    return {
      name: this.proto,
      lines: [
        `message ${this.proto} {`,
        ...this.#fields.map(({ name, number, declared }) => `  ${declared} ${snakeCase(name)} = ${number};`),
        '}',
      ],
      uses: this.#fields.map(({ codec }) => codec),
    };
  }
}

/** A message of these fields. */
export function message<T extends object>(name: string, fields: FieldsOf<NoInfer<T>>): MessageCodec<T> {
  return new FieldsCodec(name, fields);
}

class MappedCodec<T, U> extends MessageCodec<T> {
  readonly #inner: MessageCodec<U>;
  readonly #to: (value: T) => U;
  readonly #from: (value: U) => T;

  constructor(inner: MessageCodec<U>, to: (value: T) => U, from: (value: U) => T) {
    super(inner.proto);
    this.#inner = inner;
    this.#to = to;
    this.#from = from;
  }

  writeFields(writer: MessageWriter, value: T): void {
    this.#inner.writeFields(writer, this.#to(value));
  }

  readFields(reader: WireReader, depth: number): T {
    return this.#from(this.#inner.readFields(reader, depth));
  }

  override get isLong(): boolean {
    return this.#inner.isLong;
  }

  override writeFieldsInSteps(writer: MessageWriter, value: T): Generator<void, void> {
    return this.#inner.writeFieldsInSteps(writer, this.#to(value));
  }

  override *readFieldsInSteps(reader: WireReader, depth: number): Generator<void, T> {
    return this.#from(yield* this.#inner.readFieldsInSteps(reader, depth));
  }

  define(): Definition {
    return this.#inner.define();
  }
}

/** The message of values that another message stands for. */
export function mappedMessage<T, U>(
  inner: MessageCodec<U>,
  to: (value: T) => U,
  from: (value: U) => T,
): MessageCodec<T> {
  return new MappedCodec(inner, to, from);
}

/** A message with nothing in it: for undefined. */
export function nothing(name: string): MessageCodec<undefined> {
  return mappedMessage(
    message<object>(name, {}),
    () => ({}),
    () => undefined,
  );
}

/** A message of a list, which may have very many items. */
export function listOf<T>(name: string, codec: Codec<T>): MessageCodec<readonly T[]> {
  return mappedMessage(
    message<{ readonly items: readonly T[] }>(name, { items: longList(1, codec) }),
    (items) => ({ items }),
    ({ items }) => items,
  );
}

/** A message of a map. */
export function mapOf<T>(name: string, codec: Codec<T>): MessageCodec<Readonly<Record<string, T>>> {
  return mappedMessage(
    message<{ readonly entries: Readonly<Record<string, T>> }>(name, { entries: map(1, codec) }),
    (entries) => ({ entries }),
    ({ entries }) => entries,
  );
}

class MaybeCodec<T> extends MessageCodec<T | undefined> {
  readonly #codec: Codec<T>;

  constructor(name: string, codec: Codec<T>) {
    super(name);
    this.#codec = codec;
  }

  writeFields(writer: MessageWriter, value: T | undefined): void {
    if (value === undefined) return;
    writer.count(1 * 8 + this.#codec.wireType);
    this.#codec.write(writer, value);
  }

  readFields(reader: WireReader, depth: number): T | undefined {
    let value: T | undefined;
    while (reader.next()) {
      if (reader.field === 1) value = this.#codec.read(reader, depth);
      else reader.skip();
    }
    return value;
  }

  define(): Definition {
    const lines = [`message ${this.proto} {`, `  optional ${this.#codec.proto} value = 1;`, '}'];
    return { name: this.proto, lines, uses: [this.#codec] };
  }
}

/** A message of a value that may be undefined, as in a list of outcomes. */
export function maybe<T>(name: string, codec: Codec<T>): MessageCodec<T | undefined> {
  return new MaybeCodec(name, codec);
}

/** A message of one value. */
export function single<T>(name: string, codec: Codec<T>): MessageCodec<T> {
  return mappedMessage(
    maybe(name, codec),
    (value) => value,
    (value) => {
      if (value === undefined) throw missingField(name, 'value');
      return value;
    },
  );
}

/** The name of a field in a .proto file. */
export function snakeCase(name: string): string {
  return name.replaceAll(/([a-z])([A-Z])/g, '$1_$2').toLowerCase();
}
