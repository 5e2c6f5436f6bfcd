/**
 * Logger and metrics: how a running database tells what it does. Both are handed in; the defaults keep silent and only count.
 */

export type LogFields = Readonly<Record<string, string | number | boolean>>;

export interface Logger {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export const silentLogger: Logger = { info() {}, warn() {}, error() {} };

/** Named counters, always growing. Names are dotted nouns, units last: `sstable.blocksRead`, `log.appendedBytes`. */
export class Metrics {
  readonly #counters = new Map<string, number>();

  add(name: string, amount = 1): void {
    this.#counters.set(name, (this.#counters.get(name) ?? 0) + amount);
  }

  get(name: string): number {
    return this.#counters.get(name) ?? 0;
  }

  /** All counters, by name. */
  snapshot(): Record<string, number> {
    return Object.fromEntries([...this.#counters].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}
