/**
 * The master lock (paper section 5.2). Several masters may run: one has the lock, the others stand by and try to take
 * it whenever it is free.
 */
import { assert, type BigtableError, Code, offAbort, onAbort, toBigtableError, unavailable } from '../base/index.ts';
import { callCancelled, type Env, followChanges, type LockHandle, requestContext } from '../env/index.ts';
import { checkClock, MASTER_PATH } from '../protocol/index.ts';

export interface LockOptions {
  readonly env: Env;
  /** Ends the wait. */
  readonly signal?: AbortSignal;
  readonly comparesClocks?: boolean;
}

/**
 * Takes the master lock for the session; waits while another session has it. CANCELLED when `signal` aborts,
 * FAILED_PRECONDITION if clocks are compared and that of this machine is off; otherwise fails as the lock service does,
 * and the caller begins again with another session.
 */
export async function takeMasterLock(options: LockOptions, sessionId: string): Promise<LockHandle> {
  return (await options.env.lockService.tryAcquire(MASTER_PATH, sessionId)) ?? standBy(options, sessionId);
}

async function standBy(options: LockOptions, sessionId: string): Promise<LockHandle> {
  const { env, signal } = options;
  let mayBeFree = true;
  let failure: BigtableError | undefined;
  let wake = (): void => {};
  const tryAgain = (): void => {
    mayBeFree = true;
    wake();
  };
  const fail = (error: BigtableError): void => {
    failure ??= error;
    wake();
  };
  const compareClocks = (): void => {
    if (!options.comparesClocks) return;
    const context = requestContext({ budget: env.requestBudget, principal: 'master' });
    checkClock(env, context).catch((thrown: unknown) => {
      const error = toBigtableError(thrown);
      if (error.code === Code.FAILED_PRECONDITION || error.code === Code.UNAUTHENTICATED) fail(error);
    });
  };
  const stopWatching = await followChanges(env, MASTER_PATH, {
    onChange: (event) => {
      // after the end of its own session the attempt fails
      if (event.kind === 'lock-lost' || event.kind === 'session-expired') tryAgain();
      // a master announces itself
      else if (event.kind === 'changed') compareClocks();
    },
    readAgain: async () => tryAgain(),
    onEnd: () => fail(unavailable('changes of the master lock are no longer reported')),
  });
  compareClocks();
  const abort = (): void => wake();
  if (!signal?.aborted) onAbort(signal, abort);
  try {
    for (;;) {
      if (signal?.aborted) throw callCancelled('the master lock');
      if (failure !== undefined) throw failure;
      if (mayBeFree) {
        mayBeFree = false;
        const lock = await env.lockService.tryAcquire(MASTER_PATH, sessionId);
        if (lock === undefined) continue;
        assert(lock.path === MASTER_PATH && lock.sessionId === sessionId, 'a session takes the lock for itself');
        return lock;
      } else {
        await new Promise<void>((resolve) => (wake = resolve));
      }
    }
  } finally {
    stopWatching();
    offAbort(signal, abort);
  }
}
