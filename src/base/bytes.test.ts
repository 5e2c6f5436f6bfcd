import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  asBuffer,
  compareBytes,
  fromBytes,
  isSuccessor,
  prefixEnd,
  quote,
  successor,
  toBytes,
  toText,
  utf8,
  viewOf,
} from './bytes.ts';

const bytes = fc.uint8Array({ maxLength: 12 });
/** Few different bytes, so that equal beginnings and the extremes are common. */
const keys = fc
  .array(fc.constantFrom(0, 1, 0x61, 0x7f, 0x80, 0xfe, 0xff), { maxLength: 5 })
  .map((codes) => String.fromCharCode(...codes));

describe('byte strings', () => {
  test('hold and return every byte', () => {
    const all = Uint8Array.from({ length: 256 }, (_, i) => i);
    const key = fromBytes(all);
    assert.equal(key.length, 256);
    assert.deepEqual(new Uint8Array(toBytes(key)), all);
    fc.assert(fc.property(bytes, (input) => assert.deepEqual(new Uint8Array(toBytes(fromBytes(input))), input)));
  });

  test('are copies: the bytes they were made of may be reused', () => {
    const input = Uint8Array.of(1, 2, 3);
    const key = fromBytes(input);
    input.fill(9);
    assert.equal(key, '\x01\x02\x03');
    const output = toBytes(key);
    output.fill(9);
    assert.deepEqual([...toBytes(key)], [1, 2, 3]);
  });

  test('of a view take the view only', () => {
    const whole = Uint8Array.of(1, 2, 3, 4, 5);
    assert.equal(fromBytes(whole.subarray(1, 3)), '\x02\x03');
    assert.equal(fromBytes(new Uint8Array(0)), '');
  });

  test('a successor is recognized', () => {
    fc.assert(
      fc.property(keys, keys, (key, other) => {
        assert.equal(isSuccessor(other, key), other === successor(key));
        assert.ok(isSuccessor(successor(key), key));
      }),
    );
  });

  test('a view is the part of the memory that subarray returns', () => {
    const whole = Buffer.from('..abcdef').subarray(2);
    const view = viewOf(whole, 1, 4);
    assert.deepEqual(view, whole.subarray(1, 4));
    whole[1] = 0x78;
    assert.equal(view.toString(), 'xcd');
  });

  test('order as unsigned bytes do', () => {
    assert.ok('\x7f' < '\x80' && '' < '\0' && 'a' < 'a\0');
    fc.assert(
      fc.property(keys, keys, (a, b) => {
        const want = Buffer.compare(toBytes(a), toBytes(b));
        assert.equal(a < b ? -1 : a > b ? 1 : 0, want);
        assert.equal(Math.sign(compareBytes(toBytes(a), toBytes(b))), want);
      }),
    );
  });

  test('asBuffer shares the memory of a view', () => {
    const whole = Uint8Array.of(1, 2, 3, 4);
    const view = asBuffer(whole.subarray(1, 3));
    view[0] = 9;
    assert.deepEqual([...whole], [1, 9, 3, 4]);
    assert.equal(view.length, 2);
    const buffer = Buffer.from('x');
    assert.equal(asBuffer(buffer), buffer);
  });
});

describe('text', () => {
  test('is its UTF-8 bytes', () => {
    assert.equal(utf8('plain ASCII\n'), 'plain ASCII\n');
    assert.equal(utf8('§'), '\xc2\xa7');
    assert.equal(utf8('a€😀'), 'a\xe2\x82\xac\xf0\x9f\x98\x80');
    assert.equal(utf8(''), '');
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const key = utf8(text);
        assert.deepEqual([...toBytes(key)], [...Buffer.from(text, 'utf8')]);
        assert.equal(toText(key), Buffer.from(text, 'utf8').toString('utf8'));
        assert.ok([...key].every((c) => c.charCodeAt(0) <= 0xff));
      }),
    );
  });

  test('that is not UTF-8 reads with replacements', () => assert.equal(toText('a\xffb'), 'a\ufffdb'));
});

describe('neighbours in order', () => {
  test('nothing lies between a key and its successor', () => {
    fc.assert(
      fc.property(keys, keys, (key, other) => {
        assert.ok(key < successor(key));
        assert.ok(other <= key || other >= successor(key));
      }),
    );
  });

  test('prefixEnd: below it, from the prefix on, are those that start with it', () => {
    assert.equal(prefixEnd(''), undefined);
    assert.equal(prefixEnd('\xff\xff'), undefined);
    assert.equal(prefixEnd('a'), 'b');
    assert.equal(prefixEnd('a\xff'), 'b');
    assert.equal(prefixEnd('a\x7f'), 'a\x80');
    fc.assert(
      fc.property(keys, keys, (prefix, key) => {
        const end = prefixEnd(prefix);
        assert.equal(key.startsWith(prefix), key >= prefix && (end === undefined || key < end));
      }),
    );
  });
});

describe('quote', () => {
  test('shows printable ASCII as it is and the rest in hexadecimal', () => {
    assert.equal(quote('abc 1~'), '"abc 1~"');
    assert.equal(quote('\0\n\x7f\xff'), '"\\x00\\x0a\\x7f\\xff"');
    assert.equal(quote('say "\\"'), '"say \\"\\\\\\""');
    assert.equal(quote(''), '""');
  });

  test('cuts what is long and says how long it is', () => {
    assert.equal(quote('a'.repeat(64)), `"${'a'.repeat(64)}"`);
    assert.equal(quote('a'.repeat(65)), `"${'a'.repeat(64)}…" (65 bytes)`);
    assert.equal(quote('abcdef', 3), '"abc…" (6 bytes)');
  });
});
