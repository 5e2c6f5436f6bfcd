import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code } from '../../base/index.ts';
import type { GcRule } from '../../model/index.ts';
import { formatGcRule, parseGcPolicy } from './gc-policy.ts';

const versions = (n: number): GcRule => ({ kind: 'maxVersions', versions: n });
const age = (seconds: number): GcRule => ({ kind: 'maxAge', ageMicros: Math.round(seconds * 1e6) });
const DAY = 86_400;

const CASES: readonly [string, GcRule | undefined, string][] = [
  ['maxversions=3', versions(3), 'versions() > 3'],
  ['maxage=10d', age(10 * DAY), 'age() > 10d'],
  ['maxage=36h', age(1.5 * DAY), 'age() > 36h'],
  ['maxage=90m', age(5400), 'age() > 90m'],
  ['maxage=5s', age(5), 'age() > 5s'],
  ['maxage=250ms', age(0.25), 'age() > 250ms'],
  ['maxage=1.5d', age(1.5 * DAY), 'age() > 36h'],
  ['never', undefined, '<never>'],
  ['MAXVERSIONS=2', versions(2), 'versions() > 2'],
  ['maxversions = 2', versions(2), 'versions() > 2'],
  ['maxage=1d or maxversions=3', { kind: 'union', rules: [age(DAY), versions(3)] }, '(age() > 1d || versions() > 3)'],
  ['maxage=1d||maxversions=3', { kind: 'union', rules: [age(DAY), versions(3)] }, '(age() > 1d || versions() > 3)'],
  [
    'maxage=1d and maxversions=3',
    { kind: 'intersection', rules: [age(DAY), versions(3)] },
    '(age() > 1d && versions() > 3)',
  ],
  [
    'maxage=1d&&maxversions=3',
    { kind: 'intersection', rules: [age(DAY), versions(3)] },
    '(age() > 1d && versions() > 3)',
  ],
  ['((maxversions=4))', versions(4), 'versions() > 4'],
  [
    'maxversions=1 or maxage=1d and maxversions=3 or maxage=2d',
    { kind: 'union', rules: [versions(1), { kind: 'intersection', rules: [age(DAY), versions(3)] }, age(2 * DAY)] },
    '(versions() > 1 || (age() > 1d && versions() > 3) || age() > 2d)',
  ],
  [
    '(maxversions=1 or maxage=1d) and maxversions=3',
    { kind: 'intersection', rules: [{ kind: 'union', rules: [versions(1), age(DAY)] }, versions(3)] },
    '((versions() > 1 || age() > 1d) && versions() > 3)',
  ],
];

const WRONG: readonly [string, RegExp][] = [
  ['', /ends too early/],
  ['maxversions', /"maxversions" is not a rule/],
  ['maxversions=', /"maxversions=" is not a rule/],
  ['maxversions=-1', /is not a rule|does not belong/],
  ['maxage=10', /"maxage=10" is not a rule/],
  ['maxage=10y', /"maxage=10y" is not a rule/],
  ['maxversions=1 or', /ends too early/],
  ['or maxversions=1', /"or" is not a rule/],
  ['(maxversions=1', /parenthesis is not closed/],
  ['maxversions=1)', /"\)" does not belong there/],
  ['maxversions=1 maxage=1d', /"maxage=1d" does not belong there/],
  ['never or maxversions=1', /never cannot be joined/],
  ['maxversions=1 | maxage=1d', /"\|" does not belong there/],
];

describe('GC policies', () => {
  for (const [text, rule, shown] of CASES) {
    test(`${text} is ${shown}`, () => {
      assert.deepEqual(parseGcPolicy(text), rule);
      assert.equal(formatGcRule(rule), shown);
    });
  }

  for (const [text, message] of WRONG) {
    test(`"${text}" is refused, with an example of a right one`, () => {
      assert.throws(
        () => parseGcPolicy(text),
        (error) =>
          error instanceof BigtableError &&
          error.code === Code.INVALID_ARGUMENT &&
          message.test(error.message) &&
          error.message.includes('maxversions=3'),
      );
    });
  }

  test('the shown rule, with cbt’s words put back, is the same rule again', () => {
    const leaf = fc.oneof(
      fc.integer({ min: 1, max: 100 }).map(versions),
      fc
        .tuple(fc.integer({ min: 1, max: 1000 }), fc.constantFrom(0.001, 1, 60, 3600, DAY))
        .map(([count, unit]) => age(count * unit)),
    );
    const { rule } = fc.letrec<{ rule: GcRule }>((tie) => ({
      rule: fc.oneof(
        { maxDepth: 3, depthIdentifier: 'rule' },
        leaf,
        fc.record(
          {
            kind: fc.constantFrom('union' as const, 'intersection' as const),
            rules: fc.array(tie('rule'), { minLength: 2, maxLength: 3, depthIdentifier: 'rule' }),
          },
          { noNullPrototype: true },
        ),
      ),
    }));
    fc.assert(
      fc.property(rule, (one) => {
        const text = formatGcRule(one).replaceAll('versions() > ', 'maxversions=').replaceAll('age() > ', 'maxage=');
        assert.deepEqual(parseGcPolicy(text), one);
      }),
    );
  });

  test('an age that is not a whole number of any unit is shown in seconds', () => {
    assert.equal(formatGcRule({ kind: 'maxAge', ageMicros: 1_234_567 }), 'age() > 1.234567s');
  });
});
