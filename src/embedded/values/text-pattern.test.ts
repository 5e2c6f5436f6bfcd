import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Code, utf8 } from '../../base/index.ts';
import { compileFilter, Hint } from '../../filter/index.ts';
import { type Cell, LIMITS } from '../../model/index.ts';
import { bytePattern } from './text-pattern.ts';

const OPTIONS = { limits: LIMITS.default, random: { float: () => 0 } };

/** True if the expression, as the filters' engine takes it, matches the bytes whole. */
function matches(pattern: string, value: string | Uint8Array): boolean {
  const run = compileFilter({ kind: 'valueRegex', regex: bytePattern(pattern, 'regex') }, OPTIONS).run();
  const out: Cell[] = [];
  const settle = (hint: Hint): void => {
    for (let last = hint; last === Hint.busy; ) last = run.resume(out);
  };
  const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value;
  settle(run.startRow('r'));
  settle(run.push({ family: 'f', qualifier: 'q', timestamp: 0, value: bytes } as Cell, out));
  settle(run.endRow(out));
  return out.length > 0;
}

/**
 * The same. Ends the run of a property if the expression is larger than a filter may have: a class without regard to
 * case has many alternatives over bytes, and repetitions within repetitions multiply them. JavaScript has no such
 * limit.
 */
function matchesWhereItFits(pattern: string, value: string): boolean {
  try {
    return matches(pattern, value);
  } catch (thrown) {
    fc.pre(!/expressions are too large \(limit: /.test((thrown as Error).message));
    throw thrown;
  }
}

describe('an expression given as text', () => {
  const cases: readonly [pattern: string, yes: readonly string[], no: readonly string[]][] = [
    ['Zürich', ['Zürich'], ['ZÃ¼rich', 'Zurich']],
    ['日本', ['日本'], ['日', '本']],
    ['[äö]x', ['äx', 'öx'], ['x', 'äöx', 'üx', 'Ãx']],
    ['[a-zäöü]+', ['grün', 'ä', 'abc'], ['', 'Grün', 'ß']],
    ['[α-ω]{2}', ['αω', 'λμ'], ['α', 'αβγ', 'ab']],
    ['[^ä]', ['a', 'ö', '日', '😀'], ['ä', 'aa', '']],
    ['[^a]*b', ['äb', 'b', '日本b'], ['ab', 'äab']],
    ['Z.rich', ['Zürich', 'Zurich', 'Z😀rich'], ['Zrich', 'Züürich', 'Z\nrich']],
    ['.{3}', ['äöü', 'abc', '日本😀'], ['ä', 'äa', 'abcd']],
    ['.+.+', ['äö', 'ab'], ['ä', 'a', '']],
    ['(?s)a.b', ['aüb', 'a\nb'], ['ab']],
    ['ü?x', ['x', 'üx'], ['üüx']],
    ['ü*', ['', 'ü', 'üüü'], ['u']],
    ['ü{2}', ['üü'], ['ü', 'üüü']],
    ['\\Qa.ü\\E*', ['a.', 'a.ü', 'a.üü'], ['aaü', 'a.üa.ü']],
    ['(?i)zÜRICH', ['Zürich', 'zürich', 'ZÜRICH'], ['zurich']],
    ['(?i)[ä-ü]x', ['ÄX', 'öx', 'Üx'], ['ax']],
    ['(?i)[^ä]', ['ö', 'a'], ['ä', 'Ä']],
    ['(?i:ä)ä', ['Ää', 'ää'], ['äÄ']],
    ['(?i)[ſ-\u212a]', ['k', 'K', 's', '\u212a', 'ſ', 'ω'], ['a', 'kk']],
    ['(?i)[^\u212a]', ['a', 'ä'], ['k', 'K', '\u212a']],
    ['(?i)\u212a', ['k', 'K', '\u212a'], ['a']],
    ['(?i)σ', ['σ', 'ς', 'Σ'], ['s']],
    ['(?i)straße', ['STRAßE', 'Straẞe'], ['STRASSE']],
    ['\\Sx', ['äx', 'ax', '日x'], [' x', 'x', 'ääx']],
    ['[\\Wa]', ['a', 'ü', '-'], ['b', 'ü-']],
    ['[^\\Wä]', ['a', '_'], ['ä', '-']],
    ['[^\\s:]+:x', ['ä:x', 'abc:x'], [':x', 'a b:x', 'a:b:x']],
    ['[[:^alpha:]]', ['1', 'ä'], ['a', 'ää']],
    ['[]ä]', [']', 'ä'], ['[']],
    ['[ä^-]+', ['ä-^'], ['b', '']],
    ['[!-ä]', ['!', 'a', '\x7f', '\x80', 'ä'], ['ö', ' ']],
    ['\\Bü\\B', ['ü'], ['']],
    ['.*\\B.*', ['aa', 'ü'], ['aüb']],
    ['(?P<stadt>Zür)ich|Genève', ['Zürich', 'Genève'], ['Zür']],
    ['\\x41\\n\\075', ['A\n='], ['A']],
    ['', [''], ['a']],
    // a large class in repetitions within repetitions, with alternatives that are empty
    ['(?i)(?:(?:|(?:|[^a-Σa]{2}){1,2}){1,2}|){1,2}', ['', '日日', '--ωω'], ['日', 'σσ', 'Zz']],
  ];
  for (const [pattern, yes, no] of cases) {
    test(JSON.stringify(pattern), () => {
      for (const text of yes) assert.ok(matches(pattern, text), `matches ${JSON.stringify(text)}`);
      for (const text of no) assert.ok(!matches(pattern, text), `does not match ${JSON.stringify(text)}`);
    });
  }

  test('with a run of any characters takes bytes that are not text', () => {
    const bytes = Buffer.from([0x61, 0xff, 0x80, 0x62]);
    for (const pattern of ['a.*b', 'a[^x]*b', 'a\\S*b', 'a\\C\\Cb', '\\C*', 'a(?i)[^x]*b'])
      assert.ok(matches(pattern, bytes), pattern);
    for (const pattern of ['a..b', 'a[^x][^x]b', 'a\\S{2}b']) assert.ok(!matches(pattern, bytes), pattern);
  });

  test('of ASCII without sets stays as it is, and so do literals, which need no engine', () => {
    for (const pattern of ['abc', '.*needle.*', 'a.*\\.com', '\\C*x', '[a-f0-9]+', 'a|b', '\\d+', 'com\\.cnn\\..*'])
      assert.equal(bytePattern(pattern, 'regex'), pattern);
    assert.equal(bytePattern('Zürich.*', 'regex'), utf8('Zürich.*'));
  });

  const refused: readonly [string, RegExp][] = [
    ['\\xff', /^regex: \\xff in text .* as bytes/],
    ['\\x{fc}', /\\x\{fc\}/],
    ['\\377', /\\377/],
    ['[\\x80-\\xff]', /\\x80/],
    ['\\pL', /\\pL.*\[a-zäöü\]/],
    ['[\\p{Greek}]', /\\p\{Greek\}/],
    ['[ü-a]', /ü-a is no range/],
  ];
  for (const [pattern, says] of refused) {
    test(`${JSON.stringify(pattern)} is refused with a message`, () =>
      assert.throws(() => bytePattern(pattern, 'regex'), { code: Code.INVALID_ARGUMENT, message: says }));
  }

  test('that is not valid is refused by the engine', () => {
    for (const pattern of [
      '[ü',
      '(ü',
      'ü)',
      '*ü',
      '\\ü',
      '\\',
      'ü\\',
      '[ü\\',
      'ü**',
      '(?z)ü',
      'a{1001}ü',
      '[ü\\q]',
      '(?P<ü',
      '.+{2}',
      '\\😀',
      '[[:nope:]ü]',
    ]) {
      assert.throws(
        () => matches(pattern, 'x'),
        { code: Code.INVALID_ARGUMENT, message: /invalid RE2 expression/ },
        pattern,
      );
    }
  });
});

describe('the translation', () => {
  const letter = fc.constantFrom(
    'a',
    'b',
    'K',
    'z',
    'ä',
    'Ä',
    'ö',
    'ß',
    'σ',
    'ς',
    'Σ',
    '日',
    '本',
    '😀',
    '😂',
    '߿',
    'ࠀ',
    '\uffff',
    '\u{10000}',
    '\u{10ffff}',
    '-',
    '^',
    ']',
    ':',
  );
  const text = fc.array(letter, { maxLength: 6 }).map((letters) => letters.join(''));
  const escaped = (c: string): string => (/[-^\]]/.test(c) ? `\\${c}` : c);
  const codeOf = (c: string): number => c.codePointAt(0) as number;
  const item = fc.oneof(
    letter.map(escaped),
    fc
      .tuple(letter, letter)
      .map(([a, b]) => (codeOf(a) <= codeOf(b) ? `${escaped(a)}-${escaped(b)}` : `${escaped(b)}-${escaped(a)}`)),
    fc.constantFrom('\\d', '\\D', '\\S'),
  );
  const atom = fc.oneof(
    { weight: 4, arbitrary: letter.map((c) => (c === '^' || c === ']' ? `\\${c}` : c)) },
    { weight: 2, arbitrary: fc.constantFrom('.', '\\S', '\\D', '\\B') },
    {
      weight: 4,
      arbitrary: fc
        .tuple(fc.boolean(), fc.array(item, { minLength: 1, maxLength: 3 }))
        .map(([not, items]) => `[${not ? '^' : ''}${items.join('')}]`),
    },
  );
  const { pattern } = fc.letrec<{ pattern: string; piece: string }>((tie) => ({
    pattern: fc.array(tie('piece'), { maxLength: 4 }).map((pieces) => pieces.join('')),
    piece: fc.oneof(
      {
        weight: 6,
        arbitrary: fc
          .tuple(atom, fc.constantFrom('', '', '', '?', '*', '+', '{2}', '*?', '+?'))
          .map(([one, many]) => (one === '\\B' ? one : one + many)),
      },
      {
        weight: 1,
        arbitrary: fc
          .tuple(tie('pattern'), tie('pattern'), fc.constantFrom('', '?', '{1,2}'))
          .map(([a, b, many]) => `(?:${a}|${b})${many}`),
      },
    ),
  }));

  // JavaScript's own expressions, which work on characters, are the model
  test('matches the characters that the expression names', () => {
    fc.assert(
      fc.property(pattern, text, fc.boolean(), (source, input, dotTakesNewline) => {
        const model = new RegExp(`^(?:${source})$`, dotTakesNewline ? 'us' : 'u');
        assert.equal(
          matchesWhereItFits((dotTakesNewline ? '(?s)' : '') + source, input),
          model.test(input),
          `${source} on ${input}`,
        );
      }),
      { numRuns: 1000, maxSkipsPerRun: 0.02 },
    );
  });

  test('matches them in any case', () => {
    fc.assert(
      fc.property(pattern, text, (source, input) => {
        assert.equal(
          matchesWhereItFits(`(?i)${source}`, input),
          new RegExp(`^(?:${source})$`, 'iu').test(input),
          `${source} on ${input}`,
        );
      }),
      { numRuns: 300, maxSkipsPerRun: 0.02 },
    );
  });

  test('of a range of any characters matches exactly those', () => {
    const code = fc.oneof(
      fc.integer({ min: 0x80, max: 0xd7ff }),
      fc.integer({ min: 0xe000, max: 0x10ffff }),
      fc.constantFrom(0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff),
    );
    fc.assert(
      fc.property(code, code, code, (a, b, c) => {
        const [first, last] = [Math.min(a, b), Math.max(a, b)];
        const source = `[${String.fromCodePoint(first)}-${String.fromCodePoint(last)}]`;
        for (const one of [c, first, last, first - 1, last + 1]) {
          if (one < 0x80 || one > 0x10ffff || (one >= 0xd800 && one <= 0xdfff)) continue;
          assert.equal(
            matches(source, String.fromCodePoint(one)),
            one >= first && one <= last,
            `${source} on U+${one.toString(16)}`,
          );
        }
      }),
      { numRuns: 300 },
    );
  });
});
