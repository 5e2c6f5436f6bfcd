/**
 * The stages that hold cells back: conditions, which wait for their predicate, and the collectors that restore the
 * order of what conditions delayed. The run's ledger counts all held cells.
 *
 * Held cells leave one at a time, passed on by the run (Backlog): a slice of the event loop may end between any two. At
 * the end of a row the run calls `endRow` of these stages upstream first, so that a stage has all its input by then.
 */
import { assert } from '../base/index.ts';
import type { Cell } from '../model/index.ts';
import { Hint } from './program.ts';
import type { Reach } from './reach.ts';
import type { RowState, Stage } from './stages.ts';

/** Bytes held inside a run. */
export class Ledger {
  heldBytes = 0;
}

/** Memory of a held cell in addition to its value and qualifier, roughly. */
const CELL_OVERHEAD_BYTES = 96;

function sizeOf(cell: Cell): number {
  return cell.value.length + cell.qualifier.length + CELL_OVERHEAD_BYTES;
}

/** Held cells, first in, first out. */
class HeldCells {
  readonly #ledger: Ledger;
  #cells: Cell[] = [];
  #at = 0;
  #bytes = 0;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  get first(): Cell | undefined {
    return this.#cells[this.#at];
  }

  add(cell: Cell): void {
    this.#cells.push(cell);
    this.#count(sizeOf(cell));
  }

  take(): Cell {
    const cell = this.#cells[this.#at++]!;
    if (this.#at === this.#cells.length) this.clear();
    else this.#count(-sizeOf(cell));
    return cell;
  }

  clear(): void {
    this.#count(-this.#bytes);
    this.#cells = [];
    this.#at = 0;
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#ledger.heldBytes += bytes;
  }
}

/** A stage that passes on the cells it held. */
export interface Drain {
  /** The cell that leaves next; undefined at the end. */
  first(): Cell | undefined;
  /** Passes that cell on. */
  passOn(): void;
}

/**
 * The stages that pass on held cells, the latest on top. A stage must not pass on anything while a stage downstream of
 * it is in the backlog, so the top goes first and to its end.
 */
export class Backlog {
  readonly #drains: Drain[] = [];

  get isEmpty(): boolean {
    return this.#drains.length === 0;
  }

  get top(): Drain | undefined {
    return this.#drains.at(-1);
  }

  add(drain: Drain): void {
    this.#drains.push(drain);
  }

  /** Removes the top, which has no cells left. */
  pop(): void {
    this.#drains.pop();
  }
}

/** Begins to pass on the cells it still holds after the row's last cell. */
export interface RowEnd {
  endRow(): void;
}

/** Order of cells in a row. */
function compareCells(a: Cell, b: Cell): number {
  if (a.family !== b.family) return a.family < b.family ? -1 : 1;
  if (a.qualifier !== b.qualifier) return a.qualifier < b.qualifier ? -1 : 1;
  return a.timestamp > b.timestamp ? -1 : a.timestamp < b.timestamp ? 1 : 0;
}

/**
 * Holds a row's cells and passes them on in order, copies of one cell in the order of their lists. Each list is in
 * order, since every stage gets its cells in the row's order; a heap merges the lists.
 */
export class Collector implements RowEnd, Drain {
  readonly #lists: CollectorList[] = [];
  /** Lists with cells left. The root is the list with the least first cell. */
  readonly #heap: CollectorList[] = [];
  readonly #next: Stage;
  readonly #ledger: Ledger;
  readonly #backlog: Backlog;

  constructor(next: Stage, ledger: Ledger, backlog: Backlog) {
    this.#next = next;
    this.#ledger = ledger;
    this.#backlog = backlog;
  }

  /** Adds a list after those before, for one stage that pushes in the row's order. */
  list(): Stage {
    const list = new CollectorList(this.#lists.length, this.#ledger);
    this.#lists.push(list);
    return list;
  }

  endRow(): void {
    for (const list of this.#lists) {
      list.endRow();
      if (list.cells.first !== undefined) this.#heap.push(list);
    }
    for (let at = (this.#heap.length >> 1) - 1; at >= 0; at--) this.#sink(at);
    if (this.#heap.length > 0) this.#backlog.add(this);
  }

  first(): Cell | undefined {
    return this.#heap[0]?.cells.first;
  }

  passOn(): void {
    const list = this.#heap[0]!;
    const cell = list.cells.take();
    if (list.cells.first === undefined) {
      const last = this.#heap.pop()!;
      if (last !== list) this.#heap[0] = last;
    }
    this.#sink(0);
    if (this.#next.push(cell) !== Hint.skipRow) return;
    for (const left of this.#heap) left.cells.clear();
    this.#heap.length = 0;
  }

  #sink(from: number): void {
    const heap = this.#heap;
    for (let at = from; ; ) {
      let least = at;
      for (let child = 2 * at + 1; child <= 2 * at + 2 && child < heap.length; child++) {
        if (heap[child]!.isBefore(heap[least]!)) least = child;
      }
      if (least === at) return;
      const moved = heap[at]!;
      heap[at] = heap[least]!;
      heap[least] = moved;
      at = least;
    }
  }
}

class CollectorList implements Stage {
  readonly cells: HeldCells;
  readonly #index: number;
  #last: Cell | undefined;

  constructor(index: number, ledger: Ledger) {
    this.#index = index;
    this.cells = new HeldCells(ledger);
  }

  push(cell: Cell): Hint {
    assert(
      this.#last === undefined || compareCells(this.#last, cell) <= 0,
      'every stage gets its cells in the order of the row',
    );
    this.#last = cell;
    this.cells.add(cell);
    return Hint.next;
  }

  /** The row has ended. */
  endRow(): void {
    this.#last = undefined;
  }

  /** Both have cells left. */
  isBefore(other: CollectorList): boolean {
    const order = compareCells(this.cells.first!, other.cells.first!);
    return order < 0 || (order === 0 && this.#index < other.#index);
  }
}

/** The end of a predicate: its first cell decides the condition. */
export class Verdict implements Stage {
  /** Its condition, which is notified of the first cell. */
  condition: Condition | undefined;

  push(): Hint {
    this.condition?.settle();
    return Hint.skipRow;
  }
}

export interface Branch {
  readonly head: Stage;
  readonly reach: Reach;
}

type Decision = 'open' | 'true' | 'false';

/**
 * Holds the row's cells until the predicate yields one, or the row ends, then passes them into the chosen branch. Later
 * cells go there directly.
 */
export class Condition implements Stage, RowState, RowEnd, Drain {
  readonly #predicate: Branch;
  readonly #whenTrue: Branch;
  readonly #whenFalse: Branch;
  readonly #backlog: Backlog;
  readonly #held: HeldCells;
  #decision: Decision = 'open';

  constructor(
    predicate: Branch,
    verdict: Verdict,
    whenTrue: Branch,
    whenFalse: Branch,
    ledger: Ledger,
    backlog: Backlog,
  ) {
    this.#predicate = predicate;
    this.#whenTrue = whenTrue;
    this.#whenFalse = whenFalse;
    this.#backlog = backlog;
    this.#held = new HeldCells(ledger);
    verdict.condition = this;
  }

  startRow(): void {
    this.#decision = this.#predicate.reach.reach() === 0 ? 'false' : 'open';
  }

  push(cell: Cell): Hint {
    if (this.#decision !== 'open' && this.#held.first === undefined) return this.#branch().push(cell);
    // also after the decision: copies of the cell that brought it arrive before the held cells have left
    this.#held.add(cell);
    if (this.#decision === 'open') this.#predicate.head.push(cell);
    return Hint.next;
  }

  /** The predicate has yielded a cell. */
  settle(): void {
    if (this.#decision === 'open') this.#decide('true');
  }

  endRow(): void {
    if (this.#decision === 'open') this.#decide('false');
  }

  first(): Cell | undefined {
    return this.#held.first;
  }

  passOn(): void {
    if (this.#branch().push(this.#held.take()) === Hint.skipRow) this.#held.clear();
  }

  #decide(decision: 'true' | 'false'): void {
    this.#decision = decision;
    if (this.#held.first !== undefined) this.#backlog.add(this);
  }

  #branch(): Stage {
    return (this.#decision === 'true' ? this.#whenTrue : this.#whenFalse).head;
  }
}
