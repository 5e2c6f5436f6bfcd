/**
 * The master of a process: it stands by until it has the master lock, and stands by again when it has lost it.
 *
 * Invariant: the end of one is followed by the next, until the role is closed.
 */
import { offAbort, onAbort } from '../../base/index.ts';
import { Master } from '../../master/index.ts';
import { startAgain } from '../open/start-again.ts';
import type { RoleOptions } from './tablet-server-role.ts';

const MAX_RESTART_MS = 8000;

export interface MasterRoleOptions extends RoleOptions {
  /** Called when it has the lock, and when it has lost it. */
  readonly onChange?: (isMaster: boolean) => void;
  /** How long deleted tables are kept. */
  readonly keepDeletedMs: number;
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
    const { signal } = this.#closing;
    const again = { env: this.#options.env, what: 'a master', signal, mostMs: MAX_RESTART_MS };
    await startAgain(again, () => this.#serve(), 0);
    while (!signal.aborted) await startAgain(again, () => this.#serve());
  }

  /** One master, from its wait for the lock to its end. */
  async #serve(): Promise<void> {
    const { env, address, keepDeletedMs, onChange = () => {} } = this.#options;
    const { signal } = this.#closing;
    let onEnd = (): void => {};
    const ended = new Promise<void>((resolve) => (onEnd = resolve));
    const master = await Master.start({ env, address, comparesClocks: true, signal, onEnd, keepDeletedMs });
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
