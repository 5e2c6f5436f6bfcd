/** The log of who has changed what, and of who was refused. */
import { BigtableError, Code, toBigtableError } from '../base/index.ts';
import type { Clock, LogFields, Logger, RequestContext } from '../env/index.ts';

/** A caller that is refused may try again at once: more lines than these a second are counted, not written. */
const REFUSALS_A_SECOND = 10;

export class Audit {
  readonly #logger: Logger;
  readonly #clock: Clock;
  #second = Number.NEGATIVE_INFINITY;
  #refusals = 0;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  /** Carries out a change, and notes its outcome. */
  async change<T>(context: RequestContext, call: string, resource: string, work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      this.#logger.info('audit: a change', fieldsOf(context, call, resource));
      return result;
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (error.code === Code.PERMISSION_DENIED) this.refusal(context, call, resource);
      else this.#logger.info('audit: a change failed', { ...fieldsOf(context, call, resource), error: error.codeName });
      throw thrown;
    }
  }

  refusal(context: RequestContext, call: string, resource: string): void {
    const second = Math.floor(this.#clock.monotonicMs() / 1000);
    if (second !== this.#second) {
      const more = this.#refusals - REFUSALS_A_SECOND;
      if (more > 0) this.#logger.warn('audit: more calls were refused', { calls: more });
      this.#second = second;
      this.#refusals = 0;
    }
    if (++this.#refusals <= REFUSALS_A_SECOND)
      this.#logger.warn('audit: a call was refused', fieldsOf(context, call, resource));
  }
}

export function isRefusal(thrown: unknown): boolean {
  return thrown instanceof BigtableError && thrown.code === Code.PERMISSION_DENIED;
}

function fieldsOf({ principal }: RequestContext, call: string, resource: string): LogFields {
  return { principal, call, resource: resource.slice(0, 300) };
}
