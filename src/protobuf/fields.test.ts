import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { Code, type Int64 } from '../base/index.ts';
import {
  byteString,
  bytes,
  choice,
  type Codec,
  count,
  flag,
  integer,
  list,
  listOf,
  map,
  maybe,
  message,
  nothing,
  number,
  oneOf,
  optional,
  present,
  protoFile,
  required,
  single,
  text,
  whole,
} from './index.ts';

interface Everything {
  readonly text: string;
  readonly row: string;
  readonly bytes: Uint8Array;
  readonly flag: boolean;
  readonly count: number;
  readonly whole: number;
  readonly integer: Int64;
  readonly number: number;
  readonly color: 'red' | 'dark-blue';
  readonly left?: string;
  readonly maybeCount: number | undefined;
  readonly names: readonly string[];
  readonly sizes: Readonly<Record<string, number>>;
}

const everything = message<Everything>('Everything', {
  text: required(1, text),
  row: required(2, byteString),
  bytes: required(3, bytes),
  flag: required(4, flag),
  count: required(5, count),
  whole: required(6, whole),
  integer: required(7, integer),
  number: required(8, number),
  color: required(9, choice('Color', { red: 1, 'dark-blue': 2 })),
  left: optional(10, text),
  maybeCount: present(11, count),
  names: list(12, text),
  sizes: map(13, number),
});

const value: Everything = {
  text: 'ü',
  row: '\0\xff',
  bytes: Buffer.of(1, 2),
  flag: true,
  count: 2 ** 53 - 1,
  whole: -(2 ** 53) + 1,
  integer: -(2n ** 63n),
  number: 0.1,
  color: 'dark-blue',
  maybeCount: undefined,
  names: ['a', ''],
  sizes: Object.assign(Object.create(null), { a: 1, b: -0 }),
};

/** The same message, written by another program. */
function written(): Buffer {
  const writer = new BinaryWriter();
  writer.tag(1, WireType.LengthDelimited).string('ü');
  writer.tag(2, WireType.LengthDelimited).bytes(Buffer.of(0, 255));
  writer.tag(3, WireType.LengthDelimited).bytes(Buffer.of(1, 2));
  writer.tag(4, WireType.Varint).bool(true);
  writer.tag(5, WireType.Varint).uint64(2 ** 53 - 1);
  writer.tag(6, WireType.Varint).int64(-(2 ** 53) + 1);
  writer.tag(7, WireType.Varint).int64(-(2n ** 63n));
  writer.tag(8, WireType.Bit64).double(0.1);
  writer.tag(9, WireType.Varint).int32(2);
  for (const name of ['a', '']) writer.tag(12, WireType.LengthDelimited).string(name);
  for (const [key, size] of [['a', 1] as const, ['b', -0] as const]) {
    writer.tag(13, WireType.LengthDelimited).fork();
    writer.tag(1, WireType.LengthDelimited).string(key).tag(2, WireType.Bit64).double(size);
    writer.join();
  }
  return Buffer.from(writer.finish());
}

describe('messages', () => {
  test('are written and read as other programs of protobuf do', () => {
    assert.deepEqual(everything.encode(value), written());
    assert.deepStrictEqual(everything.decode(written()), value);
  });

  test('of every length are nested', () => {
    const nested = single('Outer', single('Inner', bytes));
    for (const length of [0, 1, 123, 124, 125, 126, 127, 128, 16_379, 16_383, 16_384, 3_000_000]) {
      const encoded = nested.encode(Buffer.alloc(length, 7));
      assert.equal((nested.decode(encoded) as Buffer).length, length);
      const reader = new BinaryReader(encoded);
      reader.tag();
      const inner = new BinaryReader(reader.bytes());
      inner.tag();
      assert.equal(inner.bytes().length, length);
    }
  });

  test('are written in parts that are the same bytes, without a copy of long byte arrays', () => {
    interface Parts {
      readonly before: string;
      readonly pieces: readonly Uint8Array[];
      readonly inner: readonly { readonly piece: Uint8Array }[];
      readonly after: number;
    }
    const parts = message<Parts>('Parts', {
      before: required(1, text),
      pieces: list(2, bytes),
      inner: list(3, message<{ readonly piece: Uint8Array }>('Inner', { piece: required(1, bytes) })),
      after: required(4, count),
    });
    const piece = fc
      .tuple(fc.oneof(fc.nat(300), fc.integer({ min: 16_000, max: 70_000 })), fc.nat(255))
      .map(([length, fill]) => Buffer.alloc(length, fill));
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(piece, { maxLength: 5 }),
        fc.array(piece, { maxLength: 3 }),
        fc.nat(),
        (before, pieces, within, after) => {
          const value = { before, pieces, inner: within.map((one) => ({ piece: one })), after };
          const written = parts.encodeParts(value);
          const all = Buffer.isBuffer(written) ? [written] : written;
          assert.ok(Buffer.concat(all).equals(parts.encode(value)));
          for (const one of pieces) assert.equal(all.includes(one), one.length >= 16 * 1024);
          for (const one of within) assert.ok(!all.includes(one));
        },
      ),
    );
  });

  test('have the last value of a field that occurs twice', () => {
    const pair = message<{ readonly a: number }>('Pair', { a: required(1, count) });
    assert.deepEqual(pair.decode(Buffer.of(8, 1, 8, 2)), { a: 2 });
    const kinds = oneOf<{ readonly kind: 'a' } | { readonly kind: 'b'; readonly n: number }>('Kinds', {
      a: [1, {}],
      b: [2, { n: required(1, count) }],
    });
    assert.deepEqual(kinds.decode(Buffer.of(10, 0, 18, 2, 8, 5)), { kind: 'b', n: 5 });
    assert.deepEqual(kinds.decode(kinds.encode({ kind: 'a' })), { kind: 'a' });
  });

  test('with a field of another type are refused', () => {
    const codecs: readonly Codec<unknown>[] = [text, byteString, bytes, flag, count, whole, integer, number];
    for (const codec of codecs) {
      const wrong = codec.wireType === WireType.Varint ? Buffer.of(10, 0) : Buffer.of(8, 0);
      assert.throws(() => single('One', codec).decode(wrong), { code: Code.INVALID_ARGUMENT }, codec.proto);
    }
    const color = single('OneColor', choice('Color', { red: 1 }));
    assert.throws(() => color.decode(Buffer.of(8, 2)), /2 is no Color that this version knows/);
  });

  test('keep keys that mean something to objects', () => {
    const sizes = message<Pick<Everything, 'sizes'>>('Sizes', { sizes: map(1, number) });
    const given = { sizes: JSON.parse('{"__proto__":1,"constructor":2}') };
    const read = sizes.decode(sizes.encode(given));
    assert.deepEqual(Object.entries(read.sizes), [
      ['__proto__', 1],
      ['constructor', 2],
    ]);
    assert.throws(() => sizes.decode(Buffer.of(10, 0)), /lacks its key or its value/);
  });

  test('of nothing, of lists and of what may be undefined', () => {
    assert.equal(nothing('Nothing').decode(nothing('Nothing').encode(undefined)), undefined);
    const outcomes = listOf('Outcomes', maybe('Outcome', text));
    assert.deepEqual(outcomes.decode(outcomes.encode([undefined, '', 'x'])), [undefined, '', 'x']);
  });

  test('print their definitions', () => {
    assert.equal(
      protoFile(['syntax = "proto3";'], [everything]),
      `syntax = "proto3";

enum Color {
  COLOR_UNSPECIFIED = 0;
  COLOR_RED = 1;
  COLOR_DARK_BLUE = 2;
}

message Everything {
  string text = 1;
  bytes row = 2;
  bytes bytes = 3;
  bool flag = 4;
  uint64 count = 5;
  int64 whole = 6;
  int64 integer = 7;
  double number = 8;
  Color color = 9;
  optional string left = 10;
  optional uint64 maybe_count = 11;
  repeated string names = 12;
  map<string, double> sizes = 13;
}
`,
    );
  });

  test('have one number for each field', () => {
    assert.throws(
      () =>
        message<{ readonly a: number; readonly b: number }>('Twice', { a: required(1, count), b: required(1, count) }),
      /Twice.b has a number of its own/,
    );
  });
});
