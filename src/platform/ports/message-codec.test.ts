import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MessageDecoder } from './message-decoder.ts';
import { MessageEncoder, MAX_NUMBERED } from './message-encoder.ts';

/** The values decoded at the other side, message by message; encoder and decoder keep their tables. */
function pair() {
  const [encoder, decoder] = [new MessageEncoder(), new MessageDecoder()];
  return {
    encoder,
    decoder,
    pass: (...values: readonly unknown[]): unknown[] => {
      for (const value of values) encoder.whole(() => encoder.value(value));
      decoder.begin(encoder.take());
      const passed = values.map(() => decoder.value());
      assert.ok(decoder.atEnd);
      return passed;
    },
  };
}

const plain = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(
      undefined,
      null,
      true,
      false,
      Number.NaN,
      -0,
      0,
      Number.POSITIVE_INFINITY,
      2 ** 53,
      -(2 ** 30),
      2 ** 30 - 1,
    ),
    fc.integer(),
    fc.double(),
    fc.bigInt(),
    fc.string(),
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.uint8Array({ maxLength: 300 }),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    fc.array(tie('any'), { maxLength: 6 }),
    fc.dictionary(fc.string({ maxLength: 6 }), tie('any'), { maxKeys: 6, noNullPrototype: true }),
  ),
})).any;

describe('messages between threads', () => {
  test('any plain data is decoded unchanged, message after message', () => {
    fc.assert(
      fc.property(fc.array(fc.array(plain, { maxLength: 4 }), { maxLength: 4 }), (messages) => {
        const { pass } = pair();
        for (const values of messages) assert.deepStrictEqual(pass(...values), values);
      }),
    );
  });

  test('the types of structured cloning cross, as plain data does', () => {
    const values = [new Map([['a', 1]]), new Set([1, 2]), new Date(5), /x/g, 10n ** 30n];
    assert.deepStrictEqual(pair().pass(...values), values);
  });

  test('keys that mean something to objects are keys like others', () => {
    const [passed] = pair().pass(JSON.parse('{"__proto__":{"polluted":1},"constructor":2}')) as [
      Record<string, unknown>,
    ];
    assert.deepEqual(Object.keys(passed), ['__proto__', 'constructor']);
    assert.equal((passed as { polluted?: number }).polluted, undefined);
  });

  test('an object that recurs directly after itself is sent once, and is one object at the other side too', () => {
    const { encoder } = pair();
    const batch = { bytes: new Uint8Array(100_000).fill(7), starts: [1, 2, 3] };
    const rows = Array.from({ length: 100 }, (_, i) => ({ row: `r${i}`, mutations: { batch, from: i, length: 1 } }));
    encoder.whole(() => encoder.value(rows));
    assert.ok(encoder.lengthBytes < 105_000, `${encoder.lengthBytes} bytes`);
    const there = pair();
    // a message does not refer to objects of the one before, which the other side has dropped
    for (let message = 0; message < 2; message++) {
      const [passed] = there.pass(rows) as [typeof rows];
      assert.deepStrictEqual(passed, rows);
      assert.equal(passed[99]?.mutations.batch, passed[0]?.mutations.batch);
    }
  });

  test('no large buffer is kept after a large message, however full it was', () => {
    for (const pieces of [1, 25, 50, 75, 100]) {
      const { encoder, pass } = pair();
      pass(...Array.from({ length: pieces }, () => new Uint8Array(50_000)));
      assert.ok(
        encoder.capacityBytes <= 1 << 20,
        `${encoder.capacityBytes} bytes are kept after a message of ${pieces} times 50,000`,
      );
    }
  });

  test('an object that changes between two calls is sent anew', () => {
    const { encoder, decoder } = pair();
    const changing = { a: 1 };
    encoder.whole(() => encoder.value(changing));
    changing.a = 2;
    encoder.whole(() => encoder.value(changing));
    decoder.begin(encoder.take());
    assert.deepEqual([decoder.value(), decoder.value()], [{ a: 1 }, { a: 2 }]);
  });

  test('later messages do not refer to a message that was taken back', () => {
    const { encoder, pass } = pair();
    const shared = { a: 1, b: [2] };
    pass(shared);
    assert.throws(() => encoder.whole(() => encoder.value([shared, () => {}])));
    assert.deepStrictEqual(pass([shared, shared, { a: 2, b: shared }, shared]), [
      [shared, shared, { a: 2, b: shared }, shared],
    ]);
  });

  test('objects that occur several times are decoded unchanged', () => {
    const shared = fc
      .array(plain, { minLength: 1, maxLength: 5 })
      .chain((values) => fc.array(fc.array(fc.constantFrom(...values), { maxLength: 6 }), { maxLength: 6 }));
    fc.assert(
      fc.property(fc.array(shared, { maxLength: 3 }), (messages) => {
        const { pass } = pair();
        for (const values of messages) assert.deepStrictEqual(pass(...values), values);
      }),
    );
  });

  test('of bytes that are a view of a large memory only their own part is sent', () => {
    const large = Buffer.alloc(1 << 20, 1);
    const { encoder, pass } = pair();
    assert.deepEqual(pass(large.subarray(5, 8)), [Buffer.from([1, 1, 1])]);
    encoder.whole(() => encoder.value(large.subarray(5, 8)));
    assert.ok(encoder.take().buffer.byteLength < 100);
  });

  test('a shape and a name are sent once', () => {
    const [encoder, decoder] = [new MessageEncoder(), new MessageDecoder()];
    const lengths = [1, 2].map((value) => {
      encoder.whole(() => {
        encoder.name('a name that is said again and again');
        encoder.value({ theFirstKeyOfAnObject: value, theSecondKeyOfAnObject: value });
      });
      const bytes = encoder.take();
      decoder.begin(bytes);
      assert.equal(decoder.name(), 'a name that is said again and again');
      assert.deepEqual(decoder.value(), { theFirstKeyOfAnObject: value, theSecondKeyOfAnObject: value });
      return bytes.length;
    });
    assert.ok(lengths[0]! > 80 && lengths[1]! < 12, `${lengths}`);
  });

  test('more shapes and names than are numbered cross all the same', () => {
    const [encoder, decoder] = [new MessageEncoder(), new MessageDecoder()];
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < MAX_NUMBERED + 50; i++) {
        encoder.whole(() => {
          encoder.name(`name ${i}`);
          encoder.value({ [`key ${i}`]: i });
        });
      }
      decoder.begin(encoder.take());
      for (let i = 0; i < MAX_NUMBERED + 50; i++) {
        assert.equal(decoder.name(), `name ${i}`);
        assert.deepEqual(decoder.value(), { [`key ${i}`]: i });
      }
    }
  });

  test('a value that cannot be cloned leaves no trace, in the bytes and in the tables', () => {
    const { encoder, pass } = pair();
    assert.throws(() =>
      encoder.whole(() => {
        encoder.name('a name');
        encoder.value({ first: 1, second: { inner: () => {} } });
      }),
    );
    assert.equal(encoder.lengthBytes, 0);
    const values = [{ first: 1, second: { inner: 2 } }, { first: 2, second: { inner: 3 } }, { other: 1 }];
    assert.deepEqual(pass(...values), values);
  });

  test('numbers and lengths of every size', () => {
    const values = [
      0,
      127,
      128,
      16_383,
      16_384,
      2 ** 30 - 1,
      2 ** 30,
      -1,
      -64,
      -65,
      2 ** 40 + 0.5,
      'x'.repeat(47),
      'x'.repeat(49),
      'ÿ'.repeat(300),
      'ā'.repeat(300),
    ];
    assert.deepEqual(pair().pass(...values), values);
    const large = Buffer.alloc(3 << 20, 7);
    assert.deepEqual(pair().pass(large, 'after'), [large, 'after']);
  });
});
