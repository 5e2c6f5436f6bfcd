/**
 * The master lock (paper section 5.2). Several masters may run: one has the lock, the others stand by and try to take
 * it whenever it is free.
 */
import { assert, unavailable } from '../base/index.ts';
import { callCancelled, type Clock, followChanges, type LockHandle, type LockService } from '../env/index.ts';
import { MASTER_PATH } from '../protocol/index.ts';

export interface LockParts {
  readonly lockService: LockService;
  readonly clock: Clock;
}

/**
 * Takes the master lock for the session; waits while another session has it. CANCELLED when `signal` aborts; otherwise
 * fails as the lock service does, and the caller begins again with another session.
 */
export async function takeMasterLock(
  parts: LockParts,
  sessionId: string,
  signal: AbortSignal | undefined,
): Promise<LockHandle> {
  return (await parts.lockService.tryAcquire(MASTER_PATH, sessionId)) ?? standBy(parts, sessionId, signal);
}

async function standBy(parts: LockParts, sessionId: string, signal: AbortSignal | undefined): Promise<LockHandle> {
  let mayBeFree = true;
  let isWatched = true;
  let wake = (): void => {};
  const tryAgain = (): void => {
    mayBeFree = true;
    wake();
  };
  const stopWatching = await followChanges(parts, MASTER_PATH, {
    onChange: (event) => {
      // after the end of its own session the attempt fails
      if (event.kind === 'lock-lost' || event.kind === 'session-expired') tryAgain();
    },
    readAgain: async () => tryAgain(),
    onEnd: () => {
      isWatched = false;
      wake();
    },
  });
  const onAbort = (): void => wake();
  signal?.addEventListener('abort', onAbort);
  try {
    for (;;) {
      if (signal?.aborted) throw callCancelled('the master lock');
      if (!isWatched) throw unavailable('changes of the master lock are no longer reported');
      if (mayBeFree) {
        mayBeFree = false;
        const lock = await parts.lockService.tryAcquire(MASTER_PATH, sessionId);
        if (lock === undefined) continue;
        assert(lock.path === MASTER_PATH && lock.sessionId === sessionId, 'a session takes the lock for itself');
        return lock;
      } else {
        await new Promise<void>((resolve) => (wake = resolve));
      }
    }
  } finally {
    stopWatching();
    signal?.removeEventListener('abort', onAbort);
  }
}
