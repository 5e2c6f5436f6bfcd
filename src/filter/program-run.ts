/**
 * Runs of compiled filters: the stages, built and linked from the output backwards, and what pushes cells through them
 * in slices.
 *
 * Order: copies of a cell leave an interleave one after another, in the order of its branches, and a condition only
 * delays cells. So the output is in the row's order, except where branches of an interleave are delayed differently or
 * a sink bypasses a condition. There, and only there, a collector holds the row and sorts it.
 *
 * Slices: pushing one cell costs at most FilterProgram.unitsPerCell units, which is bounded when a filter is compiled.
 * Other long work is done between two such pushes: the questions of expressions about a long input (questions.ts)
 * are answered before the push that needs them, and cells that were held back (holding.ts) leave one by one.
 */
import type { ByteString } from '../base/index.ts';
import type { Cell } from '../model/index.ts';
import { containsKind } from './check.ts';
import type { RowFilter } from './filter.ts';
import { Backlog, type Branch, Collector, Condition, Ledger, type RowEnd, Verdict } from './holding.ts';
import type { Allowance } from './matcher.ts';
import type { MatcherOf } from './need.ts';
import { type FilterRun, Hint } from './program.ts';
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
import { RunQuestions } from './run-questions.ts';
import { hasRowState, simpleStage } from './simple-run.ts';
import { Block, Fanout, type Gate, Output, RowKeyGate, type RowState, SampleGate, Sink, type Stage } from './stages.ts';

/** Units of work of one slice. */
const SLICE_UNITS = 65_536;

/** The call that a busy run continues. */
const Call = { startRow: 0, push: 1, endRow: 2 } as const;
type Call = (typeof Call)[keyof typeof Call];

export class ProgramRun implements FilterRun {
  readonly #matcherOf: MatcherOf;
  readonly #random: { float(): number };
  readonly #unitsPerCell: number;
  readonly #ledger = new Ledger();
  readonly #backlog = new Backlog();
  readonly #questions = new RunQuestions();
  readonly #output = new Output();
  /** Sorts the output of sinks and of the filter's end, if it does not leave in order. */
  readonly #sorted: Collector | undefined;
  readonly #gates: Gate[] = [];
  readonly #states: RowState[] = [];
  /** Downstream first while the run is built, then reversed. */
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
  /** During a push: the cell, until its questions are answered; then the stages' hint. */
  #entering: Cell | undefined;
  #hint: Hint = Hint.next;
  /** During the end of a row: the next stage to end it. */
  #nextEnd = 0;
  /** The cell on top of the backlog, once its questions are answered. */
  #answered: Cell | undefined;

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
    return this.#slice();
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
    return this.#slice();
  }

  endRow(out: Cell[]): Hint {
    if (this.#ends.length === 0) return Hint.next;
    this.#output.out = out;
    this.#call = Call.endRow;
    this.#nextEnd = 0;
    return this.#slice();
  }

  resume(out: Cell[]): Hint {
    this.#output.out = out;
    return this.#slice();
  }

  /** True if the stages can ask all questions about the cell themselves. */
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

  /** Continues the call for one slice. */
  #slice(): Hint {
    const allowance = this.#allowance;
    allowance.units = SLICE_UNITS;
    if (this.#call === Call.startRow) return this.#questions.resume(allowance) ? this.#openRow(this.#row) : Hint.busy;
    for (;;) {
      if (!this.#questions.resume(allowance) || allowance.units <= 0) return Hint.busy;
      const drain = this.#backlog.top;
      if (this.#entering !== undefined) {
        const cell = this.#entering;
        this.#entering = undefined;
        this.#hint = this.#head.push(cell);
      } else if (drain !== undefined) {
        const cell = drain.first();
        if (cell === undefined) {
          this.#backlog.pop();
        } else if (this.#answered === cell || this.#isEasy(cell)) {
          this.#answered = undefined;
          drain.passOn();
        } else {
          this.#questions.begin(cell);
          this.#answered = cell;
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
    // cells that the predicate holds must reach the verdict before the condition reads it
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
