/**
 * The log entries about tablets that could not be loaded. Loads are retried again and again, so each failure is logged
 * once, and so is its end.
 *
 * Invariant: the only tablets kept are those that failed at the last attempt.
 */
import { type BigtableError, Code } from '../base/index.ts';
import type { Logger } from '../env/index.ts';
import type { MetadataKey } from '../metadata/index.ts';
import type { TabletRef } from '../protocol/index.ts';

/**
 * Codes of races, which are no faults: the tablet, or its server, is on its way elsewhere, and the next attempt
 * finds it.
 */
const RACES: readonly Code[] = [Code.FAILED_PRECONDITION, Code.UNAVAILABLE, Code.ABORTED, Code.CANCELLED];

export class LoadFailures {
  readonly #logger: Logger;
  readonly #logged = new Map<MetadataKey, string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  failed({ key, epoch }: TabletRef, { code, message }: BigtableError): void {
    if (RACES.includes(code))
      return this.#logger.info('a tablet was not loaded and will be tried again', {
        tablet: key,
        epoch,
        error: message,
      });
    if (this.#logged.get(key) === message) return;
    this.#logged.set(key, message);
    this.#logger.error('a tablet could not be loaded and will be tried again', { tablet: key, epoch, error: message });
  }

  loaded({ key, epoch }: TabletRef): void {
    if (this.#logged.delete(key))
      this.#logger.info('a tablet that could not be loaded is served now', { tablet: key, epoch });
  }

  /** The tablet's row is gone. */
  gone(key: MetadataKey): void {
    this.#logged.delete(key);
  }
}
