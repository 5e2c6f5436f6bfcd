/** Measures when the master answers admin calls again. */
import { BigtableError } from '../../src/embedded/index.ts';
import { SeededRandom } from '../../src/env/index.ts';
import { Doors } from './doors.ts';

const TIMEOUT_MS = 1000;
const PATIENCE_MS = 60_000;

export class Admin {
  readonly #doors: Doors;
  #tables = 0;

  private constructor(doors: Doors) {
    this.#doors = doors;
  }

  static async open(addresses: readonly string[], seed: number): Promise<Admin> {
    return new Admin(await Doors.at(addresses, new SeededRandom(seed)));
  }

  /** Creates a table and deletes it; returns when the creation was answered, undefined if it was not in a minute. */
  async answered(): Promise<number | undefined> {
    const name = `admin-${++this.#tables}`;
    let answeredMs: number | undefined;
    for (const endMs = performance.now() + PATIENCE_MS; performance.now() < endMs; ) {
      try {
        if (answeredMs === undefined) await this.#doors.any().createTable(name, { timeoutMs: TIMEOUT_MS });
        answeredMs ??= performance.now();
        await this.#doors.any().deleteTable(name, { timeoutMs: TIMEOUT_MS });
        return answeredMs;
      } catch (error) {
        if (!(error instanceof BigtableError)) throw error;
        // an earlier try that was not answered may have succeeded
        if (error.codeName === 'ALREADY_EXISTS') answeredMs ??= performance.now();
        if (error.codeName === 'NOT_FOUND') return answeredMs;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
    return answeredMs;
  }

  async close(): Promise<void> {
    await this.#doors.close();
  }
}
