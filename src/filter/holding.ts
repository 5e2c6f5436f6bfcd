/**
 * The stages that hold cells back: conditions, which must hear their predicate first, and the collectors that put into order again
 * what conditions delayed. All that is held is counted in the run's ledger.
 *
 * At the end of a row the run calls `endRow` of these stages upstream first, so that a stage has all its input when it is asked.
 */
import type { Cell } from '../model/index.ts';
import { Hint } from './program.ts';
import type { Reach } from './reach.ts';
import type { RowState, Stage } from './stages.ts';

/** Bytes held inside a run. */
export class Ledger {
  heldBytes = 0;

  hold(cell: Cell): void {
    this.heldBytes += sizeOf(cell);
  }

  release(cells: readonly Cell[]): void {
    for (const cell of cells) this.heldBytes -= sizeOf(cell);
  }
}

/** A held cell is its value, its qualifier, and about this much for the objects. */
const CELL_OVERHEAD_BYTES = 96;

function sizeOf(cell: Cell): number {
  return cell.value.length + cell.qualifier.length + CELL_OVERHEAD_BYTES;
}

/** Flushes what it holds when the row's last cell was pushed. */
export interface RowEnd {
  endRow(): void;
}

/** Order inside a row. */
function compareCells(a: Cell, b: Cell): number {
  if (a.family !== b.family) return a.family < b.family ? -1 : 1;
  if (a.qualifier !== b.qualifier) return a.qualifier < b.qualifier ? -1 : 1;
  return a.timestamp > b.timestamp ? -1 : a.timestamp < b.timestamp ? 1 : 0;
}

/** Holds a row's cells and passes them on in order: copies of one cell in the order of their lists. */
export class Collector implements RowEnd {
  readonly #lists: Cell[][] = [];
  readonly #next: Stage;
  readonly #ledger: Ledger;

  constructor(next: Stage, ledger: Ledger) {
    this.#next = next;
    this.#ledger = ledger;
  }

  /** A new list to collect into, after those before. */
  list(): Stage {
    const cells: Cell[] = [];
    this.#lists.push(cells);
    return new CollectorList(cells, this.#ledger);
  }

  endRow(): void {
    const cells = this.#lists.flat();
    for (const list of this.#lists) list.length = 0;
    this.#ledger.release(cells);
    cells.sort(compareCells);
    for (const cell of cells) {
      if (this.#next.push(cell) === Hint.skipRow) return;
    }
  }
}

class CollectorList implements Stage {
  readonly #cells: Cell[];
  readonly #ledger: Ledger;

  constructor(cells: Cell[], ledger: Ledger) {
    this.#cells = cells;
    this.#ledger = ledger;
  }

  push(cell: Cell): Hint {
    this.#cells.push(cell);
    this.#ledger.hold(cell);
    return Hint.next;
  }
}

/** The end of a predicate: one cell settles it. */
export class Verdict implements Stage {
  given = false;

  push(): Hint {
    this.given = true;
    return Hint.skipRow;
  }
}

export interface Branch {
  readonly head: Stage;
  readonly reach: Reach;
}

type Decision = 'open' | 'true' | 'false';

/** Holds the row's cells until the predicate gives one, or the row ends, then streams them into the branch chosen. */
export class Condition implements Stage, RowState, RowEnd {
  readonly #predicate: Branch;
  readonly #verdict: Verdict;
  readonly #whenTrue: Branch;
  readonly #whenFalse: Branch;
  readonly #ledger: Ledger;
  #decision: Decision = 'open';
  #held: Cell[] = [];

  constructor(predicate: Branch, verdict: Verdict, whenTrue: Branch, whenFalse: Branch, ledger: Ledger) {
    this.#predicate = predicate;
    this.#verdict = verdict;
    this.#whenTrue = whenTrue;
    this.#whenFalse = whenFalse;
    this.#ledger = ledger;
  }

  startRow(): void {
    this.#verdict.given = false;
    this.#decision = this.#predicate.reach.reach() === 0 ? 'false' : 'open';
  }

  push(cell: Cell): Hint {
    if (this.#decision === 'true') return this.#whenTrue.head.push(cell);
    if (this.#decision === 'false') return this.#whenFalse.head.push(cell);
    this.#held.push(cell);
    this.#ledger.hold(cell);
    this.#predicate.head.push(cell);
    return this.#verdict.given ? this.#decide('true') : Hint.next;
  }

  endRow(): void {
    if (this.#decision === 'open') this.#decide(this.#verdict.given ? 'true' : 'false');
  }

  /** Answers the hint after the last cell held. */
  #decide(decision: 'true' | 'false'): Hint {
    this.#decision = decision;
    const branch = (decision === 'true' ? this.#whenTrue : this.#whenFalse).head;
    const held = this.#held;
    this.#held = [];
    this.#ledger.release(held);
    let hint: Hint = Hint.next;
    for (const cell of held) {
      hint = branch.push(cell);
      if (hint === Hint.skipRow) break;
    }
    return hint;
  }
}
