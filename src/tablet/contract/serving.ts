/** Whether a tablet may take calls, and answer them: until it is given up, and while its server's lease holds. */
import { BigtableError, Code, unavailable } from '../../base/index.ts';
import { checkContext, type Clock, type RequestContext } from '../../env/index.ts';
import type { TabletHost } from './tablet-state.ts';

export class Serving {
  readonly #tableId: string;
  readonly #host: Pick<TabletHost, 'leaseHeld'>;
  readonly #clock: Clock;
  #isOver = false;
  #refusal: BigtableError | undefined;

  constructor(tableId: string, host: Pick<TabletHost, 'leaseHeld'>, clock: Clock) {
    this.#tableId = tableId;
    this.#host = host;
    this.#clock = clock;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** From now on no call begins. */
  end(): void {
    this.#isOver = true;
  }

  /** Throws where no call may begin. */
  check(context: RequestContext): void {
    if (this.#isOver) throw this.refusal();
    this.checkAnswering(context);
  }

  /** Throws where nothing may be answered (any more). A read that stands in a row reads it to its end, also where the tablet is served no more. */
  checkAnswering(context: RequestContext): void {
    if (!this.#host.leaseHeld()) throw unavailable('the lease of the tablet server may have lapsed');
    checkContext(context, this.#clock);
  }

  /** What was called has not been done: whoever finds the tablet's new place may call again. One for all: thousands of rows may hear it at once. */
  refusal(): BigtableError {
    this.#refusal ??= new BigtableError(
      Code.UNAVAILABLE,
      `tablet of table ${this.#tableId} is being given up by its server, or divided`,
      { details: { notServing: true } },
    );
    return this.#refusal;
  }
}
