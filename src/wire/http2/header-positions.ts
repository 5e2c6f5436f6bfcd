/**
 * Positions of headers in a list of them. The requests of a connection mostly have the same names in the same
 * positions, request after request: a name is searched once, not once a call.
 *
 * Invariant: all lists have the same names at the same positions as the first one.
 */

/** Our own code requests few constant names. Further ones are searched each time. */
const MAX_KNOWN = 32;

export class HeaderPositions {
  readonly #names: string[] = [];
  readonly #positions: number[] = [];

  /** The first value of the name, lower case, in name, value, name, value …; undefined where there is none. */
  value(list: readonly string[], name: string): string | undefined {
    const names = this.#names;
    for (let i = 0; i < names.length; i++) {
      if (names[i] === name) return list[this.#positions[i]!];
    }
    return list[this.#find(list, name)];
  }

  /** The value's index; after the end of the list where the name is missing. */
  #find(list: readonly string[], name: string): number {
    let at = 0;
    while (at < list.length && list[at] !== name) at += 2;
    if (this.#names.length < MAX_KNOWN) {
      this.#names.push(name);
      this.#positions.push(at + 1);
    }
    return at + 1;
  }
}
