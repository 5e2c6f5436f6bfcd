/**
 * Tells whether a row can yield output, once the gates (row key, sample) are open or closed for it. So rows are skipped
 * as a whole, and a condition whose predicate cannot yield a cell is decided before the first cell.
 */

export const MAIN = 1;
export const SUNK = 2;

/** The ways by which a filter may yield output in this row: MAIN to the next filter, SUNK past it; 0 = none. */
export interface Reach {
  reach(): number;
}

class Constant implements Reach {
  readonly #ways: number;

  constructor(ways: number) {
    this.#ways = ways;
  }

  reach(): number {
    return this.#ways;
  }
}

export const REACH_MAIN: Reach = new Constant(MAIN);
export const REACH_SUNK: Reach = new Constant(SUNK);
export const REACH_NONE: Reach = new Constant(0);

export class GateReach implements Reach {
  readonly #gate: { readonly open: boolean };

  constructor(gate: { readonly open: boolean }) {
    this.#gate = gate;
  }

  reach(): number {
    return this.#gate.open ? MAIN : 0;
  }
}

/** Continues while a part passes cells on; cells that were sunk on the way count. */
export class ChainReach implements Reach {
  readonly #parts: readonly Reach[];

  constructor(parts: readonly Reach[]) {
    this.#parts = parts;
  }

  reach(): number {
    let sunk = 0;
    for (const part of this.#parts) {
      const ways = part.reach();
      sunk |= ways & SUNK;
      if ((ways & MAIN) === 0) return sunk;
    }
    return sunk | MAIN;
  }
}

export class InterleaveReach implements Reach {
  readonly #parts: readonly Reach[];

  constructor(parts: readonly Reach[]) {
    this.#parts = parts;
  }

  reach(): number {
    let ways = 0;
    for (const part of this.#parts) ways |= part.reach();
    return ways;
  }
}

export class ConditionReach implements Reach {
  readonly #predicate: Reach;
  readonly #whenTrue: Reach;
  readonly #whenFalse: Reach;

  constructor(predicate: Reach, whenTrue: Reach, whenFalse: Reach) {
    this.#predicate = predicate;
    this.#whenTrue = whenTrue;
    this.#whenFalse = whenFalse;
  }

  reach(): number {
    const otherwise = this.#whenFalse.reach();
    return this.#predicate.reach() === 0 ? otherwise : otherwise | this.#whenTrue.reach();
  }
}
