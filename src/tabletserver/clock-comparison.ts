/**
 * Compares the wall clock of a tablet server with that of the master, once: before the server announces itself, or, if
 * no master answers then, when one first calls it. It does not look at clocks that are set later: ClockWarning does.
 */
import { assert, type BigtableError, Code, toBigtableError } from '../base/index.ts';
import type { Logger, RequestContext } from '../env/index.ts';
import { checkClock, type ClockCheckParts } from '../protocol/index.ts';

export interface ClockComparisonOptions extends ClockCheckParts {
  readonly logger: Logger;
  readonly context: () => RequestContext;
  /** Called once if the clock is found to be off after the start. */
  readonly onOff: (reason: BigtableError) => void;
}

export class ClockComparison {
  readonly #options: ClockComparisonOptions;
  #isOver = false;
  #isRunning = false;

  constructor(options: ClockComparisonOptions) {
    this.#options = options;
  }

  /** FAILED_PRECONDITION if the clock is off; UNAUTHENTICATED if the master and this server do not know each other. */
  async start(): Promise<void> {
    assert(!this.#isOver && !this.#isRunning, 'clocks are compared first at the start');
    this.#isOver = await checkClock(this.#options, this.#options.context());
  }

  /** A master has called. */
  masterCalled(): void {
    if (this.#isOver || this.#isRunning) return;
    this.#isRunning = true;
    void this.#compare().finally(() => {
      this.#isRunning = false;
    });
  }

  async #compare(): Promise<void> {
    const { context, onOff, logger } = this.#options;
    try {
      this.#isOver = await checkClock(this.#options, context());
    } catch (thrown) {
      const error = toBigtableError(thrown);
      this.#isOver = error.code === Code.FAILED_PRECONDITION;
      if (this.#isOver) onOff(error);
      else logger.info('the clock could not be compared with that of the master', { error: error.message });
    }
  }
}
