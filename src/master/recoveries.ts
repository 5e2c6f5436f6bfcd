/**
 * Recoveries of the tablets of dead servers (paper section 5.2), each by itself: fences the server's log, and puts the
 * tablets that it is known to have had into the assignment queue. METADATA is not scanned.
 *
 * Invariants: a dead server is fenced before any row is read. None begins anew because another server dies. A server of
 * which nothing is known is followed by a look at all rows.
 */
import { assert, toBigtableError } from '../base/index.ts';
import type { Env, RequestContext, Timer } from '../env/index.ts';
import { isDeposed } from '../protocol/index.ts';
import type { AssignmentQueue } from './assignment-queue.ts';
import type { Loads } from './loads.ts';
import type { LogSorting } from './log-sorting.ts';
import type { Servers } from './servers.ts';
import { RETRY_MS } from './work-schedule.ts';

export interface RecoveriesOptions {
  readonly env: Env;
  readonly servers: Servers;
  readonly queue: AssignmentQueue;
  readonly loads: Loads;
  readonly sorting: Pick<LogSorting, 'endAt'>;
  readonly context: () => RequestContext;
  /** Throws while the master may not work. */
  readonly check: () => void;
  /** Has all rows read. */
  readonly lookAtAll: () => void;
  /** A later master has taken the place of this one. */
  readonly onDeposed: () => void;
}

export class Recoveries {
  readonly #options: RecoveriesOptions;
  /** Dead servers whose recovery has begun. `under way` also between two attempts. */
  readonly #begun = new Map<string, 'under way' | 'done'>();
  /** Those whose lock or file has changed again since their attempt under way began. */
  readonly #changed = new Set<string>();
  /** By server, the next attempt of a recovery that has failed. */
  readonly #retries = new Map<string, Timer>();
  #ended = false;

  constructor(options: RecoveriesOptions) {
    this.#options = options;
  }

  /** The server's lock or file has gone: they go one after the other. */
  serverGone(name: string): void {
    this.#options.servers.lockChanged(name);
    if (this.#ended) return;
    const state = this.#begun.get(name);
    if (state === 'under way') this.#changed.add(name);
    if (state !== undefined) return;
    this.#begun.set(name, 'under way');
    void this.#recover(name);
  }

  /** Forgets the dead servers whose logs were deleted. */
  forget(): void {
    for (const [name, state] of this.#begun)
      if (state === 'done' && !this.#options.servers.remembersDead(name)) this.#begun.delete(name);
  }

  end(): void {
    this.#ended = true;
    for (const timer of this.#retries.values()) timer.cancel();
  }

  async #recover(name: string): Promise<void> {
    const { env, check, onDeposed } = this.#options;
    try {
      check();
      await this.#begin(name);
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (isDeposed(error)) onDeposed();
      if (this.#ended) return;
      const fields = { server: name, error: error.message };
      env.logger.info('the recovery of a dead server failed and will be tried again', fields);
      const timer = env.clock.timer(RETRY_MS, () => {
        this.#retries.delete(name);
        void this.#recover(name);
      });
      this.#retries.set(name, timer);
    }
  }

  async #begin(name: string): Promise<void> {
    const { env, servers, queue, loads, sorting, lookAtAll, context } = this.#options;
    assert(this.#begun.get(name) === 'under way', 'one recovery of a server runs at a time');
    this.#changed.delete(name);
    if (!(await servers.isDead(name))) {
      // its lock may have gone since it was read
      if (this.#changed.has(name)) return this.#begin(name);
      // it has its lock again, or its file is gone and its lock will be
      this.#begun.delete(name);
      return;
    }
    loads.endAt(name);
    sorting.endAt(name);
    const [removed] = await Promise.allSettled([servers.removeDead(name), servers.leaveOutSilent(context())]);
    if (removed.status === 'rejected') {
      const error = toBigtableError(removed.reason).message;
      env.logger.info('the file of a dead server was not removed; the next scan repeats it', { server: name, error });
    }
    assert(servers.get(name) === undefined, 'a server that was fenced is given no tablet');
    if (!servers.remembersDead(name)) {
      // its log was deleted meanwhile: no row names the server
      this.#begun.delete(name);
      return;
    }
    const keys = servers.exhume(name);
    if (keys === undefined) lookAtAll();
    else queue.recover(keys);
    this.#begun.set(name, 'done');
  }
}
