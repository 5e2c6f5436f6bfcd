/** A client's way through the front doors of a cluster: one of them until a call fails, then another one. */
import { connect, type Database } from '../../src/embedded/index.ts';
import type { SeededRandom } from '../../src/env/index.ts';
import type { Outcome } from '../linearizability/calls.ts';

/** Codes of a door that does not answer, or says that it cannot. */
const GONE: ReadonlySet<string> = new Set(['UNAVAILABLE', 'DEADLINE_EXCEEDED']);

export class Doors {
  readonly #databases: readonly Database[];
  readonly #random: SeededRandom;
  #current: number;

  private constructor(databases: readonly Database[], random: SeededRandom) {
    this.#databases = databases;
    this.#random = random;
    this.#current = this.#draw();
  }

  /** With connections of its own. */
  static async at(addresses: readonly string[], random: SeededRandom): Promise<Doors> {
    return new Doors(await Promise.all(addresses.map((address) => connect(address))), random);
  }

  /** Through connections that are open; `close` closes them. */
  static over(databases: readonly Database[], random: SeededRandom): Doors {
    return new Doors(databases, random);
  }

  get database(): Database {
    return this.#databases[this.#current]!;
  }

  /** The next call goes to a door drawn by chance if that one does not serve. */
  note(outcome: Outcome): void {
    if (outcome.kind !== 'answered' && GONE.has(outcome.code)) this.#current = this.#draw();
  }

  /** Any of them. */
  any(): Database {
    return this.#databases[this.#draw()]!;
  }

  async close(): Promise<void> {
    await Promise.all(this.#databases.map((database) => database.close()));
  }

  #draw(): number {
    return Math.floor(this.#random.float() * this.#databases.length);
  }
}
