/**
 * Calls to the master: its address is read in the lock service, kept, and read again after a call that may have failed
 * because another master has taken its place.
 *
 * Invariant: no call waits for a master that was replaced for longer than the interval of the checks. Such a master may
 * still listen, or be paused, so that it never answers.
 */
import { type BigtableError, Code, toBigtableError, unavailable } from '../base/index.ts';
import {
  CallContext,
  ContextWait,
  type Env,
  notReached,
  type RequestContext,
  type Timer,
  within,
} from '../env/index.ts';
import {
  callMaster,
  decodeCallablePeer,
  decodePeerFile,
  MASTER_PATH,
  type MasterCalls,
  type PeerFile,
} from '../protocol/index.ts';
import { isMisdirected, type Router } from './router.ts';

/** While a call is under way, the interval at which the master's file is read. */
const CHECK_MS = 2000;

/** A paused master does not answer, so its callers' time is over, or they give up before. */
const MAY_BE_REPLACED: ReadonlySet<Code> = new Set([Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.CANCELLED]);

export interface MasterCallerOptions {
  readonly env: Pick<Env, 'clock' | 'transport' | 'lockService' | 'requestBudget'>;
  readonly router: Pick<Router, 'retryPolicy'>;
}

export class MasterCaller {
  readonly #options: MasterCallerOptions;
  #known: PeerFile | undefined;

  constructor(options: MasterCallerOptions) {
    this.#options = options;
  }

  /**
   * Calls the master; waits while there is none. UNAVAILABLE, with an unknown outcome, if another one takes its place
   * before it answers.
   */
  async call<M extends keyof MasterCalls>(
    method: M,
    message: MasterCalls[M]['message'],
    context: RequestContext,
  ): Promise<MasterCalls[M]['answer']> {
    const retries = this.#options.router.retryPolicy(context);
    for (;;) {
      let master: PeerFile | undefined;
      try {
        master = this.#known ??= await this.#find(context);
        return await this.#callUntilReplaced(master, method, message, context);
      } catch (error) {
        if (MAY_BE_REPLACED.has(toBigtableError(error).code) && this.#known === master) this.#known = undefined;
        if (!isMisdirected(error)) throw error;
        await retries.wait(error);
      }
    }
  }

  async #callUntilReplaced<M extends keyof MasterCalls>(
    master: PeerFile,
    method: M,
    message: MasterCalls[M]['message'],
    context: RequestContext,
  ): Promise<MasterCalls[M]['answer']> {
    const { clock, transport, requestBudget: budget } = this.#options.env;
    const { deadlineMs, principal, priority, trace, notes } = context;
    const own = new CallContext({ budget, deadlineMs, principal, priority, trace, notes });
    const outer = new ContextWait(context, clock, own);
    const stopChecks = this.#checkWhileCalling(master, own);
    try {
      return await within(callMaster(transport, master.address, method, message, own), own, clock);
    } finally {
      stopChecks();
      outer.stop();
    }
  }

  /** Interrupts the call once the file names another master. Returns the function that ends the checks. */
  #checkWhileCalling(master: PeerFile, call: CallContext): () => void {
    const { clock, lockService } = this.#options.env;
    let timer: Timer;
    let isOver = false;
    const check = async (): Promise<void> => {
      // where the file cannot be read, or is missing, no other master is known
      const file = await lockService.read(MASTER_PATH).catch(() => undefined);
      if (isOver) return;
      const now = file && decodePeerFile(MASTER_PATH, file.contents);
      if (now !== undefined && now.name !== master.name) call.interrupt(replaced(master, now));
      else schedule();
    };
    const schedule = (): void => {
      timer = clock.timer(CHECK_MS, () => void check());
    };
    schedule();
    return () => {
      isOver = true;
      timer.cancel();
    };
  }

  async #find(context: RequestContext): Promise<PeerFile> {
    const { lockService, clock } = this.#options.env;
    const file = await within(lockService.read(MASTER_PATH), context, clock);
    if (file === undefined) throw notReached('no master is running now');
    return decodeCallablePeer(MASTER_PATH, file.contents);
  }
}

function replaced(master: PeerFile, next: PeerFile): BigtableError {
  return unavailable(
    `the master at ${master.address} was replaced by that at ${next.address} before it answered: the call may have been carried out`,
  );
}
