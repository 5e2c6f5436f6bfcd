/**
 * The order of the calls that wait for a part of a budget: the caller that holds least goes first, principals before
 * their connections. So shares become even while a call waits, and bind no call otherwise.
 *
 * Invariant: no call is passed over for ever. Once `patienceBytes` were granted while the oldest waited, it is next,
 * and the later ones follow in the order of their arrival. So between arrival and turn at most `patienceBytes` are
 * granted, plus the requests of those that arrived before, plus one grant.
 */

/** A caller, for its share of a budget: a connection of a principal, or the principal with all its connections. */
export class Owner {
  heldBytes = 0;
  readonly principal: Owner | undefined;

  constructor(principal?: Owner) {
    this.principal = principal;
  }

  hold(bytes: number): void {
    this.heldBytes += bytes;
    if (this.principal !== undefined) this.principal.heldBytes += bytes;
  }
}

/** A waiting call. */
export interface Turn {
  readonly bytes: number;
  readonly owner: Owner | undefined;
}

interface Waiting<T> {
  readonly turn: T;
  /** The bytes that the queue had granted when the call came. */
  readonly grantedBytes: number;
}

export class TurnQueue<T extends Turn> {
  readonly #patienceBytes: number;
  /** By arrival. */
  readonly #waiting: Waiting<T>[] = [];
  #grantedBytes = 0;

  constructor(patienceBytes: number) {
    this.#patienceBytes = patienceBytes;
  }

  get length(): number {
    return this.#waiting.length;
  }

  add(turn: T): void {
    this.#waiting.push({ turn, grantedBytes: this.#grantedBytes });
  }

  /** Removes a waiting call; false where it is not in the queue. `granted`: it got the bytes that it waited for. */
  remove(turn: T, granted: boolean): boolean {
    const at = this.#waiting.findIndex((waiting) => waiting.turn === turn);
    if (at < 0) return false;
    this.#waiting.splice(at, 1);
    if (granted) this.#grantedBytes += turn.bytes;
    return true;
  }

  /** The call that is next; it stays in the queue. */
  next(): T | undefined {
    const oldest = this.#waiting[0];
    if (oldest === undefined || this.#waiting.length === 1) return oldest?.turn;
    if (this.#grantedBytes - oldest.grantedBytes >= this.#patienceBytes) return oldest.turn;
    let best = oldest.turn;
    for (const { turn } of this.#waiting) if (holdsLess(turn.owner, best.owner)) best = turn;
    return best;
  }
}

/** A call without an owner counts as an owner that holds nothing. */
function holdsLess(a: Owner | undefined, b: Owner | undefined): boolean {
  const [ofA, ofB] = [a?.principal?.heldBytes ?? 0, b?.principal?.heldBytes ?? 0];
  return ofA !== ofB ? ofA < ofB : (a?.heldBytes ?? 0) < (b?.heldBytes ?? 0);
}
