/**
 * The reason to stop a server: a signal, or an uncaught exception. After an exception only the disk is trusted, so the
 * server ends in order, and with status 1.
 *
 * Invariant: while it watches, no error ends the process in silence.
 */
import { watchStrayErrors } from '../../boot/index.ts';
import type { Logger, Metrics } from '../../env/index.ts';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
/** A process whose state is unknown gets this long to end in order. */
const LAST_MS = 30_000;
/** The time for readers to take the last output. */
const LAST_LINES_MS = 1000;

export class StopReason {
  /** Before a server serves, an exception ends the process immediately: no write was acknowledged. */
  isServing = false;
  /** Set by an exception. */
  isFailure = false;
  /** Resolves once, with what is printed as the reason. */
  readonly reason: Promise<string>;
  readonly #unwatch: () => void;
  readonly #onSignal: (signal: string) => void;

  /** `flush`: resolves when what was logged is written. */
  constructor(logger: Logger, metrics: Metrics, flush: () => Promise<void>) {
    let settle: (reason: string) => void = () => {};
    this.reason = new Promise((resolve) => {
      settle = resolve;
    });
    this.#onSignal = settle;
    for (const signal of SIGNALS) process.once(signal, settle);
    const onException = (): void => {
      if (!this.isServing) {
        setTimeout(() => process.exit(1), LAST_LINES_MS);
        void flush().then(() => process.exit(1));
        return;
      }
      this.isFailure = true;
      setTimeout(() => process.exit(1), LAST_MS).unref();
      settle('an exception');
    };
    this.#unwatch = watchStrayErrors({ logger, metrics, onException });
  }

  end(): void {
    this.#unwatch();
    for (const signal of SIGNALS) process.off(signal, this.#onSignal);
  }
}
