import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Setting } from './setting.ts';
import { boundsText, defaultText, docText, formatSetting, parseSetting, wantedText } from './setting-text.ts';

const ABOUT = { group: 'Some', doc: 'What it does.' };
const SIZE = { kind: 'bytes', least: 1024, most: 2 ** 50, default: 2 ** 20, ...ABOUT } as const satisfies Setting;
const DURATION = { kind: 'duration', least: 0, default: 90_000, ...ABOUT } as const satisfies Setting;
const COUNT = { kind: 'count', least: 1, most: 64, default: 1, ...ABOUT } as const satisfies Setting;
const CHOICE = { kind: 'choice', choices: ['a', 'b', 'c'], default: 'a', ...ABOUT } as const satisfies Setting;
const BOOLEAN = { kind: 'boolean', default: false, ...ABOUT } as const satisfies Setting;
const PATH = { kind: 'path', ...ABOUT } as const satisfies Setting;
const WORD = { kind: 'address', word: 'off', without: 'the usual one', ...ABOUT } as const satisfies Setting;
const ADDRESS = { kind: 'address', default: 'localhost:1', ...ABOUT } as const satisfies Setting;

describe('settings as text', () => {
  const right: [Setting, string, unknown][] = [
    [SIZE, '1024', 1024],
    [SIZE, '1KiB', 1024],
    [SIZE, '1 kib', 1024],
    [SIZE, ' 64MiB ', 2 ** 26],
    [SIZE, '1.5GiB', 1.5 * 2 ** 30],
    [SIZE, '2TiB', 2 ** 41],
    [SIZE, '2048B', 2048],
    [DURATION, '0', 0],
    [DURATION, '250ms', 250],
    [DURATION, '1.1s', 1100],
    [DURATION, '90s', 90_000],
    [DURATION, '5m', 300_000],
    [DURATION, '0.5h', 1_800_000],
    [DURATION, '2d', 172_800_000],
    [COUNT, '64', 64],
    [CHOICE, 'b', 'b'],
    [BOOLEAN, 'true', true],
    [BOOLEAN, 'YES', true],
    [BOOLEAN, 'on', true],
    [BOOLEAN, '1', true],
    [BOOLEAN, 'false', false],
    [BOOLEAN, 'no', false],
    [BOOLEAN, 'off', false],
    [BOOLEAN, '0', false],
    [PATH, '/a b/c', '/a b/c'],
    [ADDRESS, '[::1]:80', '[::1]:80'],
    [WORD, 'off', 'off'],
    [WORD, 'a:1', 'a:1'],
  ];
  for (const [setting, text, value] of right)
    test(`${setting.kind} ${JSON.stringify(text)}`, () => assert.equal(parseSetting(setting, text), value));

  const wrong: [Setting, string][] = [
    [SIZE, ''],
    [SIZE, '1023'],
    [SIZE, '-1'],
    [SIZE, '64MB'],
    [SIZE, '64M'],
    [SIZE, '0x400'],
    [SIZE, '1e9'],
    [SIZE, '1024.5'],
    [SIZE, '9999TiB'],
    [SIZE, '64 MiB extra'],
    [SIZE, '1,024'],
    [SIZE, 'Infinity'],
    [SIZE, `${'9'.repeat(400)}`],
    [DURATION, '5min'],
    [DURATION, '0.1ms'],
    [DURATION, '1h30m'],
    [DURATION, 'soon'],
    [COUNT, '0'],
    [COUNT, '65'],
    [COUNT, '1.5'],
    [COUNT, '1MiB'],
    [CHOICE, 'A'],
    [CHOICE, 'constructor'],
    [BOOLEAN, 'maybe'],
    [BOOLEAN, ''],
    [PATH, ''],
    [PATH, 'a\0b'],
    [ADDRESS, 'nowhere'],
    [ADDRESS, ':80'],
    [ADDRESS, 'a:99999'],
    [ADDRESS, 'off'],
    [WORD, 'on'],
  ];
  for (const [setting, text] of wrong)
    test(`${setting.kind} ${JSON.stringify(text.slice(0, 20))} is invalid`, () =>
      assert.equal(parseSetting(setting, text), undefined));

  test('a printed value is read as the same value', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(SIZE, DURATION),
        fc.integer({ min: 1024, max: 2 ** 50 }),
        fc.constantFrom(1, 1000, 1024, 60_000, 2 ** 20, 2 ** 30),
        (setting, number, unit) => {
          const value = Math.max(1024, Math.floor(number / unit)) * unit;
          fc.pre(value <= 2 ** 50);
          assert.equal(parseSetting(setting, formatSetting(setting, value)), value);
        },
      ),
    );
    assert.deepEqual(
      [2 ** 26, 1536, 1025].map((value) => formatSetting(SIZE, value)),
      ['64 MiB', '1536 B', '1025 B'],
    );
    assert.deepEqual(
      [0, 90_000, 86_400_000].map((value) => formatSetting(DURATION, value)),
      ['0 ms', '90 s', '1 d'],
    );
  });

  test('words for readers', () => {
    assert.match(wantedText(SIZE), /^a size from 1 KiB to 1024 TiB, as 64MiB/);
    assert.match(wantedText(DURATION), /^a duration of at least 0 ms, as 30s/);
    assert.equal(wantedText(CHOICE), 'a, b or c');
    assert.equal(boundsText(COUNT), '1 to 64');
    assert.equal(boundsText(DURATION), '');
    assert.equal(defaultText(PATH), 'none');
    assert.equal(defaultText(WORD), 'the usual one');
    assert.match(wantedText(WORD), /^HOST:PORT .*; or off$/);
    assert.equal(defaultText({ ...SIZE, default: { compute: () => 5000, says: 'much' } }), 'much');
    assert.equal(docText(COUNT), 'What it does. Default: 1; 1 to 64.');
  });
});
