/**
 * How much one cell that enters a filter can become, found from the filter's form alone. An interleave copies a cell
 * into each of its branches, and what follows it in a chain sees every copy: so a chain of interleaves multiplies.
 * Linear in the size of the filter; the figures may be infinite.
 */
import type { RowFilter } from './filter.ts';

export interface FanOut {
  /** Times that a cell or a copy of it is pushed into a stage, or held back, at most. */
  readonly pushes: number;
  /** Copies that leave, at most. */
  readonly copies: number;
  /** Stages that push into one another, at most: what the call stack must hold. */
  readonly stages: number;
}

const ONE: FanOut = { pushes: 1, copies: 1, stages: 1 };
const NONE: FanOut = { pushes: 1, copies: 0, stages: 1 };

export function fanOutOf(filter: RowFilter): FanOut {
  return before(filter, ONE);
}

/** Cost of the filter with what follows it: a cell that it passes on costs `rest`. */
function before(filter: RowFilter, rest: FanOut): FanOut {
  switch (filter.kind) {
    case 'chain':
      return filter.filters.reduceRight((after, part) => before(part, after), rest);
    case 'interleave':
      return sum(filter.filters.map((part) => before(part, rest)));
    case 'condition': {
      const whenTrue = filter.whenTrue ? before(filter.whenTrue, rest) : NONE;
      const whenFalse = filter.whenFalse ? before(filter.whenFalse, rest) : NONE;
      const predicate = before(filter.predicate, ONE);
      return {
        pushes: 1 + predicate.pushes + Math.max(whenTrue.pushes, whenFalse.pushes),
        copies: Math.max(whenTrue.copies, whenFalse.copies),
        stages: 1 + Math.max(predicate.stages, whenTrue.stages, whenFalse.stages),
      };
    }
    case 'sink':
      // collected, and sorted at the end of the row
      return { pushes: 2, copies: 1, stages: 2 };
    case 'blockAll':
      return NONE;
    case 'passAll':
      return rest;
    default:
      return { pushes: 1 + rest.pushes, copies: rest.copies, stages: 1 + rest.stages };
  }
}

/** Each copy may be collected, and pushed once more at the end of the row. */
function sum(branches: readonly FanOut[]): FanOut {
  let [pushes, copies, stages] = [1, 0, 0];
  for (const branch of branches) {
    pushes += 1 + branch.pushes;
    copies += branch.copies;
    stages = Math.max(stages, branch.stages);
  }
  return { pushes, copies, stages: 1 + stages };
}
