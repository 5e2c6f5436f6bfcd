import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { aligned, counted, formatMicros, jsonLine, tabbed } from './output.ts';
import { quoted, visible } from './quote.ts';

describe('bytes for people', () => {
  const CASES: readonly [Buffer | string, string][] = [
    ['', '""'],
    ['hello world', '"hello world"'],
    ['a"b\\c', '"a\\"b\\\\c"'],
    ['tab\tline\nreturn\r', '"tab\\tline\\nreturn\\r"'],
    ['\x07\b\f\v\x00\x1b\x7f', '"\\a\\b\\f\\v\\x00\\x1b\\x7f"'],
    ['Šipka ☃ 😀', '"Šipka ☃ 😀"'],
    ['\u00a0\u200b\u2028\ue000\u{e0001}', '"\\u00a0\\u200b\\u2028\\ue000\\U000e0001"'],
    ['\ufffd', '"\ufffd"'],
    [Buffer.from([0x01, 0xff, 0xfe, 0x7f]), '"\\x01\\xff\\xfe\\x7f"'],
    [Buffer.from([0x61, 0xc3]), '"a\\xc3"'],
    [Buffer.from([0xc3, 0x28]), '"\\xc3("'],
    [Buffer.from([0xed, 0xa0, 0x80]), '"\\xed\\xa0\\x80"'],
    [Buffer.from([0xc0, 0x80]), '"\\xc0\\x80"'],
    [Buffer.from([0xef, 0xbf]), '"\\xef\\xbf"'],
    [Buffer.from([0xef, 0x41, 0x42]), '"\\xefAB"'],
    [Buffer.from([0xf0, 0x9f, 0x98, 0x41]), '"\\xf0\\x9f\\x98A"'],
    [Buffer.from([0xf5, 0x80, 0x80, 0x80]), '"\\xf5\\x80\\x80\\x80"'],
  ];
  for (const [bytes, shown] of CASES) test(shown, () => assert.equal(quoted(Buffer.from(bytes as string)), shown));

  test('keys are shown as they are, and cannot control the terminal', () => {
    assert.equal(visible(Buffer.from('com.cnn.www/"x"\\')), 'com.cnn.www/"x"\\');
    assert.equal(visible(Buffer.from('a\x1b[31m\n\xff', 'latin1')), 'a\\x1b[31m\\n\\xff');
  });

  test('any quoted bytes can be read back', () => {
    const SHORT: Readonly<Record<string, number>> = { a: 7, b: 8, f: 12, n: 10, r: 13, t: 9, v: 11 };
    const unquote = (text: string): Buffer => {
      const parts: Buffer[] = [];
      const pattern = /\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))|([^\\]+)/gsu;
      for (const [, x, u, long, short, plain] of text.slice(1, -1).matchAll(pattern)) {
        const rune = u ?? long;
        if (x !== undefined) parts.push(Buffer.from(x, 'hex'));
        else if (rune !== undefined) parts.push(Buffer.from(String.fromCodePoint(Number.parseInt(rune, 16))));
        else if (short !== undefined)
          parts.push(short in SHORT ? Buffer.from([SHORT[short] as number]) : Buffer.from(short));
        else parts.push(Buffer.from(plain as string));
      }
      return Buffer.concat(parts);
    };
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 40 }).map((some) => Buffer.from(some)),
      fc.string({ unit: 'binary', maxLength: 20 }).map((text) => Buffer.from(text)),
    );
    fc.assert(fc.property(bytes, (some) => assert.deepEqual(unquote(quoted(some)), some)));
  });
});

describe('JSON', () => {
  test('int64 comes as text, a document is a line', () => {
    assert.equal(
      jsonLine({ timestamp: 9223372036854775807n, small: 5, text: 'a\nb' }),
      '{"timestamp":"9223372036854775807","small":5,"text":"a\\nb"}\n',
    );
  });
});

describe('times and tables of text', () => {
  test('microseconds are shown as cbt does, in UTC; as a number beyond the calendar', () => {
    assert.equal(formatMicros(0n), '1970/01/01-00:00:00.000000');
    assert.equal(formatMicros(1_700_000_000_123_456n), '2023/11/14-22:13:20.123456');
    assert.equal(formatMicros(253_402_300_799_999_999n), '9999/12/31-23:59:59.999999');
    for (const micros of [253_402_300_800_000_000n, -1n, -(2n ** 63n), 2n ** 63n - 1n])
      assert.equal(formatMicros(micros), `${micros}`);
  });

  test('lists have cbt’s tab stops', () => {
    assert.equal(
      tabbed([
        ['Family Name', 'GC Policy'],
        ['f', 'x'],
      ]),
      'Family Name\tGC Policy\nf\t\tx\n',
    );
    assert.equal(
      tabbed([
        ['1234567890123', 'a'],
        ['12345678', 'b'],
      ]),
      '1234567890123\t\ta\n12345678\t\tb\n',
    );
    assert.equal(tabbed([['twelve_chars', 'a']]), 'twelve_chars\ta\n');
    assert.equal(
      tabbed([
        ['a', 'b', 'c'],
        ['d', '', ''],
      ]),
      'a\t\tb\t\tc\nd\t\t\t\t\n',
    );
  });

  test('columns are aligned, numbers to the right, and no line ends in spaces', () => {
    assert.equal(
      aligned(
        [
          ['a', 'bytes', 'z'],
          ['longer', 5, ''],
          ['b', 12345, 'z'],
        ],
        ' ',
      ),
      ' a       bytes  z\n longer      5\n b       12345  z\n',
    );
  });

  test('one is one and two are many', () => {
    assert.deepEqual(
      [counted(1, 'row'), counted(0, 'row'), counted(2, 'entry', 'entries')],
      ['1 row', '0 rows', '2 entries'],
    );
  });
});
