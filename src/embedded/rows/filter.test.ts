import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code, utf8 } from '../../base/index.ts';
import { compileFilter } from '../../filter/index.ts';
import { LIMITS } from '../../model/index.ts';
import { type RowFilter, rowFilterOf } from './filter.ts';

const MICROS = 1_700_000_000_000_000;

/** One good filter of each kind. */
const GOOD: { readonly [K in RowFilter['kind']]: Extract<RowFilter, { readonly kind: K }> } = {
  chain: { kind: 'chain', filters: [{ kind: 'passAll' }, { kind: 'stripValue' }] },
  interleave: { kind: 'interleave', filters: [{ kind: 'passAll' }, { kind: 'stripValue' }] },
  condition: {
    kind: 'condition',
    predicate: { kind: 'passAll' },
    whenTrue: { kind: 'passAll' },
    whenFalse: { kind: 'blockAll' },
  },
  sink: { kind: 'sink' },
  passAll: { kind: 'passAll' },
  blockAll: { kind: 'blockAll' },
  rowKeyRegex: { kind: 'rowKeyRegex', regex: 'ü' },
  rowSample: { kind: 'rowSample', probability: 0.5 },
  familyNameRegex: { kind: 'familyNameRegex', regex: 'f' },
  columnQualifierRegex: { kind: 'columnQualifierRegex', regex: 'ü' },
  columnRange: {
    kind: 'columnRange',
    family: 'f',
    start: { value: 'ä', closed: true },
    end: { value: Buffer.from([0xff]), closed: false },
  },
  timestampRange: { kind: 'timestampRange', range: { start: new Date(1_700_000_000_000), end: BigInt(MICROS) + 1n } },
  valueRegex: { kind: 'valueRegex', regex: Buffer.from([0xff]) },
  valueRange: { kind: 'valueRange', start: { value: '', closed: true }, end: { value: 'ü', closed: true } },
  valueBitmask: { kind: 'valueBitmask', mask: 'ü' },
  cellsPerRowOffset: { kind: 'cellsPerRowOffset', cells: 0 },
  cellsPerRowLimit: { kind: 'cellsPerRowLimit', cells: 1 },
  cellsPerColumnLimit: { kind: 'cellsPerColumnLimit', cells: 1 },
  stripValue: { kind: 'stripValue' },
  applyLabel: { kind: 'applyLabel', label: 'a' },
};
/** Fields that may be left out. */
const OPTIONAL: Readonly<Record<string, readonly string[]>> = {
  condition: ['whenTrue', 'whenFalse'],
  columnRange: ['start', 'end'],
  valueRange: ['start', 'end'],
};

function refusedNaming(filter: unknown, name: RegExp): void {
  assert.throws(() => rowFilterOf(filter as RowFilter), {
    name: 'BigtableError',
    code: Code.INVALID_ARGUMENT,
    message: name,
  });
}

describe('filters in the library', () => {
  test('have text as UTF-8 and bytes as they are', () => {
    assert.deepEqual(rowFilterOf(GOOD.rowKeyRegex), { kind: 'rowKeyRegex', regex: '\xc3\xbc' });
    assert.deepEqual(rowFilterOf(GOOD.valueRegex), { kind: 'valueRegex', regex: '\xff' });
    assert.deepEqual(rowFilterOf(GOOD.valueRange), {
      kind: 'valueRange',
      start: { value: '', closed: true },
      end: { value: utf8('ü'), closed: true },
    });
    assert.deepEqual(rowFilterOf(GOOD.columnRange), {
      kind: 'columnRange',
      family: 'f',
      start: { value: utf8('ä'), closed: true },
      end: { value: '\xff', closed: false },
    });
    assert.deepEqual(rowFilterOf(GOOD.timestampRange), {
      kind: 'timestampRange',
      range: { start: MICROS, end: MICROS + 1 },
    });
    assert.deepEqual(rowFilterOf(GOOD.valueBitmask), { kind: 'valueBitmask', mask: utf8('ü') });
    assert.deepEqual(rowFilterOf({ kind: 'valueRegex', regex: Buffer.from('[\xff].', 'latin1') }), {
      kind: 'valueRegex',
      regex: '[\xff].',
    });
  });

  for (const [kind, good] of Object.entries(GOOD)) {
    test(`${kind}: passes with all of its fields; each missing, undefined or misspelt is refused by its name, at any depth`, () => {
      assert.equal(rowFilterOf(good).kind, kind);
      const inside = (filter: unknown): unknown => ({
        kind: 'condition',
        predicate: { kind: 'chain', filters: [GOOD.passAll, filter] },
      });
      for (const field of Object.keys(good)) {
        const { [field]: value, ...without } = good as unknown as Record<string, unknown>;
        if (OPTIONAL[kind]?.includes(field)) rowFilterOf(without as never);
        else refusedNaming(inside(without), new RegExp(`filter\\.predicate\\.filters\\[1\\].*\\b${field}\\b`));
        for (const none of [undefined, null])
          refusedNaming(
            inside({ ...good, [field]: none }),
            new RegExp(`filter\\.predicate\\.filters\\[1\\].*\\b${field}\\b`),
          );
        refusedNaming(
          { ...good, [`${field}s`]: value },
          new RegExp(`unknown field "${field}s" .did you mean ${field}.*; there are kind`),
        );
      }
    });
  }

  const wrong: readonly [string, unknown, RegExp][] = [
    [
      'an unknown kind',
      { kind: 'valueRegexp', regex: 'a' },
      /unknown kind of filter string "valueRegexp"; known: chain, interleave/,
    ],
    ["a kind of Object's own", { kind: 'toString' }, /unknown kind of filter string "toString"/],
    ['nothing', undefined, /filter must be a filter, an object with a kind, not undefined/],
    ['text', 'passAll', /not string "passAll"/],
    ['an array', [GOOD.passAll], /not an array of 1/],
    [
      'children that are not an array',
      { kind: 'chain', filters: GOOD.passAll },
      /filter\.filters must be an array, not an object/,
    ],
    [
      'a child that is undefined',
      { kind: 'chain', filters: [GOOD.passAll, undefined] },
      /filter\.filters\[1\] must be a filter.* undefined/,
    ],
    [
      'a child that is text',
      { kind: 'interleave', filters: ['passAll', GOOD.passAll] },
      /filter\.filters\[0\] must be a filter.* "passAll"/,
    ],
    ['a branch that is no filter', { ...GOOD.condition, whenTrue: 0 }, /filter\.whenTrue must be a filter.* number 0/],
    [
      'an expression that is a RegExp',
      { kind: 'valueRegex', regex: /a/ },
      /filter\.regex must be text or bytes, not RegExp/,
    ],
    [
      'a bound that is text',
      { kind: 'valueRange', start: 'a' },
      /filter\.start must be an object with any of value, closed, not string "a"/,
    ],
    [
      'a bound without closed',
      { kind: 'valueRange', start: { value: 'a' } },
      /filter\.start\.closed must be true or false, not undefined/,
    ],
    [
      'a bound without value',
      { kind: 'valueRange', start: { closed: true } },
      /filter\.start\.value must be text or bytes, not undefined/,
    ],
    [
      'a misspelt bound',
      { kind: 'valueRange', start: { value: 'a', open: true } },
      /unknown field "open"; there are value, closed/,
    ],
    ['a misspelt time', { kind: 'timestampRange', range: { since: 1 } }, /unknown field "since"; there are start, end/],
    [
      'a time that is undefined',
      { kind: 'timestampRange', range: { start: undefined, end: 5 } },
      /filter\.range.* start must not be undefined/,
    ],
    [
      'milliseconds',
      { kind: 'timestampRange', range: { end: 1_700_000_000_000 } },
      /filter\.range\.end must be microseconds.*new Date\(1700000000000\)/,
    ],
    ['cells as text', { kind: 'cellsPerRowLimit', cells: '5' }, /filter\.cells must be a number, not string "5"/],
    ['a label that is a number', { kind: 'applyLabel', label: 5 }, /filter\.label must be text/],
  ];
  for (const [name, filter, says] of wrong) test(`${name} is refused`, () => refusedNaming(filter, says));

  test('that hold themselves, or are very many, are refused quickly', () => {
    const circle: { kind: 'chain'; filters: RowFilter[] } = { kind: 'chain', filters: [] };
    circle.filters.push(circle, circle);
    refusedNaming(circle, /nested more than 20 deep/);
    let doubled: RowFilter = { kind: 'passAll' };
    for (let i = 0; i < 20; i++) doubled = { kind: 'interleave', filters: [doubled, doubled, doubled] };
    refusedNaming(doubled, /at most 5120 filters/);
  });

  test('any filter is accepted or refused with INVALID_ARGUMENT', () => {
    const something = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.anything({ withBigInt: true, withMap: true, withTypedArray: true, withNullPrototype: true }),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom<unknown>(
          ...Object.values(GOOD),
          [GOOD.passAll],
          Symbol('s'),
          () => {},
          new Date(Number.NaN),
        ),
      },
    );
    const fields = [...new Set(Object.values(GOOD).flatMap((good) => Object.keys(good)))].filter(
      (field) => field !== 'kind',
    );
    const filter = fc.oneof(
      something,
      fc
        .tuple(fc.constantFrom(...Object.values(GOOD)), fc.constantFrom(...fields), something)
        .map(([good, field, value]) => ({ ...good, [field]: value })),
      fc
        .tuple(fc.constantFrom('chain', 'interleave'), fc.array(something, { maxLength: 3 }))
        .map(([kind, filters]) => ({ kind, filters })),
    );
    fc.assert(
      fc.property(filter, (given) => {
        try {
          compileFilter(rowFilterOf(given as RowFilter), { limits: LIMITS.default, random: { float: () => 0 } });
        } catch (error) {
          assert.ok(
            error instanceof BigtableError && error.code === Code.INVALID_ARGUMENT,
            error instanceof Error ? error.stack : String(error),
          );
        }
      }),
      { numRuns: 2000 },
    );
  });
});
