/** Runs of filters that are a single cheap stage, as those of most reads are; and the stages that need no others. */
import type { Cell } from '../model/index.ts';
import type { RowFilter } from './filter.ts';
import type { MatcherOf } from './need.ts';
import { type FilterRun, Hint } from './program.ts';
import { askText, askValue, type RunQuestions } from './run-questions.ts';
import {
  ApplyLabel,
  BitmaskStage,
  ColumnLimit,
  ColumnRangeStage,
  FamilyStage,
  Output,
  QualifierStage,
  RowLimit,
  RowOffset,
  type RowState,
  type Stage,
  StripValue,
  TimestampStage,
  ValueRangeStage,
  ValueRegexStage,
} from './stages.ts';

/** True for a filter of one stage whose cost does not depend on its input. */
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

  /** Never called: no call is busy. */
  resume(): Hint {
    return Hint.next;
  }
}

export function hasRowState(stage: Stage): stage is Stage & RowState {
  return 'startRow' in stage;
}

/**
 * The stage of a filter that has no parts. `questions` are the run's; undefined if the stage is the whole filter and
 * its questions are cheap.
 */
export function simpleStage(
  filter: RowFilter,
  matcherOf: MatcherOf,
  questions: RunQuestions | undefined,
  next: Stage,
): Stage {
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
