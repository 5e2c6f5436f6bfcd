/**
 * Whose turn it is among those who wait for a part of a budget: the caller who holds least goes first, principals
 * before their connections, so that shares become even while a call waits, and bind no call otherwise.
 *
 * Invariant: no call is passed over for ever. Once `patienceBytes` were granted while the oldest waited, it is next,
 * and the later ones follow in the order of their arrival. So between arrival and turn at most `patienceBytes` are
 * granted, plus what those ask for who were there before, plus one grant.
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

/** Somebody who waits. */
export interface Turn {
  readonly bytes: number;
  readonly owner: Owner | undefined;
}

interface Place<T> {
  readonly turn: T;
  /** What the queue had granted when it came. */
  readonly grantedBytes: number;
}

export class TurnQueue<T extends Turn> {
  readonly #patienceBytes: number;
  /** By arrival. */
  readonly #places: Place<T>[] = [];
  #grantedBytes = 0;

  constructor(patienceBytes: number) {
    this.#patienceBytes = patienceBytes;
  }

  get length(): number {
    return this.#places.length;
  }

  add(turn: T): void {
    this.#places.push({ turn, grantedBytes: this.#grantedBytes });
  }

  /** Removes a waiting call; false where it is not here. `granted`: it got what it waited for. */
  remove(turn: T, granted: boolean): boolean {
    const at = this.#places.findIndex((place) => place.turn === turn);
    if (at < 0) return false;
    this.#places.splice(at, 1);
    if (granted) this.#grantedBytes += turn.bytes;
    return true;
  }

  /** Who is next; it stays here. */
  next(): T | undefined {
    const oldest = this.#places[0];
    if (oldest === undefined || this.#places.length === 1) return oldest?.turn;
    if (this.#grantedBytes - oldest.grantedBytes >= this.#patienceBytes) return oldest.turn;
    let best = oldest.turn;
    for (const { turn } of this.#places) if (holdsLess(turn.owner, best.owner)) best = turn;
    return best;
  }
}

/** Whoever has no owner counts as one that holds nothing. */
function holdsLess(a: Owner | undefined, b: Owner | undefined): boolean {
  const [ofA, ofB] = [a?.principal?.heldBytes ?? 0, b?.principal?.heldBytes ?? 0];
  return ofA !== ofB ? ofA < ofB : (a?.heldBytes ?? 0) < (b?.heldBytes ?? 0);
}
