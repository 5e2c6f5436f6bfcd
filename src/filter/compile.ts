/**
 * Compiles filters: checks a filter, compiles its regular expressions, finds the columns and timestamps that it needs,
 * and creates the runs through which cells are pushed (program-run.ts).
 */
import type { Cell, Limits } from '../model/index.ts';
import { checkFilter } from './check.ts';
import type { RowFilter } from './filter.ts';
import { fanOutOf } from './fan-out.ts';
import { blocksAll, type MatcherOf, needOf, spansOf, timestampsOf } from './need.ts';
import { type FilterProgram, type FilterRun, Hint } from './program.ts';
import { ProgramRun } from './program-run.ts';
import { isSimple, SimpleRun } from './simple-run.ts';
import { Regexes } from './regex.ts';

export interface CompileOptions {
  readonly limits: Limits;
  /** Draws for row_sample_filter: uniform in [0, 1). */
  readonly random: { float(): number };
  /** All families of the table. They make spans narrower for a filter that has qualifiers and no family. */
  readonly families?: readonly string[] | undefined;
}

/** Compiles a filter; undefined passes all cells. INVALID_ARGUMENT if its form or an expression is invalid. */
export function compileFilter(filter: RowFilter | undefined, options: CompileOptions): FilterProgram {
  return filter === undefined ? PASS_ALL : compile(filter, options);
}

/**
 * Keeps the program of each filter by the filter's identity, as long as the filter lives: a decoder of requests returns
 * the same object for the same bytes, and filters never change.
 */
export class FilterCompiler {
  readonly #options: CompileOptions;
  readonly #programs = new WeakMap<RowFilter, { readonly families: Families; readonly program: FilterProgram }>();

  constructor(options: Pick<CompileOptions, 'limits' | 'random'>) {
    this.#options = options;
  }

  /** Like `compileFilter`. */
  compile(filter: RowFilter | undefined, families?: Families): FilterProgram {
    if (filter === undefined) return PASS_ALL;
    const known = this.#programs.get(filter);
    if (known !== undefined && isSame(known.families, families)) return known.program;
    const program = compile(filter, { ...this.#options, families });
    this.#programs.set(filter, { families, program });
    return program;
  }
}

type Families = CompileOptions['families'];

function isSame(a: Families, b: Families): boolean {
  return a === b || (a !== undefined && a.length === b?.length && a.every((family, i) => family === b[i]));
}

function compile(filter: RowFilter, options: CompileOptions): FilterProgram {
  checkFilter(filter, options.limits);
  const regexes = new Regexes();
  const matcherOf: MatcherOf = (part) => regexes.get(part.regex, FIELDS[part.kind]!);
  compileAll(filter, matcherOf);
  const need = needOf(filter, matcherOf);
  const { pushes, copies } = fanOutOf(filter);
  return {
    columnSpans: spansOf(need, options.families),
    timestamps: timestampsOf(need),
    blocksAll: blocksAll(need),
    unitsPerCell: pushes,
    work: regexes.work,
    copies: copies > 1,
    run: isSimple(filter, matcherOf)
      ? () => new SimpleRun(filter, matcherOf)
      : () => new ProgramRun(filter, matcherOf, options.random, pushes),
  };
}

/** The API's names of the fields that hold expressions. */
const FIELDS: Partial<Record<RowFilter['kind'], string>> = {
  rowKeyRegex: 'row_key_regex_filter',
  familyNameRegex: 'family_name_regex_filter',
  columnQualifierRegex: 'column_qualifier_regex_filter',
  valueRegex: 'value_regex_filter',
};

/** Compiles every expression, also those that no stage will use. */
function compileAll(filter: RowFilter, matcherOf: MatcherOf): void {
  switch (filter.kind) {
    case 'chain':
    case 'interleave':
      for (const part of filter.filters) compileAll(part, matcherOf);
      return;
    case 'condition':
      for (const part of [filter.predicate, filter.whenTrue, filter.whenFalse]) if (part) compileAll(part, matcherOf);
      return;
    case 'rowKeyRegex':
    case 'familyNameRegex':
    case 'columnQualifierRegex':
    case 'valueRegex':
      matcherOf(filter);
      return;
    default:
      return;
  }
}

/** No filter. The run has no state, so one serves all reads. */
const PASS_ALL: FilterProgram = Object.freeze({
  columnSpans: undefined,
  timestamps: undefined,
  blocksAll: false,
  unitsPerCell: 1,
  work: { units: 0 },
  copies: false,
  run: () => PASS_ALL_RUN,
});

const PASS_ALL_RUN: FilterRun = Object.freeze({
  heldBytes: 0,
  startRow: () => Hint.next,
  push(cell: Cell, out: Cell[]): Hint {
    out.push(cell);
    return Hint.next;
  },
  endRow: () => Hint.next,
  resume: () => Hint.next,
});
