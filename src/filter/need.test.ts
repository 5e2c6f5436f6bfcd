import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LIMITS, type TimestampRange } from '../model/index.ts';
import { compileFilter } from './compile.ts';
import type { RowFilter } from './filter.ts';
import type { FilterProgram } from './program.ts';

const PASS: RowFilter = { kind: 'passAll' };
const SINK: RowFilter = { kind: 'sink' };

function program(filter: RowFilter, families?: readonly string[]): FilterProgram {
  return compileFilter(filter, { limits: LIMITS.default, random: { float: () => 0 }, families });
}

function family(regex: string): RowFilter {
  return { kind: 'familyNameRegex', regex };
}

function qualifier(regex: string): RowFilter {
  return { kind: 'columnQualifierRegex', regex };
}

function chain(...filters: RowFilter[]): RowFilter {
  return { kind: 'chain', filters };
}

function interleave(...filters: RowFilter[]): RowFilter {
  return { kind: 'interleave', filters };
}

function since(start: number): RowFilter {
  return { kind: 'timestampRange', range: { start } };
}

/** Spans as "start..end"; NUL is written "/", \x01 "!". */
function spans(filter: RowFilter, families?: readonly string[]): string | undefined {
  const words = (key: string): string => key.replaceAll('\0', '/').replaceAll('\x01', '!');
  return program(filter, families)
    .columnSpans?.map(({ start, end }) => `${words(start)}..${end === undefined ? '' : words(end)}`)
    .join(' ');
}

describe('column spans', () => {
  const cases: readonly (readonly [string, RowFilter, string | undefined])[] = [
    ['all', PASS, undefined],
    ['a family', family('cf'), 'cf/..cf!'],
    ['families', family('b|a'), 'a/..a! b/..b!'],
    ['a prefix of families', family('c.*'), 'c..d'],
    ['a family and a qualifier', chain(family('cf'), qualifier('q')), 'cf/q..cf/q/'],
    ['in the other order', chain(qualifier('q'), PASS, family('cf')), 'cf/q..cf/q/'],
    ['a prefix of qualifiers', chain(family('cf'), qualifier('q.*')), 'cf/q..cf/r'],
    ['qualifiers of families', chain(family('a|b'), qualifier('x|y')), 'a/x..a/x/ a/y..a/y/ b/x..b/x/ b/y..b/y/'],
    ['a qualifier anywhere', qualifier('q'), undefined],
    [
      'a range',
      { kind: 'columnRange', family: 'cf', start: { value: 'b', closed: true }, end: { value: 'd', closed: false } },
      'cf/b..cf/d',
    ],
    [
      'a range of other ends',
      { kind: 'columnRange', family: 'cf', start: { value: 'b', closed: false }, end: { value: 'd', closed: true } },
      'cf/b/..cf/d/',
    ],
    ['a range without ends', { kind: 'columnRange', family: 'cf' }, 'cf/..cf!'],
    ['branches', interleave(family('b'), chain(family('a'), qualifier('q'))), 'a/q..a/q/ b/..b!'],
    ['branches that overlap', interleave(family('a'), chain(family('a'), qualifier('q'))), 'a/..a!'],
    ['a branch without bounds', interleave(family('b'), PASS), undefined],
    ['branches after a bound', chain(family('a'), interleave(PASS, since(5))), 'a/..a!'],
    ['a bound after branches', chain(interleave(PASS, since(5)), family('a')), 'a/..a!'],
    ['a column limit does not mind', chain({ kind: 'cellsPerColumnLimit', cells: 1 }, family('a')), 'a/..a!'],
    ['a row limit counts all before it', chain({ kind: 'cellsPerRowLimit', cells: 1 }, family('a')), undefined],
    ['a row limit after it', chain(family('a'), { kind: 'cellsPerRowLimit', cells: 1 }), 'a/..a!'],
    ['an offset counts all before it', chain({ kind: 'cellsPerRowOffset', cells: 1 }, family('a')), undefined],
    ['a sink takes what comes to it', chain(family('a|b'), interleave(SINK, PASS), family('a')), 'a/..a! b/..b!'],
    ['a condition of bounds', { kind: 'condition', predicate: family('a'), whenTrue: family('b') }, 'a/..a! b/..b!'],
    [
      'a predicate after a bound',
      chain(family('c'), { kind: 'condition', predicate: PASS, whenTrue: family('c') }),
      'c/..c!',
    ],
    ['a predicate sees all', chain({ kind: 'condition', predicate: PASS, whenTrue: PASS }, family('c')), undefined],
    ['an expression', chain(family('a[bc]'), qualifier('.*x')), 'a..b'],
    ['nothing in common', chain(family('a'), family('b')), ''],
  ];
  for (const [what, filter, want] of cases) {
    test(what, () => {
      assert.equal(spans(filter), want);
    });
  }

  test('with known families a qualifier is sought in each', () => {
    const families = ['b', 'a', 'ab'];
    assert.equal(spans(qualifier('q'), families), 'a/q..a/q/ ab/q..ab/q/ b/q..b/q/');
    assert.equal(spans(chain(family('a.*'), qualifier('q.*')), families), 'a/q..a/r ab/q..ab/r');
    assert.equal(spans(qualifier('.*q'), families), undefined);
    assert.equal(spans(qualifier('q'), []), '');
  });

  test('a filter of very many columns needs them all', () => {
    const many = (n: number): string => Array.from({ length: n }, (_, i) => `q${i}`).join('|');
    assert.equal(program(chain(family('a'), qualifier(many(200)))).columnSpans?.length, 200);
    assert.equal(spans(chain(family('a'), qualifier(many(300)))), 'a/..a!');
    assert.equal(
      spans(interleave(...Array.from({ length: 300 }, (_, i) => chain(family('a'), qualifier(`q${i}`))))),
      undefined,
    );
  });
});

describe('timestamps', () => {
  const cases: readonly (readonly [string, RowFilter, TimestampRange | undefined])[] = [
    ['all', PASS, undefined],
    ['a range', { kind: 'timestampRange', range: { start: 2, end: 5 } }, { start: 2, end: 5 }],
    [
      'ranges in a chain',
      chain(since(2), { kind: 'timestampRange', range: { start: 1, end: 5 } }),
      { start: 2, end: 5 },
    ],
    ['ranges side by side', interleave(since(2), since(7)), { start: 2, end: undefined }],
    ['one side open', interleave(since(2), PASS), undefined],
    ['a branch that blocks does not count', interleave(since(2), { kind: 'blockAll' }), { start: 2, end: undefined }],
    ['a column limit before', chain({ kind: 'cellsPerColumnLimit', cells: 1 }, since(2)), undefined],
    [
      'a column limit after it',
      chain(since(2), { kind: 'cellsPerColumnLimit', cells: 1 }),
      { start: 2, end: undefined },
    ],
    [
      'a condition of both',
      { kind: 'condition', predicate: since(9), whenTrue: since(3) },
      { start: 3, end: undefined },
    ],
    ['a sink before', chain(interleave(PASS, SINK), since(2)), undefined],
  ];
  for (const [what, filter, want] of cases) {
    test(what, () => {
      assert.deepEqual(program(filter).timestamps, want);
    });
  }
});

describe('blocking all', () => {
  const blocking: readonly RowFilter[] = [
    { kind: 'blockAll' },
    chain(PASS, { kind: 'blockAll' }),
    chain({ kind: 'cellsPerRowOffset', cells: 1 }, { kind: 'blockAll' }),
    interleave({ kind: 'blockAll' }, chain(family('a'), family('b'))),
    { kind: 'condition', predicate: PASS },
    { kind: 'condition', predicate: PASS, whenTrue: { kind: 'blockAll' } },
    chain(since(5), { kind: 'timestampRange', range: { end: 5 } }),
  ];
  for (const filter of blocking) {
    test(JSON.stringify(filter), () => {
      assert.equal(program(filter).blocksAll, true);
    });
  }

  test('not with a sink, a row limit or a gate', () => {
    for (const filter of [
      chain(SINK, { kind: 'blockAll' }),
      { kind: 'cellsPerRowLimit', cells: 1 },
      { kind: 'rowKeyRegex', regex: 'x' },
    ] as const) {
      assert.equal(program(filter).blocksAll, false);
    }
  });
});
