/**
 * Tablets that this server has released and that no other server was given: a master that dies in the midst of a move,
 * or does not learn of the release, leaves them without a server. This one takes them back after UNCLAIMED_MS.
 *
 * Invariant: a tablet is taken back by a commit conditional on its row, at a new epoch, as a master gives it away: of
 * the two one is refused. Until then the row names this server, so no sweep passes over its log once it is dead
 * (docs/decisions/0090-tablets-taken-back.md).
 */
import { assert, toBigtableError } from '../base/index.ts';
import type { Env, RequestContext, Timer } from '../env/index.ts';
import type { MetadataClient } from '../locator/index.ts';
import { commitOfRow, givenTo, type MetadataKey } from '../metadata/index.ts';
import { logPathOf, type TabletRef } from '../protocol/index.ts';

/** A master gives a tablet away within milliseconds of its release. Callers wait for seconds. */
const UNCLAIMED_MS = 1000;

export interface UnclaimedTabletsOptions {
  readonly env: Pick<Env, 'clock' | 'logger' | 'random'>;
  readonly serverName: string;
  readonly address: string;
  readonly metadata: MetadataClient;
  readonly serverContext: () => RequestContext;
  load(ref: TabletRef): Promise<void>;
}

export class UnclaimedTablets {
  readonly #options: UnclaimedTabletsOptions;
  readonly #timers = new Map<MetadataKey, Timer>();
  #stopped = false;

  constructor(options: UnclaimedTabletsOptions) {
    this.#options = options;
  }

  /** The tablet was released at that epoch, at the request of a master. */
  released({ key, epoch }: TabletRef): void {
    if (this.#stopped) return;
    this.#timers.get(key)?.cancel();
    const takeBack = (): void => {
      this.#timers.delete(key);
      void this.#takeBack({ key, epoch });
    };
    this.#timers.set(key, this.#options.env.clock.timer(UNCLAIMED_MS, takeBack));
  }

  /** The server takes nothing back any more. */
  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }

  async #takeBack(ref: TabletRef): Promise<void> {
    const { logger } = this.#options.env;
    try {
      const epoch = await this.#commit(ref);
      if (epoch === undefined || this.#stopped) return;
      logger.info('a tablet that no master has given away is taken back', { tablet: ref.key, epoch });
      await this.#options.load({ key: ref.key, epoch });
    } catch (thrown) {
      if (this.#stopped) return;
      // the next look of a master finds it
      logger.warn('a tablet that no master has given away is not served', { error: toBigtableError(thrown).message });
    }
  }

  /** Returns the epoch at which the tablet is this server's now; undefined: it is another's, or gone. */
  async #commit({ key, epoch }: TabletRef): Promise<number | undefined> {
    const { env, metadata, serverContext, serverName: name, address } = this.#options;
    const row = await metadata.readRow(key, serverContext());
    if (this.#stopped || row?.server?.name !== name || row.epoch !== epoch) return undefined;
    const event = { kind: 'assigned', atMicros: env.clock.nowMicros() } as const;
    const next = givenTo(row, { name, address }, logPathOf(name), event.atMicros);
    const commit = commitOfRow(env.random.uniqueName(), event, key, row, next);
    const [outcome] = await metadata.commit([commit], serverContext());
    assert(outcome !== undefined, 'a commit has an outcome');
    return outcome.kind === 'done' ? next.epoch : undefined;
  }
}
