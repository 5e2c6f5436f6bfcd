/**
 * The interpreter against the plain model of fixtures.ts: for random filters and rows the program yields the same, if
 * the read obeys hints and bounds and if it pushes every cell.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { fromBytes, toBytes } from '../base/index.ts';
import { type Cell, columnKey, LIMITS } from '../model/index.ts';
import { checkFilter } from './check.ts';
import { compileFilter } from './compile.ts';
import type { RowFilter } from './filter.ts';
import { EXPRESSIONS, expected, FAMILIES, HALF, order, sameColumn } from './fixtures.ts';
import { type FilterProgram, type FilterRun, Hint } from './program.ts';

const OPTIONS = { limits: LIMITS.default, random: HALF };

/** The call to its end, slice by slice. */
function settled(run: FilterRun, hint: Hint, out: Cell[]): Hint {
  let last = hint;
  while (last === Hint.busy) last = run.resume(out);
  return last;
}

/** One row through the program, as a read does it. `obey`: skipping all that bounds and hints allow. */
function throughProgram(program: FilterProgram, row: string, cells: readonly Cell[], obey: boolean): Cell[] {
  const out: Cell[] = [];
  const run = program.run();
  if (obey && program.blocksAll) return out;
  if (settled(run, run.startRow(row), out) === Hint.skipRow) return out;
  let skipped: Cell | undefined;
  for (const cell of obey ? cells.filter((c) => inside(program, c)) : cells) {
    if (skipped && sameColumn(skipped, cell)) continue;
    const hint = settled(run, run.push(cell, out), out);
    if (obey && hint === Hint.skipRow) break;
    if (obey && hint === Hint.skipColumn) skipped = cell;
  }
  settled(run, run.endRow(out), out);
  assert.equal(run.heldBytes, 0, 'all held bytes were released');
  return out;
}

function inside(program: FilterProgram, cell: Cell): boolean {
  const column = columnKey(cell.family, cell.qualifier);
  const times = program.timestamps;
  if (times?.start !== undefined && cell.timestamp < times.start) return false;
  if (times?.end !== undefined && cell.timestamp >= times.end) return false;
  return (
    program.columnSpans === undefined ||
    program.columnSpans.some((span) => column >= span.start && (span.end === undefined || column < span.end))
  );
}

function words(cell: Cell): string {
  return JSON.stringify([
    cell.family,
    cell.qualifier,
    Number(cell.timestamp),
    fromBytes(cell.value),
    cell.labels ?? [],
  ]);
}

/** Copies of one cell in an order of their own, so that two lists with the same copies compare equal. */
function canonical(cells: readonly Cell[]): string[] {
  return [...cells].sort((a, b) => order(a, b) || (words(a) < words(b) ? -1 : 1)).map(words);
}

const qualifiers = fc.constantFrom('', 'x', 'x\n', 'xx', 'y', '\xff');
const values = fc.constantFrom('', 'x', 'y', 'b', '\n', '\xff', 'xb');
/** A few columns with several versions each: enough for every limit to bite. */
const cellsOfRow = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...FAMILIES), qualifiers, fc.array(values, { minLength: 1, maxLength: 5 })), {
    maxLength: 6,
    selector: ([family, qualifier]) => `${family}/${qualifier}`,
  })
  .map((columns) =>
    columns
      .flatMap(([family, qualifier, texts]) =>
        texts.map((text, timestamp): Cell => ({ family, qualifier, timestamp, value: toBytes(text) })),
      )
      .sort(order),
  );

const patterns = fc.constantFrom(...EXPRESSIONS.map(([pattern]) => pattern));
const bound = (texts: fc.Arbitrary<string>) =>
  fc.option(fc.record({ value: texts, closed: fc.boolean() }), { nil: undefined });
const instant = fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined });
const few = fc.integer({ min: 1, max: 4 });

const plainFilters: fc.Arbitrary<RowFilter> = fc.oneof(
  fc.constant<RowFilter>({ kind: 'passAll' }),
  fc.constant<RowFilter>({ kind: 'blockAll' }),
  fc.constantFrom('a', '.*', 'x.*').map((regex): RowFilter => ({ kind: 'rowKeyRegex', regex })),
  fc.constantFrom(0.2, 0.8).map((probability): RowFilter => ({ kind: 'rowSample', probability })),
  patterns.map((regex): RowFilter => ({ kind: 'familyNameRegex', regex })),
  patterns.map((regex): RowFilter => ({ kind: 'columnQualifierRegex', regex })),
  fc.record({
    kind: fc.constant('columnRange' as const),
    family: fc.constantFrom(...FAMILIES),
    start: bound(qualifiers),
    end: bound(qualifiers),
  }),
  {
    weight: 3,
    arbitrary: fc
      .record({ start: instant, end: instant })
      .map((range): RowFilter => ({ kind: 'timestampRange', range })),
  },
  patterns.map((regex): RowFilter => ({ kind: 'valueRegex', regex })),
  fc.record({ kind: fc.constant('valueRange' as const), start: bound(values), end: bound(values) }),
  fc.constantFrom('\x01', '\x7f', 'xb', '\0').map((mask): RowFilter => ({ kind: 'valueBitmask', mask })),
  fc.integer({ min: 0, max: 4 }).map((cells): RowFilter => ({ kind: 'cellsPerRowOffset', cells })),
  { weight: 3, arbitrary: few.map((cells): RowFilter => ({ kind: 'cellsPerRowLimit', cells })) },
  { weight: 3, arbitrary: few.map((cells): RowFilter => ({ kind: 'cellsPerColumnLimit', cells })) },
  fc.constant<RowFilter>({ kind: 'stripValue' }),
  fc.constantFrom('one', 'two').map((label): RowFilter => ({ kind: 'applyLabel', label })),
);

const several = (filters: fc.Arbitrary<RowFilter>) => fc.array(filters, { minLength: 2, maxLength: 4 });
const { unsunk, anyFilter } = fc.letrec<{ unsunk: RowFilter; anyFilter: RowFilter }>((tie) => ({
  unsunk: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 3, arbitrary: plainFilters },
    { weight: 2, arbitrary: several(tie('unsunk')).map((filters): RowFilter => ({ kind: 'chain', filters })) },
    { weight: 2, arbitrary: several(tie('unsunk')).map((filters): RowFilter => ({ kind: 'interleave', filters })) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('condition' as const),
        predicate: tie('unsunk'),
        whenTrue: fc.option(tie('unsunk'), { nil: undefined }),
        whenFalse: fc.option(tie('unsunk'), { nil: undefined }),
      }),
    },
  ),
  anyFilter: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 2, arbitrary: tie('unsunk') },
    { weight: 1, arbitrary: fc.constant<RowFilter>({ kind: 'sink' }) },
    { weight: 3, arbitrary: several(tie('anyFilter')).map((filters): RowFilter => ({ kind: 'chain', filters })) },
    { weight: 2, arbitrary: several(tie('anyFilter')).map((filters): RowFilter => ({ kind: 'interleave', filters })) },
  ),
}));

function isValid(filter: RowFilter): boolean {
  try {
    checkFilter(filter, LIMITS.default);
    return true;
  } catch {
    return false;
  }
}

const RUNS = { numRuns: 1000 };
const rows = fc.constantFrom('a', 'row', 'x\n');

describe('the interpreter and the model agree', () => {
  test('without sinks: the same cells in the same order', () => {
    fc.assert(
      fc.property(unsunk.filter(isValid), rows, cellsOfRow, (filter, row, cells) => {
        const { main } = expected(filter, row, cells);
        for (const families of [undefined, FAMILIES]) {
          const program = compileFilter(filter, { ...OPTIONS, families });
          assert.deepEqual(
            throughProgram(program, row, cells, true).map(words),
            main.map(words),
            'with hints and bounds obeyed',
          );
          assert.deepEqual(
            throughProgram(program, row, cells, false).map(words),
            main.map(words),
            'with every cell pushed',
          );
        }
      }),
      RUNS,
    );
  });

  test('with sinks: the same cells, in the order of the row', () => {
    fc.assert(
      fc.property(anyFilter.filter(isValid), rows, cellsOfRow, (filter, row, cells) => {
        const { main, sunk } = expected(filter, row, cells);
        const program = compileFilter(filter, { ...OPTIONS, families: FAMILIES });
        for (const obey of [true, false]) {
          const out = throughProgram(program, row, cells, obey);
          assert.deepEqual(
            canonical(out),
            canonical([...main, ...sunk]),
            obey ? 'with hints and bounds obeyed' : 'with every cell pushed',
          );
          out.forEach((cell, i) => {
            assert.ok(i === 0 || order(out[i - 1] as Cell, cell) <= 0, 'in order');
          });
        }
      }),
      RUNS,
    );
  });

  test('one run serves many rows', () => {
    fc.assert(
      fc.property(
        anyFilter.filter(isValid),
        fc.array(fc.tuple(rows, cellsOfRow), { minLength: 2, maxLength: 4 }),
        (filter, input) => {
          const run = compileFilter(filter, OPTIONS).run();
          for (const [row, cells] of input) {
            const out: Cell[] = [];
            if (settled(run, run.startRow(row), out) !== Hint.skipRow) {
              for (const cell of cells) settled(run, run.push(cell, out), out);
              settled(run, run.endRow(out), out);
            }
            const { main, sunk } = expected(filter, row, cells);
            assert.deepEqual(canonical(out), canonical([...main, ...sunk]));
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  test('a filter that is declared to block all yields no cell', () => {
    fc.assert(
      fc.property(anyFilter.filter(isValid), rows, cellsOfRow, (filter, row, cells) => {
        if (!compileFilter(filter, OPTIONS).blocksAll) return;
        const { main, sunk } = expected(filter, row, cells);
        assert.deepEqual([...main, ...sunk], []);
      }),
      RUNS,
    );
  });
});
