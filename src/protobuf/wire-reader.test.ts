import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { INT64_MAX, INT64_MIN, int64, toBigInt } from '../base/index.ts';
import { WireReader } from './wire-reader.ts';

const anyInt64 = fc.bigInt({ min: INT64_MIN, max: INT64_MAX }).map(int64);
const value = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));

const invalid = { code: 3 };

function message(write: (writer: BinaryWriter) => BinaryWriter): Buffer {
  return Buffer.from(write(new BinaryWriter()).finish());
}

describe('the wire reader', () => {
  test('integers of all of int64 are read as they were written', () => {
    fc.assert(
      fc.property(anyInt64, (given) => {
        const reader = new WireReader(message((writer) => writer.tag(1, WireType.Varint).int64(toBigInt(given))));
        assert.ok(reader.next());
        assert.equal(reader.int64(), given);
        assert.equal(reader.next(), false);
      }),
    );
  });

  test('32-bit integers and flags', () => {
    fc.assert(
      fc.property(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), (given) => {
        const reader = new WireReader(message((writer) => writer.tag(5, WireType.Varint).int32(given)));
        assert.ok(reader.next());
        assert.equal(reader.int32(), given);
      }),
    );
  });

  test('fields come in their order, with numbers up to 2^29 - 1, and skipping passes every wire type', () => {
    fc.assert(
      fc.property(value, fc.integer({ min: 16, max: 2 ** 29 - 1 }), (bytes, number) => {
        const given = message((writer) =>
          writer
            .tag(number, WireType.LengthDelimited)
            .bytes(bytes)
            .tag(2, WireType.Bit32)
            .fixed32(7)
            .tag(3, WireType.Bit64)
            .fixed64(7n)
            .tag(4, WireType.StartGroup)
            .tag(9, WireType.Varint)
            .int32(1)
            .tag(4, WireType.StartGroup)
            .tag(4, WireType.EndGroup)
            .tag(4, WireType.EndGroup)
            .tag(5, WireType.Varint)
            .uint64(2n ** 64n - 1n)
            .tag(6, WireType.LengthDelimited)
            .string('last'),
        );
        const reader = new WireReader(given);
        const fields: number[] = [];
        while (reader.next()) {
          fields.push(reader.field);
          if (reader.field === number) assert.deepEqual(reader.bytes(), bytes);
          else if (reader.field === 6) assert.equal(reader.text(), 'last');
          else reader.skip();
        }
        assert.deepEqual(fields, [number, 2, 3, 4, 5, 6]);
      }),
    );
  });

  test('a span is read without a copy, and no further than its end', () => {
    const given = message((writer) =>
      writer
        .tag(1, WireType.LengthDelimited)
        .bytes(message((inner) => inner.tag(1, WireType.LengthDelimited).string('é')))
        .tag(2, WireType.Varint)
        .int32(3),
    );
    const outer = new WireReader(given);
    assert.ok(outer.next());
    outer.span();
    const inner = new WireReader(given, outer.spanStart, outer.spanEnd);
    assert.ok(inner.next());
    assert.equal(inner.byteString(), '\xc3\xa9');
    assert.equal(inner.next(), false);
    assert.ok(outer.next());
    assert.equal(outer.int32(), 3);
    outer.next();
    assert.equal(given.buffer, new WireReaderProbe(given).first().buffer);
  });

  test('a text that is known is returned itself, and any other is read', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 20 }),
        fc.string({ unit: 'binary', maxLength: 20 }),
        fc.boolean(),
        (text, other, same) => {
          const reader = new WireReader(message((writer) => writer.tag(1, WireType.LengthDelimited).string(text)));
          assert.ok(reader.next());
          assert.equal(reader.textLike(same ? text : other), Buffer.from(text, 'utf8').toString('utf8'));
        },
      ),
    );
    // a byte that is no UTF-8 is not the character of its number
    const reader = new WireReader(message((writer) => writer.tag(1, WireType.LengthDelimited).bytes(Buffer.of(0xe9))));
    assert.ok(reader.next());
    assert.equal(reader.textLike('\xe9'), '\ufffd');
  });

  test('a byte string that is known is returned itself, and any other is read; its length can be read before', () => {
    const anyBytes = fc.string({ unit: fc.nat(255).map((code) => String.fromCharCode(code)), maxLength: 20 });
    fc.assert(
      fc.property(anyBytes, anyBytes, fc.boolean(), (value, other, same) => {
        const reader = new WireReader(
          message((writer) => writer.tag(1, WireType.LengthDelimited).bytes(Buffer.from(value, 'latin1'))),
        );
        assert.ok(reader.next());
        assert.equal(reader.lengthAhead(), value.length);
        assert.equal(reader.byteStringLike(same ? value : other), value);
        assert.equal(reader.next(), false);
      }),
    );
  });

  test('a message inside is read to its own end', () => {
    const reader = new WireReader(
      message((writer) =>
        writer
          .tag(2, WireType.LengthDelimited)
          .fork()
          .tag(1, WireType.Varint)
          .int32(7)
          .join()
          .tag(3, WireType.Varint)
          .int32(8),
      ),
    );
    assert.ok(reader.next());
    const inner = reader.message();
    assert.ok(inner.next());
    assert.equal(inner.int32(), 7);
    assert.equal(inner.next(), false);
    assert.ok(reader.next());
    assert.equal(reader.int32(), 8);
  });

  const malformed: readonly [string, number[], (reader: WireReader) => unknown][] = [
    ['field number 0', [0x00, 0x00], (reader) => reader.skip()],
    ['a tag cut off', [0x80], (reader) => reader.skip()],
    ['a tag above 32 bits', [0xff, 0xff, 0xff, 0xff, 0x7f, 0x00], (reader) => reader.skip()],
    ['a length that runs over the end', [0x0a, 0x05, 0x61], (reader) => reader.bytes()],
    ['a length above 32 bits', [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], (reader) => reader.bytes()],
    ['a skipped length that runs over the end', [0x0a, 0x05, 0x61], (reader) => reader.skip()],
    ['a varint without end', [0x08, 0x80, 0x80], (reader) => reader.int64()],
    ['a varint above ten bytes', [0x08, ...new Array(10).fill(0xff), 0x01], (reader) => reader.int64()],
    ['eight bytes cut off', [0x09, 1, 2, 3], (reader) => reader.skip()],
    ['four bytes cut off', [0x0d, 1, 2, 3], (reader) => reader.skip()],
    ['a group without end', [0x0b, 0x08, 0x01], (reader) => reader.skip()],
    ['a group that ends as another', [0x0b, 0x14], (reader) => reader.skip()],
    ['an end of no group', [0x0c], (reader) => reader.skip()],
    ['groups nested too deep', new Array(100).fill(0x0b), (reader) => reader.skip()],
    ['wire type 6', [0x0e], (reader) => reader.skip()],
    ['a number where bytes are due', [0x08, 0x01], (reader) => reader.bytes()],
    ['bytes where a number is due', [0x0a, 0x01, 0x61], (reader) => reader.int64()],
    ['bytes where a flag is due', [0x0a, 0x01, 0x61], (reader) => reader.int32()],
  ];
  for (const [name, bytes, read] of malformed) {
    test(`${name} is INVALID_ARGUMENT`, () => {
      assert.throws(() => {
        const reader = new WireReader(Buffer.from(bytes));
        reader.next();
        read(reader);
      }, invalid);
    });
  }

  test('any bytes are either read or refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const reader = new WireReader(Buffer.from(bytes));
        try {
          while (reader.next()) reader.skip();
        } catch (error) {
          assert.equal((error as { code?: number }).code, 3);
        }
      }),
      { numRuns: 500 },
    );
  });
});

/** The first field's bytes, to see whose memory they are. */
class WireReaderProbe extends WireReader {
  first(): Buffer {
    this.next();
    return this.bytes();
  }
}
