import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ByteString, fromBytes, type Int64, toBytes } from '../base/index.ts';
import { type Cell, LIMITS } from '../model/index.ts';
import { compileFilter, FilterCompiler } from './compile.ts';
import type { RowFilter } from './filter.ts';
import { Hint } from './program.ts';

const OPTIONS = { limits: LIMITS.default, random: { float: () => 0.5 } };
const PASS: RowFilter = { kind: 'passAll' };

function cell(family: string, qualifier: ByteString, timestamp: Int64, value = 'v'): Cell {
  return { family, qualifier, timestamp, value: toBytes(value) };
}

/** "family:qualifier@timestamp=value #label" */
function words({ family, qualifier, timestamp, value, labels = [] }: Cell): string {
  return [`${family}:${qualifier}@${timestamp}=${fromBytes(value)}`, ...labels.map((label) => `#${label}`)].join(' ');
}

function filtered(filter: RowFilter | undefined, cells: readonly Cell[], row = 'row'): string[] {
  const run = compileFilter(filter, OPTIONS).run();
  const out: Cell[] = [];
  if (run.startRow(row) === Hint.skipRow) return ['(skipped)'];
  for (const one of cells) run.push(one, out);
  run.endRow(out);
  return out.map(words);
}

function hints(filter: RowFilter, cells: readonly Cell[]): Hint[] {
  const run = compileFilter(filter, OPTIONS).run();
  assert.equal(run.startRow('row'), Hint.next);
  return cells.map((one) => run.push(one, []));
}

describe("the API's own examples", () => {
  test('sink', () => {
    const filter: RowFilter = {
      kind: 'chain',
      filters: [
        { kind: 'familyNameRegex', regex: 'A' },
        {
          kind: 'interleave',
          filters: [PASS, { kind: 'chain', filters: [{ kind: 'applyLabel', label: 'foo' }, { kind: 'sink' }] }],
        },
        { kind: 'columnQualifierRegex', regex: 'B' },
      ],
    };
    const out = filtered(filter, [cell('A', 'A', 1, 'w'), cell('A', 'B', 2, 'x'), cell('B', 'B', 4, 'z')]);
    assert.deepEqual(out, ['A:A@1=w #foo', 'A:B@2=x', 'A:B@2=x #foo']);
  });

  test('interleave pools, sorts and keeps duplicates', () => {
    const filter: RowFilter = {
      kind: 'interleave',
      filters: [
        { kind: 'columnQualifierRegex', regex: 'b' },
        { kind: 'columnQualifierRegex', regex: 'a|b' },
        { kind: 'chain', filters: [{ kind: 'columnQualifierRegex', regex: 'b' }, { kind: 'stripValue' }] },
      ],
    };
    assert.deepEqual(filtered(filter, [cell('f', 'a', 1), cell('f', 'b', 2), cell('f', 'b', 1), cell('f', 'c', 1)]), [
      'f:a@1=v',
      'f:b@2=v',
      'f:b@2=v',
      'f:b@2=',
      'f:b@1=v',
      'f:b@1=v',
      'f:b@1=',
    ]);
  });

  test('a condition passes cells to one branch if its predicate yields any cell, else to the other', () => {
    const filter: RowFilter = {
      kind: 'condition',
      predicate: { kind: 'columnQualifierRegex', regex: 'b' },
      whenTrue: { kind: 'applyLabel', label: 'true' },
      whenFalse: { kind: 'applyLabel', label: 'false' },
    };
    assert.deepEqual(filtered(filter, [cell('f', 'a', 1), cell('f', 'b', 1), cell('f', 'c', 1)]), [
      'f:a@1=v #true',
      'f:b@1=v #true',
      'f:c@1=v #true',
    ]);
    assert.deepEqual(filtered(filter, [cell('f', 'a', 1), cell('f', 'c', 1)]), ['f:a@1=v #false', 'f:c@1=v #false']);
    assert.deepEqual(filtered({ kind: 'condition', predicate: PASS }, [cell('f', 'a', 1)]), ['(skipped)']);
  });

  test('an interleave of conditions is in order before it is counted', () => {
    const only = (regex: string): RowFilter => ({ kind: 'columnQualifierRegex', regex });
    const late: RowFilter = { kind: 'condition', predicate: only('c'), whenTrue: only('a') };
    const filter: RowFilter = {
      kind: 'chain',
      filters: [
        { kind: 'interleave', filters: [only('b'), late] },
        { kind: 'cellsPerRowLimit', cells: 1 },
      ],
    };
    assert.deepEqual(filtered(filter, [cell('f', 'a', 1), cell('f', 'b', 1), cell('f', 'c', 1)]), ['f:a@1=v']);
  });
});

describe('single filters', () => {
  const row = [cell('f', 'a', 3), cell('f', 'a', 2), cell('f', 'b', 2), cell('g', 'a', 9n)];
  const cases: readonly (readonly [RowFilter, readonly string[]])[] = [
    [PASS, ['f:a@3=v', 'f:a@2=v', 'f:b@2=v', 'g:a@9=v']],
    [{ kind: 'cellsPerRowOffset', cells: 3 }, ['g:a@9=v']],
    [{ kind: 'cellsPerRowOffset', cells: 4 }, []],
    [{ kind: 'cellsPerRowLimit', cells: 3 }, ['f:a@3=v', 'f:a@2=v', 'f:b@2=v']],
    [{ kind: 'cellsPerColumnLimit', cells: 1 }, ['f:a@3=v', 'f:b@2=v', 'g:a@9=v']],
    [{ kind: 'timestampRange', range: { start: 2, end: 3 } }, ['f:a@2=v', 'f:b@2=v']],
    [{ kind: 'columnRange', family: 'f', start: { value: 'a', closed: false } }, ['f:b@2=v']],
    [{ kind: 'columnRange', family: 'f', end: { value: 'b', closed: false } }, ['f:a@3=v', 'f:a@2=v']],
    [{ kind: 'rowSample', probability: 0.51 }, ['f:a@3=v', 'f:a@2=v', 'f:b@2=v', 'g:a@9=v']],
    [{ kind: 'rowSample', probability: 0.5 }, ['(skipped)']],
    [{ kind: 'rowKeyRegex', regex: 'r.w' }, ['f:a@3=v', 'f:a@2=v', 'f:b@2=v', 'g:a@9=v']],
    [{ kind: 'rowKeyRegex', regex: 'r' }, ['(skipped)']],
    [{ kind: 'blockAll' }, ['(skipped)']],
  ];
  for (const [filter, want] of cases) {
    test(JSON.stringify(filter), () => {
      assert.deepEqual(filtered(filter, row), want);
    });
  }

  test('value_bitmask: the mask length and every bit of it', () => {
    const mask = (text: string): RowFilter => ({ kind: 'valueBitmask', mask: text });
    const values = ['\x0f\xf0', '\xff\xff', '\x0f', '\x0f\xf0\0', '\x0e\xf0', ''].map((value, i) =>
      cell('f', `${i}`, 1, value),
    );
    assert.deepEqual(filtered(mask('\x0f\xf0'), values).length, 2);
    assert.deepEqual(filtered(mask('\0\0'), values).length, 3);
    assert.deepEqual(filtered(mask('\x80'), values).length, 0);
  });

  test('value ranges, open and closed', () => {
    const values = ['', 'a', 'a\0', 'b'].map((value, i) => cell('f', `${i}`, 1, value));
    const at = (start: [string, boolean] | undefined, end: [string, boolean] | undefined): string =>
      filtered(
        {
          kind: 'valueRange',
          ...(start && { start: { value: start[0], closed: start[1] } }),
          ...(end && { end: { value: end[0], closed: end[1] } }),
        },
        values,
      )
        .map((text) => text.slice(2, 3))
        .join('');
    assert.equal(at(undefined, undefined), '0123');
    assert.equal(at(['a', true], ['b', false]), '12');
    assert.equal(at(['a', false], ['b', true]), '23');
    assert.equal(at(['', false], ['a', true]), '1');
    assert.equal(at(['b', true], ['a', true]), '');
  });

  test('timestamps over all of int64', () => {
    const most = 2n ** 63n - 1n;
    const cells = [
      cell('f', 'q', most),
      cell('f', 'q', 2n ** 53n + 1n),
      cell('f', 'q', 2 ** 53 - 1),
      cell('f', 'q', -5),
      cell('f', 'q', -(2n ** 63n)),
    ];
    assert.equal(filtered({ kind: 'timestampRange', range: { end: most } }, cells).length, 4);
    assert.deepEqual(filtered({ kind: 'timestampRange', range: { start: 2n ** 53n + 1n, end: most } }, cells), [
      `f:q@${2n ** 53n + 1n}=v`,
    ]);
    assert.equal(filtered({ kind: 'timestampRange', range: { start: -(2n ** 63n), end: 0 } }, cells).length, 2);
  });

  test('strip and label change copies, not the cells given', () => {
    const one = Object.freeze(cell('f', 'q', 1, 'value'));
    assert.deepEqual(
      filtered({ kind: 'chain', filters: [{ kind: 'applyLabel', label: 'x' }, { kind: 'stripValue' }] }, [one]),
      ['f:q@1= #x'],
    );
    assert.equal(words(one), 'f:q@1=value');
  });
});

describe('the run', () => {
  test('a compiler keeps the program of a filter for the same families', () => {
    const compiler = new FilterCompiler(OPTIONS);
    const filter: RowFilter = { kind: 'cellsPerColumnLimit', cells: 1 };
    const program = compiler.compile(filter, ['f', 'g']);
    assert.equal(compiler.compile(filter, ['f', 'g']), program);
    assert.notEqual(compiler.compile(filter, ['f']), program);
    assert.notEqual(compiler.compile({ ...filter }, ['f']), compiler.compile(filter, ['f']));
    assert.equal(compiler.compile(undefined), compileFilter(undefined, OPTIONS));
  });

  test('no filter passes the same cells, without a state', () => {
    const program = compileFilter(undefined, OPTIONS);
    assert.equal(program.run(), compileFilter(undefined, OPTIONS).run());
    const cells = [cell('f', 'a', 1), cell('f', 'b', 1)];
    const out: Cell[] = [];
    assert.equal(program.run().startRow('r'), Hint.next);
    for (const one of cells) assert.equal(program.run().push(one, out), Hint.next);
    program.run().endRow(out);
    assert.ok(out.every((one, i) => one === cells[i]));
    assert.equal(program.run().heldBytes, 0);
  });

  test('a sample is drawn once for each row and filter, and each run has draws of its own', () => {
    const draws = [0.1, 0.9, 0.1, 0.1];
    const random = { float: () => draws.shift() ?? assert.fail('drawn too often') };
    const sample: RowFilter = { kind: 'rowSample', probability: 0.5 };
    const run = compileFilter({ kind: 'chain', filters: [sample, sample] }, { ...OPTIONS, random }).run();
    assert.equal(run.startRow('r1'), Hint.skipRow);
    assert.equal(run.startRow('r2'), Hint.next);
    const out: Cell[] = [];
    run.push(cell('f', 'a', 1), out);
    run.push(cell('f', 'b', 1), out);
    assert.equal(out.length, 2);
  });

  test('the cells that a condition holds back are counted, and leave at the first cell of the predicate', () => {
    const filter: RowFilter = {
      kind: 'condition',
      predicate: { kind: 'columnQualifierRegex', regex: 'z' },
      whenTrue: PASS,
    };
    const run = compileFilter(filter, OPTIONS).run();
    const out: Cell[] = [];
    run.startRow('r');
    run.push(cell('f', 'a', 1, 'x'.repeat(10_000)), out);
    assert.ok(run.heldBytes >= 10_000);
    assert.equal(out.length, 0);
    run.push(cell('f', 'b', 1, 'x'.repeat(10_000)), out);
    assert.ok(run.heldBytes >= 20_000);
    run.push(cell('f', 'z', 1), out);
    assert.equal(out.length, 3);
    assert.equal(run.heldBytes, 0);
    run.push(cell('f', 'zz', 1), out);
    assert.equal(out.length, 4, 'from then on it holds nothing');
    run.endRow(out);
    assert.equal(out.length, 4);
  });

  test('a predicate on the row key alone is decided before the first cell', () => {
    const filter: RowFilter = {
      kind: 'condition',
      predicate: { kind: 'rowKeyRegex', regex: 'yes' },
      whenTrue: PASS,
      whenFalse: { kind: 'stripValue' },
    };
    const run = compileFilter(filter, OPTIONS).run();
    for (const [row, want] of [
      ['yes', 'f:a@1=v'],
      ['no', 'f:a@1='],
    ] as const) {
      const out: Cell[] = [];
      assert.equal(run.startRow(row), Hint.next);
      run.push(cell('f', 'a', 1), out);
      assert.deepEqual(out.map(words), [want], row);
      assert.equal(run.heldBytes, 0);
      run.endRow(out);
    }
  });

  test('rows are skipped whole if gates are shut, but not past a sink', () => {
    const shut: RowFilter = { kind: 'rowKeyRegex', regex: 'other' };
    assert.deepEqual(filtered({ kind: 'chain', filters: [PASS, shut] }, [cell('f', 'a', 1)]), ['(skipped)']);
    assert.deepEqual(filtered({ kind: 'condition', predicate: shut, whenTrue: PASS }, [cell('f', 'a', 1)]), [
      '(skipped)',
    ]);
    const tee: RowFilter = { kind: 'interleave', filters: [PASS, { kind: 'sink' }] };
    assert.deepEqual(filtered({ kind: 'chain', filters: [tee, shut] }, [cell('f', 'a', 1)]), ['f:a@1=v']);
    assert.deepEqual(filtered({ kind: 'chain', filters: [shut, tee] }, [cell('f', 'a', 1)]), ['(skipped)']);
  });
});

describe('hints', () => {
  const row = [cell('f', 'a', 3), cell('f', 'a', 2), cell('f', 'b', 3), cell('g', 'a', 3)];
  const { next, skipColumn, skipRow } = Hint;
  const cases: readonly (readonly [string, RowFilter, readonly Hint[]])[] = [
    [
      'the newest version only',
      { kind: 'cellsPerColumnLimit', cells: 1 },
      [skipColumn, skipColumn, skipColumn, skipColumn],
    ],
    ['a row limit', { kind: 'cellsPerRowLimit', cells: 2 }, [next, skipRow, skipRow, skipRow]],
    ['below the start', { kind: 'timestampRange', range: { start: 3 } }, [next, skipColumn, next, next]],
    ['above the end', { kind: 'timestampRange', range: { end: 3 } }, [next, next, next, next]],
    [
      'a column range',
      { kind: 'columnRange', family: 'f', start: { value: 'b', closed: true }, end: { value: 'b', closed: true } },
      [skipColumn, skipColumn, next, skipRow],
    ],
    ['other qualifiers', { kind: 'columnQualifierRegex', regex: 'b' }, [skipColumn, skipColumn, next, skipColumn]],
    [
      'a branch that blocks does not count',
      { kind: 'interleave', filters: [{ kind: 'cellsPerRowLimit', cells: 1 }, { kind: 'blockAll' }] },
      [skipRow, skipRow, skipRow, skipRow],
    ],
    [
      'an offset counts all',
      {
        kind: 'chain',
        filters: [
          { kind: 'cellsPerRowOffset', cells: 2 },
          { kind: 'cellsPerColumnLimit', cells: 1 },
        ],
      },
      [next, next, skipColumn, skipColumn],
    ],
    [
      'a row limit counts all',
      {
        kind: 'chain',
        filters: [
          { kind: 'cellsPerRowLimit', cells: 3 },
          { kind: 'cellsPerColumnLimit', cells: 1 },
        ],
      },
      [next, next, skipRow, skipRow],
    ],
    [
      'a sink takes all',
      { kind: 'interleave', filters: [{ kind: 'cellsPerRowLimit', cells: 1 }, { kind: 'sink' }] },
      [next, next, next, next],
    ],
    [
      'branches agree on the least',
      {
        kind: 'interleave',
        filters: [
          { kind: 'cellsPerRowLimit', cells: 1 },
          { kind: 'cellsPerColumnLimit', cells: 1 },
        ],
      },
      [skipColumn, skipColumn, skipColumn, skipColumn],
    ],
    [
      'a decided condition is its branch',
      {
        kind: 'condition',
        predicate: { kind: 'timestampRange', range: { end: 3 } },
        whenTrue: { kind: 'cellsPerRowLimit', cells: 3 },
      },
      [next, next, skipRow, skipRow],
    ],
  ];
  for (const [what, filter, want] of cases) {
    test(what, () => {
      assert.deepEqual(hints(filter, row), want);
    });
  }
});
