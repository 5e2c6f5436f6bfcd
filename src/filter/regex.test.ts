import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RE2JS } from 're2js';
import { BigtableError, Code, toBytes, utf8 } from '../base/index.ts';
import { EngineMatcher } from './engine-matcher.ts';
import { Regexes } from './regex.ts';
import { scanPattern } from './regex-scan.ts';

function matches(pattern: string, text: string): boolean {
  const matcher = new Regexes().get(pattern, 'value_regex_filter');
  const found = matcher.matches(text);
  assert.equal(matcher.matchesBytes(toBytes(text)), found, `${pattern} on bytes as on text`);
  return found;
}

function refused(pattern: string): string {
  try {
    new Regexes().get(pattern, 'value_regex_filter');
  } catch (thrown) {
    assert.ok(thrown instanceof BigtableError);
    assert.equal(thrown.code, Code.INVALID_ARGUMENT);
    return thrown.message;
  }
  return assert.fail(`${pattern} was taken`);
}

/** [pattern, inputs that match, inputs that do not]. */
const CASES: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  // the whole input, always
  ['abc', ['abc'], ['', 'ab', 'abcd', 'xabc', 'ABC']],
  ['', [''], ['a']],
  ['^abc$', ['abc'], ['abc\n', 'aabc']],
  ['a|ab', ['a', 'ab'], ['b', 'abb']],
  ['|a', ['', 'a'], ['|a']],
  ['(?:a|ab)(?:c|bcd)', ['ac', 'abc', 'abcd', 'abbcd'], ['abd']],
  ['a^b', [], ['ab', 'a^b']],
  ['a$|^b', ['a', 'b'], ['a$', 'ab']],
  // a dot misses newlines, \C does not
  ['a.c', ['abc', 'a\0c', 'a\xffc'], ['a\nc', 'ac']],
  ['a\\Cc', ['abc', 'a\nc', 'a\xffc'], ['ac', 'abbc']],
  ['.*', ['', 'abc', '\xff\0'], ['\n', 'a\nb']],
  ['\\C*', ['', 'a\nb', '\xff'], []],
  ['\\C{2}', ['ab', '\n\n', '\x80\x80'], ['a', 'abc']],
  ['(\\C|b)+x', ['\nx', 'bbx'], ['x']],
  ['.*\\C*', ['', 'a\nb'], []],
  ['a.*?', ['a', 'abc'], ['ba']],
  ['.*b.*', ['b', 'abc', 'bb'], ['ac', 'b\n', '\nb']],
  ['ab.*ba', ['abba', 'abxba'], ['aba', 'ab', 'ba']],
  ['a\\C*b\\C*b', ['abb', 'a\nb\nb', 'axbxb'], ['ab', 'axb']],
  ['.*\\Q\n\\E.*', ['\n', 'a\nb'], ['ab', 'a\n\nb']],
  // quotes and escapes
  ['\\Qa.*\\E', ['a.*'], ['abc']],
  ['\\Qa\\C\\Eb', ['a\\Cb'], ['axb']],
  ['\\Qab\\E*', ['a', 'ab', 'abbb'], ['', 'abab']],
  ['\\Qopen', ['open'], ['\\Qopen']],
  ['x\\Q\\E*', ['', 'x', 'xx'], ['x*']],
  ['a\\.b', ['a.b'], ['axb']],
  ['a\\x2eb', ['a.b'], ['axb']],
  ['\\x{e9}\\351', ['\xe9\xe9'], ['\xe9']],
  ['\\101\\0', ['A\0'], ['A']],
  ['\\n\\t\\a\\f\\v\\r', ['\n\t\x07\f\v\r'], ['nt']],
  ['\\\\C', ['\\C'], ['\\x']],
  // classes
  ['[]a]+', [']a]'], ['b']],
  ['[^]a]', ['b', '\n', '\xff'], [']', 'a']],
  ['[[:digit:]\\\\]+', ['1\\2'], ['a', ':']],
  ['[\\x7f\\x80]{2}', ['\x7f\x80', '\x80\x80'], ['\x80', '\x80\x81']],
  ['[a\\]*]+', ['a]*'], ['a]*b']],
  // bytes above 127 are single characters
  ['\\x80*', ['', '\x80', '\x80\x80'], ['\x81']],
  [utf8('a§b'), [utf8('a§b')], ['a\xa7b']],
  ['a\\xC2\\C{2}', [utf8('a§b')], [utf8('a§')]],
  ['.{4}', [utf8('a§b')], ['abc']],
  ['\\w+', ['aZ_9'], ['\xe9']],
  ['\\pL+', ['a\xe9'], ['1', '\xd7']],
  ['\\PL', ['1', '\n', '\xd7'], ['\xe9']],
  ['(?i)k\xe9', ['k\xe9', 'K\xe9', 'K\xc9'], ['k\xe8']],
  ['(?s).', ['\n', 'a'], ['']],
  ['(?i:a)b', ['ab', 'Ab'], ['AB']],
  // repetition
  ['a?b', ['b', 'ab'], ['aab']],
  ['ab*', ['a', 'abbb'], ['b', 'abab']],
  ['ab+', ['ab', 'abb'], ['a']],
  ['a{2,3}', ['aa', 'aaa'], ['a', 'aaaa']],
  ['ab{0,1}', ['a', 'ab'], ['abb']],
  ['a{,2}', ['a{,2}'], ['a']],
  ['(foo|ba[rz])+', ['foo', 'barbaz'], ['', 'fo']],
  ['(?P<name>a)b', ['ab'], ['b']],
];

describe('RE2 over bytes, full match', () => {
  for (const [pattern, good, bad] of CASES) {
    test(JSON.stringify(pattern), () => {
      for (const text of good) assert.equal(matches(pattern, text), true, `matches ${JSON.stringify(text)}`);
      for (const text of bad) assert.equal(matches(pattern, text), false, `does not match ${JSON.stringify(text)}`);
    });
  }

  test('an invalid RE2 expression is refused with its field and its text', () => {
    const broken = [
      '[',
      '(',
      ')',
      'a**',
      'a++',
      '*',
      '\\',
      '\\8',
      '\\1',
      '\\E',
      '\\Z',
      '[\\C]',
      '[z-a]',
      '(?=a)',
      '(?<=a)b',
      'a{1001}',
      '\\pX',
      '\\xz',
      '(?i',
      'a\\xC.+',
    ];
    for (const pattern of broken) {
      assert.match(refused(pattern), /^value_regex_filter: invalid RE2 expression ".*": /, pattern);
    }
  });

  test('escapes above 0xFF are refused, in classes too', () => {
    for (const pattern of ['\\x{100}', 'a\\777', '[\\x{100}-\\x{200}]', '[a\\400]'])
      assert.match(refused(pattern), /above 0xFF/, pattern);
    assert.equal(matches('\\Q\\x{100}\\E', '\\x{100}'), true);
  });

  test('expressions that would take too much memory or work are refused before they do', () => {
    const large = [
      '(?:a{1000}){1000}',
      'a{1000}'.repeat(60),
      '(a{30}b{10}){20}'.repeat(100),
      '((((x{10}){10}){10}){10}){10}',
      `(?:${'^$'.repeat(100)}){1000}`,
    ];
    for (const pattern of large) {
      assert.match(refused(pattern), /too large/, pattern.slice(0, 20));
    }
    const regexes = new Regexes();
    assert.throws(() => {
      for (let i = 0; i < 100; i++) regexes.get(`[ab]{900}${i}`, 'value_regex_filter');
    }, /too large/);
  });

  test('repetitions within repetitions count with their expanded length', () => {
    // each makes a program of less than 2000 instructions
    for (const pattern of [
      '((((((((a{1,2}){1,2}){1,2}){1,2}){1,2}){1,2}){1,2}){1,2}){1,2}',
      '((((abcdefgh){3}){3}){3}){3}',
      `(?:(?:(?:(?:${'[a-c]|[x-z]{2}|'.repeat(8)}){1,2}){1,2}){1,2}){1,2}`,
    ])
      assert.equal(matches(pattern, 'q'), false, pattern);
  });

  test('the scan counts the instructions of the engine: at least a third of them, and at most three times as many', () => {
    const { pattern } = fc.letrec<{ pattern: string; piece: string }>((tie) => ({
      pattern: fc.array(tie('piece'), { minLength: 1, maxLength: 3 }).map((pieces) => pieces.join('')),
      piece: fc.oneof(
        { maxDepth: 4 },
        fc
          .tuple(
            fc.constantFrom('a', '[b-d]', '.', '\\d', '\\x41', '\\b', '^', '$'),
            fc.constantFrom('', '', '?', '*', '+', '{3}', '{1,2}', '{2,}', '{0,4}'),
          )
          .map(([atom, times]) => atom + times),
        fc
          .tuple(
            fc.constantFrom('(', '(?:'),
            tie('pattern'),
            fc.constantFrom('', '?', '*', '{3}', '{1,2}', '{2,}', '{0,4}'),
          )
          .map(([open, inner, times]) => `${open}${inner})${times}`),
        fc
          .tuple(tie('pattern'), fc.constantFrom('|', '||'), tie('pattern'))
          .map(([one, bar, other]) => `(${one}${bar}${other})`),
      ),
    }));
    fc.assert(
      fc.property(pattern, (source) => {
        const engine = RE2JS.compile(source).re2() as unknown as { readonly prog: { numInst(): number } };
        const made = engine.prog.numInst();
        const { size } = scanPattern(source);
        assert.ok(made <= 3 * size + 3, `${source}: ${made} were made, ${size} counted`);
        // the engine emits no instruction for a group that captures nothing
        if (!source.includes('(?:')) assert.ok(size <= 3 * made, `${source}: ${made} were made, ${size} counted`);
      }),
      { numRuns: 1000, examples: [['^{1000}'], ['(?:a||b||c||d||e){100}'], ['((((a){3}){3}){3}){3}']] },
    );
  });

  test('linear for expressions on which a backtracking engine would not end', () => {
    assert.equal(matches('(x+x+)+y', 'x'.repeat(20_000)), false);
    assert.equal(matches('(a*)*b', 'a'.repeat(20_000)), false);
  });

  test('a large automaton in a small part of the memory still answers right', () => {
    const regexes = new Regexes();
    const matchers = Array.from({ length: 300 }, (_, i) =>
      regexes.get(`[ab]*a[ab]{12}${'c'.repeat(i % 3)}`, 'value_regex_filter'),
    );
    const text = 'abbabaabbbaababbabaaabbb'.repeat(40);
    const want = text.at(-13) === 'a';
    for (const [i, matcher] of matchers.slice(0, 3).entries()) {
      assert.equal(matcher.matches(text + 'c'.repeat(i)), want);
      assert.equal(matcher.matches(`${text}a${'b'.repeat(12)}${'c'.repeat(i)}`), true);
    }
  });

  test('one pattern is compiled once a filter', () => {
    const regexes = new Regexes();
    assert.equal(regexes.get('a[bc]', 'value_regex_filter'), regexes.get('a[bc]', 'column_qualifier_regex_filter'));
  });
});

describe('plain patterns', () => {
  test('literals are recognised', () => {
    const regexes = new Regexes();
    assert.deepEqual(regexes.get('b|a|b', 'f').literals, ['a', 'b']);
    assert.deepEqual(regexes.get('^a\\.\\x41\\Q*\\E$', 'f').literals, ['a.A*']);
    assert.equal(regexes.get('a.*', 'f').literals, undefined);
    assert.equal(regexes.get('[a]', 'f').literals, undefined);
  });

  test('prefixes', () => {
    const prefixes: Readonly<Record<string, string>> = {
      abc: 'abc',
      'abc.*': 'abc',
      'ab[cd]': 'ab',
      'abc?': 'ab',
      'abc*': 'ab',
      'abc+': 'abc',
      'abc{0}': 'ab',
      'a(b|c)': 'a',
      'ab|ac': '',
      '(ab)c': '',
      '(?i)ab': '',
      'a\\.b\\d': 'a.b',
      '\\Qa.b\\E.': 'a.b',
      '\\Qab\\E*': 'a',
      '^ab': 'ab',
      'a(b)|c': '',
      a$: 'a',
    };
    for (const [pattern, prefix] of Object.entries(prefixes))
      assert.equal(new Regexes().get(pattern, 'f').prefix, prefix, pattern);
  });

  const alphabet = fc.constantFrom('a', 'b', '\n', '.', '*', '\xe9', 'C');
  const texts = fc.string({ unit: alphabet, maxLength: 8 });
  const parts = fc.oneof(
    fc.constantFrom(
      'a',
      'b',
      '\\.',
      '\\*',
      '\\Qa.\\E',
      '\\x62',
      '.',
      '\\C',
      '.*',
      '\\C*',
      '.*?',
      '|',
      '^',
      '$',
      'a*',
      'b?',
      '[ab]',
      '(a|b)',
      '\\\\',
      '\n',
      '\xe9',
      'b{0,2}',
      'C',
    ),
  );

  test('the shortcuts and the engine agree', () => {
    fc.assert(
      fc.property(
        fc.array(parts, { maxLength: 6 }),
        fc.array(texts, { minLength: 4, maxLength: 8 }),
        (pieces, inputs) => {
          const pattern = pieces.join('');
          // inside a group, and with a class that adds nothing, no pattern is plain
          const wrapped = `(?:${pattern})[x]{0}`;
          let plain: ReturnType<Regexes['get']>;
          try {
            plain = new Regexes().get(pattern, 'f');
          } catch {
            assert.throws(() => new Regexes().get(wrapped, 'f'), `${pattern} is refused both ways`);
            return;
          }
          const engine = new Regexes().get(wrapped, 'f');
          assert.equal(engine.literals, undefined);
          for (const text of [...inputs, ...(plain.literals ?? [])]) {
            const found = engine.matches(text);
            assert.equal(plain.matches(text), found, `${JSON.stringify(pattern)} on ${JSON.stringify(text)}`);
            assert.equal(plain.matchesBytes(toBytes(text)), found);
            if (found) {
              assert.ok(text.startsWith(plain.prefix), `prefix of ${pattern}`);
              assert.ok(plain.literals === undefined || plain.literals.includes(text));
            }
          }
        },
      ),
      { numRuns: 1500 },
    );
  });

  test('the engine accepts every pattern taken for plain', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'\\.+*?()|[]{}^$QECabx017,:-'), maxLength: 10 }), (pattern) => {
        const scan = scanPattern(pattern);
        if (scan.alternatives !== undefined) RE2JS.compile(scan.source);
      }),
      { numRuns: 3000 },
    );
  });
});

/** The answer in slices of a few units, and their number. */
function inParts(pattern: string, text: string, units: number): { found: boolean; parts: number } {
  const matching = new Regexes().get(pattern, 'value_regex_filter').begin(toBytes(text));
  for (let parts = 1; ; parts++) {
    const found = matching.resume({ units });
    if (found !== undefined) return { found, parts };
  }
}

describe('a match in slices', () => {
  const piece = fc.constantFrom(
    'a',
    'b',
    '.',
    '[ab]',
    '[^a]',
    '(a|b)',
    '\\b',
    '\\B',
    '(?m:^)',
    '(?m:$)',
    '\\n',
    '\\w',
    '(?i:B)',
    '\\C',
    '\\pL',
    '(a*)',
  );
  const pattern = fc
    .array(fc.tuple(piece, fc.constantFrom('', '*', '+', '?', '{0,3}', '{2}', '|')), { minLength: 1, maxLength: 6 })
    .map((parts) => `(${parts.flat().join('')})`);
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'B', '\n', ' ', '\xe9'), maxLength: 30 });

  test("equals the engine's match of the whole, from any offset, in states and in simulation", () => {
    fc.assert(
      fc.property(
        pattern,
        text,
        fc.integer({ min: 1, max: 300 }),
        fc.integer({ min: 0, max: 600 }),
        (source, input, units, memory) => {
          const engine = RE2JS.compile(scanPattern(source).source);
          const want = engine.matches(input);
          assert.equal(inParts(source, input, units).found, want, `${source} on ${JSON.stringify(input)}`);
          // an automaton that is soon full: the rest is simulated
          const small = RE2JS.compile(scanPattern(source).source);
          const matcher = new EngineMatcher(small, '', source, 'f', { engines: 1, units: 0 });
          matcher.matches('');
          small.re2().dfa.memBudget = memory;
          assert.equal(matcher.matches(input), want, `${source} on ${JSON.stringify(input)} with ${memory} bytes`);
          const matching = matcher.begin(toBytes(input));
          let found: boolean | undefined;
          while (found === undefined) found = matching.resume({ units });
          assert.equal(found, want);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test('wildcards too', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', 'ab', 'aab', '.*', '\\C*', 'b'), { maxLength: 6 }),
        text,
        fc.integer({ min: 1, max: 3 }),
        (parts, input, units) => {
          const matcher = new Regexes().get(parts.join(''), 'f');
          if (matcher.unitsPerByte > 0)
            assert.equal(
              inParts(parts.join(''), input, units).found,
              matcher.matches(input),
              `${parts.join('')} on ${JSON.stringify(input)}`,
            );
        },
      ),
      { numRuns: 1000 },
    );
  });

  test('a slice spends no more than its allowance', () => {
    const long = 'a'.repeat(400_000);
    // built states: four bytes a unit
    assert.ok(inParts('[ab]*', long, 1000).parts >= 100);
    assert.ok(inParts('.*foo.*', long, 100).parts >= 10);
    // a thread a unit
    assert.ok(inParts(`${'.{0,500}'.repeat(8)}b`, long.slice(0, 1000), 10_000).parts >= 100);
  });

  test('one that would take hours is refused with its sizes', () => {
    const matcher = new EngineMatcher(
      RE2JS.compile('(a{0,50}b)*'),
      '',
      '(a{0,50}b)*',
      'value_regex_filter',
      { engines: 1, units: 0 },
      100_000,
    );
    const refusal = {
      code: Code.RESOURCE_EXHAUSTED,
      message:
        /^value_regex_filter: "\(a\{0,50\}b\)\*" has \d+ instructions; an input of 1000000 bytes .* 100000 steps, the limit for one match/,
    };
    const long = Buffer.from('ab'.repeat(500_000));
    assert.throws(() => {
      const matching = matcher.begin(long);
      while (matching.resume({ units: 1000 }) === undefined);
    }, refusal);
    assert.equal(matcher.matchesBytes(long.subarray(0, 10_000)), true);
  });
});
