/**
 * The serving status of the server, as a whole ("") and by service. Watchers are notified of every change, and released
 * when the server stops.
 */
import { BigtableError, Code, offAbort, onAbort } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';

/** Each watcher holds a stream open. */
const MAX_WATCHERS = 1000;

export class Health {
  readonly services: ReadonlySet<string>;
  readonly #watchers = new Set<() => void>();
  #serving = true;

  constructor(services: readonly string[]) {
    this.services = new Set(['', ...services]);
  }

  /** NOT_SERVING from now on. */
  stop(): void {
    this.#serving = false;
    for (const wake of [...this.#watchers]) wake();
  }

  get isServing(): boolean {
    return this.#serving;
  }

  /** Resolves when the server stops, or the context ends. */
  stopped(context: RequestContext): Promise<void> {
    if (this.#watchers.size >= MAX_WATCHERS)
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, `${MAX_WATCHERS} watch the health already`);
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#watchers.delete(wake);
        offAbort(context.signal, wake);
        resolve();
      };
      this.#watchers.add(wake);
      onAbort(context.signal, wake);
    });
  }
}
