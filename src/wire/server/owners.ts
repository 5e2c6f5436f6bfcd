/**
 * The share of the budget that a call counts to: its connection's, within its principal's. A connection mostly has one
 * principal.
 *
 * Invariant: the principals kept are those of open connections, and some more.
 */
import { Owner } from '../../env/index.ts';

/** Principals that hold nothing are evicted when there are this many. */
const MAX_PRINCIPALS = 1000;
/** A connection that speaks for more principals begins again. */
const MAX_PER_CONNECTION = 100;

/** The owners of one connection. */
export class ConnectionOwners {
  readonly #principals: PrincipalOwners;
  readonly #byPrincipal = new Map<string, Owner>();
  #last: Owner | undefined;
  #lastPrincipal: string | undefined;

  constructor(principals: PrincipalOwners) {
    this.#principals = principals;
  }

  of(principal: string): Owner {
    if (this.#last !== undefined && principal === this.#lastPrincipal) return this.#last;
    let owner = this.#byPrincipal.get(principal);
    if (owner === undefined) {
      if (this.#byPrincipal.size >= MAX_PER_CONNECTION) this.#byPrincipal.clear();
      owner = new Owner(this.#principals.of(principal));
      this.#byPrincipal.set(principal, owner);
    }
    this.#last = owner;
    this.#lastPrincipal = principal;
    return owner;
  }
}

/** The owners of all connections. */
export class PrincipalOwners {
  readonly #owners = new Map<string, Owner>();

  of(principal: string): Owner {
    let owner = this.#owners.get(principal);
    if (owner === undefined) {
      if (this.#owners.size >= MAX_PRINCIPALS) this.#evictIdle();
      owner = new Owner();
      this.#owners.set(principal, owner);
    }
    return owner;
  }

  /** An owner that holds nothing has no state worth keeping. */
  #evictIdle(): void {
    for (const [name, owner] of this.#owners) if (owner.heldBytes === 0) this.#owners.delete(name);
  }
}
