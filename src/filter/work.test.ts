/**
 * The work of one call of a run is bounded, whatever the filter, the row and the values are. The work is counted from
 * outside: pushes into stages, threads of expressions that are simulated or built into an automaton, bytes that are
 * searched.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { RE2JS } from 're2js';
import { BigtableError, Code, compareBytes } from '../base/index.ts';
import { type Cell, LIMITS } from '../model/index.ts';
import { compileFilter } from './compile.ts';
import type { RowFilter } from './filter.ts';
import { type FilterRun, Hint } from './program.ts';
import * as stages from './stages.ts';

/** Units of work between two answers of a run, some 10 ms. A thread that is built into an automaton counts as 64. */
const MAX_UNITS = 1_000_000;
const BUILT_THREAD_UNITS = 64;
const SEARCHED_BYTES = 64;

let units = 0;
const undo: (() => void)[] = [];

/** Lets `count` see each call of a method, before it. */
function watch<A extends unknown[]>(owner: object, name: string, count: (self: never, args: A) => number): void {
  const target = owner as Record<string, (...args: unknown[]) => unknown>;
  const original = target[name] as (...args: unknown[]) => unknown;
  target[name] = function (this: unknown, ...args: unknown[]): unknown {
    units += count(this as never, args as A);
    return original.apply(this, args);
  };
  undo.push(() => {
    target[name] = original;
  });
}

before(() => {
  for (const stage of Object.values(stages)) {
    if (Object.hasOwn(stage.prototype, 'push')) watch(stage.prototype, 'push', () => 1);
  }
  const engine = RE2JS.compile('[a]').re2();
  watch(
    Object.getPrototypeOf(engine.dfa),
    'closure',
    (_, [instructions]: [Iterable<number>]) => BUILT_THREAD_UNITS * [...instructions].length,
  );
  engine.doExecuteNFA({ context: () => -1, step: () => -8, endPos: () => 0, canCheckPrefix: () => false }, 0, 2, 0);
  watch(Object.getPrototypeOf(engine.get()), 'step', (_, [threads]: [{ size: number }]) => 1 + threads.size);
  for (const name of ['indexOf', 'includes'])
    watch(Buffer.prototype, name, ({ length }: Buffer) => length / SEARCHED_BYTES);
});

after(() => {
  for (const one of undo) one();
});

interface Outcome {
  readonly out: Cell[];
  readonly maxUnits: number;
  readonly calls: number;
}

/** Pushes one row through a filter; returns the most units that one call of the run took. */
function through(filter: RowFilter, row: string, cells: readonly Cell[]): Outcome {
  const run: FilterRun = compileFilter(filter, { limits: LIMITS.default, random: { float: () => 0.5 } }).run();
  const out: Cell[] = [];
  let [maxUnits, calls] = [0, 0];
  const call = (work: () => Hint): Hint => {
    for (let next = work; ; next = () => run.resume(out)) {
      units = 0;
      const hint = next();
      maxUnits = Math.max(maxUnits, units);
      calls++;
      if (hint !== Hint.busy) return hint;
    }
  };
  if (call(() => run.startRow(row)) !== Hint.skipRow) {
    for (const cell of cells) if (call(() => run.push(cell, out)) === Hint.skipRow) break;
    call(() => run.endRow(out));
  }
  assert.equal(run.heldBytes, 0, 'all held bytes are released');
  return { out, maxUnits, calls };
}

const PASS: RowFilter = { kind: 'passAll' };
const chain = (...filters: RowFilter[]): RowFilter => ({ kind: 'chain', filters });
const interleave = (...filters: RowFilter[]): RowFilter => ({ kind: 'interleave', filters });
const regex = (text: string): RowFilter => ({ kind: 'valueRegex', regex: text });
const times = (count: number, filter: RowFilter): RowFilter[] => Array.from({ length: count }, () => filter);
const cellOf = (value: Buffer, qualifier = 'q'): Cell => ({ family: 'f', qualifier, timestamp: 1, value });

function refusal(filter: RowFilter): BigtableError {
  try {
    through(filter, 'row', []);
  } catch (error) {
    assert.ok(error instanceof BigtableError);
    assert.equal(error.code, Code.INVALID_ARGUMENT);
    return error;
  }
  return assert.fail('it was taken');
}

describe('copies of a cell are bounded when the filter is compiled', () => {
  test('a chain of interleaves is refused by the product of their branches', () => {
    assert.match(
      refusal(chain(...times(30, interleave(...times(40, PASS))))).message,
      /up to more than 1e15 steps for one cell.*the limit is 16384/,
    );
    assert.match(refusal(chain(...times(64, interleave(PASS, PASS)), regex('nothing'))).message, /the limit is 16384/);
    assert.match(refusal(chain(...times(14, interleave(PASS, PASS)))).message, /up to 65533 steps/);
    // in a branch of a condition, in its predicate, and where a sink ends the copies
    const wide = chain(...times(20, interleave(PASS, PASS)));
    const inside: RowFilter[] = [
      { kind: 'condition', predicate: PASS, whenTrue: wide },
      { kind: 'condition', predicate: wide },
      chain(wide, { kind: 'sink' }),
      interleave(PASS, wide),
    ];
    for (const filter of inside) assert.match(refusal(filter).message, /the limit is 16384/);
  });

  test('up to the limit they are allowed', () => {
    const filter = chain(...times(3, interleave(...times(16, PASS))));
    const { out, maxUnits } = through(filter, 'row', [cellOf(Buffer.from('v'))]);
    assert.equal(out.length, 4096);
    assert.ok(maxUnits <= LIMITS.default.filterPushes, `${maxUnits} units`);
  });

  test('filters that do not multiply cells are never near the limit', () => {
    assert.equal(through(interleave(...times(5000, PASS)), 'row', [cellOf(Buffer.from('v'))]).out.length, 5000);
    const label: RowFilter = { kind: 'condition', predicate: PASS, whenTrue: PASS, whenFalse: PASS };
    assert.equal(through(chain(...times(900, label)), 'row', [cellOf(Buffer.from('v'))]).out.length, 1);
    assert.equal(
      through(chain(...times(1000, { kind: 'stripValue' })), 'row', [cellOf(Buffer.from('v'))]).out.length,
      1,
    );
  });

  test('a very long chain is refused, since its parts call one another', () => {
    assert.match(
      refusal(chain(...times(1024, { kind: 'stripValue' }))).message,
      /through 1025 parts one after another; the limit is 1024/,
    );
    const late: RowFilter = {
      kind: 'condition',
      predicate: PASS,
      whenFalse: chain(...times(1024, { kind: 'stripValue' })),
    };
    assert.match(refusal(chain(late, PASS)).message, /the limit is 1024/);
  });

  test('a part that occurs very many times is checked without a walk over all of them', () => {
    let filter: RowFilter = PASS;
    for (let depth = 0; depth < 19; depth++)
      filter = { kind: 'condition', predicate: filter, whenTrue: filter, whenFalse: filter };
    assert.match(refusal(filter).message, /20480 parts at most/);
  });
});

describe('one call of a run is one bounded slice', () => {
  const long = Buffer.alloc(4 * 1024 * 1024, 'x');

  /** [filter, cells, how many pass]. */
  const cases: readonly (readonly [string, RowFilter, readonly Cell[], number])[] = [
    [
      'a needle in a long value',
      regex('.*foo.*'),
      [cellOf(long), cellOf(Buffer.concat([long, Buffer.from('foo'), long]))],
      1,
    ],
    ['bytes that are never found', regex(`\\C*b${'x'.repeat(5000)}\\C*`), [cellOf(long.subarray(0, 1024 * 1024))], 0],
    ['no newline to the end', regex('.*'), [cellOf(long), cellOf(Buffer.concat([long, Buffer.from('\n')]))], 1],
    ['a class over a long value', regex('[a-z]+'), [cellOf(long), cellOf(Buffer.concat([long, Buffer.from('0')]))], 1],
    ['many threads', regex(`${'.{0,900}'.repeat(4)}b`), [cellOf(long.subarray(0, 4000))], 0],
    ['many states', regex('[xy]*x[xy]{60}'), [cellOf(long.subarray(0, 60_000))], 1],
    [
      'many expressions',
      interleave(...Array.from({ length: 400 }, (_, i) => regex(`(x|y)*${i}`))),
      [cellOf(long.subarray(0, 20_000))],
      0,
    ],
    [
      'one expression in many places',
      interleave(...times(2000, regex('(x|y)*z'))),
      [cellOf(long.subarray(0, 60_000))],
      0,
    ],
    [
      'stripped copies between others',
      chain(interleave(...times(64, PASS)), interleave(PASS, { kind: 'stripValue' }), regex('(x|y)*z|')),
      [cellOf(long.subarray(0, 60_000))],
      64,
    ],
    [
      'a large mask in many places',
      chain(interleave(...times(2000, PASS)), { kind: 'valueBitmask', mask: '\x01'.repeat(10_000) }),
      [cellOf(Buffer.alloc(10_000, 1))],
      2000,
    ],
  ];
  for (const [name, filter, cells, passing] of cases) {
    test(name, () => {
      const { out, maxUnits } = through(filter, 'row', cells);
      assert.equal(out.length, passing);
      assert.ok(maxUnits <= MAX_UNITS, `${maxUnits} units in one call`);
    });
  }

  test('a long row key, a long qualifier', () => {
    const name = 'x'.repeat(60_000);
    for (const filter of [
      { kind: 'rowKeyRegex', regex: '[xy]*x[xy]{60}' },
      { kind: 'columnQualifierRegex', regex: '[xy]*x[xy]{60}' },
    ] as const) {
      const { out, maxUnits, calls } = through(filter, name, [cellOf(long.subarray(0, 1), name)]);
      assert.equal(out.length, 1);
      assert.ok(maxUnits <= MAX_UNITS && calls > 5, `${maxUnits} units in one of ${calls} calls`);
    }
  });

  test('a row that is held to its end leaves in slices', () => {
    const cells = Array.from({ length: 50_000 }, (_, i) => cellOf(Buffer.from('v'), `q${String(i).padStart(5, '0')}`));
    const last: RowFilter = { kind: 'columnQualifierRegex', regex: 'q49999' };
    const held: RowFilter = { kind: 'condition', predicate: last, whenTrue: interleave(...times(10, PASS)) };
    for (const [filter, copies] of [
      [held, 10],
      [interleave(PASS, held), 11],
      [chain(held, { kind: 'condition', predicate: last, whenTrue: PASS }), 10],
    ] as const) {
      const { out, maxUnits, calls } = through(filter, 'row', cells);
      assert.equal(out.length, copies * cells.length);
      assert.ok(maxUnits <= MAX_UNITS, `${maxUnits} units in one call`);
      assert.ok(calls > cells.length + 5, 'it took several slices to leave');
      for (let i = 1; i < out.length; i++)
        if ((out[i - 1] as Cell).qualifier > (out[i] as Cell).qualifier) assert.fail(`out of order at ${i}`);
    }
  });

  test('random filters, values and rows', () => {
    const texts = fc.constantFrom(
      '',
      'x',
      'xyz',
      'x'.repeat(300),
      'y'.repeat(9000),
      'xy'.repeat(20_000),
      'a\n'.repeat(500),
    );
    const patterns = fc.constantFrom(
      'x*',
      '[xy]+',
      '.*z.*',
      '(x|y)*z',
      '[xy]*x[xy]{12}',
      '.{0,300}',
      '.*',
      '\\C*',
      'x.*y',
      '(?i)X+',
      '\\bx+\\b',
      'x{3,40}y*',
      `.*${'x'.repeat(200)}z.*`,
      'a|b|xyz',
    );
    const simple: fc.Arbitrary<RowFilter> = fc.oneof(
      { weight: 4, arbitrary: patterns.map(regex) },
      patterns.map((pattern): RowFilter => ({ kind: 'rowKeyRegex', regex: pattern })),
      patterns.map((pattern): RowFilter => ({ kind: 'columnQualifierRegex', regex: pattern })),
      fc.constantFrom<RowFilter>(
        PASS,
        { kind: 'stripValue' },
        { kind: 'cellsPerRowLimit', cells: 3 },
        { kind: 'cellsPerColumnLimit', cells: 1 },
        { kind: 'valueBitmask', mask: '\x01'.repeat(300) },
      ),
      fc.constant<RowFilter>({ kind: 'valueRange', start: { value: 'x', closed: true } }),
    );
    const { filter: filters } = fc.letrec<{ filter: RowFilter }>((tie) => ({
      filter: fc.oneof(
        { maxDepth: 4 },
        { weight: 2, arbitrary: simple },
        fc.array(tie('filter'), { minLength: 2, maxLength: 6 }).map((parts) => chain(...parts)),
        fc.array(tie('filter'), { minLength: 2, maxLength: 6 }).map((parts) => interleave(...parts)),
        fc
          .tuple(tie('filter'), tie('filter'), fc.option(tie('filter'), { nil: undefined }))
          .map(
            ([predicate, whenTrue, whenFalse]): RowFilter => ({ kind: 'condition', predicate, whenTrue, whenFalse }),
          ),
      ),
    }));
    const rows = fc
      .array(fc.tuple(texts, texts), { maxLength: 8 })
      .map((pairs) =>
        pairs
          .map(([qualifier, value], i) => cellOf(Buffer.from(value), `${i}${qualifier}`))
          .sort((a, b) => compareBytes(Buffer.from(a.qualifier), Buffer.from(b.qualifier))),
      );
    let most = 0;
    fc.assert(
      fc.property(filters, texts, rows, (filter, row, cells) => {
        try {
          most = Math.max(most, through(filter, `r${row}`, cells).maxUnits);
        } catch (error) {
          // too many copies, which is the other bound
          assert.ok(error instanceof BigtableError && error.code === Code.INVALID_ARGUMENT, String(error));
        }
        assert.ok(most <= MAX_UNITS, `${most} units in one call`);
      }),
      { numRuns: 400 },
    );
    assert.ok(most > 10_000, `the inputs were too small to say anything: ${most} units`);
  });
});
