/**
 * Logger and metrics: how a running database tells what it does. Both are handed in; the defaults keep silent and only count.
 */

import type { Random } from './clock.ts';

export type LogFields = Readonly<Record<string, string | number | boolean>>;

export interface Logger {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export const silentLogger: Logger = { info() {}, warn() {}, error() {} };

/** One of the counters, for hot paths: whoever counts in them adds to `value` itself. */
export interface Counter {
  value: number;
}

/** Named counters, always growing. Names are dotted nouns, units last: `sstable.blocksRead`, `log.appendedBytes`. */
export class Metrics {
  readonly #counters = new Map<string, Counter>();
  #name: string | undefined;

  /** Tells these counters from all others. */
  name(random: Pick<Random, 'uniqueName'>): string {
    return (this.#name ??= random.uniqueName());
  }

  add(name: string, amount = 1): void {
    this.counter(name).value += amount;
  }

  get(name: string): number {
    return this.#counters.get(name)?.value ?? 0;
  }

  counter(name: string): Counter {
    let counter = this.#counters.get(name);
    if (!counter) this.#counters.set(name, (counter = { value: 0 }));
    return counter;
  }

  /** All counters that have counted something, by name. */
  snapshot(): Record<string, number> {
    const counted = [...this.#counters].filter(([, { value }]) => value !== 0);
    return Object.fromEntries(counted.map(([name, { value }]): [string, number] => [name, value]).sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}
