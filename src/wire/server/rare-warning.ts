/**
 * A warning of an event that may happen thousands of times a second: the first one is logged and, once none has
 * happened for a minute, their number.
 */
import type { LogFields } from '../../env/index.ts';
import type { ApiEnv } from '../contract/rpc-server.ts';

const QUIET_MS = 60_000;

export class RareWarning {
  readonly #env: Pick<ApiEnv, 'clock' | 'logger'>;
  readonly #message: string;
  #count = 0;
  #lastMs = 0;

  constructor(env: Pick<ApiEnv, 'clock' | 'logger'>, message: string) {
    this.#env = env;
    this.#message = message;
  }

  add(fields: LogFields): void {
    this.#lastMs = this.#env.clock.monotonicMs();
    if (this.#count++ === 0) this.#env.logger.warn(this.#message, fields);
  }

  /** To be called from time to time. */
  flush(): void {
    if (this.#count === 0 || this.#env.clock.monotonicMs() - this.#lastMs < QUIET_MS) return;
    this.#env.logger.info(`no more: ${this.#message}`, { count: this.#count });
    this.#count = 0;
  }
}
