/**
 * Runs of a compiled filter: the stages, built and linked from the output backwards, and what pushes cells through them in steps.
 *
 * Order: copies of a cell leave an interleave side by side, in the order of its branches, and a condition only delays cells; so outputs are in the row's
 * order by themselves, except where branches of an interleave are delayed differently, or a sink passes by a condition. There, and only there, a
 * collector holds the row and sorts it.
 *
 * Steps: pushing one cell costs FilterProgram.unitsPerCell units at most, which is bounded when a filter is compiled. What else may take long is cut
 * between two such pushes: the questions that expressions ask of a long input (questions.ts) come before the push that needs their answers, and cells
 * that were held back (holding.ts) leave one by one.
 */
import type { ByteString } from '../base/index.ts';
import type { Cell } from '../model/index.ts';
import { containsKind } from './check.ts';
import type { RowFilter } from './filter.ts';
import { Backlog, type Branch, Collector, Condition, Ledger, type RowEnd, Verdict } from './holding.ts';
import type { Allowance, Matcher } from './matcher.ts';
import type { MatcherOf } from './need.ts';
import { type FilterRun, Hint } from './program.ts';
import { type Question, Questions, TextQuestion, ValueQuestion } from './questions.ts';
import {
  ChainReach,
  ConditionReach,
  GateReach,
  InterleaveReach,
  REACH_MAIN,
  REACH_NONE,
  REACH_SUNK,
  type Reach,
} from './reach.ts';
import {
  ApplyLabel,
  BitmaskStage,
  Block,
  ColumnLimit,
  ColumnRangeStage,
  FamilyStage,
  Fanout,
  type Gate,
  Output,
  QualifierStage,
  RowKeyGate,
  RowLimit,
  RowOffset,
  type RowState,
  SampleGate,
  Sink,
  type Stage,
  StripValue,
  TimestampStage,
  ValueRangeStage,
  ValueRegexStage,
} from './stages.ts';

/** Units of work after which `goOn` leaves it at that for one step. */
const STEP_UNITS = 65_536;

const askText = (matcher: Matcher): Question<ByteString> => new TextQuestion(matcher);
const askValue = (matcher: Matcher): Question<Uint8Array> => new ValueQuestion(matcher);

/** The questions of a run that may cost much, by what they are about. Made for a filter that has such: most have none, or about values alone. */
class AllQuestions {
  #rows: Questions<ByteString> | undefined;
  #families: Questions<ByteString> | undefined;
  #qualifiers: Questions<ByteString> | undefined;
  #values: Questions<Uint8Array> | undefined;

  aboutRows(matcher: Matcher): Question<ByteString> {
    if (matcher.unitsPerByte === 0) return askText(matcher);
    this.#rows ??= new Questions(askText);
    return this.#rows.about(matcher);
  }

  aboutFamilies(matcher: Matcher): Question<ByteString> {
    if (matcher.unitsPerByte === 0) return askText(matcher);
    this.#families ??= new Questions(askText);
    return this.#families.about(matcher);
  }

  aboutQualifiers(matcher: Matcher): Question<ByteString> {
    if (matcher.unitsPerByte === 0) return askText(matcher);
    this.#qualifiers ??= new Questions(askText);
    return this.#qualifiers.about(matcher);
  }

  aboutValues(matcher: Matcher): Question<Uint8Array> {
    if (matcher.unitsPerByte === 0) return askValue(matcher);
    this.#values ??= new Questions(askValue);
    return this.#values.about(matcher);
  }

  get easyRowBytes(): number {
    return this.#rows?.easyBytes ?? Number.POSITIVE_INFINITY;
  }

  get easyFamilyBytes(): number {
    return this.#families?.easyBytes ?? Number.POSITIVE_INFINITY;
  }

  get easyQualifierBytes(): number {
    return this.#qualifiers?.easyBytes ?? Number.POSITIVE_INFINITY;
  }

  get easyValueBytes(): number {
    return this.#values?.easyBytes ?? Number.POSITIVE_INFINITY;
  }

  beginRow(row: ByteString): void {
    this.#rows?.begin(row);
  }

  begin({ family, qualifier, value }: Cell): void {
    if (family.length > this.easyFamilyBytes) this.#families?.begin(family);
    if (qualifier.length > this.easyQualifierBytes) this.#qualifiers?.begin(qualifier);
    if (value.length > this.easyValueBytes) this.#values?.begin(value);
  }

  /** True: those that were begun are all answered. */
  goOn(allowance: Allowance): boolean {
    return (
      isAnswered(this.#rows, allowance) &&
      isAnswered(this.#families, allowance) &&
      isAnswered(this.#qualifiers, allowance) &&
      isAnswered(this.#values, allowance)
    );
  }
}

function isAnswered(questions: Pick<Questions<ByteString>, 'goOn'> | undefined, allowance: Allowance): boolean {
  return questions === undefined || questions.goOn(allowance);
}

/** Filters of one stage that costs little whatever its input is, which most reads have. */
export function isSimple(filter: RowFilter, matcherOf: MatcherOf): boolean {
  return !COMPOUND.has(filter.kind) && !('regex' in filter && matcherOf(filter).unitsPerByte > 0);
}

const COMPOUND: ReadonlySet<RowFilter['kind']> = new Set([
  'chain',
  'interleave',
  'condition',
  'sink',
  'blockAll',
  'rowKeyRegex',
  'rowSample',
]);

export class SimpleRun implements FilterRun {
  readonly heldBytes = 0;
  readonly #output = new Output();
  readonly #stage: Stage;
  readonly #state: RowState | undefined;

  constructor(filter: RowFilter, matcherOf: MatcherOf) {
    this.#stage = simpleStage(filter, matcherOf, undefined, this.#output);
    this.#state = hasRowState(this.#stage) ? this.#stage : undefined;
  }

  startRow(): Hint {
    this.#state?.startRow();
    return Hint.next;
  }

  push(cell: Cell, out: Cell[]): Hint {
    this.#output.out = out;
    return this.#stage.push(cell);
  }

  endRow(): Hint {
    return Hint.next;
  }

  /** Never asked for: no call is busy. */
  goOn(): Hint {
    return Hint.next;
  }
}

/** What a busy run is about. */
const Call = { startRow: 0, push: 1, endRow: 2 } as const;
type Call = (typeof Call)[keyof typeof Call];

export class ProgramRun implements FilterRun {
  readonly #matcherOf: MatcherOf;
  readonly #random: { float(): number };
  readonly #unitsPerCell: number;
  readonly #ledger = new Ledger();
  readonly #backlog = new Backlog();
  readonly #questions = new AllQuestions();
  readonly #output = new Output();
  /** Sorts what sinks and the end of the filter give, where that is not in order by itself. */
  readonly #sorted: Collector | undefined;
  readonly #gates: Gate[] = [];
  readonly #states: RowState[] = [];
  /** Downstream first while it is built, then turned around. */
  readonly #ends: RowEnd[] = [];
  readonly #head: Stage;
  readonly #reach: Reach;
  readonly #allowance: Allowance = { units: 0 };
  readonly #easyRowBytes: number;
  readonly #easyFamilyBytes: number;
  readonly #easyQualifierBytes: number;
  readonly #easyValueBytes: number;

  #call: Call = Call.push;
  #row: ByteString = '';
  /** During a push: the cell, until its questions are answered, and the stages' answers. */
  #entering: Cell | undefined;
  #hint: Hint = Hint.next;
  /** During an end: the stage to ask next. */
  #nextEnd = 0;
  /** The cell on top of the backlog whose questions are answered. */
  #asked: Cell | undefined;

  constructor(filter: RowFilter, matcherOf: MatcherOf, random: { float(): number }, unitsPerCell: number) {
    this.#matcherOf = matcherOf;
    this.#random = random;
    this.#unitsPerCell = unitsPerCell;
    let end: Stage = this.#output;
    if (containsKind(filter, 'sink') && containsKind(filter, 'condition')) {
      this.#sorted = new Collector(this.#output, this.#ledger, this.#backlog);
      this.#ends.push(this.#sorted);
      end = this.#sorted.list();
    }
    const { head, reach } = this.#build(filter, end);
    this.#head = head;
    this.#reach = reach;
    this.#ends.reverse();
    this.#easyRowBytes = this.#questions.easyRowBytes;
    this.#easyFamilyBytes = this.#questions.easyFamilyBytes;
    this.#easyQualifierBytes = this.#questions.easyQualifierBytes;
    this.#easyValueBytes = this.#questions.easyValueBytes;
  }

  get heldBytes(): number {
    return this.#ledger.heldBytes;
  }

  startRow(row: ByteString): Hint {
    if (row.length <= this.#easyRowBytes) return this.#openRow(row);
    this.#call = Call.startRow;
    this.#row = row;
    this.#questions.beginRow(row);
    return this.#step();
  }

  push(cell: Cell, out: Cell[]): Hint {
    this.#output.out = out;
    if (this.#isEasy(cell)) {
      const hint = this.#head.push(cell);
      if (this.#backlog.isEmpty) return hint;
      this.#hint = hint;
    } else {
      this.#questions.begin(cell);
      this.#entering = cell;
    }
    this.#call = Call.push;
    return this.#step();
  }

  endRow(out: Cell[]): Hint {
    if (this.#ends.length === 0) return Hint.next;
    this.#output.out = out;
    this.#call = Call.endRow;
    this.#nextEnd = 0;
    return this.#step();
  }

  goOn(out: Cell[]): Hint {
    this.#output.out = out;
    return this.#step();
  }

  /** Whether all that is to be asked of the cell can be asked inside of the stages. */
  #isEasy({ family, qualifier, value }: Cell): boolean {
    return (
      value.length <= this.#easyValueBytes &&
      qualifier.length <= this.#easyQualifierBytes &&
      family.length <= this.#easyFamilyBytes
    );
  }

  #openRow(row: ByteString): Hint {
    for (const gate of this.#gates) gate.startRow(row);
    if (this.#reach.reach() === 0) return Hint.skipRow;
    for (const state of this.#states) state.startRow();
    return Hint.next;
  }

  /** Goes on with the call as far as a step goes. */
  #step(): Hint {
    const allowance = this.#allowance;
    allowance.units = STEP_UNITS;
    if (this.#call === Call.startRow) return this.#questions.goOn(allowance) ? this.#openRow(this.#row) : Hint.busy;
    for (;;) {
      if (!this.#questions.goOn(allowance) || allowance.units <= 0) return Hint.busy;
      const drain = this.#backlog.top;
      if (this.#entering !== undefined) {
        const cell = this.#entering;
        this.#entering = undefined;
        this.#hint = this.#head.push(cell);
      } else if (drain !== undefined) {
        const cell = drain.first();
        if (cell === undefined) {
          this.#backlog.pop();
        } else if (this.#asked === cell || this.#isEasy(cell)) {
          this.#asked = undefined;
          drain.passOn();
        } else {
          this.#questions.begin(cell);
          this.#asked = cell;
          continue;
        }
      } else if (this.#call === Call.push) {
        return this.#hint;
      } else {
        const end = this.#ends[this.#nextEnd++];
        if (end === undefined) return Hint.next;
        end.endRow();
      }
      allowance.units -= this.#unitsPerCell;
    }
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
        return { head: new Sink(this.#sorted?.list() ?? this.#output), reach: REACH_SUNK };
      case 'blockAll':
        return { head: new Block(), reach: REACH_NONE };
      case 'rowKeyRegex':
        return this.#gate(new RowKeyGate(this.#questions.aboutRows(this.#matcherOf(filter)), next));
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
      reaches.push(built.reach);
      return built.head;
    }, next);
    return { head, reach: new ChainReach(reaches.reverse()) };
  }

  #interleave(filters: readonly RowFilter[], next: Stage): Branch {
    const delayed = filters.some((part) => containsKind(part, 'condition'));
    const collector = delayed ? new Collector(next, this.#ledger, this.#backlog) : undefined;
    if (collector) this.#ends.push(collector);
    const branches = filters.map((part) => this.#build(part, collector ? collector.list() : next));
    return {
      head: new Fanout(branches.map((branch) => branch.head)),
      reach: new InterleaveReach(branches.map((branch) => branch.reach)),
    };
  }

  #condition(filter: RowFilter & { kind: 'condition' }, next: Stage): Branch {
    const whenTrue = this.#build(filter.whenTrue ?? { kind: 'blockAll' }, next);
    const whenFalse = this.#build(filter.whenFalse ?? { kind: 'blockAll' }, next);
    const verdict = new Verdict();
    const at = this.#ends.length;
    const predicate = this.#build(filter.predicate, verdict);
    const head = new Condition(predicate, verdict, whenTrue, whenFalse, this.#ledger, this.#backlog);
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
    const stage = simpleStage(filter, this.#matcherOf, this.#questions, next);
    if (stage !== next && hasRowState(stage)) this.#states.push(stage);
    return stage;
  }
}

function hasRowState(stage: Stage): stage is Stage & RowState {
  return 'startRow' in stage;
}

/** `questions`: of the run; undefined where the stage is all there is. */
function simpleStage(filter: RowFilter, matcherOf: MatcherOf, questions: AllQuestions | undefined, next: Stage): Stage {
  switch (filter.kind) {
    case 'familyNameRegex':
      return new FamilyStage(questions?.aboutFamilies(matcherOf(filter)) ?? askText(matcherOf(filter)), next);
    case 'columnQualifierRegex':
      return new QualifierStage(questions?.aboutQualifiers(matcherOf(filter)) ?? askText(matcherOf(filter)), next);
    case 'columnRange':
      return new ColumnRangeStage(filter, next);
    case 'timestampRange':
      return new TimestampStage(filter, next);
    case 'valueRegex':
      return new ValueRegexStage(questions?.aboutValues(matcherOf(filter)) ?? askValue(matcherOf(filter)), next);
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
