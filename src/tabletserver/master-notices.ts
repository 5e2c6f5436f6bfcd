/**
 * The notices that a server sends to the master unrequested. Each may get lost: the master reads the same from
 * METADATA, and sweeps also run on a timer (paper section 5.2).
 */
import { toBigtableError } from '../base/index.ts';
import type { Clock, LockService, Logger, RequestContext, Timer, Transport } from '../env/index.ts';
import { callMaster, decodeCallablePeer, MASTER_PATH, type MasterCalls } from '../protocol/index.ts';
import type { ServedTablet } from './tablet-map.ts';

/** Notices of files left within this time lead to one sweep. */
const SWEEP_DELAY_MS = 30_000;

/** The time that the master has to take a notice. */
const NOTICE_MS = 5000;

export interface MasterNoticesOptions {
  readonly transport: Transport;
  readonly lockService: LockService;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly serverName: string;
  readonly serverContext: () => RequestContext;
}

export class MasterNotices {
  readonly #options: MasterNoticesOptions;
  #sweep: Timer | undefined;
  #stopped = false;

  constructor(options: MasterNoticesOptions) {
    this.#options = options;
  }

  /** These tablets replace one. */
  split(tablets: readonly ServedTablet[]): void {
    void this.#notify('tabletSplit', {
      server: this.#options.serverName,
      tablets: tablets.map(({ key, epoch, tablet }) => ({ key, epoch, sizeBytes: tablet.sizeBytes() })),
    });
  }

  /** There may be files that no tablet needs. */
  filesLeft(): void {
    if (this.#stopped) return;
    this.#sweep ??= this.#options.clock.timer(SWEEP_DELAY_MS, () => {
      this.#sweep = undefined;
      void this.#notify('filesLeft', {});
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#sweep?.cancel();
  }

  async #notify<M extends 'tabletSplit' | 'filesLeft'>(method: M, message: MasterCalls[M]['message']): Promise<void> {
    const { transport, lockService, clock, logger, serverContext } = this.#options;
    try {
      const file = await lockService.read(MASTER_PATH);
      if (file === undefined || this.#stopped) return;
      const master = decodeCallablePeer(MASTER_PATH, file.contents);
      const context = { ...serverContext(), deadlineMs: clock.monotonicMs() + NOTICE_MS };
      await callMaster(transport, master.address, method, { ...message, to: master.name }, context);
    } catch (thrown) {
      logger.info('the master could not be notified', { what: method, error: toBigtableError(thrown).message });
    }
  }
}
