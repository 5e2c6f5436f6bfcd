/** Messages of one of several kinds, a oneof in protobuf: each kind has fields or a codec of its own. */
import { assert, invalidArgument } from '../base/index.ts';
import { type Definition, MessageCodec, WireType } from './codec.ts';
import { type FieldsOf, message, snakeCase } from './fields.ts';
import type { MessageWriter } from './message-writer.ts';
import type { WireReader } from './wire-reader.ts';

/** For each kind its number, and the fields of the objects of that kind, or a codec of these objects. */
type KindsOf<T extends { readonly kind: string }> = {
  readonly [K in T['kind']]: readonly [
    number: number,
    form: FieldsOf<Omit<Extract<T, { kind: K }>, 'kind'>> | MessageCodec<Extract<T, { kind: K }>>,
  ];
};

/** Reads and writes the objects of a kind by their fields. */
class KindCodec extends MessageCodec<object> {
  readonly #kind: string;
  readonly #fields: MessageCodec<object>;

  constructor(kind: string, name: string, fields: FieldsOf<object>) {
    super(name);
    this.#kind = kind;
    this.#fields = message(name, fields);
  }

  writeFields(writer: MessageWriter, value: object): void {
    this.#fields.writeFields(writer, value);
  }

  readFields(reader: WireReader, depth: number): object {
    return { kind: this.#kind, ...this.#fields.readFields(reader, depth) };
  }

  define(): Definition {
    return this.#fields.define();
  }
}

class KindsCodec<T extends { readonly kind: string }> extends MessageCodec<T> {
  readonly #byKind = new Map<string, { readonly number: number; readonly codec: MessageCodec<object> }>();
  readonly #byNumber = new Map<number, MessageCodec<object>>();

  constructor(name: string, kinds: KindsOf<T>) {
    super(name);
    type Form = FieldsOf<object> | MessageCodec<object>;
    for (const [kind, [number, form]] of Object.entries<readonly [number, Form]>(kinds)) {
      const ownName = `${name}${kind[0]?.toUpperCase()}${kind.slice(1)}`;
      const codec = form instanceof MessageCodec ? form : new KindCodec(kind, ownName, form);
      assert(codec.proto === ownName, `${name} of the kind ${kind} is ${ownName}`);
      this.#byKind.set(kind, { number, codec });
      assert(!this.#byNumber.has(number), `${name}.${kind} has a number of its own`);
      this.#byNumber.set(number, codec);
    }
  }

  writeFields(writer: MessageWriter, value: T): void {
    const found = this.#byKind.get(value.kind);
    assert(found !== undefined, `${this.proto} has the kind ${value.kind}`);
    writer.count(found.number * 8 + WireType.length);
    found.codec.write(writer, value);
  }

  readFields(reader: WireReader, depth: number): T {
    let value: object | undefined;
    while (reader.next()) {
      const found = this.#byNumber.get(reader.field);
      if (found === undefined) reader.skip();
      else value = found.read(reader, depth);
    }
    if (value === undefined)
      throw invalidArgument(`invalid protobuf message: ${this.proto} is of no kind that this version knows`);
    return value as T;
  }

  define(): Definition {
    return {
      name: this.proto,
      lines: [
        `message ${this.proto} {`,
        '  oneof kind {',
        ...[...this.#byKind].map(([kind, { number, codec }]) => `    ${codec.proto} ${snakeCase(kind)} = ${number};`),
        '  }',
        '}',
      ],
      uses: [...this.#byKind.values()].map(({ codec }) => codec),
    };
  }
}

/** Objects of several kinds, told apart by their property `kind`. */
export function oneOf<T extends { readonly kind: string }>(name: string, kinds: KindsOf<T>): MessageCodec<T> {
  return new KindsCodec(name, kinds);
}
