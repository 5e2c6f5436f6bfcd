import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import { LIMITS } from '../model/index.ts';
import { containsKind } from './check.ts';
import { compileFilter } from './compile.ts';
import type { RowFilter } from './filter.ts';

const OPTIONS = { limits: LIMITS.cloud, random: { float: () => 0 } };
const PASS: RowFilter = { kind: 'passAll' };
const LABEL: RowFilter = { kind: 'applyLabel', label: 'l' };
const SINK: RowFilter = { kind: 'sink' };

function chain(...filters: RowFilter[]): RowFilter {
  return { kind: 'chain', filters };
}

function interleave(...filters: RowFilter[]): RowFilter {
  return { kind: 'interleave', filters };
}

function nested(depth: number, make: (inner: RowFilter) => RowFilter): RowFilter {
  let filter: RowFilter = PASS;
  for (let i = 0; i < depth; i++) filter = make(filter);
  return filter;
}

const REFUSED: readonly (readonly [string, RowFilter, RegExp])[] = [
  ['an empty chain', chain(), /filter\.chain: .*at least two filters, not 0/],
  ['a chain of one', chain(PASS), /filter\.chain: .*not 1/],
  ['an interleave of one', interleave(PASS), /filter\.interleave: .*not 1/],
  ['a chain of one inside', chain(PASS, interleave(PASS, chain(PASS))), /filter\.chain\[1\]\.interleave\[1\]\.chain/],
  ['an empty row key expression', { kind: 'rowKeyRegex', regex: '' }, /row_key_regex_filter/],
  [
    'a broken expression',
    { kind: 'columnQualifierRegex', regex: '[\xff' },
    /column_qualifier_regex_filter: invalid RE2 expression "\[\\xff"/,
  ],
  [
    'a broken expression that no cell reaches',
    chain({ kind: 'blockAll' }, { kind: 'valueRegex', regex: '(' }),
    /value_regex_filter: invalid RE2 expression "\("/,
  ],
  [
    'a broken expression in a condition',
    { kind: 'condition', predicate: { kind: 'valueRegex', regex: '[' } },
    /value_regex_filter/,
  ],
  [
    'a colon in a family expression',
    { kind: 'familyNameRegex', regex: '[[:alpha:]]' },
    /family_name_regex_filter must not contain ":"/,
  ],
  ['a sample of none', { kind: 'rowSample', probability: 0 }, /row_sample_filter .* not 0/],
  ['a sample of all', { kind: 'rowSample', probability: 1 }, /row_sample_filter .* not 1/],
  ['a sample that is not a number', { kind: 'rowSample', probability: Number.NaN }, /row_sample_filter .* not NaN/],
  ['a negative offset', { kind: 'cellsPerRowOffset', cells: -1 }, /cells_per_row_offset_filter .* not -1/],
  ['a row limit of 0', { kind: 'cellsPerRowLimit', cells: 0 }, /cells_per_row_limit_filter .* not 0/],
  ['a column limit of 0', { kind: 'cellsPerColumnLimit', cells: 0 }, /cells_per_column_limit_filter .* not 0/],
  ['half a cell', { kind: 'cellsPerColumnLimit', cells: 1.5 }, /cells_per_column_limit_filter .* not 1.5/],
  ['an empty label', { kind: 'applyLabel', label: '' }, /apply_label_transformer ""/],
  ['a label in capitals', { kind: 'applyLabel', label: 'Label' }, /apply_label_transformer "Label"/],
  ['a label with a newline', { kind: 'applyLabel', label: 'a\n' }, /apply_label_transformer "a\\n"/],
  ['a long label', { kind: 'applyLabel', label: 'sixteen-letters-' }, /1 to 15 characters/],
  ['two labels in a chain', chain(LABEL, PASS, LABEL), /filter\.chain: .*not 2/],
  [
    'two labels in a chain, one deep',
    chain(LABEL, interleave(PASS, { kind: 'condition', predicate: PASS, whenTrue: LABEL })),
    /filter\.chain: .*not 2/,
  ],
  ['a sink in a predicate', { kind: 'condition', predicate: SINK }, /condition\.predicate_filter: sink/],
  [
    'a sink in a branch',
    { kind: 'condition', predicate: PASS, whenTrue: interleave(PASS, chain(PASS, SINK)) },
    /true_filter\.interleave\[1\]\.chain\[1\]: sink/,
  ],
  ['a sink in the other branch', { kind: 'condition', predicate: PASS, whenFalse: SINK }, /false_filter: sink/],
  ['a range without a family', { kind: 'columnRange', family: '' }, /column_range_filter/],
  ['an empty mask', { kind: 'valueBitmask', mask: '' }, /value_bitmask_filter/],
  [
    'a timestamp beyond int64',
    { kind: 'timestampRange', range: { start: 2n ** 63n } },
    /timestamp 9223372036854775808: expected an int64/,
  ],
  ['a timestamp with a fraction', { kind: 'timestampRange', range: { end: 0.5 } }, /timestamp 0.5: expected an int64/],
  ['nests of chains', nested(21, (inner) => chain(PASS, inner)), /more than 20 deep/],
  ['nests of conditions', nested(21, (inner) => ({ kind: 'condition', predicate: inner })), /more than 20 deep/],
  ['a nest that would end the stack', nested(100_000, (inner) => interleave(PASS, inner)), /more than 20 deep/],
  ['an unknown filter', { kind: 'regex' } as unknown as RowFilter, /unknown filter "regex"/],
];

const TAKEN: readonly (readonly [string, RowFilter])[] = [
  ['20 nests', nested(20, (inner) => chain(PASS, inner))],
  ['labels in branches', interleave(LABEL, { kind: 'applyLabel', label: 'other-label-15c' })],
  ['a label in a chain after an interleave of separate labels', interleave(chain(LABEL, PASS), chain(PASS, LABEL))],
  ['a sink by itself', SINK],
  ['a sink next to a condition', chain({ kind: 'condition', predicate: PASS, whenTrue: PASS }, interleave(PASS, SINK))],
  [
    'empty expressions of qualifier and value',
    chain({ kind: 'columnQualifierRegex', regex: '' }, { kind: 'valueRegex', regex: '' }),
  ],
  ['an offset of 0', { kind: 'cellsPerRowOffset', cells: 0 }],
  ['all of time', { kind: 'timestampRange', range: { start: -(2n ** 63n), end: 2n ** 63n - 1n } }],
];

describe('the form of filters', () => {
  for (const [what, filter, message] of REFUSED) {
    test(`${what} is refused`, () => {
      assert.throws(
        () => compileFilter(filter, OPTIONS),
        (thrown) =>
          thrown instanceof BigtableError && thrown.code === Code.INVALID_ARGUMENT && message.test(thrown.message),
      );
    });
  }

  for (const [what, filter] of TAKEN) {
    test(`${what}: taken`, () => {
      compileFilter(filter, OPTIONS);
    });
  }

  test('containsKind searches everywhere', () => {
    const deep = chain(PASS, interleave(PASS, { kind: 'condition', predicate: PASS, whenFalse: chain(PASS, LABEL) }));
    assert.equal(containsKind(deep, 'applyLabel'), true);
    assert.equal(containsKind(deep, 'chain'), true);
    assert.equal(containsKind(deep, 'sink'), false);
    assert.equal(containsKind(undefined, 'sink'), false);
  });
});
