/**
 * Computes from a filter's form how much work and how many copies one cell can cause. An interleave copies a cell into
 * each of its branches, and the filters after it in a chain see every copy: so a chain of interleaves multiplies.
 * Linear in the size of the filter; the figures may be infinite.
 */
import type { RowFilter } from './filter.ts';

export interface FanOut {
  /** Most pushes of a cell and its copies into stages, or into memory where they are held back. */
  readonly pushes: number;
  /** Most copies that leave. */
  readonly copies: number;
  /** Most stages that push into one another: the depth of the call stack. */
  readonly stages: number;
}

const ONE: FanOut = { pushes: 1, copies: 1, stages: 1 };
const NONE: FanOut = { pushes: 1, copies: 0, stages: 1 };

export function fanOutOf(filter: RowFilter): FanOut {
  return before(filter, ONE);
}

/** Cost of the filter and those after it: a cell that it passes on costs `rest`. */
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

/** Each copy may be collected, and then pushed once more at the end of the row. */
function sum(branches: readonly FanOut[]): FanOut {
  let [pushes, copies, stages] = [1, 0, 0];
  for (const branch of branches) {
    pushes += 1 + branch.pushes;
    copies += branch.copies;
    stages = Math.max(stages, branch.stages);
  }
  return { pushes, copies, stages: 1 + stages };
}
