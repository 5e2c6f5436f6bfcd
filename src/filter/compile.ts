/**
 * The interpreter of filters: checks a filter, compiles its regular expressions, finds what it needs to see, and builds the stages that a
 * run pushes cells through (stages.ts, holding.ts).
 *
 * Stages are linked from the output backwards. Order: copies of a cell leave an interleave side by side, in the order of its branches, and a
 * condition only delays cells; so outputs are in the row's order by themselves, except where branches of an interleave are delayed
 * differently, or a sink passes by a condition. There, and only there, a collector holds the row and sorts it.
 */
import type { ByteString } from '../base/index.ts';
import type { Cell, Limits } from '../model/index.ts';
import { checkFilter, containsKind } from './check.ts';
import type { RowFilter } from './filter.ts';
import { type Branch, Collector, Condition, Ledger, type RowEnd, Verdict } from './holding.ts';
import { blocksAll, type MatcherOf, needOf, spansOf, timestampsOf } from './need.ts';
import { type FilterProgram, type FilterRun, Hint } from './program.ts';
import { ChainReach, ConditionReach, GateReach, InterleaveReach, REACH_MAIN, REACH_NONE, REACH_SUNK, type Reach } from './reach.ts';
import { Regexes } from './regex.ts';
import {
  ApplyLabel, BitmaskStage, Block, ColumnLimit, ColumnRangeStage, FamilyStage, Fanout, type Gate, Output, QualifierStage, RowKeyGate, RowLimit,
  RowOffset, type RowState, SampleGate, Sink, type Stage, StripValue, TimestampStage, ValueRangeStage, ValueRegexStage,
} from './stages.ts';

export interface CompileOptions {
  readonly limits: Limits;
  /** Draws for row_sample_filter: uniform in [0, 1). */
  readonly random: { float(): number };
  /** All families there can be: makes spans narrower where a filter names qualifiers and no family. */
  readonly families?: readonly string[] | undefined;
}

/** Makes a filter ready for reads; undefined passes all. INVALID_ARGUMENT where its form or an expression is not valid. */
export function compileFilter(filter: RowFilter | undefined, options: CompileOptions): FilterProgram {
  if (filter === undefined) return PASS_ALL;
  const known = compiled.get(filter);
  if (known !== undefined && isFor(known.options, options)) return known.program;
  const program = compile(filter, options);
  compiled.set(filter, { options, program });
  return program;
}

/** By the filter's identity: whoever decodes requests gives the same object for the same bytes, and filters never change. */
const compiled = new WeakMap<RowFilter, { readonly options: CompileOptions; readonly program: FilterProgram }>();

function isFor(a: CompileOptions, b: CompileOptions): boolean {
  if (a.limits !== b.limits || a.random !== b.random) return false;
  if (a.families === b.families) return true;
  if (a.families?.length !== b.families?.length) return false;
  return a.families === undefined || a.families.every((family, i) => family === b.families?.[i]);
}

function compile(filter: RowFilter, options: CompileOptions): FilterProgram {
  checkFilter(filter, options.limits);
  const regexes = new Regexes();
  const matcherOf: MatcherOf = (part) => regexes.get(part.regex, FIELDS[part.kind] as string);
  compileAll(filter, matcherOf);
  const need = needOf(filter, matcherOf);
  return {
    columnSpans: spansOf(need, options.families),
    timestamps: timestampsOf(need),
    blocksAll: blocksAll(need),
    run: isSimple(filter) ? () => new SimpleRun(filter, matcherOf) : () => new ProgramRun(filter, matcherOf, options.random),
  };
}

/** The API's names of the fields that hold expressions. */
const FIELDS: Partial<Record<RowFilter['kind'], string>> = {
  rowKeyRegex: 'row_key_regex_filter',
  familyNameRegex: 'family_name_regex_filter',
  columnQualifierRegex: 'column_qualifier_regex_filter',
  valueRegex: 'value_regex_filter',
};

/** Every expression, also those that analysis and stages would never look at. */
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
  run: () => PASS_ALL_RUN,
});

const PASS_ALL_RUN: FilterRun = Object.freeze({
  heldBytes: 0,
  startRow: () => true,
  push(cell: Cell, out: Cell[]): Hint {
    out.push(cell);
    return Hint.next;
  },
  endRow() {},
});

/** Filters of one stage, which most reads have. */
function isSimple({ kind }: RowFilter): boolean {
  return !COMPOUND.has(kind);
}

const COMPOUND: ReadonlySet<RowFilter['kind']> = new Set(['chain', 'interleave', 'condition', 'sink', 'blockAll', 'rowKeyRegex', 'rowSample']);

class SimpleRun implements FilterRun {
  readonly heldBytes = 0;
  readonly #output = new Output();
  readonly #stage: Stage;
  readonly #state: RowState | undefined;

  constructor(filter: RowFilter, matcherOf: MatcherOf) {
    this.#stage = simpleStage(filter, matcherOf, this.#output);
    this.#state = hasRowState(this.#stage) ? this.#stage : undefined;
  }

  startRow(): boolean {
    this.#state?.startRow();
    return true;
  }

  push(cell: Cell, out: Cell[]): Hint {
    this.#output.out = out;
    return this.#stage.push(cell);
  }

  endRow(): void {}
}

class ProgramRun implements FilterRun {
  readonly #matcherOf: MatcherOf;
  readonly #random: { float(): number };
  readonly #ledger = new Ledger();
  readonly #output = new Output();
  /** Where sinks and the last filter push to: the output, or what sorts before it. */
  readonly #sinkTo: Stage;
  readonly #gates: Gate[] = [];
  readonly #states: RowState[] = [];
  /** Downstream first while it is built, then turned around. */
  readonly #ends: RowEnd[] = [];
  readonly #head: Stage;
  readonly #reach: Reach;

  constructor(filter: RowFilter, matcherOf: MatcherOf, random: { float(): number }) {
    this.#matcherOf = matcherOf;
    this.#random = random;
    let end: Stage = this.#output;
    this.#sinkTo = end;
    if (containsKind(filter, 'sink') && containsKind(filter, 'condition')) {
      const sorted = new Collector(this.#output, this.#ledger);
      this.#ends.push(sorted);
      this.#sinkTo = sorted.list();
      end = sorted.list();
    }
    const { head, reach } = this.#build(filter, end);
    this.#head = head;
    this.#reach = reach;
    this.#ends.reverse();
  }

  get heldBytes(): number {
    return this.#ledger.heldBytes;
  }

  startRow(row: ByteString): boolean {
    for (const gate of this.#gates) gate.startRow(row);
    if (this.#reach.reach() === 0) return false;
    for (const state of this.#states) state.startRow();
    return true;
  }

  push(cell: Cell, out: Cell[]): Hint {
    this.#output.out = out;
    return this.#head.push(cell);
  }

  endRow(out: Cell[]): void {
    this.#output.out = out;
    for (const end of this.#ends) end.endRow();
  }

  #build(filter: RowFilter, next: Stage): Branch {
    switch (filter.kind) {
      case 'chain':
        return this.#chain(filter.filters, next);
      case 'interleave':
        return this.#interleave(filter.filters, next);
      case 'condition':
        return this.#condition(filter, next);
      case 'sink':
        return { head: new Sink(this.#sinkTo), reach: REACH_SUNK };
      case 'blockAll':
        return { head: new Block(), reach: REACH_NONE };
      case 'rowKeyRegex':
        return this.#gate(new RowKeyGate(this.#matcherOf(filter), next));
      case 'rowSample':
        return this.#gate(new SampleGate(filter.probability, this.#random, next));
      default:
        return { head: this.#simple(filter, next), reach: REACH_MAIN };
    }
  }

  #chain(filters: readonly RowFilter[], next: Stage): Branch {
    const reaches: Reach[] = [];
    const head = filters.reduceRight((after, part) => {
      const built = this.#build(part, after);
      reaches.unshift(built.reach);
      return built.head;
    }, next);
    return { head, reach: new ChainReach(reaches) };
  }

  #interleave(filters: readonly RowFilter[], next: Stage): Branch {
    const delayed = filters.some((part) => containsKind(part, 'condition'));
    const collector = delayed ? new Collector(next, this.#ledger) : undefined;
    if (collector) this.#ends.push(collector);
    const branches = filters.map((part) => this.#build(part, collector ? collector.list() : next));
    return { head: new Fanout(branches.map((branch) => branch.head)), reach: new InterleaveReach(branches.map((branch) => branch.reach)) };
  }

  #condition(filter: RowFilter & { kind: 'condition' }, next: Stage): Branch {
    const whenTrue = this.#build(filter.whenTrue ?? { kind: 'blockAll' }, next);
    const whenFalse = this.#build(filter.whenFalse ?? { kind: 'blockAll' }, next);
    const verdict = new Verdict();
    const at = this.#ends.length;
    const predicate = this.#build(filter.predicate, verdict);
    const head = new Condition(predicate, verdict, whenTrue, whenFalse, this.#ledger);
    // what the predicate holds must reach the verdict before the condition asks for it
    this.#ends.splice(at, 0, head);
    this.#states.push(head);
    return { head, reach: new ConditionReach(predicate.reach, whenTrue.reach, whenFalse.reach) };
  }

  #gate(gate: Gate): Branch {
    this.#gates.push(gate);
    return { head: gate, reach: new GateReach(gate) };
  }

  #simple(filter: RowFilter, next: Stage): Stage {
    const stage = simpleStage(filter, this.#matcherOf, next);
    if (stage !== next && hasRowState(stage)) this.#states.push(stage);
    return stage;
  }
}

function hasRowState(stage: Stage): stage is Stage & RowState {
  return 'startRow' in stage;
}

function simpleStage(filter: RowFilter, matcherOf: MatcherOf, next: Stage): Stage {
  switch (filter.kind) {
    case 'familyNameRegex':
      return new FamilyStage(matcherOf(filter), next);
    case 'columnQualifierRegex':
      return new QualifierStage(matcherOf(filter), next);
    case 'columnRange':
      return new ColumnRangeStage(filter, next);
    case 'timestampRange':
      return new TimestampStage(filter, next);
    case 'valueRegex':
      return new ValueRegexStage(matcherOf(filter), next);
    case 'valueRange':
      return new ValueRangeStage(filter, next);
    case 'valueBitmask':
      return new BitmaskStage(filter.mask, next);
    case 'cellsPerRowOffset':
      return new RowOffset(filter.cells, next);
    case 'cellsPerRowLimit':
      return new RowLimit(filter.cells, next);
    case 'cellsPerColumnLimit':
      return new ColumnLimit(filter.cells, next);
    case 'stripValue':
      return new StripValue(next);
    case 'applyLabel':
      return new ApplyLabel(filter.label, next);
    default:
      return next;
  }
}
