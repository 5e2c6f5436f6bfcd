import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { KeyBuffer } from './key-buffer.ts';

const put = (key: KeyBuffer, text: string, shared = 0): void =>
  key.replace(shared, Buffer.from(text.slice(shared), 'latin1'), 0, text.length - shared);
const anyKey = fc.string({ unit: fc.constantFrom('\0', 'a', 'b', '\x80', '\xff'), maxLength: 40 });

describe('KeyBuffer', () => {
  test('is the text of the joined pieces, whether keys recur or not, and whichever text is expected', () => {
    const texts = fc.array(fc.tuple(anyKey, fc.boolean()), { maxLength: 30 });
    fc.assert(
      fc.property(fc.boolean(), anyKey, texts, (recurs, expected, keys) => {
        const key = new KeyBuffer(recurs);
        let before = '';
        for (const [text, isExpected] of keys) {
          let shared = 0;
          while (shared < text.length && text[shared] === before[shared]) shared++;
          const { changes } = key;
          put(key, text, shared);
          key.expect(isExpected ? text : expected);
          assert.deepEqual([key.text, key.length, key.equals(text), key.compare(text)], [text, text.length, true, 0]);
          assert.equal(key.changes === changes, text === before);
          before = text;
        }
      }),
    );
  });

  test('keys that recur are never confused, however many there are', () => {
    const [a, b] = [new KeyBuffer(true), new KeyBuffer(true)];
    for (let i = 0; i < 5000; i++) {
      put(a, `family\0column ${i}`);
      put(b, `family\0column ${i % 3}`);
      assert.deepEqual([a.text, b.text], [`family\0column ${i}`, `family\0column ${i % 3}`]);
    }
  });
});
