/**
 * The master of a process: it stands by until it has the master lock, and stands by again when it has lost it.
 *
 * Invariant: the end of one is followed by the next, until the role is closed.
 */
import { offAbort, onAbort, toBigtableError } from '../../base/index.ts';
import { sleep } from '../../env/index.ts';
import { Master } from '../../master/index.ts';
import type { RoleOptions } from './tablet-server-role.ts';

/** Delay between the end of one, or a start that failed, and the next start; it doubles while starts fail. */
const RESTART_MS = 500;
const MAX_RESTART_MS = 8000;

export interface MasterRoleOptions extends RoleOptions {
  /** Called when it has the lock, and when it has lost it. */
  readonly onChange?: (isMaster: boolean) => void;
}

export class MasterRole {
  readonly #options: MasterRoleOptions;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;

  /** Returns immediately: it stands by. */
  constructor(options: MasterRoleOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    const { env } = this.#options;
    const { signal } = this.#closing;
    let delayMs = RESTART_MS;
    while (!signal.aborted) {
      try {
        await this.#serve();
        delayMs = RESTART_MS;
      } catch (error) {
        if (signal.aborted) return;
        env.logger.error('a master could not start and will be tried again', { error: toBigtableError(error).message });
        delayMs = Math.min(2 * delayMs, MAX_RESTART_MS);
      }
      await sleep(env.clock, delayMs, signal).catch(() => {});
    }
  }

  /** One master, from its wait for the lock to its end. */
  async #serve(): Promise<void> {
    const { env, address, onChange = () => {} } = this.#options;
    const { signal } = this.#closing;
    let onEnd = (): void => {};
    const ended = new Promise<void>((resolve) => (onEnd = resolve));
    const master = await Master.start({ env, address, comparesClocks: true, signal, onEnd });
    // a first assignment that fails is logged, and made again
    master.assigned.catch(() => {});
    onChange(true);
    onAbort(signal, onEnd);
    if (signal.aborted) onEnd();
    await ended;
    offAbort(signal, onEnd);
    await master.close();
    onChange(false);
  }

  /** Releases the lock, if it has it: another master takes it. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }
}
